"""Declare, resolve and check the options of probabilistic label trees."""

from __future__ import annotations

from ...binary import gd, tagged_words
from ...options.declare import between, one_of, option, refused, warned
from ..core import label_lists
from ..core.spec import LearnerSpec
from ..cpt import options as cpt_options

GROWN = ("online", "balanced", "random")  # --plt_tree: trees that begin empty
SAMPLED = "kmeans"  # --plt_tree: a tree that is built from the first examples
SUPPORTED_OPTIONS = ("bits", "layout", "predict_only_model")  # options of the binary learner
SLOT_BYTES = 8


def _is_file(tree: str | None) -> bool:
    return tree not in (None, *GROWN, SAMPLED)


class PltOptions(label_lists.LabelListOptions):
    """Declare the options of probabilistic label trees."""

    plt: int = option(
        "learn lists of labels, such as `1,5,7 | words`, by a tree. K is the approximate number of labels, which are "
        "numbers from 0 or names",
        metavar="[K]",
        value_if_bare=0,
        minimum=0,
        maximum=label_lists.MOST_LABELS,
        stored=True,
    )
    plt_tree: str = option(
        "where a new label is inserted: `online` by balance and by the probabilities of the nodes, `balanced` by "
        "balance alone, `random` at random; `kmeans` builds a tree of similar labels from the first --tree_sample "
        "examples; any other word is a FILE that holds a tree. Labels that such a tree lacks are inserted as by "
        "`online`",
        metavar="online|balanced|random|kmeans|FILE",
        default="online",
        stored=True,
        reads=True,
        files=lambda tree, _: [tree] if _is_file(tree) else [],
        search=one_of("online", "kmeans", first=("kmeans",)),
    )
    tree_sample: int = cpt_options.tree_sample_option("`kmeans` builds its tree")
    save_tree: str = cpt_options.save_tree_option("plt_tree")
    plt_alpha: float = option(
        "weight of balance against the probabilities of the nodes when a label is inserted [alpha]; 0 follows the "
        "probabilities alone, and the tree can then be as deep as it has labels",
        default=0.75,
        minimum=0,
        maximum=1,
        metavar="ALPHA",
        stored=True,
        search=between(0.25, 1.0, "linear", weight=0.5),
    )
    max_doublings: int = tagged_words.doublings_option()

    RULES = (
        refused(
            gd.other_options(SUPPORTED_OPTIONS),
            "has no effect with --plt, whose regressors learn by AROW; leave it out",
        ),
        tagged_words.LAYOUT_RULE,
        warned("noconstant", "--plt learns no constant; leave it out"),
        refused(
            "vw_exact",
            "cannot be combined with --plt, whose tree is not that of VW: leave it out, or give --multilabel_oaa K",
        ),
        *cpt_options.tree_rules("plt_tree", "labels", _is_file, (SAMPLED,), "plt_alpha", "the probabilities of nodes"),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    """Return the values of options whose defaults depend on other options."""
    o: PltOptions = spec.options
    size = SLOT_BYTES << tagged_words.START_BITS
    sizes = tagged_words.default_sizes(spec.binary.bits, o.max_doublings, size)
    return {**gd.resolve_defaults(spec.binary, 1, True), **sizes, "loss_function": "hinge"}
