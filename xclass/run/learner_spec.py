"""From the options of a run to what its reduction may know of them."""

from __future__ import annotations

from ..options.resolve import Config
from ..reductions.core.spec import LearnerSpec, Wanted


def spec_of(config: Config) -> LearnerSpec:
    """Return what the chosen reduction is built from."""
    driver, shown, name = config.driver, config.readable, config.reduction.name
    texts = shown.readable_model or shown.invert_hash or shown.audit
    return LearnerSpec(
        name=name,
        options=getattr(config, name),
        binary=config.learner,
        wanted=Wanted(
            answers=config.answers,
            scores=driver.raw_predictions is not None,
            exact_answer=driver.predictions is not None or "progress" in config.given,
            weights_only=bool(driver.testonly and driver.final_regressor is None and not texts),
        ),
        given=config.given,
        seed=driver.random_seed,
        names=tuple(config.parser.label_names()),
        learn_names=config.parser.learn_names,
        constant=not config.parser.noconstant,
        any_label=config.parser.on_bad_line == "vw",
        vw_exact=driver.vw_exact,
        passes=config.passes.passes,
        loaded=driver.initial_regressor is not None,
        testing=driver.testonly,
    )


def settled(config: Config) -> Config:
    """Check the options of the chosen reduction and decide those whose defaults depend on others."""
    spec, reduction = spec_of(config), config.reduction
    reduction.check(spec)
    return config.settled(reduction.settle(spec))
