"""Compare the options of models, and choose those of the merged model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api import configuration
from ..errors import ModelError
from ..options.declare import Option, long_flag, options_of
from ..options.resolve import as_typed
from ..reductions import registry

BASE = "the base"  # its name in messages, before that of its file if it has one
NAMES = "named_labels"  # compared by `classes`
GROWTH = "max_doublings"  # its default depends on the memory of the machine; the merged model has the largest
SIZE = "bits"  # its default may depend on it, too
TREE = "cpt_tree"  # trees are compared, not the names of their files; the rest says how classes are added later
WAYS_TO_ADD = ("balanced", "random")  # values of --cpt_tree that add classes in another way than all others


def merged_options(
    models: Sequence[Mapping[str, Any]], paths: Sequence[str], base: Mapping[str, Any] | None, base_path: str
) -> dict[str, Any]:
    """Return the options of the merged model; raise ModelError, with a line for each, if options differ.

    `models` and `base` are stored options, field name -> JSON value. Those of the base may differ where an option may
    be adjusted when learning continues, and all may differ where it is about measures: then the default is kept.
    """
    declared = _declared(models[0])
    lines = []
    for options, path in zip(models[1:], paths[1:], strict=True):
        lines += _differences(models[0], paths[0], options, path, declared, strict=True)
    if base is not None:
        base_path = base_path if base_path == BASE else f"{BASE} {base_path}"
        lines += _differences(models[0], paths[0], base, base_path, declared, strict=False)
    if lines:
        advice = "train them with the same options, or merge those that have the same"
        if len({options.get(SIZE) for options in models}) > 1:
            advice += (
                "; without -b the size of the table can depend on the memory of the machine, so give all the same -b"
            )
        raise ModelError("models can only be merged if their options are the same:", *dict.fromkeys(lines), advice)
    merged = dict(models[0])
    if merged.get(TREE) is not None:
        merged[TREE] = min(options[TREE] for options in models)  # whatever the order of the models
    if merged.get(GROWTH) is not None:
        merged[GROWTH] = max(options[GROWTH] for options in models)
    for name in merged.keys() & declared.keys():
        if declared[name].measures and any(options.get(name) != merged[name] for options in models):
            merged[name] = declared[name].default
    return merged


def _declared(options: Mapping[str, Any]) -> dict[str, Option]:
    """Return the declarations of options, by field name; where reductions share a name, that of the chosen one."""
    declared = configuration.declared_options()
    for record in registry.REDUCTIONS:
        if options.get(record.name) is not None:
            declared.update(options_of(record.options))
    return declared


def _differences(
    first: Mapping[str, Any],
    first_path: str,
    second: Mapping[str, Any],
    second_path: str,
    declared: Mapping[str, Option],
    strict: bool,
) -> list[str]:
    """Return a line for each option that differs between two models; unless `strict`, adjustable options may."""
    lines = []
    reductions = _reduction(first, first_path), _reduction(second, second_path)
    if reductions[0] != reductions[1]:  # options of different reductions are not compared
        return [f"  {first_path} is a model of {reductions[0]}, {second_path} is one of {reductions[1]}"]
    for name in sorted({*first, *second} - {NAMES}):
        values = _given(name, first.get(name)), _given(name, second.get(name))
        option = declared.get(name)
        if values[0] == values[1] or (option is not None and (option.measures or (option.adjustable and not strict))):
            continue
        if name == GROWTH and all(values):  # a model that cannot grow has shorter hashes of features
            continue
        has = [_as_typed(name, option, value) for value in values]
        lines.append(f"  {first_path} has {has[0]}, {second_path} has {has[1]}")
    return lines


def _reduction(options: Mapping[str, Any], path: str) -> str:
    chosen = any(options.get(record.name) is not None for record in registry.REDUCTIONS)
    return f"--{configuration.chosen_name(configuration.of_model(path, options))}" if chosen else "no reduction"


def _given(name: str, value: Any) -> Any:
    """Return the value of an option that is compared, None if it is not given."""
    if name == TREE and value is not None and value not in WAYS_TO_ADD:
        return "general"
    return None if value is False or value == [] else value


def _as_typed(name: str, option: Option | None, value: Any) -> str:
    if option is None:
        return f"--{name} {value}"
    if value is None:
        return f"no {long_flag(option)}"
    return as_typed(option, tuple(value) if isinstance(value, list) else value)
