"""List the reductions in the order of `--help`; a reduction is imported when its record is asked for.

To add one, write its module, add it to `MODULES` and add its oracle (docs/adding_a_reduction.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import XclassError
from ..kernels import jit
from . import presets

if TYPE_CHECKING:
    from .core.base import ReductionRecord

T = TypeVar("T")
MODULES = {  # name -> module with its record, which is called REDUCTION
    "scalar": "scalar.reduction",
    "multilabel": "multilabel.reduction",
    "oaa": "oaa.reduction",
    "multilabel_oaa": "multilabel_oaa.reduction",
    "recall_tree": "recall_tree.reduction",
    "log_multi": "log_multi.reduction",
    "ect": "ect.reduction",
    "random_tree": "random_tree.reduction",
    "cpt": "multiclass.reduction",
    "softmax_tree": "softmax_tree.reduction",
    "mach": "mach.reduction",
    "means": "means.reduction",
    "sparse_experts": "sparse_experts.reduction",
    "plt": "plt.reduction",
}
REDUCTIONS: tuple[ReductionRecord, ...]  # all records; set where others take their place for a while


def __getattr__(name: str) -> Any:
    if name == "REDUCTIONS":
        return records(MODULES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def records(names: Collection[str]) -> tuple[ReductionRecord, ...]:
    """Return the records of the reductions with these names."""
    substitutes: tuple[ReductionRecord, ...] | None = globals().get("REDUCTIONS")
    if substitutes is not None:
        return tuple(record for record in substitutes if record.name in names)
    with jit.importing():
        return tuple(
            import_module(f".{module}", __package__).REDUCTION for name, module in MODULES.items() if name in names
        )


def all_names() -> list[str]:
    return [record.name for record in globals().get("REDUCTIONS", ())] or [*MODULES]


def imported() -> list[str]:
    """Return the names of the reductions whose modules are imported."""
    return [name for name, module in MODULES.items() if f"{__package__}.{module}" in sys.modules]


def listed(fits: Callable[[ReductionRecord], bool]) -> str:
    """Return the names of the presets and reductions whose record fits, as a message shows them."""
    names = [record.name for record in records(all_names()) if fits(record)]
    return ", ".join([*presets.reductions(names), *names])


def chosen(options: Iterable[str]) -> set[str]:
    """Return the names of the reductions that options choose, by field, and of the learner without a reduction."""
    given, names = set(options), all_names()
    of_presets = {reduction for preset, reduction in presets.reductions(names).items() if preset in given}
    return {"scalar", *(given & {*names}), *of_presets}


def read_for_chosen(options: Iterable[str], read: Callable[[Collection[str]], T]) -> T:
    """Return `read(names)` for the reductions that options choose, by field, so that only these are imported.

    If it refuses the options, it is called for all reductions, because an option may be that of another one, and its
    message may name others.
    """
    try:
        return read(chosen(options))
    except XclassError:
        return read(all_names())
