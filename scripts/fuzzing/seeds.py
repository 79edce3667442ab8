"""Small data and the option sets that learn from them: one or two for each reduction and each kind of model."""

from __future__ import annotations

import random

CLASSES = 12


def lines(kind: str, n: int = 60, seed: int = 1) -> bytes:
    """Return data whose labels are `classes`, `names`, `numbers`, `signs`, `lists` or `list names`."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        c = i % CLASSES
        several = sorted({c, *rng.sample(range(CLASSES), rng.randrange(3))}) if kind.startswith("list") else []
        label = {
            "lists": ",".join(map(str, several)), "list names": ",".join(f"name{y}" for y in several),
            "classes": f"{c + 1}", "names": f"name{c}", "numbers": f"{rng.uniform(-2, 2):.3f}",
            "signs": rng.choice(("1", "-1")),
        }[kind]  # fmt: skip
        weight = rng.choice(("", "", "", " 2", " 0.5"))
        tag = f" 't{i}" if rng.random() < 0.3 else ""
        first = f"|a w{c} x{rng.randrange(9)} y:{rng.random():.3f}"
        made.append(f"{label}{weight}{tag} {first} |b z{c // 3} u{rng.randrange(6)}:{rng.uniform(-3, 3):.2f}\n")
    return "".join(made).encode()


def columns(n: int = 60, seed: int = 2) -> bytes:
    """Return data of numbers in columns, which are brought to one scale."""
    rng = random.Random(seed)
    return "".join(
        f"{i % CLASSES + 1} | " + " ".join(f"{j}:{rng.uniform(0, 10**j):.3f}" for j in range(1, 6)) + "\n"
        for i in range(n)
    ).encode()


def with_rows(data: bytes, seed: int = 3) -> bytes:
    """Return data with a row of six numbers in each line."""
    rng = random.Random(seed)
    made = []
    for i, line in enumerate(data.decode().splitlines()):
        row = " ".join(f"{j}:{rng.gauss((i + j) % 3, 0.5):.3f}" for j in range(6))
        made.append(f"{line} |r {row}\n")
    return "".join(made).encode()


def table(n: int = 60, seed: int = 4) -> bytes:
    """Return a table with columns of numbers, of categories and of text."""
    rng = random.Random(seed)
    made = ["label,size,shop,said\n"]
    for i in range(n):
        c = i % CLASSES
        said = f"Word{c} of x{rng.randrange(9)}, And more{c // 3}"
        made.append(f'name{c},{rng.random():.3f},{rng.choice(("north", "south"))},"{said}"\n')
    return "".join(made).encode()


SHRUNK = " shrunk"  # end of the names of models that `xclass shrink` makes smaller
DATA = {
    "classes.vw": lines("classes"), "names.vw": lines("names"), "numbers.vw": lines("numbers"),
    "signs.vw": lines("signs"), "columns.vw": columns(),
    "lists.vw": lines("lists"), "list_names.vw": lines("list names"), "rows.vw": with_rows(lines("classes")),
    "table.csv": table(),
}  # fmt: skip

K = str(CLASSES)
MODELS = {  # name -> data, options of training
    "scalar": ("numbers.vw", "-b 8"),
    "scalar logistic": ("signs.vw", "-b 8 --loss_function logistic --binary --l1 1e-4"),
    "scalar sgd": ("numbers.vw", "-b 10 --sgd -l 0.1 --l2 1e-3 -q ab"),
    "oaa": ("classes.vw", f"--oaa {K} -b 8"),
    "oaa l1": ("classes.vw", f"--oaa {K} -b 9 --l1 1e-4 --l2 1e-4 --passes 2 --holdout_period 5"),
    "oaa names": ("names.vw", f"--oaa {K} -b 8 --learn_names"),
    "oaa hinge": ("classes.vw", f"--oaa {K} -b 8 --loss_function hinge --sgd --noconstant"),
    "oaa subsample": ("classes.vw", f"--oaa {K} -b 8 --oaa_subsample 3 --loss_function logistic"),
    "oaa small": ("classes.vw", f"--oaa {K} -b 8 --predict_only_model"),
    "oaa zero": ("classes.vw", f"--oaa {int(K) + 1} --indexing 0 -b 8 --layout vw"),
    "recall_tree": ("classes.vw", f"--recall_tree {K} -b 9"),
    "recall_tree deep": ("classes.vw", f"--recall_tree {K} -b 9 --max_depth 5 --max_candidates 3 --bern_hyper 0.1"),
    "recall_tree nodes": ("classes.vw", f"--recall_tree {K} -b 9 --node_only --randomized_routing"),
    "recall_tree names": ("names.vw", f"--recall_tree {K} -b 9 --learn_names --passes 2 --holdout_off"),
    "recall_tree l1": ("classes.vw", f"--recall_tree {K} -b 9 --vw_exact --l1 1e-4 --no_path_features"),
    "log_multi": ("classes.vw", f"--log_multi {K} -b 9"),
    "log_multi names": ("names.vw", f"--log_multi {K} -b 9 --learn_names --max_predictors 6 --swap_resistance 1"),
    "log_multi vw": ("classes.vw", f"--log_multi {K} -b 9 --lom_rules vw --passes 2"),
    "ect": ("classes.vw", f"--ect {K} -b 9"),
    "ect error": ("classes.vw", f"--ect {K} -b 9 --error 2 --layout vw --l1 1e-4"),
    "ect vw": ("names.vw", f"--ect {K} -b 9 --ect_play vw --error 1 --learn_names"),
    "sparse_experts": ("classes.vw", f"--sparse_experts {K} -b 9 --group_lasso 0.02 --prune_every 30"),
    "random_tree": ("classes.vw", f"--random_tree {K} -b 8"),
    "random_tree names": ("names.vw", f"--random_tree {K} -b 8 --learn_names"),
    "cpt": ("classes.vw", f"--cpt {K} -b 9"),
    "cpt names": ("names.vw", "--cpt 0 -b 9 --learn_names"),
    "cpt passes": ("classes.vw", f"--cpt {K} -b 9 --sgd --passes 2 --noconstant"),
    "cpt random": ("classes.vw", f"--cpt {K} -b 9 --cpt_tree random --loss_function logistic"),
    "cpt balanced": ("classes.vw", f"--cpt {K} -b 9 --cpt_tree balanced"),
    "cpt kmeans": ("classes.vw", f"--cpt {K} -b 9 --cpt_tree kmeans --tree_sample 40"),
    "cpt huffman": ("classes.vw", f"--cpt {K} -b 9 --cpt_tree huffman --tree_sample 30"),
    "cpt columns": ("columns.vw", f"--cpt {K} -b 9 --normalize_features columns"),
    "cpt unit": ("classes.vw", f"--cpt {K} -b 9 --normalize_features unit --cpt_alpha 1"),
    "cpt trees": ("classes.vw", f"--cpt {K} -b 9 --trees 3 --tree_noise 0.3"),
    "cpt rerank": ("classes.vw", f"--cpt {K} -b 9 --rerank --candidates 3"),
    "cpt rerank names": ("names.vw", "--cpt 0 -b 9 --rerank --trees 2 --learn_names --candidate_cut 0.01"),
    "pecoc": ("classes.vw", f"--cpt {K} -b 9 --cpt_arity 8"),
    "pecoc one": ("classes.vw", f"--cpt {K} -b 10 --cpt_arity 16"),
    "pecoc kmeans": ("classes.vw", f"--cpt {K} -b 9 --cpt_arity 4 --cpt_tree kmeans --rerank"),
    "multiclass": ("classes.vw", "--multiclass -b 10"),
    "multiclass names": ("names.vw", f"--multiclass {K} -b 10 -q ab"),
    "multiclass rows": ("rows.vw", f"--multiclass {K} -b 10 --dense r"),
    f"multiclass rows{SHRUNK}": ("rows.vw", f"--multiclass {K} -b 10 --dense r"),
    "multiclass table": ("table.csv", "--multiclass -b 10 --label_column label"),
    "multiclass text": (
        "table.csv",
        "--multiclass -b 10 --label_column label --text_split words --text_ngram 2 --text_chars 3-4",
    ),
    "oaa table": ("table.csv", f"--oaa {K} -b 9 --label_column label --text_split spaces"),
    "means": ("rows.vw", "--means --dense r"),
    f"means{SHRUNK}": ("rows.vw", f"--means {K} --dense r"),
    "mach": ("classes.vw", "--mach 3,5 -b 9"),
    "mach names": ("names.vw", "--mach 4 -b 9 --learn_names --loss_function logistic"),
    "sparse_experts one": ("names.vw", f"--sparse_experts {K} -b 9 --experts 1 --learn_names"),
    "softmax_tree": ("classes.vw", f"--softmax_tree {K} -b 9"),
    "softmax_tree deep": (
        "classes.vw",
        f"--softmax_tree {K} -b 9 --depth 3 --leaf_classes 3 --tree_init random --l1 0.01",
    ),
    "softmax_tree names": (
        "names.vw",
        f"--softmax_tree {K} -b 9 --learn_names --tree_init prototypes --tao_iterations 2",
    ),
    "multilabel_oaa": ("lists.vw", f"--multilabel_oaa {K} -b 8"),
    "multilabel_oaa names": (
        "list_names.vw",
        f"--multilabel_oaa {K} -b 8 --learn_names --threshold 0.2 --loss_function logistic",
    ),
    "multilabel": ("lists.vw", "--multilabel -b 8 --threshold auto"),
    "multilabel names": ("list_names.vw", "--multilabel -b 9 --learn_names --passes 2 --holdout_off"),
    "plt": ("lists.vw", f"--plt {K} -b 8"),
    "plt growing": ("list_names.vw", "--plt -b 9 --learn_names"),
    "plt balanced": ("lists.vw", f"--plt {K} -b 9 --plt_tree balanced --threshold auto"),
    "plt kmeans": ("lists.vw", f"--plt {K} -b 9 --plt_tree kmeans --tree_sample 30"),
    "multilabel table": ("table.csv", "--multilabel -b 9 --label_column label"),
    f"multilabel{SHRUNK}": ("lists.vw", "--multilabel -b 9"),
    "plt names": ("list_names.vw", f"--plt {K} -b 9 --learn_names --plt_tree random --passes 2 --holdout_off"),
    f"plt{SHRUNK}": ("lists.vw", f"--plt {K} -b 10 --threshold 0.3"),
    f"oaa{SHRUNK}": ("classes.vw", f"--oaa {K} -b 8"),
    f"recall_tree{SHRUNK}": ("names.vw", f"--recall_tree {K} -b 18 --learn_names"),
    f"cpt{SHRUNK}": ("classes.vw", f"--cpt {K} -b 9"),
    f"multiclass{SHRUNK}": ("classes.vw", f"--multiclass {K} -b 10"),
    "softmax_tree flat": ("columns.vw", f"--softmax_tree {K} -b 9 --depth 0 --smooth 0.1 --leaf_solver steps"),
}
