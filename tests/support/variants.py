"""Reductions and the variants of each that take other ways through the code, as words of a command line."""

from __future__ import annotations

from xclass.reductions.registry import REDUCTIONS

K = 9
BITS = ("-b", 12)
VARIANTS = {
    "scalar": [("--sgd",), ("--loss_function", "logistic", "--link", "logistic"), ("--loss_function", "quantile")],
    "oaa": [
        ("--layout", "vw", "--loss_function", "squared", "--label_range", "seen"),
        ("--oaa_subsample", 3),
        ("--loss_function", "hinge", "--indexing", 1),
        ("--sgd", "-q", "wn"),
        ("--calibration", "c"),
    ],
    "recall_tree": [
        ("--max_candidates", 3),
        ("--max_candidates", 3, "--layout", "vw", "--randomized_routing"),
        ("--max_candidates", 3, "--loss_function", "squared", "--label_range", "seen", "--adaptive"),
        ("--max_candidates", 2, "--randomized_routing", "--bern_hyper", 0, "--random_seed", 7),
        ("--max_candidates", 3, "--no_path_features", "--router_weight", "example", "-q", "wn"),
        ("--max_candidates", 3, "--node_only", "--router_weight", "mean_entropy", "--max_depth", 2),
        ("--max_candidates", 3, "--calibration", "c"),
    ],
    "log_multi": [
        ("--layout", "vw", "--loss_function", "quantile", "--label_range", "seen", "--lom_rules", "vw"),
        ("--max_predictors", 30, "--loss_function", "squared", "-q", "wn"),
        ("--max_predictors", 10, "--swap_resistance", 1, "--loss_function", "logistic"),
    ],
    "random_tree": [
        ("--layout", "vw", "--loss_function", "hinge", "--sgd", "-l", 0.2),
        ("--random_seed", 3, "--loss_function", "logistic", "-q", "wn"),
    ],
    "ect": [
        ("--error", 2),
        ("--error", 3, "--ect_play", "vw", "--layout", "vw", "--label_range", "seen"),
        ("--loss_function", "logistic", "--error", 1, "--sgd", "-l", 0.2, "-q", "wn"),
        ("--layout", "vw", "--loss_function", "hinge"),
    ],
    "cpt": [
        ("--loss_function", "logistic", "--cpt_tree", "balanced"),
        ("--cpt_tree", "random", "--random_seed", 5, "--calibration", "c"),
        ("--normalize_features", "none", "-l", 0.2, "-q", "wn"),
        ("--trees", 3),
        ("--normalize_features", "columns"),
        ("--normalize_features", "unit", "--trees", 2),
        ("--cpt_tree", "kmeans", "--tree_sample", 25),
        ("--cpt_tree", "kmeans", "--tree_sample", 20, "--trees", 2),
        ("--cpt_arity", 4),
        ("--cpt_arity", 4, "--loss_function", "logistic", "--trees", 3, "--cpt_alpha", 0.1),
        ("--cpt_arity", 16, "--cpt_tree", "random", "--random_seed", 5),
    ],
    "softmax_tree": [
        ("--depth", 2, "--leaf_classes", 4, "--zero_loss", "01"),
        ("--depth", 1, "--smooth", 0.001, "--calibration", "c"),
        ("--depth", 2, "--tree_init", "prototypes", "--zero_loss", "beta", "--beta", 10),
        ("--depth", 2, "--tree_init", "random", "--zero_loss", "remove"),
        ("--depth", 1, "--normalize_features", "none", "-q", "wn"),
        ("--depth", 1, "--normalize_features", "columns"),
    ],
}
AT_THE_END = ("softmax_tree",)  # learn when all of the data was seen, and know nothing before
BY_NAME = {record.name: record for record in REDUCTIONS}


def chosen(name: str, k: int = K) -> tuple:
    """The words that choose a reduction."""
    return () if name == "scalar" else (f"--{name}", k)
