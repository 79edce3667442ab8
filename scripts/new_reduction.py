"""Write the files of a new reduction: a learner that works, its oracle and its tests, with marks where to go on.

    python -m scripts.new_reduction naive_bayes

It writes xclass/reductions/NAME/, xclass/abilities/describe/NAME.py, tests/oracles/NAME.py and
tests/reductions/NAME/test_NAME.py, and adds the record to xclass/reductions/registry.py and a first variant to
tests/support/variants.py. No file is replaced.

What it writes predicts the class that was seen most often, and keeps the contract of every reduction. Two tests fail
until the author has done what they ask for: `test_nothing_is_left_to_replace`, while a line has REPLACE, and
`test_it_does_better_than_the_most_frequent_class`. docs/adding_a_reduction.md leads through the rest.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from scripts.lib.command_line import new_parser
from scripts.lib.processes import ROOT

REGISTRY, VARIANTS = Path("xclass/reductions/registry.py"), Path("tests/support/variants.py")

PACKAGE = '''"""REPLACE: Say in one line what @NAME@ does."""
'''
REDUCTION = '''"""REPLACE: Say in one sentence what this reduction does.

Source    REPLACE: the paper.
Cost      REPLACE: O(1) for an example, whatever K is.
Names     K classes.
Differs   from the paper in nothing. REPLACE, if need be by a list, as in the heads of other reductions
Idea      REPLACE: Each class is counted, and the most frequent one is predicted.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float64s, Int64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels.constants import LARGEST
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.archive import Archive
from ...options.declare import OptionGroup, option, refused
from ..core import label_arrays
from ..core.base import Reduction, ReductionRecord
from ..core.contract import BatchTask
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec

SUPPORTED_OPTIONS = ("bits", "predict_only_model")  # options of the binary learner that apply. REPLACE


class @CLASS@Options(OptionGroup):
    """Declare the options."""

    @NAME@: int = option(
        "number of classes; labels are 1..K", metavar="K", minimum=1, maximum=2**28, stored=True
    )

    RULES = (refused(gd.other_options(SUPPORTED_OPTIONS), "has no effect with --@NAME@; leave it out"),)


# -- kernels


@bare
def process_batch(count: Float64s, batch: Batch, label: Int64s, learn: bool, best: Int64s) -> None:
    """Predict every example of a batch, and then learn from it if it has a label.

    Parameters
    ----------
    count : float64[K], weight of the examples of each class, written
    batch : examples; those of example i have the features `batch.index[batch.start[i]:batch.start[i + 1]]`
    label : int64[n], 0-based class, -1 for examples that are not learned from
    learn : whether any example is learned from
    best : int64[n], predicted class, 0-based; written
    """
    # REPLACE: Replace what follows.
    c = np.argmax(count)
    for i in range(label.shape[0]):
        best[i] = c
        if learn and label[i] >= 0:
            count[label[i]] += np.float64(batch.weight[i])
            if count[label[i]] > count[c] or (count[label[i]] == count[c] and label[i] < c):
                c = label[i]


# -- Python


class @CLASS@(Reduction):
    """Predict the class that was seen most often (`--@NAME@`). REPLACE

    Attributes
    ----------
    classes : number of classes
    count : float64[K], weight of the examples of each class
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.classes = spec.options.@NAME@
        self.count = np.zeros(self.classes)
        self.largest_step = 1e15  # sums of weights stay finite
        self.stages = [self._process_batch]

    def _process_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage."""
        batch = task.batch
        label = self.classes_of(task, task.learned(), "@NAME@", self.classes)
        best = np.empty(batch.n, np.int64)
        process_batch(self.count, batch, label, task.learn, best)
        prediction = best.astype(np.float64) + 1.0
        task.prediction, task.loss = prediction, label_arrays.wrong_weights(prediction, batch.label, batch.weight)
        # what -r writes. REPLACE: Give the scores of the classes that were compared.
        scores = np.minimum(self.count[best], LARGEST).astype(np.float32)
        task.scored = ClassLists(scores, best + 1, np.arange(batch.n + 1), has_rest=False)

    def serialize(self, archive: Archive) -> None:
        """Save or restore the state. REPLACE: Limit all numbers that kernels use as an index, a bound or a link."""
        archive.fill("count", self.count, 0, stored_arrays.MAX_SUM)
        self.outside = archive.count("outside", self.outside)


def check_arrays(spec: LearnerSpec, arrays: stored_arrays.Arrays) -> None:
    """Check the size of the arrays that depend on K before `build` allocates them."""
    stored_arrays.check_rows("count", arrays, spec.options.@NAME@)


REDUCTION = ReductionRecord(
    name="@NAME@",
    title="@TITLE@",
    summary="REPLACE: what it is and when to use it",
    options=@CLASS@Options,
    enabled="@NAME@",
    build=@CLASS@,
    check_arrays=check_arrays,
    learner_options=SUPPORTED_OPTIONS,
    not_merged="REPLACE: why not",
)
'''
DESCRIBE = '''"""Describe --@NAME@, and explain its predictions. REPLACE: by what adds up to their scores."""

from __future__ import annotations

import numpy as np

from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share
from ...reductions.@NAME@.reduction import @CLASS@
from .reasons import chosen


