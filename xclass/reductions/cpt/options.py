"""Declare, resolve and check the options of the conditional probability tree."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from ...binary import adagrad, feature_scaling, gd, tagged_words
from ...data.batch import HIGHEST_LABEL
from ...errors import UsageError
from ...options.declare import OptionGroup, OptionRule, between, conflict, no_effect, one_of, option, refused
from ...system import memory, thread_limit
from ..core.spec import LearnerSpec

GROWN = ("general", "balanced", "random")  # --cpt_tree: trees that begin empty
SAMPLED = ("kmeans", "huffman")  # --cpt_tree: trees built from the first examples
PLAIN_RATE = 2.0  # learning rate with --sgd
UNUSED_CUT, UNUSED_RATE = 0.05, 0.35  # stored by models without --rerank, always the same
INDEX_SLOTS, INDEX_BITS, INDEX_CANDIDATES = 16, 19, 8  # defaults of the index with --rerank
MOST_BEAM = 256
BEAM, BEAM_ALONE = 8, 16  # blocks per level of blocks, with several trees and with a single one
BRANCH_BYTES = 28  # of a branch of a node, in each buffer of a thread
NODE_BUFFERS = 3  # of a thread, for a tree of a single node
INDEX_DEFAULTS: dict[str, object] = {
    "index_slots": INDEX_SLOTS, "index_bits": INDEX_BITS, "index_candidates": INDEX_CANDIDATES, "table_split": "trees",
}  # fmt: skip


SUPPORTED_OPTIONS = (  # options of the binary learner that the nodes support
    "bits", "learning_rate", "loss_function", "adaptive", "sgd", "decay_learning_rate", "layout",
    "predict_only_model",
)  # fmt: skip


def _is_file(tree: str | None) -> bool:
    return tree not in (None, *GROWN, *SAMPLED)


def tree_sample_option(builds: str) -> Any:
    """Return the declaration of `tree_sample`; `builds` says in its help which trees are built."""
    return option(
        f"number of examples from which {builds}; 0 uses all of the data, in an extra pass of the command, or held in "
        "memory by `Learner`",
        default=100_000,
        minimum=0,
        stored=True,
    )


def save_tree_option(tree: str) -> Any:
    """Return the declaration of `save_tree`; `tree` is the option that reads the file."""
    return option(f"write the tree to this file, in the format that --{tree} FILE reads", writes="the tree")


def tree_rules(
    tree: str, classes: str, is_file: Callable[[str | None], bool], sampled: Collection[str], alpha: str, uses: str
) -> tuple[OptionRule, ...]:
    """Return the rules about the option `tree` and those that depend on it.

    `sampled` are its values for trees that are built from examples; `alpha` is the option for trees that insert
    `classes` by what `uses` names.
    """
    given: dict[str, Any] = {tree: is_file}
    built: dict[str, Any] = {tree: lambda value: value not in sampled}
    placed: dict[str, Any] = {tree: {"balanced", "random"}}
    return (
        conflict(
            f"--{tree} {{{tree}}} has {classes} whose names are not known before the data is read; list the names with "
            "--named_labels @FILE",
            **given,
            learn_names=True,
            named_labels=None,
            loaded=None,
        ),
        no_effect(
            "tree_sample",
            f"--{tree} {{{tree}}} does not build the tree from examples; give --{tree} " + " or ".join(sampled),
            **built,
        ),
        no_effect(alpha, f"--{tree} {{{tree}}} does not use {uses}; leave it out", **placed),
    )


class CptOptions(OptionGroup):
    """Hold the options of the conditional probability tree."""

    cpt: int = option(
        "approximate number of classes, for the size of the table; 0 if unknown. Any labels in 1..2147483648 are "
        "accepted",
        metavar="K",
        minimum=0,
        maximum=HIGHEST_LABEL,
        stored=True,
    )
    hsm: int = option(
        "hierarchical softmax, a baseline of other papers. It stands for --cpt K --cpt_tree huffman --loss_function "
        "logistic --sgd; each of these can be given another value",
        aliases=("--hierarchical_softmax",),
        metavar="K",
        minimum=0,
        maximum=HIGHEST_LABEL,
    )
    hsm_paper: bool = option(
        "train --hsm as the Softmax Tree paper does. It stands for --momentum 0.9 --learning_rate 0.005 "
        "--decay_learning_rate 0.995 --tree_sample 0 --normalize_features none; each of these can be given another "
        "value. The paper does not say how many --passes",
    )
    momentum: float | None = option(
        "with --sgd, add this share of a weight's last step to its next one; the steps need a word beside each weight",
        default_text="0",
        minimum=0,
        maximum=1,
        metavar="M",
        stored=True,
        adjustable=True,
        unset_is_left_out=True,
    )
    cpt_tree: str = option(
        "where a class is inserted: `general` by balance and by the regressors' predictions, `balanced` by balance "
        "alone, `random` at random; `kmeans` builds a tree of similar classes from the first --tree_sample examples, "
        "`huffman` one with frequent classes near the root; any other word is a FILE that holds a tree. Classes that "
        "a built tree lacks are inserted as by `general`",
        metavar="general|balanced|random|kmeans|huffman|FILE",
        default="general",
        stored=True,
        reads=True,
        files=lambda tree, _: [tree] if _is_file(tree) else [],
        search=one_of("general", "kmeans", first=("kmeans",), weight=2.0),
    )
    tree_sample: int = tree_sample_option("`kmeans` and `huffman` build their tree")
    save_tree: str = save_tree_option("cpt_tree")
    cpt_alpha: float = option(
        "weight of balance against the regressors' predictions when a class is inserted [alpha]; 0 follows the "
        "predictions alone, and the tree can then be as deep as it has classes",
        default=0.6,
        minimum=0,
        maximum=1,
        metavar="ALPHA",
        stored=True,
        search=between(0.1, 1.0, "linear", weight=0.5),
    )
    cpt_arity: int = option(
        "number of branches of a node, a power of two: 2 is the binary tree; a node with m branches has m - 1 "
        "regressors, combined by a Hadamard code (PECOC). From K on there is a single node, plain PECOC",
        default=2,
        minimum=2,
        maximum=HIGHEST_LABEL,
        metavar="M",
        stored=True,
    )
    normalize_features: str = feature_scaling.normalize_option(
        "its mean size so far",
        "is `auto`, but features of examples whose values are all 1 are weighted by the root of their inverse document "
        "frequency in every second tree and in the scorers. With --rerank, `auto` means `idf`",
    )
    beam: int = option(
        "number of blocks of three levels of nodes that the search for the most probable classes keeps at each depth "
        "of a tree, in learning and in predicting; with --cpt_arity, it opens up to N nodes for each level. 0 follows "
        "the more probable child of every node to a single class, and --top_k then needs --exact",
        default_text=f"{BEAM_ALONE} with a single tree, {BEAM} with several trees",
        minimum=0,
        maximum=MOST_BEAM,
        stored=True,
    )
    exact: bool = option(
        "search each tree until all other classes are known to be less probable, which can take more than logarithmic "
        "time"
    )
    cpt_report: str = option(
        "what progressive validation computes: `argmax` searches the most probable class; `losses` computes only the "
        "losses of the label's probability",
        aliases=("--cpt_metrics",),
        choices=("argmax", "losses"),
        default="argmax",
    )
    trees: int = option(
        "number of trees, each with its share of the table; they differ by --tree_noise",
        default=1,
        minimum=1,
        maximum=64,
        metavar="T",
        stored=True,
        search=lambda facts: one_of(2, 4, 8, first=(8,)) if facts.reduction == "multiclass" else None,
    )
    tree_noise: float = option(
        "standard deviation of the noise added where a class is inserted, in all trees but the first",
        default=0.15,
        minimum=0,
        metavar="SD",
        stored=True,
        search=between(0.05, 0.5, "log", weight=0.5),
    )
    rerank: bool = option(
        "let one scorer per class choose among the candidates that the trees propose, and give calibrated "
        "probabilities",
        stored=True,
    )
    candidates: int = option(
        "number of classes that every tree proposes, with several trees or --rerank",
        minimum=1,
        maximum=1000,
        default_text="10 with --rerank and one tree; else 5",
        stored=True,
        search=between(3, 20, "int", first=(8,)),
    )
    candidate_cut: float = option(
        "with --rerank, drop candidates less probable than this fraction of the tree's best",
        aliases=("--candidate_threshold",),
        default_text="0.01 with one tree, 0.1 with several",
        minimum=0,
        maximum=1,
        metavar="SHARE",
        stored=True,
        search=one_of(0.0, 0.01, 0.1, first=(0.0,)),
    )
    rerank_rate: float = option(
        "learning rate of the scorers of --rerank",
        default_text="0.42",
        minimum=0,
        metavar="RATE",
        stored=True,
        search=between(0.1, 1.5, "log", first=(0.25, 0.7), weight=1.5),
    )
    index_slots: int = option(
        "with --rerank, number of classes that the index keeps for each feature; the index proposes classes in which "
        "the features of an example occur often. 0 switches it off",
        minimum=0,
        maximum=64,
        default_text=str(INDEX_SLOTS),
        stored=True,
        search=one_of(8, 16, 32, first=(32,), weight=0.7),
    )
    index_bits: int = option(
        "log2 of the number of features for which the index has a row; features with the same hash share a row",
        minimum=4,
        maximum=28,
        default_text=str(INDEX_BITS),
        metavar="B",
        stored=True,
    )
    index_candidates: int = option(
        "number of classes that the index proposes",
        minimum=1,
        maximum=1000,
        default_text=str(INDEX_CANDIDATES),
        stored=True,
        search=between(4, 32, "int", first=(16,), weight=0.7),
    )
    max_doublings: int = tagged_words.doublings_option()
    table_split: str = option(
        "with --rerank, how trees and scorers share the weights: `trees` gives the trees 2 * 2**b slots and the "
        "scorers 2**b / 4; `halves` gives 2**b to the trees and to the scorers",
        choices=("trees", "halves"),
        default_text="trees",
        stored=True,
    )

    RULES = (
        conflict(
            "--cpt_arity {cpt_arity} is not a power of two; give 2, 4, 8, ...",
            cpt_arity=lambda arity: arity & (arity - 1),
        ),
        refused(
            gd.other_options(SUPPORTED_OPTIONS),
            "has no effect with --{reduction}, whose regressors learn by AdaGrad or --sgd; leave it out, or choose "
            "--oaa",
        ),
        refused(
            "hsm_paper",
            "is a training of --hsm, which was not chosen; leave it out, or choose --hsm",
            hsm=lambda k: k is None,
        ),
        conflict(
            "--momentum {momentum} needs the plain steps of --sgd; give --sgd or --momentum 0",
            momentum=lambda m: m,
            sgd=None,
        ),
        conflict("--sgd and --adaptive exclude each other with --cpt: drop one of them", sgd=True, adaptive=True),
        refused(
            "decay_learning_rate",
            "does not apply to the scorers of --rerank, which learn at --rerank_rate: drop one of them",
            rerank=True,
        ),
        refused("vw_exact", "cannot be combined with --cpt, which VW does not have: leave one of them out"),
        tagged_words.LAYOUT_RULE,
        conflict(
            "--loss_function {loss_function} gives no probabilities; with --cpt, give squared or logistic",
            loss_function=lambda loss: loss not in (None, "squared", "logistic"),
        ),
        refused(
            "tree_noise", "has no effect on the first tree, and there is no other; give --trees 2 or more", trees=1
        ),
        no_effect(
            ("candidate_cut", "rerank_rate", *INDEX_DEFAULTS),
            "it belongs to --rerank, which was not chosen; leave it out, or give --rerank",
            rerank=None,
        ),
        refused(
            "candidates",
            "has no effect with a single tree and without --rerank; give --rerank or --trees 2 or more",
            rerank=None,
            trees=1,
        ),
        conflict(
            "--cpt_report losses leaves out the search that finds the candidates of --rerank: drop one of them",
            cpt_report="losses",
            rerank=True,
        ),
        refused(
            "beam", "0 needs nodes of two branches; give at least 1 with --cpt_arity", beam=0, cpt_arity=lambda m: m > 2
        ),
        refused(
            "predictions raw_predictions top_k calibration probabilities beam exact",
            "needs the search that --cpt_report losses leaves out: drop one of them",
            cpt_report="losses",
        ),
        no_effect(
            "index_bits index_candidates", "--index_slots 0 switches the index off; drop one of them", index_slots=0
        ),
        *tree_rules("cpt_tree", "classes", _is_file, SAMPLED, "cpt_alpha", "the regressors"),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    """Return the values of options whose defaults depend on other options."""
    o: CptOptions = spec.options
    resolved: dict[str, object] = {"loss_function": spec.binary.loss_function or "squared"}
    if spec.binary.learning_rate is None:
        grown = o.cpt_tree in GROWN
        resolved["learning_rate"] = _rate(resolved["loss_function"], grown, spec.passes, spec.binary.sgd)
    if o.candidates is None:
        resolved["candidates"] = 5 if not o.rerank or o.trees > 1 else 10
    if o.candidate_cut is None:
        resolved["candidate_cut"] = 0.01 if o.trees == 1 else 0.1 if o.rerank else UNUSED_CUT
    if o.rerank_rate is None:
        resolved["rerank_rate"] = 0.42 if o.rerank else UNUSED_RATE
    if o.rerank:
        for name, default in INDEX_DEFAULTS.items():
            if getattr(o, name) is None:
                resolved[name] = default
        if o.normalize_features == "auto":
            resolved["normalize_features"] = "idf"
    split = cast("str | None", resolved.get("table_split", o.table_split))
    size = weight_bytes(o, tagged_words.START_BITS, split)
    resolved |= tagged_words.default_sizes(spec.binary.bits, o.max_doublings, size)
    if o.beam is None:
        resolved["beam"] = BEAM if o.trees > 1 else BEAM_ALONE
    return {**gd.resolve_defaults(spec.binary, o.cpt, True), **resolved}


def check_doublings(options: CptOptions, bits: int) -> None:
    """Check that free memory suffices to double the tables --max_doublings times; raise UsageError if not."""
    free, times = memory.available(), options.max_doublings or 0
    largest = adagrad.SLOT_BYTES << max(table_bits(options, bits))  # a table is copied when it is doubled
    first = weight_bytes(options, bits)

    def needed(doublings: int) -> int:
        return (first << doublings) + (largest << doublings >> 1) + index_bytes(options)

    if free is None or needed(times) <= free:
        return
    fits = max((t for t in range(1, times) if needed(t) <= free), default=0)
    advice = f"give at most --max_doublings {fits}" if fits else "leave it out"
    raise UsageError(
        f"--max_doublings {times} lets the tables grow to {(first << times) / 2**20:,.0f} MB, for which "
        f"{needed(times) / 2**20:,.0f} MB of memory must be free, but only {free / 2**20:,.0f} MB are; {advice}, or "
        "give a smaller -b"
    )


def check_arity(options: CptOptions) -> None:
    """Check that free memory suffices for nodes of --cpt_arity branches; raise UsageError if not."""
    free, most = memory.available(), NODE_BUFFERS * BRANCH_BYTES * thread_limit.processors()
    if free is None or options.cpt_arity == 2 or most * options.cpt_arity <= free:
        return
    raise UsageError(
        f"--cpt_arity {options.cpt_arity} needs {most * options.cpt_arity / 2**20:,.0f} MB of memory for the branches "
        f"of a node, but only {free / 2**20:,.0f} MB are free; give at most "
        f"--cpt_arity {1 << max(1, (free // most).bit_length() - 1)}"
    )


def weight_bytes(options: CptOptions, bits: int, split: str | None = None) -> int:
    """Return the bytes of the weight tables of trees and scorers for `-b bits`, before any is doubled.

    `split` is the value of --table_split, None for that of the options.
    """
    tree_bits, scorer_bits = table_bits(options, bits, split)
    return adagrad.SLOT_BYTES * ((options.trees << tree_bits) + ((1 << scorer_bits) if options.rerank else 0))


def table_bits(options: CptOptions, bits: int, split: str | None = None) -> tuple[int, int]:
    """Return log2 of the slots of a tree's table and of the scorers' table (if there are scorers) for `-b bits`.

    Tagged words take as many bytes as these slots. `split` is as in `weight_bytes`.
    """
    log2_trees = (options.trees - 1).bit_length()
    if options.rerank and (split or options.table_split) == "trees":
        return max(bits + 1 - log2_trees, 4), max(bits - 2, 4)
    return max(bits - log2_trees, 4), bits


def index_bytes(options: CptOptions) -> int:
    """Return the memory of the index, 0 without one."""
    return 2 * 4 * options.index_slots << options.index_bits if options.rerank and options.index_slots else 0


def _rate(loss_function: str, grown: bool, passes: int, plain: bool) -> float:
    """Return the default learning rate; `grown` says whether the tree begins empty."""
    if plain:
        return PLAIN_RATE
    if loss_function == "logistic":
        return 1.0
    if passes == 1:
        return 0.5
    return 0.35 if grown else 0.25
