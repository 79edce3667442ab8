"""Derive from the options of a run how it uses its learner."""

from __future__ import annotations

from ..api import configuration
from ..api.configuration import Config, LearnerUse
from ..errors import UsageError


def of_run(config: Config) -> LearnerUse:
    """Return how a run uses its learner."""
    run, shown = config.run, config.inspect
    inspected = bool(shown.readable_model or shown.invert_hash or shown.audit)
    return LearnerUse(
        scores=run.raw_predictions is not None,
        example_probabilities=config.results.needs_probabilities and config.reduction.probabilities,
        weights_only=bool(run.testonly and run.final_regressor is None and not inspected),
        inspected=inspected,
        passes=config.passes.passes,
        loaded=run.initial_regressor is not None,
        testing=run.testonly,
    )


def with_defaults(config: Config) -> Config:
    """Check the options of the reduction of a run, and compute the defaults that depend on other options."""
    return configuration.with_defaults(config, of_run(config))


def of_command(config: Config) -> Config:
    """Return the options of a command `with_defaults`; raise UsageError if it would save a model without learning."""
    run = config.run
    if run.testonly and run.final_regressor is not None and run.initial_regressor is None:
        raise UsageError(
            f"-f {run.final_regressor}: with -t and without -i the model would have learned nothing; is "
            f"-i {run.final_regressor} meant?"
        )
    return with_defaults(config)
