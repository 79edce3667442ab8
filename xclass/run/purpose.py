"""Derive from the options of a run what it needs from its learner."""

from __future__ import annotations

from ..api import configuration
from ..api.configuration import Config, Purpose


def purpose_of(config: Config) -> Purpose:
    """Return the purpose of the learner of a run."""
    driver, shown = config.driver, config.readable
    texts = shown.readable_model or shown.invert_hash or shown.audit
    return Purpose(
        scores=driver.raw_predictions is not None,
        exact_answer=driver.predictions is not None or "progress" in config.given,
        weights_only=bool(driver.testonly and driver.final_regressor is None and not texts),
        passes=config.passes.passes,
        loaded=driver.initial_regressor is not None,
        testing=driver.testonly,
    )


def with_defaults(config: Config) -> Config:
    """Check the options of the reduction of a run and compute the defaults that depend on other options."""
    return configuration.with_defaults(config, purpose_of(config))
