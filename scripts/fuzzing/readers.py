"""Readers of all formats against independent ones: the property tests of the readers, with other and more examples.

The tests compare what xclass reads, and where it refuses, with plain readers in Python (`tests/oracles`, and Python's
csv and json). They draw few examples in a run; here each case is one of them with a seed of its own.
"""

from __future__ import annotations

import importlib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st

from scripts.fuzzing.draw import drawn
from scripts.fuzzing.runs import ACCEPTED, Bench, Limits, Outcome

MODULES = (
    "tests.formats.test_formats_oracle", "tests.text.test_parser_oracle", "tests.system.test_bounded_json",
    "tests.text.test_numbers", "tests.formats.test_csv_rows",
)  # fmt: skip
EXAMPLES = 60  # of a case


class Case(NamedTuple):
    """A property test, and the seed of its examples."""

    test: str
    seed: int


class Readers:
    """The part `readers` of the campaign."""

    name = "readers"

    def __init__(self, only: str = ""):
        self.limits = Limits(cpu=120.0, memory=1 << 30)
        self._tests: dict[str, Callable[[], None]] = {}

    def prepare(self, bench: Bench) -> None:
        """Find the tests, and load what they need."""
        for name in MODULES:
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name != name:
                    raise
                continue
            for function, test in vars(module).items():
                if getattr(test, "is_hypothesis_test", False) and not inspect.signature(test).parameters:
                    self._tests[
                        f"{name.rpartition('.')[2].removeprefix('test_')}: {function.removeprefix('test_')}"
                    ] = test
        for name in self._tests:
            self._examples(name, 0, 2)

    def _examples(self, name: str, number: int, count: int) -> None:
        """Run a test with `count` examples."""
        test = self._tests[name]
        # the settings of a test cannot be changed in another way
        test._hypothesis_internal_use_settings = settings(  # type: ignore[attr-defined]
            max_examples=count, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seed(number)(test)()

    def cases(self, seed: int, n: int) -> list[Case]:
        """Draw about `n` cases."""
        return drawn(st.builds(Case, st.sampled_from(sorted(self._tests)), st.integers(0, 2**32 - 1)), n, seed)

    def group(self, case: Case) -> str:
        """Count by the test."""
        return case.test

    def run(self, case: Case, bench: Bench) -> Outcome:
        """Run a test with its examples."""
        bench.last = ("(the reader alone)",)
        try:
            self._examples(case.test, case.seed, EXAMPLES)
        except Exception as error:
            kind = "wrong result" if isinstance(error, AssertionError) else "traceback"
            detail = "\n".join([traceback.format_exc()[-2500:], *getattr(error, "__notes__", ())])
            return Outcome(kind, detail, f"{case.test}: {re.sub('[0-9]+', 'N', str(error))[:60]!r}")
        return Outcome(ACCEPTED, lines=EXAMPLES)

    def words(self, case: Case) -> tuple[str, ...]:
        """Return what runs instead of a command line."""
        return ("(the reader alone)",)

    def smaller(self, case: Case) -> Iterator[Case]:
        """There is nothing simpler: hypothesis has made the example simpler."""
        yield from ()

    def reproduction(self, case: Case) -> dict[str, bytes]:
        """Return the files of a case."""
        return {}
