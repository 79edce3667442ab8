"""Learn online to predict one of very many classes, in logarithmic time, as a command and as a library.

    import xclass

    with xclass.Learner("recall_tree", classes=1000) as model:
        for batch in xclass.read_vw("train.vw.gz"):
            model.learn_many(batch)
        model.end_pass()
        model.save("model.bin")

    print(xclass.load("model.bin").predict_many(["| height:1.5 length:2"]))

Importing this package compiles nothing and imports neither NumPy nor numba: its names are imported on first use.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "DataError",
    "Documents",
    "Explanation",
    "Learner",
    "ModelError",
    "Outcome",
    "Scores",
    "UsageError",
    "XclassError",
    "XclassWarning",
    "__version__",
    "check_reduction",
    "load",
    "merge",
    "read_vw",
    "write_vw",
]

NOT_ON_WINDOWS = "xclass runs on Linux and macOS; on Windows, use the Windows Subsystem for Linux (WSL)"

if TYPE_CHECKING:
    from .api.files import read_vw, write_vw
    from .api.inputs import Documents
    from .api.learner import Learner, load
    from .api.results import Outcome, Scores
    from .checks import check_reduction
    from .data.batch import Batch
    from .errors import DataError, ModelError, UsageError, XclassError, XclassWarning
    from .explain.records import Explanation
    from .merging import merge

_MODULES = {
    "Batch": "data.batch", "DataError": "errors", "Documents": "api.inputs",
    "Explanation": "explain.records", "Learner": "api.learner",
    "ModelError": "errors", "Outcome": "api.results", "Scores": "api.results", "UsageError": "errors",
    "XclassError": "errors", "XclassWarning": "errors", "check_reduction": "checks", "load": "api.learner",
    "merge": "merging", "read_vw": "api.files", "write_vw": "api.files",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import os
    from importlib import import_module

    if os.name == "nt":  # model files are replaced under locks and while they are open, which Windows does not offer
        raise ImportError(NOT_ON_WINDOWS)
    from .system import garbage

    with garbage.kept(for_good=True):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
