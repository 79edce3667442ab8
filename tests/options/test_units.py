"""Sizes and durations: one meaning for every option of the command and argument of Python that takes one."""

import pytest

from xclass.api import configuration
from xclass.cli import help_text
from xclass.cli.shrink import ShrinkOptions as Shrinking
from xclass.cluster.options import ClusterOptions as Cluster
from xclass.errors import UsageError
from xclass.options import words
from xclass.options.declare import BYTES, SECONDS, options_of
from xclass.serving.options import ServerOptions as Serving
from xclass.tuning.options import TuneOptions as Tuning

DECLARED = {name: o for group in (Shrinking, Tuning, Serving, Cluster) for name, o in options_of(group).items()}
SIZES = [name for name, option in DECLARED.items() if option.metavar == "SIZE"]
DURATIONS = [name for name, option in DECLARED.items() if "time" in name]


def test_every_size_and_duration_has_its_unit():
    assert sorted(SIZES) == ["max_body", "max_line", "memory", "size"]
    assert all(DECLARED[name].unit is BYTES for name in SIZES)
    assert sorted(DURATIONS) == ["idle_timeout", "ray_timeout", "time", "timeout"]
    assert all(DECLARED[name].unit is SECONDS for name in DURATIONS)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("text", "value"), [("500M", 500_000_000), ("0.5g", 500_000_000), ("300000KB", 300_000_000), (".4GB", 400_000_000),
                        ("268435456", 1 << 28), ("999999.999k", 999_999_999)],
)  # fmt: skip
def test_letters_stand_for_thousands(name, text, value):
    assert words.value(DECLARED[name], text) == configuration.checked_value(name, DECLARED[name], text) == value
    assert isinstance(words.value(DECLARED[name], text), int)
    assert BYTES.letters in help_text.description(DECLARED[name])


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2H", 7200), ("1d", 86400)])
def test_letters_stand_for_minutes_hours_and_days(name, text, value):
    assert words.value(DECLARED[name], text) == configuration.checked_value(name, DECLARED[name], text) == value
    assert SECONDS.letters in help_text.description(DECLARED[name])


@pytest.mark.parametrize("name", [*SIZES, *DURATIONS])
@pytest.mark.parametrize("text", ["", "M", "h", "-5M", "-5m", "5x", "5mbb", "five", "5 m m", "nan", "inf", "1e", "٣M"])
def test_other_texts_are_refused(name, text):
    unit = DECLARED[name].unit
    with pytest.raises(UsageError) as error:
        words.value(DECLARED[name], text)
    message = str(error.value)
    assert f"{text!r} is not a number of {unit.name}; give a number of {unit.name} " in message, message
    assert unit.letters in message
    with pytest.raises(UsageError, match=f"is not a number of {unit.name}"):
        configuration.checked_value(name, DECLARED[name], text)


@pytest.mark.parametrize(("name", "text"), [("size", "0M"), ("memory", "200M"), ("max_line", "2G"), ("timeout", "12d")])
def test_the_range_is_that_of_the_unit(name, text):
    with pytest.raises(UsageError, match=f"{text} is out of range; give a number of {DECLARED[name].unit.name} "):
        words.value(DECLARED[name], text)


def test_other_options_take_no_letters():
    with pytest.raises(UsageError, match="'5k' is not a whole number"):
        words.value(DECLARED["settings"], "5k")
