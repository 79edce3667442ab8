"""Options that have no effect, contradict each other or make no sense are refused before anything is learned.

Rows whose advice can be followed stand in `tests/cli/test_followed_advice.py`.
"""

import shlex

import pytest
from command import learn, xclass

REFUSED = [  # words of the command, and what its message says
    # the binary learner
    ("--oaa 3 --constant 1", "--constant has no effect with --oaa"),
    ("--recall_tree 3 --constant 1", "--constant has no effect with --recall_tree"),
    ("--constant 1 --noconstant", "--constant has no effect: --noconstant leaves the constant "),
    ("--l1 -1", "--l1: -1 is out of range; give a number from 0 to 1e+30"),
    ("--l2 1 --ect 3", "--l2 is the penalty of each regressor, but regressors of --ect share weights; give"),
    ("--l1 1 --recall_tree 3", "regressors of --recall_tree share weights; leave it out, or give --vw_ex"),
    ("--quantile_tau 0.3", "--quantile_tau has no effect: it needs --loss_function quantile"),
    # features
    ("--skips 1", "--skips has no effect: it needs --ngram"),
    ("--permutations", "--permutations has no effect: no namespaces are crossed; give -q"),
    ("--leave_duplicate_interactions", "no namespaces are crossed; give -q"),
    ("--ngram 12 --skips 12", "grams of more than 1048576 parts"),
    ("-q é:", "names 3 namespaces; it takes two namespaces"),
    ("--interactions a", "--interactions a names 1 namespace; it takes two or more"),
    ("--multiclass --text_ngram 2 --ngram 2", "both make n-grams"),
    ("--multiclass --text_chars 5-3", "--text_chars '5-3'"),
    (r"--recall_tree 9 -q '\x88:' --ignore_linear w", "--ignore_linear drops namespace 'w'"),
    # probabilities and lists
    ("--oaa 3 --top_k 2 --probabilities", "--top_k has no effect: --probabilities writes all classes"),
    ("--oaa 3 --top_k 2 --scores", "--scores has no effect: --top_k writes probabilities in place of"),
    ("--oaa 3 --perplexity --probabilities raw", "--perplexity needs probabilities that sum to 1"),
    ("--cpt 3 --probabilities raw", "--probabilities raw gives what each regressor of --oaa estimates"),
    ("--oaa 3 --probabilities --probabilities raw", "--probabilities is given twice"),
    ("--oaa 3 --perplexity --quiet", "--perplexity has no effect: --quiet leaves the summary out"),
    ("--recall_tree 3 --top_k 2 --loss_function squared", "--top_k with --recall_tree needs scores"),
    ("--recall_tree 3 --probabilities --vw_exact", "give --loss_function logistic"),
    ("--cpt 3 --cpt_report losses --probabilities", "--probabilities needs the search"),
    ("--cpt 3 --probabilities -r r", "with --probabilities only -p is written"),
    ("--plt 3 --perplexity", "--perplexity is for one label an example, not for lists"),
    ("--plt 3 --threshold auto:1.5", "--threshold: 'auto:1.5' is not a number; give a number from 0 to 1, or auto"),
    # cpt and hsm
    ("--cpt 3 --normalized", "--normalized has no effect"),
    ("--cpt 3 --layout vw", "--layout vw cannot be used with --cpt, which keeps its weights in tagged"),
    ("--cpt 3 --loss_function hinge", "--loss_function hinge gives no probabilities"),
    ("--cpt 3 --vw_exact", "--vw_exact cannot be combined with --cpt"),
    ("--cpt 3 --cpt_tree random --cpt_alpha 0.5", "--cpt_alpha has no effect"),
    ("--cpt 3 --cpt_arity 3", "--cpt_arity 3 is not a power of two"),
    ("--cpt 3 --cpt_arity 1", "--cpt_arity: 1 is out of range"),
    ("--cpt 3 --sgd --adaptive", "--sgd and --adaptive exclude each other with --cpt"),
    ("--cpt 3 --momentum 0.9", "--momentum 0.9 needs the plain steps of --sgd; give --sgd or --momentum 0"),
    ("--cpt 3 --hsm_paper", "--hsm_paper is a training of --hsm, which was not chosen; leave it out"),
    ("--cpt 3 --tree_sample 7", "does not build the tree from examples; give --cpt_tree kmeans or huffman"),
    ("--cpt 3 --candidate_cut 0.1", "--candidate_cut has no effect: it belongs to --rerank"),
    ("--cpt 3 --index_slots 4", "--index_slots has no effect: it belongs to --rerank"),
    ("--cpt 3 --table_split halves", "--table_split has no effect: it belongs to --rerank"),
    ("--cpt 3 --rerank --index_slots 0 --index_bits 10", "--index_bits has no effect: --index_slots 0 switches"),
    ("--cpt 3 --candidates 3", "--candidates has no effect with a single tree"),
    ("--cpt 3 --rerank --cpt_report losses", "--cpt_report losses leaves out the search"),
    ("--oaa 3 --layout tagged", "--layout tagged belongs to --cpt, --multiclass, --multilabel and --plt"),
    ("--loss_function squared --layout tagged", "--layout tagged belongs to --cpt, --multiclass"),
    # other reductions
    ("--ect 3 --link logistic", "--link has no effect with --ect"),
    ("--log_multi 3 --sgd", "--sgd has no effect: the routers of --log_multi learn by plain AdaGrad"),
    ("--log_multi 3 --power_t 0.3", "give --layout vw for VW's learner"),
    ("--multilabel --layout vw", "--layout vw cannot be used with --multilabel"),
    ("--multilabel --vw_exact", "--vw_exact cannot be combined with --multilabel"),
    ("--multilabel -l 0.1", "--learning_rate has no effect with --multilabel"),
    ("--multilabel --arow_r 0", "--arow_r: 0 is out of range"),
    ("--plt 5 -l 2", "--learning_rate has no effect with --plt, whose regressors learn by AROW"),
    ("--plt 5 --kary_tree 4", "a node of --plt has up to eight children; see --plt_tree"),
    ("--plt 5 --layout odd", "--layout odd cannot be used with --plt"),
    ("--plt 5 --vw_exact", "whose tree is not that of VW: leave it out, or give --multilabel_oaa K"),
    ("--plt 5 --tree_sample 9", "--tree_sample has no effect: --plt_tree online does not build the tree"),
    ("--softmax_tree 3 --learning_rate 0.3", "--learning_rate has no effect: --softmax_tree is not an online learner"),
    ("--softmax_tree 3 --l2 1", "--l2 is the penalty of a single softmax"),
    ("--softmax_tree 3 --l2 1 --depth 0 --leaf_solver exact", "--l2 needs --leaf_solver steps"),
    ("--softmax_tree 3 --zero_loss 01 --beta 3", "--beta has no effect: --zero_loss 01"),
    ("--softmax_tree 3 --leaf_solver exact --leaf_passes 3", "--leaf_passes has no effect: --leaf_solver exact"),
    ("--softmax_tree 3 --passes 3", "--passes has no effect: --softmax_tree keeps the examples"),
    ("--softmax_tree 3 --holdout_after 10", "--holdout_after has no effect"),
    ("--softmax_tree 3 --checkpoint 10 -f n", "--checkpoint has no effect"),
    # runs
    ("--oaa 3 --checkpoint 5", "--checkpoint has no effect: it needs -f FILE, the model to save"),
    ("--oaa 3 --save_per_pass", "--save_per_pass has no effect: it needs -f FILE, the model to save"),
    ("--predict_only_model", "--predict_only_model has no effect: no model is saved; give -f FILE"),
    ("--oaa 3 --sgd --decay_learning_rate 0.5", "--decay_learning_rate has no effect: it changes the learning"),
    ("--oaa 3 --preserve_performance_counters", "--preserve_performance_counters has no effect: it needs -i FILE"),
    ("-i m -t --preserve_performance_counters", "--preserve_performance_counters has no effect: with -t no examples"),
    ("--oaa 3 --progress 10 --quiet", "--progress has no effect: --quiet leaves the progress table out"),
    ("--oaa 3 --progress=-1.0", "--progress: -1.0 is a factor and has to be above 1; give 2.0, or a whole number for"),
    ("--oaa 3 --timing --quiet", "--timing has no effect: --quiet leaves the summary out"),
    ("--oaa 3 --threads 2 --workers 2", "--threads has no effect: the run has as many processes as --workers says"),
    ("--oaa 3 --explain 1 --invert_hash f", "--explain and --invert_hash cannot be combined: drop one of them"),
    ("--oaa 3 --explain_features 3", "--explain_features has no effect: no prediction is explained; give"),
    ("--loss_function squared --print_tree t", "--print_tree shows a tree, and no reduction was chosen"),
    ("--ect 3 --error 1 --print_tree t", "--print_tree shows a tree, but the matches of --error 1"),
    ("--log_multi 3 --tree_levels 3", "--tree_levels has no effect: no tree is written; give --print_tree"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with lines of three classes, and the model `m` that was learned from them."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "d").write_text("1 |w a\n2 |w b\n3 |w c\n")
    learn("--oaa", 3, "-d", "d", "-b", 10, "-f", "m", "--quiet", cwd=folder)
    return folder


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_options_that_do_not_fit_are_refused(folder, words, message):
    result = xclass("-d", "d", *shlex.split(words), cwd=folder)
    assert (result.status, result.out) == (2, "")
    assert message in result.err and result.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["d", "m"]
