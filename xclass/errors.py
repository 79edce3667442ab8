"""What can go wrong for a user, and the exit status it ends with.

Every message names the place, the value seen, what is allowed and what to do.
"""


class XclassError(Exception):
    """A mistake that is explained in one message, without a traceback; each argument is a line of it."""

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UsageError(XclassError):
    """The command line cannot be carried out."""

    exit_code = 2


class DataError(XclassError):
    """The data cannot be read or learned from."""


class ModelError(XclassError):
    """A model file cannot be read, written or continued."""


class XclassWarning(UserWarning):
    """What a learner has to tell about the data, as a Python warning."""