def explain(learner: @CLASS@, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch."""
    # REPLACE: Give the share of each feature in the score, see `explain.records`.
    score = learner.count
    ranked = (
        ExplainedClass(c + 1, float(score[c]), None, (Share("weight of the examples of the class", float(score[c])),))
        for c in np.argsort(-score, kind="stable").tolist()
    )
    return Reasons(*chosen(ranked, k, float(batch.label[0])), learner.classes)
'''
ORACLE = '''"""Oracle of @NAME@, written from the paper: slow, plain Python that shares no code with the package.

Source   REPLACE: the paper.
"""

from __future__ import annotations


class @CLASS@:
    """REPLACE: Learn and predict labels; a row is a list of pairs (index of a feature, its value)."""

    def __init__(self, k: int):
        self.count = [0.0] * (k + 1)

    def predict(self, row) -> int:
        return max(range(1, len(self.count)), key=lambda y: (self.count[y], -y))

    def learn(self, row, y: int, weight: float = 1.0) -> None:
        self.count[y] += weight
'''
TEST = '''"""The reduction @NAME@: agreement with its oracle, the contract, and what is left to do."""

from __future__ import annotations

import harness
import pytest
from oracles.@NAME@ import @CLASS@
from running import ROOT
from streams import multiclass

import xclass
from xclass import Learner

K = 9
FILES = [
    *sorted((ROOT / "xclass" / "reductions" / "@NAME@").glob("*.py")),
    ROOT / "xclass" / "abilities" / "describe" / "@NAME@.py",
    ROOT / "tests" / "oracles" / "@NAME@.py",
]


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_oracle(seed):
    """Every prediction that is made before an example is learned is that of the oracle."""
    text = multiclass(seed, K, 300, weights=(1, 0.5, 2), unlabelled=0.1)
    settled = harness.configure("--@NAME@", K, "-b", 12)
    learner = harness.learner_of(settled)
    batch = harness.batch_of(settled, text)
    task, _ = harness.go_through_stages(learner, batch)
    oracle, expected = @CLASS@(K), []
    for features, label, weight in harness.examples_of(batch):
        expected.append(oracle.predict(features))
        if label is not None:
            oracle.learn(features, label, weight)
    assert task.prediction.tolist() == expected


def test_keeps_the_contract():
    problems = [p for p in xclass.check_reduction("@NAME@") if p.check != "learns_to_tell_classes_apart"]
    assert not problems


def test_nothing_is_left_to_replace():
    left = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "REPLACE" in line
    ]
    assert not left, "replace what these lines mark:\\n" + "\\n".join(left)


def test_it_does_better_than_the_most_frequent_class():
    text = multiclass(1, K, 900, noise=0)
    with Learner("@NAME@", K, bits=12) as model:
        model.learn_many(text)
        model.end_pass()
        pairs = zip(model.predict_many(text).tolist(), text.splitlines(), strict=True)
        right = sum(prediction == int(line.split()[0]) for prediction, line in pairs)
    assert right > 600, f"{right} of 900 examples without noise: does it use the features?"
'''


def files(name: str) -> dict[Path, str]:
    """Return the new files and their contents."""
    places = {
        f"xclass/reductions/{name}/__init__.py": PACKAGE,
        f"xclass/reductions/{name}/reduction.py": REDUCTION,
        f"xclass/abilities/describe/{name}.py": DESCRIBE,
        f"tests/oracles/{name}.py": ORACLE,
        f"tests/reductions/{name}/test_{name}.py": TEST,
    }
    words = {"@NAME@": name, "@CLASS@": "".join(map(str.title, name.split("_"))), "@TITLE@": _title(name)}
    return {Path(place): re.sub("@[A-Z]+@", lambda m: words[m[0]], text) for place, text in places.items()}


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def registered(text: str, name: str) -> str:
    """Return the text of the registry with a further reduction, the last one."""
    end = text.index("\n}\nREDUCTIONS")
    return f'{text[:end]}\n    "{name}": "{name}.reduction",{text[end:]}'


def with_variant(text: str, name: str) -> str:
    """Return the text of the variants with an empty list for a reduction."""
    end = text.index("\n}\nAT_THE_END")
    return f'{text[:end]}\n    "{name}": [],{text[end:]}'


def write(root: Path, name: str) -> list[Path]:
    """Write the files and return their paths, those that are changed last; raise ValueError if a file exists."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is no name of a reduction: use lower-case letters, digits and _")
    new = files(name)
    for path in new:
        if (root / path).exists():
            raise ValueError(f"{path} exists: choose another name, or delete what is there")
    changed = {
        REGISTRY: registered((root / REGISTRY).read_text(encoding="utf-8"), name),
        VARIANTS: with_variant((root / VARIANTS).read_text(encoding="utf-8"), name),
    }
    for path, text in {**new, **changed}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return [*new, *changed]


def main(words: list[str] | None = None) -> None:
    """Write the files for the name on the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("name", metavar="NAME", help="name of the reduction and of its option, such as naive_bayes")
    name = parser.parse_args(words).name
    try:
        written = write(ROOT, name)
    except ValueError as error:
        sys.exit(f"new_reduction: {error}")
    print("\n".join(map(str, written)))
    print(f"\nNow begin with tests/oracles/{name}.py; docs/adding_a_reduction.md leads through the rest.")
    print(f"To see what is left, run\n    python -m pytest -n 0 tests/reductions/{name}")


if __name__ == "__main__":
    main()
