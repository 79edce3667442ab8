"""What a run needs of its learner, from the options of the run."""

from __future__ import annotations

from ..api import configuration
from ..api.configuration import Config, Purpose


def purpose_of(config: Config) -> Purpose:
    """Return what the learner of a run is for."""
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
    """Check the options of a run's reduction and decide those whose defaults depend on others."""
    return configuration.with_defaults(config, purpose_of(config))
