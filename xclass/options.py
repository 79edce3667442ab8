"""Declaring an option: once, as a dataclass field in the room that owns it.

    @dataclass(frozen=True)
    class Options:
        max_depth: int = option("levels of routers", default_text="ceil(log2 K)", stored=True)

`cli` makes the command line, the help and the README's list from these fields; `config` decides
which value holds (command line, then model, then preset, then default) and refuses what has no effect.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Option:
    """Everything the command line needs to know of one option.

    Attributes
    ----------
    help : what it does, in the field's words; starts in lower case, no full stop.
    flags : names on the command line; empty means `--` and the field's name.
    kind : int, float, str or bool (a bool takes no value).
    default : the value when nobody says otherwise; None where it is computed or where there is none.
    default_text : how a computed default is described in the help.
    choices : allowed words, or None for any.
    metavar : how the value is called in the help (`K`, `FILE`).
    absent : the value of an option that is given without one; None where it needs one.
    repeated : may be given several times; the value is a tuple.
    stored : belongs to the model file: it changes predictions or how learning continues.
    read : what it names is read; another file an option names (metavar FILE) is written.
    minimum, maximum : allowed range of a number, both ends included.
    """

    help: str
    flags: tuple[str, ...] = ()
    kind: type = str
    default: Any = None
    default_text: str | None = None
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    absent: Any = None
    repeated: bool = False
    stored: bool = False
    read: bool = False
    minimum: float | None = None
    maximum: float | None = None


def option(help: str, **facts: Any) -> Any:
    """Return a dataclass field that carries an `Option`; its default is the option's default."""
    declared = Option(help=help, **facts)
    default = () if declared.repeated and declared.default is None else declared.default
    if declared.kind is bool and default is None:
        default = False
    return field(default=default, metadata={"option": dataclasses.replace(declared, default=default)})


def options_of(room: type) -> dict[str, Option]:
    """Return the options a room's `Options` dataclass declares: field name -> Option, flags filled in."""
    found = {}
    for one in dataclasses.fields(room):
        if "option" in one.metadata:
            declared: Option = one.metadata["option"]
            flags = declared.flags or ("--" + one.name,)
            found[one.name] = dataclasses.replace(declared, flags=flags)
    return found
