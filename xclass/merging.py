"""Merge models: read them, check that they fit together, and let their reduction average what they have learned.

Source    `binary.merging` has the rule.
Cost      All models are in memory at once, and the result.
Idea      The merged model does not depend on the order in which models are named, because they are merged in an order
          that follows from their contents: first those with more names, then with more classes seen, then by a hash
          of all they hold.
          Models that are equal to the base or have no examples have learned nothing and are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from .abilities.find import ability
from .abilities.merge.sources import Sources, not_continued
from .api import configuration, files, model_contents
from .api.example_notes import learned_columns, shifted
from .api.learner import Learner
from .api.learner_core import LearnerCore
from .api.model_contents import LARGEST_COUNT, ModelContents
from .api.progress import SUMS
from .binary import merging
from .data import class_names, feature_names, schema
from .errors import ModelError, UsageError, XclassWarning
from .kernels import jit
from .kernels.constants import LARGEST
from .model import stored_arrays
from .options.declare import Option, long_flag, options_of
from .options.resolve import as_typed
from .reductions import registry
from .system.printable import short_repr

BASE = "the base"  # its name in messages, before that of its file if it has one
NAMES = "named_labels"  # compared by `classes`
GROWTH = "max_doublings"  # its default depends on the memory of the machine; the merged model has the largest
SIZE = "bits"  # its default may depend on it, too
TREE = "cpt_tree"  # trees are compared, not the names of their files; the rest says how classes are added later
WAYS_TO_ADD = ("balanced", "random")  # values of --cpt_tree that add classes in another way than all others


class _Model(NamedTuple):
    path: str  # its name in messages
    contents: ModelContents
    names: tuple[str, ...]  # of its classes
    digest: bytes


def merge(
    models: Sequence[str | PathLike[str] | Learner], base: str | PathLike[str] | Learner | None = None
) -> Learner:
    """Merge models that learned apart into one learner.

    Each weight is the average of the models' weights, weighted by the squared gradients that each model has added to
    AdaGrad's sum since the base. A weight that no model has changed is that of the base. Counts are added. Models have
    to have the same options. Classes are matched by their names or, if labels are numbers, by their numbers; classes
    that only some models have are added.

    Parameters
    ----------
    models : sequence of str, path-like or Learner
        Model files or learners, in any order. Learners stay as they are.
    base : str, path-like or Learner, optional
        The model that all of them have continued from; without it they have begun with nothing in common.

    Returns
    -------
    learner : Learner
        A new learner, which can predict, learn more, and be merged again.

    Raises
    ------
    ModelError
        If a file cannot be read, an option differs, or models of the reduction cannot be merged.
    UsageError
        If no model is given.

    Notes
    -----
    The rule is that of Agarwal, Chapelle, Dudik and Langford, "A Reliable Effective Terascale Linear Learning System",
    JMLR 15 (2014). It is the same whether weights or their differences from the base are averaged.

    Examples
    --------
    >>> import xclass
    >>> first, second = (xclass.Learner("oaa", classes=2, bits=10) for _ in range(2))
    >>> _ = first.learn_many(["1 | sunny warm", "2 | rainy cold"] * 5)
    >>> _ = second.learn_many(["1 | sunny dry", "2 | snowy cold"] * 5)
    >>> with xclass.merge([first, second]) as model:
    ...     model.examples, model.predict_many(["| dry", "| snowy"]).tolist()
    (20, [1, 2])
    """
    with configuration.KEYWORDS:
        learner, notes = merged(models, base)
    for note in notes:
        warnings.warn(configuration.KEYWORDS(note), XclassWarning, stacklevel=2)
    return learner


def merged(
    models: Sequence[str | PathLike[str] | Learner], base: str | PathLike[str] | Learner | None = None
) -> tuple[Learner, list[str]]:
    """Return what `merge` returns, and notes for the user."""
    if isinstance(models, (str, PathLike, Learner)) or not models:
        raise UsageError("merge() takes a list of at least one model, such as ['a.bin', 'b.bin']")
    jit.activate(hide_scipy=False)
    every = [_read(model, f"model {number}") for number, model in enumerate(models, 1)]
    start = None if base is None else _read(base, BASE)
    _check_different(every, start)
    models_and_base = _with_names([*every, *([start] if start is not None else [])])
    _check_names(models_and_base)
    every, start = models_and_base[: len(every)], models_and_base[-1] if start is not None else None
    chosen = merged_options(
        [model.contents.options for model in every],
        [model.path for model in every],
        start.contents.options if start is not None else None,
        start.path if start is not None else "",
    )
    _check_complete(models_and_base)
    _check_schemas(models_and_base)
    if start is not None:
        _check_continued(every, start)
    identity = _is_identity(models if base is None else [*models, base])
    learner, notes = _merged(_changed(every, start), start, chosen, identity=identity)
    return Learner.of(learner, identity), notes


def merged_parts(parts: Sequence[ModelContents], base: ModelContents) -> tuple[LearnerCore, list[str]]:
    """Return a learner merged from live models that have continued from a base, and notes for the user.

    There is at least one, which has learned something; equal ones count several times. Their large tables are merged
    elsewhere, by `abilities.merge.ranges`, and are empty here.
    """

    def model(number: int, contents: ModelContents) -> _Model:
        names = class_names.separated(contents.options.get(NAMES) or "")
        return _Model(f"part {number}", contents._replace(live={}), names, number.to_bytes(8, "big"))

    every = [model(number, part) for number, part in enumerate(parts, 1)]
    return _merged(every, model(0, base), base.options, live=True)


def restored(contents: ModelContents) -> LearnerCore:
    return LearnerCore(configuration.of_model("the model in memory", contents.options), _copied(contents))


def _read(model: str | PathLike[str] | Learner, name: str) -> _Model:
    """Return a model, which has no name if it is a learner, after the checks of its file."""
    if isinstance(model, Learner):
        model.core.check_learned()
        contents, path = model.core.contents(), name
    else:
        path = files.path_of(model)
        contents = model_contents.load(path)
    configuration.of_model(path, contents.options)  # checks them
    names = class_names.separated(contents.options.get(NAMES) or "")
    return _Model(path, contents, names, _digest(contents))


def _digest(contents: ModelContents) -> bytes:
    """Return a hash of all that a model holds."""
    record = [contents.options, contents.learner, contents.examples, repr(contents.clock), contents.counters]
    record.append(contents.schema.record())
    text = json.dumps(record, sort_keys=True, default=repr)
    sums = hashlib.blake2b(text.encode("utf-8", "surrogatepass"))
    for name in sorted(contents.arrays):
        array = contents.arrays[name]
        sums.update(f"{name} {array.dtype.str} {array.shape} ".encode("utf-8", "surrogatepass"))
        for piece in stored_arrays.pieces_of(array) if array.shape else [np.asarray(array)]:
            sums.update(np.ascontiguousarray(piece).tobytes())
    return sums.digest()


def _is_identity(models: Sequence[object]) -> bool:
    """Return whether the learners among the models take the numbers of columns as indices of features.

    Files do not say this.
    """
    found = {model.identity for model in models if isinstance(model, Learner)}
    if len(found) == 2:
        raise UsageError(
            "some learners have feature_hash='identity' and others not, so their columns are different features; give "
            "all of them the same feature_hash"
        )
    return True in found


def _check_different(models: Sequence[_Model], base: _Model | None) -> None:
    """Raise UsageError if a model that has learned something is named twice, because it would count twice."""
    paths: dict[bytes, str] = {}
    for model in models:
        if base is not None and model.digest == base.digest:
            continue
        if model.digest in paths and model.contents.examples > 0:
            raise UsageError(f"{paths[model.digest]} and {model.path} are the same model; name each model once")
        paths[model.digest] = model.path


def _changed(models: Sequence[_Model], base: _Model | None) -> list[_Model]:
    """Return the models that have learned something since the base, or those that differ if none has."""
    known = None if base is None else base.digest
    changed = [model for model in models if model.digest != known and model.contents.examples > 0]
    return changed or list({model.digest: model for model in models}.values())


def _with_names(models: Sequence[_Model]) -> list[_Model]:
    """Return models in which numbers are names of classes, as they are in one that has learned 0 or -1, if any has."""
    if not any(model.contents.schema.classes for model in models):
        return [*models]
    return [model if model.contents.options["learn_names"] else _named(model) for model in models]


def _named(model: _Model) -> _Model:
    """Return a model of numbers whose classes have these numbers as names, or as it is if that is not possible."""
    with restored(model.contents) as numbered:
        core = numbered.with_names()
    if core is None:
        return model
    with core:
        contents = core.contents()
    return _Model(model.path, contents, tuple(core.names.names), _digest(contents))


def _check_complete(models: Sequence[_Model]) -> None:
    for model in models:
        if model.contents.counters is None:
            raise ModelError(
                f"{model.path}: it was saved with --predict_only_model and lacks the sums of squared gradients by "
                "which weights are averaged; save it without this option"
            )


def _check_names(models: Sequence[_Model]) -> None:
    """Raise ModelError if labels are names in a model and numbers in another, whose classes do not correspond."""
    paths: dict[bool, str] = {}
    for model in models:
        if model.contents.examples > 0 and model.contents.clock != 0:  # others have seen no label
            paths.setdefault(bool(model.names), model.path)
    if len(paths) == 2:
        raise ModelError(
            f"the classes of {paths[True]} have names and those of {paths[False]} have only numbers; train both with "
            "names, or both without"
        )


def _check_schemas(models: Sequence[_Model]) -> None:
    known = [model for model in models if model.contents.schema.is_known]
    known.sort(key=lambda model: not model.contents.schema)  # tables first
    for model in known[1:]:
        difference = known[0].contents.schema.difference(model.contents.schema)
        if difference:
            raise ModelError(f"{difference.format(known[0].path, model.path)}; train both from the same columns")
    of_rows = [model for model in models if model.contents.schema.width]
    for model in of_rows[1:]:
        first, width = of_rows[0].contents.schema.width, model.contents.schema.width
        if first != width:
            raise ModelError(
                f"{of_rows[0].path} has learned from rows of {first} columns, and {model.path} from rows of {width}; "
                "train both from rows of the same columns"
            )


def _notes_about_columns(models: Sequence[_Model], learners: Sequence[LearnerCore], identity: bool) -> list[str]:
    """Return a note for each model whose columns seem to be counted from another number than those of the first."""
    rule, advice = configuration.hashing(learners[0].config, identity), feature_names.ALIKE
    pairs = zip(models[1:], learners[1:], strict=True)
    notes = (
        shifted(learners[0], learned_columns(learner, rule), rule, model.path, advice, models[0].path)
        for model, learner in pairs
    )
    return [note for note in notes if note]


def _check_continued(models: Sequence[_Model], base: _Model) -> None:
    """Raise ModelError if a model has learned less than the base, from which it has to have continued."""
    for model in models:
        if model.contents.examples < base.contents.examples:
            reason = f"it has learned from {model.contents.examples} examples, the base from {base.contents.examples}"
            raise not_continued(model.path, base.path, reason)


def _merged(
    models: Sequence[_Model],
    base: _Model | None,
    chosen: Mapping[str, Any],
    identity: bool = False,
    live: bool = False,
) -> tuple[LearnerCore, list[str]]:
    """Merge models that have the same options, without those that are equal to the base.

    `identity` is as `_is_identity` returns it, and `live` as in `Sources`.
    """
    with contextlib.ExitStack() as stack:
        learners = [stack.enter_context(_restored(model, chosen)) for model in models]
        order = sorted(
            range(len(models)),
            key=lambda i: (-len(models[i].names), -learners[i].reduction.classes_seen, models[i].digest),
        )
        models, learners = [models[i] for i in order], [learners[i] for i in order]
        record = learners[0].config.reduction
        merge = ability(record, "merge")
        if merge is None:
            reason = record.not_merged or "it has no rule for that"
            raise ModelError(f"--{record.name}: its models cannot be merged, because {reason}")
        base_names = base.names if base is not None else ()
        spellings: dict[str, str] = {}  # of the names of all classes, the first of each
        for name in itertools.chain(base_names, *(model.names for model in models)):
            spellings.setdefault(class_names.key_of(name), name)
        names = list(spellings.values())
        limit = learners[0].spec.classes
        if limit is not None and len(names) > limit and not configuration.grows(record):
            raise ModelError(
                f"the models have {len(names)} classes with different names, but --{record.name} {limit} allows "
                f"{limit}; train them with --{record.name} {len(names)} or more"
            )
        target = _new(chosen, names)
        try:
            start = stack.enter_context(_new(chosen, names) if base is None else _restored(base, chosen))
            sources = Sources(
                [learner.reduction for learner in learners], start.reduction, base is not None,
                [model.path for model in models], base.path if base is not None else "",
                [weight_since(model.contents.clock, start.clock) for model in models],
                [list(map(class_names.key_of, model.names)) for model in models],
                list(map(class_names.key_of, base_names)), list(spellings), live,
            )  # fmt: skip
            notes: list[str] = merge.merge(target.reduction, sources)
            if not live:
                notes += _notes_about_columns(models, learners, identity)
            _merge_totals(target, models, base)
            known = [model.contents.schema for model in (*models, *([base] if base is not None else []))]
            target.schema.replace(next(filter(None, known), target.schema))
            for one in known:
                target.schema.add_form(one.form or schema.OTHER)
                target.schema.width = target.schema.width or one.width
                target.schema.separator = target.schema.separator or one.separator
            for option, field, default in (("label_separator", "separator", ","), ("label_columns", "labels", "")):
                kept, *values = (getattr(one, field) or default for one in (target.schema, *filter(None, known)))
                if any(value != kept for value in values):
                    value = short_repr(kept if isinstance(kept, str) else ",".join(kept))
                    notes.append(f"the models have learned with different values of --{option}; {value} is kept")
            target.schema.classes = min((one.classes for one in known), default="")
            names = [name for one in known for name in target.schema.add_names(one.names)]
            if names:
                notes.append(
                    f"{schema.listed(names)}: numbers in some models and text in others; those of the first model count"
                )
        except BaseException:
            target.close()
            raise
    return target, notes


def _restored(model: _Model, chosen: Mapping[str, Any]) -> LearnerCore:
    """Return the learner of a model, with the options of the merged model and its own names."""
    stored = {**chosen, NAMES: model.contents.options.get(NAMES)}
    config = configuration.of_model(model.path, stored)
    with model_contents.naming(model.path):
        return LearnerCore(config, _copied(model.contents))


def _copied(contents: ModelContents) -> ModelContents:
    """Return contents whose arrays may be taken out without an effect on the original."""
    return contents._replace(arrays=dict(contents.arrays))


def _new(chosen: Mapping[str, Any], names: Sequence[str]) -> LearnerCore:
    return LearnerCore(configuration.of_model("the merged model", {**chosen, NAMES: ",".join(names) or None}))


def _merge_totals(target: LearnerCore, models: Sequence[_Model], base: _Model | None) -> None:
    """Set the counters of a learner to those of the base and what the models have added to them."""
    start = base.contents if base is not None else None
    before = start.counters if start is not None and start.counters is not None else {}
    examples = _total([model.contents.examples for model in models], start.examples if start else 0)
    target.examples = min(int(examples), LARGEST_COUNT)
    target.clock = _total([model.contents.clock for model in models], start.clock if start else 0.0)
    own = [model.contents.counters for model in models if model.contents.counters is not None]  # all have some
    features = _total([one["features"] for one in own], before.get("features", 0))
    counters: dict[str, Any] = {"features": min(int(features), LARGEST_COUNT)}
    for name in SUMS:
        values = [one[name] for one in own]
        known = [float(value) for value in values if value is not None]
        total = _total(known, float(before.get(name) or 0.0))
        counters[name] = repr(total) if known else None
    target.progress.resume(counters, target.examples)


def _total(values: Sequence[float], base: float) -> Any:
    """Return the base's value and what each of some values has added to it."""
    return merging.added_counts([np.array(value) for value in values], np.array(base)).item()


def weight_since(clock: float, base: float) -> float:
    """Return the weight of the examples since the base as a finite number >= 0, whatever a model file says."""
    weight = clock - base if base <= clock < math.inf else clock  # all of it if it is smaller than the base's
    return min(max(weight, 0.0), LARGEST) if not math.isnan(weight) else 0.0


# -- options


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
