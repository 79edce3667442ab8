"""Make the learner of an estimator from the parameters of the estimator and its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..api import configuration
from ..api.configuration import LearnerUse, OptionOfRun
from ..api.labels import HIGHEST_NUMBER
from ..api.learner import Learner, is_identity
from ..api.learner_core import LearnerCore
from ..array_types import AnyArray
from ..errors import UsageError
from ..kernels import jit
from ..options.declare import options_of
from ..options.similar import suggestion
from ..options.spelling import Spelling
from ..reductions import registry
from ..reductions.core.base import Reduction
from .checks import is_number
from .class_labels import ClassLabels, distinct

FREE_CLASSES = 1000  # least number of classes beyond those of the first `partial_fit` that a fixed reduction has
IDENTIFIERS = 10  # integers larger than this multiple of the number of classes are identifiers, and become names
OWN_OPTIONS = {  # options that parameters of the estimator set, or that belong to its labels
    "passes": "passes",
    "bits": "bits",
    "learning_rate": "learning_rate",
    "loss_function": "loss",
    "random_seed": "random_state",
    "learn_names": "",
    "named_labels": "",
    "indexing": "",
}

OF_RUN = {  # flags of options of a run that parameters and methods of the estimator stand for, and these
    "--passes": "give passes=N",
    "--threads": "give n_jobs=N",
    "--quiet": "give verbose=0",
    "--progress": "give verbose=1",
    "--top_k": "call predict_top_k(X, k)",
    "--probabilities": "call predict_proba(X)",
}
NAMED = "options__"  # begins the name of an option in `set_params`
CLASSIFIERS = {"multiclass": "XClassifier", "multilabel": "XMultilabelClassifier"}  # by `Reduction.labels`


def record_of(estimator: Any) -> Reduction:
    """Return the record of the chosen reduction; raise UsageError if it is none that classifies."""
    record = configuration.record_of(estimator.reduction)
    if record is None or record.labels != estimator.KIND:
        names = [other.name for other in registry.REDUCTIONS if other.labels == estimator.KIND]
        names = [*(["multiclass", "hsm"] if estimator.KIND == "multiclass" else []), *names]
        other = CLASSIFIERS.get(record.labels if record else "")
        cure = f"; give it to {other}" if other else ""
        raise UsageError(f"reduction: {estimator.reduction!r} is none of {', '.join(names)}{cure}")
    if estimator.max_classes is not None and not is_number(estimator.max_classes, 1):
        raise UsageError(f"max_classes: {estimator.max_classes!r} is not a whole number of at least 1, or None")
    return record


def highest_number(estimator: Any, record: Reduction, labels: AnyArray) -> int:
    """Return the highest integer that is taken as the number of a class."""
    if configuration.grows(record):
        return HIGHEST_NUMBER
    if estimator.max_classes is not None:
        return min(HIGHEST_NUMBER, int(estimator.max_classes))
    return min(HIGHEST_NUMBER, max(FREE_CLASSES, IDENTIFIERS * len(distinct(labels))))


def new_learner(estimator: Any, record: Reduction, labels: ClassLabels, passes: int, exact: bool) -> Learner:
    """Return a new learner with the options that the parameters stand for."""
    classes = estimator.max_classes
    if not configuration.grows(record):
        if classes is None:
            classes = labels.needed if exact else max(2 * labels.needed, labels.needed + FREE_CLASSES)
            classes = max(classes, int(options_of(record.options)[record.name].minimum or 1))
        check_classes(estimator, labels, classes)
    options = _options(estimator)
    if not labels.numbered:
        options["learn_names"] = True
    use = LearnerUse(passes=passes)
    try:
        identity = is_identity(options.pop("feature_hash", "names"))
        jit.activate(hide_scipy=False)
        config = configuration.configured(estimator.reduction, classes, options, use)
        return Learner.of(LearnerCore(config, use), identity)
    except OptionOfRun as error:
        raise error.of_attribute("learner_", OF_RUN) from None
    except UsageError as error:
        name = PARAMETERS(error.args[0]).partition(" ")[0].rstrip(":")
        if name in options and not OWN_OPTIONS.get(name):
            error.args = (f"options: {error.args[0]}",)
        raise


def _parameters() -> dict[str, str]:
    """Return the parameters by the flags of the command, see `Spelling`."""
    names = {flag: OWN_OPTIONS.get(name) or name for flag, name in configuration.keywords().items()}
    for name in configuration.reductions():
        record, chosen = configuration.record_of(name), f"reduction={name!r}"
        if record is not None and record.labels == "multilabel":
            chosen = f"{CLASSIFIERS[record.labels]}({chosen})"
        names.update({f"--{name}": chosen, f"--{name} N": "max_classes"})
    return names


PARAMETERS = Spelling(_parameters)


def check_classes(estimator: Any, labels: ClassLabels, classes: int | None, numbers: bool = True) -> None:
    """Raise UsageError if the labels need more classes than the learner has, whose classes are `numbers` or names."""
    needed = labels.needed if numbers else len(labels.values)
    if classes is not None and needed > classes:
        kind = "the label" if numbers and labels.numbered and labels.lowest else "the number of labels"
        grow = ", or a reduction whose classes grow, such as 'multiclass'" if estimator.KIND == "multiclass" else ""
        raise UsageError(
            f"y: {kind} {needed} is above the {classes} classes of this {estimator.reduction}; give "
            f"max_classes={needed} or more{grow}"
        )


def make_room(estimator: Any, learner: Learner, labels: ClassLabels) -> None:
    """Let any number be a label if some are no numbers of classes; raise UsageError if there are too many classes."""
    core = learner.core
    lowest, highest, _ = core.label_range
    if configuration.grows(core.config.reduction) or highest is None:
        return  # the learner does so itself
    numbers = core.names.class_list is None
    learned = labels.values[labels.learned]
    if numbers and (labels.values[0] < (lowest or 0) or labels.values[-1] > HIGHEST_NUMBER):
        numbers = not (len(learned) and learner.name_numbers(int(learned[-1])))
    check_classes(estimator, labels, highest + 1 - (lowest or 0), numbers)


def with_named(options: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of an estimator by keyword, with those in `named`; raise UsageError if there is none of a name."""
    changed = {name.removeprefix(NAMED): value for name, value in named.items()}
    for name in changed.keys() - configuration.declared_options().keys():
        known = [f"{NAMED}{one}" for one in configuration.declared_options()]
        raise UsageError(f"there is no parameter {NAMED}{name}{suggestion(NAMED + name, known)}")
    return {name: value for name, value in {**_by_keyword(options), **changed}.items() if value is not None}


