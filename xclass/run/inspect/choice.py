"""Choose what writes weights or explanations in a run."""

from __future__ import annotations

from ...abilities.find import ability
from ...api.configuration import Config, chosen_name
from ...api.learner_core import LearnerCore
from ...errors import UsageError
from ...kernels import jit
from .inspector import Inspector


def inspector(config: Config, learner: LearnerCore) -> Inspector | None:
    """Return the object that writes weights or explanations if an option requires it, else None."""
    requested = [name for name in ("explain", "readable_model", "invert_hash", "audit") if name in config.given]
    if not requested:
        return None
    from . import explainer, readable_model, readable_words  # few runs need them

    jit.include_later()
    first, reduction = f"--{requested[0]}", f"--{chosen_name(config)}"
    describe = ability(config.reduction, "describe")
    if first == "--explain":
        if len(requested) > 1:
            raise UsageError(f"--explain and --{requested[1]} cannot be combined: drop one of them")
        return explainer.Explainer(config, learner)
    if hasattr(describe, "table_view") and learner.reduction.tables:
        return readable_model.WeightInspector(config, learner)
    if requested == ["audit"]:
        return explainer.ShareAudit(config, learner)
    if not hasattr(describe, "word_tables"):
        raise UsageError(f"{first} shows weight tables, which {reduction} does not have")
    if "audit" in requested:
        raise UsageError(f"--audit and {first} cannot be combined with {reduction}: drop one of them")
    return readable_words.WordInspector(config, learner)
