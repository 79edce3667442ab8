"""Models of --predict_only_model predict like whole models, hold no more than that needs, and learn nothing."""

import pytest
from command import learn, xclass
from library import state_of
from streams import of_kind
from variants import AT_THE_END, BITS, KINDS, K, chosen, every_variant, learner, words_of

from xclass.api.learner import load
from xclass.errors import UsageError
from xclass.model import model_file

EVERY_VARIANT = every_variant(slow=True)
# ends of the names of arrays for learning only
LEARNING_ONLY = ("g", "bias_g", "n", "sums", "cells", "key", "wear", "seen")


def stream(name: str, seed: int, n: int) -> str:
    return of_kind(KINDS[name], seed, K, n, weights=(1, 0.5))


pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.sampled(3)
@EVERY_VARIANT
def test_predictions_are_those_of_the_whole_model(place, name, options):
    train, test = stream(name, 1, 150), stream(name, 2, 40)
    args = (*chosen(name), *BITS, *words_of(options))
    learn(*args, "--quiet", "-f", "whole", stdin=train)
    learn(*args, "--quiet", "-f", "small", "--predict_only_model", stdin=train)
    predictions = [
        learn("-i", model, "-t", "-p", "stdout", "--quiet", *more, stdin=test).out
        for model in ("whole", "small")
        for more in ((), ("-f", f"{model}.again"))
    ]
    assert predictions[0]
    assert predictions == predictions[:1] * 4
    assert (place / "small").read_bytes() == (place / "small.again").read_bytes()
    assert (place / "whole").read_bytes() == (place / "whole.again").read_bytes()
    assert len((place / "small").read_bytes()) <= len((place / "whole").read_bytes())
    whole, small = model_file.load("whole").arrays, model_file.load("small").arrays
    dropped = {array for array in whole if array.rsplit(".", 1)[-1] in LEARNING_ONLY}
    if name == "sparse_experts":
        dropped = set()  # it needs all arrays to predict
    elif options.get("layout") != "tagged" and name not in AT_THE_END and (name != "cpt" or "layout" in options):
        assert dropped
    assert not dropped & set(small)
    learn("-i", "whole", "-t", "--quiet", "-f", "stripped", "--predict_only_model", stdin=test)
    assert model_file.load("stripped").arrays.keys() == small.keys()


@EVERY_VARIANT
def test_such_a_model_refuses_to_learn(place, name, options):
    text = stream(name, 3, 60)
    with learner(name, predict_only_model=True, **options) as model:
        model.learn_many(text)
        model.end_pass()
        model.save("small")
        state = state_of(model)
    result = xclass("-i", "small", "-f", "out", stdin=text)
    assert result.status == 2
    assert "-i small: this model was shrunk, or saved with --predict_only_model" in result.err
    assert "Traceback" not in result.err
    assert not (place / "out").exists()
    with load("small") as model:
        with pytest.raises(UsageError, match="predict_only_model"):
            model.learn_many(text)
        assert state_of(model) == state


@EVERY_VARIANT
def test_a_whole_model_that_lacks_an_array_is_refused(place, name, options):
    learn(*chosen(name), *BITS, *words_of(options), "--quiet", "-f", "whole", stdin=stream(name, 1, 60))
    whole = model_file.load("whole")
    # the binary learner takes a model without sums for one that can only predict, whatever its counters say
    dropped = [array for array in whole.arrays if array.rsplit(".", 1)[-1] in ("cells", "key", "wear", "seen")]
    for array in dropped:
        arrays = {other: whole.arrays[other] for other in whole.arrays if other != array}
        model_file.save("damaged", options=whole.options, facts=whole.facts, arrays=arrays)
        result = xclass("-i", "damaged", "-t", stdin=stream(name, 2, 5))
        assert result.status == 1
        assert "it is missing" in result.err
