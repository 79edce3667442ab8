"""Define the errors that are reported to the user without a traceback, and their exit statuses.

Every message names the location, the value found, the allowed values and a remedy. Texts from data are escaped in it,
because Python shows it on a terminal as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from .system.printable import printable

NO_SUCH_FILE = "there is no such file; check its name"
OTHER_MODEL = "train the model again, or take another copy of the file"  # the cure for a damaged model


class XclassError(Exception):
    """Report an error to the user by a message without a traceback; each argument is a line of the message.

    Options are named by their flags. `spelling` names them as another interface does, see `options.spelling`.
    """

    exit_code = 1
    spelling: Callable[[str], str] | None = None

    def __str__(self) -> str:
        lines = map(str, self.args)
        return "\n".join(map(printable, lines if self.spelling is None else map(self.spelling, lines)))


class UsageError(XclassError, ValueError):
    """Report options or arguments that are not allowed."""

    exit_code = 2


class DataError(XclassError, ValueError):
    """Report data that cannot be read or learned from."""


class NotClassNumber(DataError):
    """Report a label that is a whole number, but not the number of a class of the learner."""


class ModelError(XclassError):
    """Report a model file that cannot be read or written, or that learning cannot continue from."""


class ClusterError(XclassError):
    """Report a Ray cluster that cannot do what a run needs: no processors, no memory, other versions."""


class XclassWarning(UserWarning):
    """Warn about the examples that a learner was given."""

    def __str__(self) -> str:
        return printable(super().__str__())


def install_extra(name: str) -> str:
    """Return how to install the packages of an extra; docs/quickstart.md says the same, and a release changes both."""
    return f"run pip install '.[{name}]' in the folder of xclass"
