"""Convert the arguments of a Workspace to words of a command line, and these to the options of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from ..api import model_contents
from ..api.configuration import Config
from ..api.model_contents import Contents
from ..cli import arguments, command, help_text, vw_flags
from ..cli.declared import prepare_files
from ..errors import UsageError
from ..options import resolve as options_resolve
from ..options.declare import long_flag, options_of
from ..reductions.presets import PRESETS
from ..run import learner_use

WITHOUT_DATA = ("holdout_off", "keep_last")  # options about passes that say what is done without data, too


def words_of(arg_str: str | None, arg_list: Sequence[str] | None, keywords: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line from the arguments of a Workspace."""
    if arg_str is not None and not isinstance(arg_str, str):
        raise TypeError("arg_str must be a string")
    if isinstance(arg_list, str):
        raise TypeError("arg_list must be a list of strings")
    words = [*(arg_str or "").split(), *(arg_list or ())]
    for keyword, value in keywords.items():
        flag = f"-{keyword}" if len(keyword) == 1 else f"--{keyword}"
        if isinstance(value, bool):
            words += [flag] if value else []
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            words += [flag, fspath(item) if isinstance(item, PathLike) else str(item)]
    return words


def configured(words: Sequence[str]) -> tuple[Config, list[str], Contents | None]:
    """Return the options of a run from words of a command line, notes for the user, and the contents of the model."""
    groups, reductions = command.option_groups()
    arranged = help_text.sections(groups, reductions)
    given = arguments.read(arranged, words)
    for information in ("help", "version"):
        if information in given:
            raise UsageError(f"--{information} belongs to the command; run `xclass --{information}`")
    if "threads" in given:
        raise UsageError("--threads belongs to the command; limit the processors by os.sched_setaffinity")
    notes = vw_flags.take(given.pop("accepted", ()), given)
    if not given.get("data"):
        given["no_stdin"] = True
    declared = {name: option for section in arranged for name, option in section.options.items()}
    prepare_files(given, declared)
    if not given.get("data"):
        for group in ("passes", "cache", "shuffle"):
            for name, option in options_of(groups[group]).items():
                if name in given and name not in WITHOUT_DATA and (name, given[name]) != ("passes", 1):
                    raise UsageError(f"{long_flag(option)} has no effect without data: give data=FILE, or leave it out")
    model = given.get("initial_regressor")
    contents = model_contents.load(model) if model is not None else None
    config = options_resolve.resolve(
        given,
        contents.options if contents is not None else None,
        groups,
        reductions,
        model=model or "",
        presets=PRESETS,
        resolve_defaults=learner_use.with_defaults,
    )
    return config, notes, contents


def arguments_of(config: Config) -> str:
    """Return the options that were given, as text of a command line, see `Workspace.get_arguments`."""
    groups, _ = command.option_groups()
    values, listed = config.values(), []
    for group in groups.values():
        for name, option in options_of(group).items():
            if name not in config.given or name not in values:
                continue
            flag, value = long_flag(option), values[name]
            if option.kind is bool or value == option.value_if_bare is not None:
                listed += [[flag]] if value is not False else []
            else:
                listed += [[flag, str(item)] for item in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(word for words in sorted(listed) for word in words)