def _by_keyword(options: Any) -> dict[str, Any]:
    """Return the parameter `options` of an estimator as a dictionary."""
    if options is None or isinstance(options, dict):
        return dict(options or {})
    if not isinstance(options, str):
        raise UsageError(f"options: {options!r} is neither text nor a dictionary")
    try:
        reduction, _, given = configuration.of_words(options, "")
    except OptionOfRun as error:
        raise error.of_attribute("learner_", OF_RUN) from None
    if reduction:
        raise UsageError(f"options: {options!r} holds --{reduction}; give reduction={reduction!r}")
    return dict(given)


def _options(estimator: Any) -> dict[str, Any]:
    """Return the options of the learner by keyword."""
    options = _by_keyword(estimator.options)
    for name, parameter in OWN_OPTIONS.items():
        if name in options:
            advice = f"give {parameter}={options[name]!r}" if parameter else "the estimator sets it from the labels"
            raise UsageError(f"options: {name} cannot be given here; {advice}")
    given = {"bits": estimator.bits, "learning_rate": estimator.learning_rate, "loss_function": estimator.loss}
    options.update((name, value) for name, value in given.items() if value is not None)
    if isinstance(estimator.random_state, (int, np.integer)):
        options["random_seed"] = int(estimator.random_state)
    elif estimator.random_state is not None:
        options["random_seed"] = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    return options
