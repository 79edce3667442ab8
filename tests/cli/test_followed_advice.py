"""Advice of the command's messages is followed as it is shown, and then the message is gone.

`tests/contract/test_advice_of_every_interface.py` does so for the other interfaces.
"""

import gzip
import os
import re
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import run_forked, start_process
from command import xclass as command

from xclass.cli import vw_flags

FILES = {
    "d.vw": "1 | a\n2 | b\n",
    "x.vw": "1 |x a b\n2 |x b\n",
    "rows.vw": "1 |x 0:1 1:2\n2 |x 0:2 1:1\n",
    "named.vw": "a | a\nb | b\n",
    "lists.vw": "1,2 | a\n2 | b\n",
    "bad.vw": "1 | a\n2 x y | b\n2 | b\n",
    "zero.vw": "1 | a\n0 | b\n",
    "nine.vw": "1 | a\n9 | b\n",
    "yes.vw": "-1 | a\n1 | b\n",
    "t.csv": "label,text,price\ntea,hot,1\nrum,cold,2\n",
    "k.jsonl": '{"intent": "tea", "text": "hot"}\n{"intent": "rum", "text": "cold"}\n',
    "q.csv": 'label,text\ntea, "hot"\nrum,cold\n',
    "e.csv": "intent,label,text\ntea,,hot\nrum,,cold\n",
    "names.vw": "a | x\nb | y\nc | z\n",
    "names.txt": "a\nb\nc\nd\n",
    "empty": "",
    "twice.csv": "label,text,text\na,b,c\nd,e,f\n",
    "bare.csv": "tea,hot,1\nrum,cold,2\ntea,hot,1\n",
    "wrong.csv": '{"label": 1, "text": "a"}\n{"label": 2, "text": "b"}\n',
    "list.json": '[{"label": "tea", "text": "hot"}, {"label": "rum", "text": "cold"}]\n',
    "blank": "a\n\nb\n",
    "same.vw": "2 | a\n" * 120,
    "zeros.vw": "01 | a\n02 | b\n03 | c\n",
    "wide.vw": "".join(f"{1 + i % 3} | {' '.join(f'w{i}_{j}' for j in range(40))}\n" for i in range(300)),
    "unnamed.csv": ",text\ntea,hot\nrum,cold\n",
    "only.csv": "label:text\ntea:hot\nrum:cold\n",
    "colon.csv": "sep=:\nlabel:text\ntea:hot\nrum:cold\n",
    "semicolon.csv": "sep=;\nlabel;text\ntea;hot\nrum;cold\n",
    "bar.csv": "sep=|\nlabel|text\ntea|hot\nrum|cold\n",
    "long.csv": "label,text\n" + "".join(f"{'ab'[i % 2]},{'' if i % 147 != 3 else chr(34)}w{i}\n" for i in range(200)),
    "lines.jsonl": '{"label": "tea", "text": "hot"}\n{"label": "rum", "text": "cold"}\n',
    "d.svm": "1 1:2\n2 2:1\n",
    "twice.tree": "0 -\n1 0 1\n1 0 2\n",
    "order.tree": "0 -\n5 9 1\n",
    "latin.txt": "1\tth\xe9\n",
    "utf8.txt": "1\ttea\n",
    "numbers.vw": "".join(f"{i / 7} | w{i % 5}\n" for i in range(60)),
    "bits.csv": "text,a,b\nhot,1,0\ncold,0,1\n",
    "big.csv": "label,id\ntea,16777217\nrum,16777219\n",
    "head.csv": 'label,"te"xt"\ntea,hot\nrum,cold\n',
    "inch.csv": 'label,text\ntea,"hot"x\nrum,cold\n',
    "keys.jsonl": '{"label": "tea", "text": "hot", "size": 1}\n{"label": "rum", "text": "cold", "size": 2}\n',
    "unlabelled.vw": "| a\n| b\n",
    "from_zero.vw": "0 | a\n1 | b\n2 | c\n",
    "negative.vw": "-2 | a\n3 | b\n",
    "packed.vw": gzip.compress(b"1 | a\n2 | b\n").decode("latin-1"),
    "packed.vw.gz": gzip.compress(b"1 | a\n2 | b\n").decode("latin-1"),
    "both.labels.txt": "1\n2\n" * 3,
    "alike.vw": "Tea | a\ntea | b\n",
    "separators.csv": "label,price\n" + 'a,"1,234.5"\nb,"2,345.5"\n' * 20,
    "plain.csv": "label,price\n" + "a,1234.5\nb,2345.5\n" * 20,
    "open.csv": 'label,text\ntea,"hot\nrum,cold\n',
    "closed.csv": 'label,text\ntea,"hot"\nrum,cold\n',
    "crossed.vw": f"1 |a {' '.join(f'x{i}' for i in range(120))}\n2 |a b\n",
    "apart.vw": "1 | a\n\n2 | b\n",
    "latin": "label,text\nth\xe9,hot\nrum,cold\n",
}
ONE, TABLE = "--oaa 3 -d d.vw", "-d t.csv --multiclass"
# words of the command, what to add (a group of the expression) and the words that it takes the place of
OF_COMMAND = [
    ("--oaa 3 -d bad.vw", "use (--on_bad_line skip)", ""),
    ("--oaa 3 -d zero.vw", "where a model is new, (--learn_names) takes", ""),
    ("--oaa 3 -d yes.vw", "where a model is new, (--learn_names) takes", ""),
    ("--oaa 3 -d nine.vw", "use (--on_bad_line skip)", ""),
    ("--oaa 3 -d yes.vw", "use (--on_bad_line skip)", ""),
    ("--oaa 3 -d lists.vw", "use (--multilabel),", "--oaa 3"),
    ("--oaa 3 -d lists.vw", "(--multilabel_oaa) K or", "--oaa"),
    ("--oaa 3 -d lists.vw", "or (--plt) K", "--oaa"),
    ("--oaa 3 -d lists.vw", "use (--on_bad_line skip) to leave out", ""),
    (f"{ONE} --loss_function log_loss", "mean (logistic)", "log_loss"),
    (f"{ONE} --loss_function Logistic", "mean (logistic)", "Logistic"),
    (f"{ONE} --lerning_rate 1", "mean (--learning_rate)", "--lerning_rate"),
    (f"{ONE} --eta0 1", "mean (--learning_rate)", "--eta0"),
    (f"{ONE} --epochs 2", "mean (--passes)", "--epochs"),
    (f"{ONE} --n_jobs 2", "mean (--threads)", "--n_jobs"),
    (f"{ONE} -learning_rate 1", "mean (--learning_rate)", "-learning_rate"),
    (f"{ONE} -q a", "such as (-q ab)", "-q a"),
    (f"{ONE} -q a", "or (-q 'user\\|item')", "-q a"),
    (f"{ONE} --cubic ab", "such as (--cubic abc)", "--cubic ab"),
    ("--oaa 3 -d x.vw --ngram x2 --skips b1", "add (--ngram b2)", ""),
    (f"{ONE} --threshold .3", "belongs to (--multilabel) ", "--oaa 3"),
    ("-d d.vw --oaa 3 --bootstrap 5", "; (--multiclass) and", "--oaa 3 --bootstrap 5"),
    ("-d d.vw --csoaa 3", "with (--oaa) K", "--csoaa"),
    (f"{ONE} --coin", "see (--sgd),", "--coin"),
    (f"{ONE} --noop", "use (-t),", "--noop"),
    (f"{ONE} --top 2", "see (--top_k),", "--top"),
    (f"{ONE} --top 2", "use --oaa K (--scores)", "--top 2"),
    (f"{ONE} --confidence", "K (--probabilities)", "--confidence"),
    (f"{ONE} --dry_run", "give (--no_stdin)", "-d d.vw --dry_run"),
    (f"{ONE} --num_threads 2", "(--threads) N", "--num_threads"),
    ("-d k.jsonl", "by (--label_column),", ""),
    ("-d e.csv", "; (--label_column) names another", ""),
]  # fmt: skip
ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)
ARRAYS = {
    "rows.npy": ROWS, "rows.labels.npy": np.array([1, 2] * 3), "wide.npy": np.ones((6, 2), int),
    "short.npy": np.ones(5, int),
    "broad.npy": np.ones((6, 5000), np.float32),
    "cube.npy": ROWS.reshape(3, 2, 2), "fortran.npy": np.asfortranarray(ROWS), "narrow.npy": ROWS[:, :1].copy(),
    "narrow.labels.npy": np.array([1, 2] * 3), "both.npy": ROWS, "both.labels.npy": np.array([1, 2] * 3),
}  # fmt: skip
VALUES = {  # given for what an option of advice takes, if it is shown without a value
    "--passes": "2", "--threads": "1", "--top_k": "2", "--label_column": "intent",
}  # fmt: skip


def write_files():
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="latin-1")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()


def messages(result):
    return [line for line in result.err.splitlines() if line.startswith(("xclass: ", "warning: "))]


@pytest.mark.parametrize(("words", "advice", "instead"), OF_COMMAND)
def test_advice_of_the_command_is_followed(place, words, advice, instead):
    first = command(*words.split())
    found = [(line, re.search(advice, line)) for line in messages(first) if re.search(advice, line)]
    assert found, first.err
    message, shown = found[0]
    option = shown[1]
    given = words
    if instead:
        assert instead in given
        given = given.replace(instead, " ", 1)
    taken = [*shlex.split(option)]
    begin = words.split().index(instead.split()[-1]) if instead.startswith("-") and " " not in instead else None
    if begin is None and not option.startswith("-"):  # a value, in place of another
        follow = shlex.split(words.replace(instead, option))
    elif begin is not None:  # another name of an option, whose value stays
        follow = shlex.split(words.replace(instead, option, 1))
        if words.split()[begin + 1 :][:1] in ([], *([word] for word in words.split() if word[:1] == "-")):
            follow += [VALUES[option]] if option in VALUES else []
    else:
        follow = [*shlex.split(given), *taken, *([VALUES[option]] if option in VALUES else [])]
        if option == "--oaa":
            follow.append("3")
    second = command(*follow)
    assert second.status == 0, (follow, second.err)
    assert message not in messages(second), follow


NOTHING_LEFT = "tune --ect 3 -d many.vw --settings 2 --passes 2 -l .4 --loss_function squared -q :: --ngram 2"
# words of the command beside the files of `models`, the advice, and the words that follow it with its group in {}
FOLLOWED = [
    # merging, shrinking, reports and comparisons
    ("merge m other", "give (-f) FILE", "merge m other {} x"),
    ("merge m m -f x", "(name) each model once", "merge m other -f x"),
    ("shrink m", "give (-f) FILE", "shrink m {} x"),
    ("shrink m -f x --keep 0", "such as ([.0-9]+)$", "shrink m -f x --keep {}"),
    ("shrink m -f x --size 50X", "such as (\\w+)$", "shrink m -f x --size {}"),
    ("report -d d.vw -o x.html", "give (-i) MODEL", "report {} m -d d.vw -o x.html"),
    ("report -i m -d d.vw", "give (-o) FILE.html", "report -i m -d d.vw {} x.html"),
    ("report -i m -d d.vw", "or (--json) FILE", "report -i m -d d.vw {} x"),
    ("report -i m -d d.vw -o x", "ends in (.html) or", "report -i m -d d.vw -o x{}"),
    ("report -i m -d d.vw -o x", "or (--json x) for", "report -i m -d d.vw {}"),
    ("report m -d d.vw -o x.html", "or a model as (-i m);", "report {} -d d.vw -o x.html"),
    ("report -i m d.vw -o x.html", "give data as (-d d.vw),", "report -i m {} -o x.html"),
    ("compare d.vw d.vw", "the data that were predicted with (-d)", "compare {} d.vw labels labels"),
    # options
    ("-d m --oaa 3", "a model with (-i)", "-d d.vw {} m"),
    ("--oaa 3 -d d.vw -f m -t", "is (-i m) meant", "-d d.vw {} -t"),
    ("-i lean -d d.vw -f x", "predict with it \\((-t)\\)", "-i lean -d d.vw {}"),
    ("--oaa 3 -d d.vw --explain 1 --audit", "(drop) one of them", "--oaa 3 -d d.vw --explain 1"),
    ("--oaa 3 -d d.vw --print_tree x", "(leave) it out, or", "--oaa 3 -d d.vw"),
    ("--oaa 3 -d d.vw --print_tree x", "or (choose) a tree", "--plt 3 -d d.vw --print_tree x"),
    ("-d yes.vw --errors x", "(choose) a reduction", "--multiclass --learn_names -d yes.vw --errors x"),
    ("--oaa 3 -d d.vw -f no/x", "or (give) another file", "--oaa 3 -d d.vw -f x"),
    (f"{ONE} -p .", "give the (name) of a file", f"{ONE} -p n"),
    (f"{ONE} -f .", "give the (name) of a file", f"{ONE} -f n"),
    (f"{ONE} -p {300 * 'n'}", "give a (shorter) one", f"{ONE} -p n"),
    (f"{ONE} -f {300 * 'n'}", "give a (shorter) one", f"{ONE} -f n"),
    (f"{ONE} -p /dev/full", "or give a file (elsewhere)$", f"{ONE} -p n"),
    ("--oaa 3 -d d.vw -f t.csv", "(give) another name", "--oaa 3 -d d.vw -f x"),
    ("--oaa 3 -d d.vw --dense x", "use (--multiclass) or", "-d rows.vw {} --dense x"),
    ("--oaa 3 -d d.vw --dense x", "or (--means),", "-d rows.vw {} --dense x"),
    ("--oaa 3 -d d.vw --named_labels a,a,b", "(list) every name once", "--oaa 3 -d named.vw --named_labels a,c,b"),
    ("--oaa 3 -d d.vw --ngram 40 --skips 30", "give a smaller (--ngram)", "--oaa 3 -d d.vw {} 2 --skips 30"),
    ("--sparse_experts 2 -b 1 -d d.vw", "give at least (-b \\d)", "--sparse_experts 2 {} -d d.vw"),
    ("--oaa 3 -d d.vw -P x", "give (1000) for", "--oaa 3 -d d.vw -P {}"),
    ("--oaa 3 -d d.vw -P x", "or (2.0) for", "--oaa 3 -d d.vw -P {}"),
    ("--multilabel -d d.vw --propensity x", "such as (\\S+)$", "--multilabel -d d.vw --propensity {}"),
    ("--cpt 3 -d d.vw --cpt_tree none", "give (--cpt_tree general),", "--cpt 3 -d d.vw {}"),
    ("--plt 3 -d d.vw --plt_tree none", "give (--plt_tree online),", "--plt 3 -d d.vw {}"),
    (f"{ONE} --sgd --initial_t 1e30 --power_t 3", "give a smaller (--power_t)",
     f"{ONE} --sgd --initial_t 1e30 {{}} .1"),
    (f"{ONE} --min_prediction 2 --max_prediction 1", "(exchange) them", f"{ONE} --min_prediction 1 --max_prediction 2"),
    ("--recall_tree 9 -d d.vw -q \\\\x88a --ignore_linear \\\\x88", "leave out (--ignore_linear)",
     "--recall_tree 9 -d d.vw -q \\\\x88a"),
    ("--oaa 3 -d d.vw --cache_file x.vw", "another name by (--cache_file)", "--oaa 3 -d d.vw {} y.cache"),
    ("shrink m other --keep .5 -f small", "give (one) model", "shrink m --keep .5 -f small"),
    ("compare p", "give (two files) or more", "compare p q -d d.vw"),
    ("compare s z -d d.vw", "(leave it out)", "compare s z"),
    ("tune --vw_exact --multiclass -d many.vw --settings 2", "(leave it out)",
     "tune --multiclass -d many.vw --settings 2"),
    ("tune --oaa 3 --recall_tree 3 -d many.vw --settings 2", "choose (one) reduction",
     "tune --oaa 3 -d many.vw --settings 2"),
    ("tune --multiclass --settings 2", "(labelled|label)", "tune --multiclass --settings 2 -d many.vw"),
    ("tune --multiclass -d many.vw --settings 2 --range '--l2 ln 0 1'", "one of log, (linear)",
     "tune --multiclass -d many.vw --settings 2 --range '--l2 {} 0 1'"),
    ("tune --log_multi 3 -d many.vw --settings 2 --metric log_loss", "give (--metric error)",
     "tune --log_multi 3 -d many.vw --settings 2 {}"),
    (f"{ONE} --save_resume --predict_only_model -f n", "(exclude each other)", f"{ONE} --save_resume -f n"),
    (f"{ONE} --vw_exact --sort_features", "leave (one of the two) options out", f"{ONE} --vw_exact"),
    (f"{ONE} --strict_parse --on_bad_line skip", "stands for (--on_bad_line stop)", f"{ONE} {{}}"),
    ("--oaa 3 -d d.vw -d t.csv", "give files of one (format)", "--oaa 3 -d d.vw -d x.vw"),
    ("--oaa 3 -d d.vw --header label,text", "(leave it out)", "--oaa 3 -d d.vw"),
    ("-t -i lists.model -d lists.vw --threshold auto", "or give a (number)",
     "-t -i lists.model -d lists.vw --threshold .5"),
    ("--cpt 3 -d d.vw --cpt_tree two.tree", "give (--trees 2)", "--cpt 3 -d d.vw --cpt_tree two.tree {}"),
    ("--mach 3,x -d d.vw", "two such as (8,256)", "--mach {} -d d.vw"),
    ("--mach 3,10000 -d d.vw -b 4", "give at least (-b \\d+)", "--mach 3,10000 -d d.vw {}"),
    ("--oaa 3000 -d d.vw -b 4", "give at least (-b \\d+)", "--oaa 3000 -d d.vw {}"),
    (f"{ONE} --raw_order vw", "give (-r) FILE", f"{ONE} --raw_order vw {{}} raw"),
    ("--recall_tree 9 -d d.vw -q \\\\x88a --no_path_features", "(drop) one", "--recall_tree 9 -d d.vw -q \\\\x88a"),
    ("--oaa 3 -d d.vw -q \\\\x88a", "or choose (--recall_tree)$", "{} 3 -d d.vw -q \\\\x88a"),
    ("--oaa 3 -d d.vw -q \\\\x88a", "leave the (interaction) out", "--oaa 3 -d d.vw"),
    ("report -i numbers -d d.vw -o r.html", "give a model of another (reduction)", "report -i m -d d.vw -o r.html"),
    ("--multilabel -d lists.vw --errors e", "; (--per_class) has", "--multilabel -d lists.vw {} e"),
    ("--multilabel -d lists.vw --errors e", "and (-p) the predictions", "--multilabel -d lists.vw {} e"),
    ("--oaa 3 -d d.vw --named_labels @empty", "write (one name) on each line",
     "--oaa 4 -d names.vw --named_labels @names.txt"),
    ("-d t.csv --dense price --multiclass", "write it as (one) of these", "-d t.csv --multiclass"),
    ("--multiclass -d x.vw --dense y", "or (leave the option out)", "--multiclass -d x.vw"),
    ("--oaa 3 -d d.vw -b 99", "from (\\d+)", "--oaa 3 -d d.vw -b 18"),
    ("--oaa 3 -d d.vw -b", "(.*)", "--oaa 3 -d d.vw -b 18"),
    ("--oaa 3 -d d.vw -b 18 -b 19", "give it (once)", "--oaa 3 -d d.vw -b 18"),
    ("--oaa 3 --recall_tree 3 -d d.vw", "choose (one) reduction", "--recall_tree 3 -d d.vw"),
    (f"{ONE} --max_depth 3", "which was not chosen; (leave) it out", ONE),
    (f"{ONE} --max_depth 3", "or choose (--recall_tree)$", "{} 3 -d d.vw --max_depth 3"),
    (f"{ONE} --plt_alpha 1", "or choose (--plt)$", "{} 3 -d lists.vw --plt_tree online --plt_alpha 1"),
    (f"{ONE} --threshold .3", "or choose one of (--multilabel),", "{} -d lists.vw --threshold .3"),
    ("-i m -d d.vw --max_depth 3", "trained with --oaa; (leave) it out", "-i m -d d.vw"),
    ("-i m -d d.vw --max_depth 3", "or train a new model with (--recall_tree)$", "{} 3 -d d.vw --max_depth 3"),
    ("-i numbers -d yes.vw --max_depth 3", "without a reduction; (leave) it out", "-i numbers -d yes.vw"),
    ("--cpt 3 -d d.vw --rerank_rate 3", "chosen; (leave) it out", "--cpt 3 -d d.vw"),
    ("--cpt 3 -d d.vw --rerank_rate 3", "or give (--rerank)$", "--cpt 3 -d d.vw --rerank_rate 3 {}"),
    ("--log_multi 3 -d d.vw --top_k 2", "one of .*(--oaa),", "{} 3 -d d.vw --top_k 2"),
    (f"{ONE} -f n -p n", "give each (its own file)", f"{ONE} -f n -p p2"),
    (f"{ONE} -f d.vw", "give (another file)", f"{ONE} -f n"),
    ("--oaa 2 -d names.vw --named_labels a,b,c", "give (at least|as many)", "--oaa 3 -d names.vw --named_labels a,b,c"),
    (f"{ONE} --text_chars 1-99", "as in (3-5)", f"{ONE} --text_split words --text_chars {{}}"),
    # files of examples
    (f"{TABLE} --label_columns hot,cold --label_column text", "(leave it out)", f"{TABLE}"),
    (f"{TABLE} --label_separator a", "such as '(.)'", "-d t.csv --multilabel --label_separator '{}'"),
    (f"{TABLE} --columns 'text,\"price'", "within (double quotes)", f"{TABLE} --columns 'text,\"price\"'"),
    (f"{TABLE} --column_kind text", "give NAME:KIND, where KIND is one of \\w+, (\\w+)",
     f"{TABLE} --column_kind text:{{}}"),
    (f"{TABLE} --column_kind text:text --column_kind text:category", "give (one) kind",
     f"{TABLE} --column_kind text:text"),
    (f"{TABLE} --ignore_column text --column_kind text:text", "leave (one of them) out",
     f"{TABLE} --ignore_column text"),
    (f"{TABLE} --columns text,text", "give each name (once)", f"{TABLE} --columns text"),
    (f"{TABLE} --columns text,label", "(leave it out)", f"{TABLE} --columns text"),
    ("-i table -d t.csv --columns price", "leave the (option) out", "-i table -d t.csv"),
    ("-i table -d t.csv --column_kind price:text", "leave the (option) out", "-i table -d t.csv"),
    (f"{TABLE} --label_column nothing", "its 3 columns are '?(\\w+)", f"{TABLE} --label_column {{}}"),
    ("-d twice.csv --multiclass", "give each column (its own)", TABLE),
    ("-d bare.csv --multiclass", "as in (--header label,text)", "-d bare.csv --multiclass {},price"),
    ("-d wrong.csv --multiclass", "format, --format csv or (--format jsonl)", "-d wrong.csv --multiclass {}"),
    ("-d rows.npy --multiclass --label_file wide.npy", "numbers or names in (one) dimension",
     "-d rows.npy --multiclass"),
    ("-d rows.npy --multiclass --label_file short.npy", "give (one) for each row", "-d rows.npy --multiclass"),
    ("-d cube.npy --multiclass --label_file rows.labels.npy", "numbers in (two) dimensions",
     "-d rows.npy --multiclass"),
    ("-d fortran.npy --multiclass --label_file rows.labels.npy", "save `(numpy.ascontiguousarray)",
     "-d rows.npy --multiclass"),
    ("-d cut.npy --multiclass --label_file rows.labels.npy", "get a (complete) copy", "-d rows.npy --multiclass"),
    ("-d rows.npy -d cut.npy --multiclass --label_file rows.labels.npy", "as (ARRAY)", "-d rows.npy --multiclass"),
    ("-d d.vw --multilabel --format xmc", "or give (--format libsvm)", "-d d.svm --oaa 3 {}"),
    # reductions and runs
    ("--multilabel_oaa 3 -d lists.vw --vw_exact --threshold auto", "give a (number)",
     "--multilabel_oaa 3 -d lists.vw --vw_exact --threshold .5"),
    ("--cpt 3 -d d.vw --cpt_tree twice.tree", "give it (another) number", "--cpt 3 -d d.vw --cpt_tree one.tree"),
    ("--cpt 3 -d d.vw --cpt_tree order.tree", "put (parents) before", "--cpt 3 -d d.vw --cpt_tree one.tree"),
    ("--ect 300000000 --error 20 -d d.vw", "give a smaller (--error)", "--ect 3000 {} 2 -d d.vw"),
    ("-t -i means.model -d narrow.npy", "give rows of (2) columns", "-t -i means.model -d rows.npy"),
    ("report -i named -d names.vw -o r.html --class_names utf8.txt", "(leave it out)",
     "report -i named -d names.vw -o r.html"),
    ("report -i lists.model -d lists.vw -o r.html --train lists.vw", "(leave it out)",
     "report -i lists.model -d lists.vw -o r.html"),
    ("report -i m -d d.vw -o r.html --class_names latin.txt", "encoding (UTF-8)",
     "report -i m -d d.vw -o r.html --class_names utf8.txt"),
    ("--vw_exact -i vw.lean -d d.vw --preserve_performance_counters", "saved with (--predict_only_model)",
     "--vw_exact -i vw.whole -d d.vw --preserve_performance_counters"),
    ("compare lists.p lists.p2 -d lists.vw", "which (--summary) FILE", "compare s z"),
    ("compare p q -d names.vw", "give the data that were (predicted)", "compare p q -d d.vw"),
    (f"{ONE} -f ''", "give the (name) of a file", f"{ONE} -f n"),
    ("--help oa", "(xclass --help oaa)", "--help oaa"),
    # files of examples
    ("-d bits.csv --multilabel --label_columns a,b --columns a", "leave one of them (out)",
     "-d bits.csv --multilabel --label_columns a,b"),
    (f"{TABLE} --columns nothing", "its columns are 'label', '(text)'", f"{TABLE} --columns {{}}"),
    (f"{TABLE} --columns text,,price", "names by single (commas)", f"{TABLE} --columns text,price"),
    ("-d big.csv --multiclass", "give (--column_kind 'id:category')", "-d big.csv --multiclass {}"),
    ("-d head.csv --multiclass", "give (--quoting none)", "-d head.csv --multiclass {}"),
    ("-d inch.csv --multiclass", "give (--quoting none)", "-d inch.csv --multiclass {}"),
    ("-d q.csv --multiclass", "give (--quoting none)", "-d q.csv --multiclass {}"),
    ("-d rows.npy --multiclass --format csv", "leave (--format) out", "-d rows.npy --multiclass"),
    ("-d rows.npy --multiclass --format csv", "give (--format npy)", "-d rows.npy --multiclass {}"),
    ("-d d.svm --oaa 3 --text_ngram 2", "--text_ngram has (no effect)", "-d d.svm --oaa 3"),
    ("-d keys.jsonl --multiclass", "as in (--columns) KEY,KEY", "-d keys.jsonl --multiclass {} text,size"),
    ("-d both.npy --multiclass", "or give (--label_file)", "-d both.npy --multiclass {} rows.labels.npy"),
    ("-d packed.vw --oaa 3", "name does not end in (.gz); rename", "-d packed.vw{} --oaa 3"),
    ("-d c.cache --oaa 3", "give it with (--cache_file)", "-d d.vw --oaa 3 {} c.cache"),
    ("-d d.vw --oaa 3 --cache_file /dev/null", "give another (name)", "-d d.vw --oaa 3 --cache_file y.cache"),
    ("-d alike.vw --multiclass --learn_names", "write both in the (same form)",
     "-d named.vw --multiclass --learn_names"),
    ("-d separators.csv --multiclass", "write (plain numbers), such as", "-d plain.csv --multiclass"),
    ("-d open.csv --multiclass", "is not closed; (close) it", "-d closed.csv --multiclass"),
    ("-d crossed.vw --oaa 2 -q aa --interactions aaaaaa", "use (fewer) or smaller interactions",
     "-d crossed.vw --oaa 2 -q aa"),
    ("-d crossed.vw --oaa 2 --interactions aaaaaa", "use fewer or (smaller) interactions",
     "-d crossed.vw --oaa 2 -q aa"),
    ("-d apart.vw --oaa 2 -p n", "; (remove) such lines", "-d d.vw --oaa 2 -p n"),
    ("-d broad.npy --label_file rows.labels.npy --means 2", "these have 5000; (leave some out)",
     "-d rows.npy --means 2"),
    # labels
    ("--oaa 3 --indexing 0 --learn_names -d d.vw", "leave (--indexing 0) out", "--oaa 3 --learn_names -d d.vw"),
    ("-d from_zero.vw", "give (--multiclass) and --named_labels 0,1,2,...", "-d from_zero.vw {} --named_labels 0,1,2"),
    ("-d negative.vw", "give (--multiclass --learn_names)$", "-d negative.vw {}"),
    ("-d d.vw", "to learn two classes, give (--multiclass)$", "-d d.vw {}"),
    ("-d names.vw --loss_function squared", "such as (--multiclass)", "-d names.vw {}"),
    ("-t -i lists.model -d lists.vw", "with a lower (--threshold) more", "-t -i lists.model -d lists.vw {} 0"),
    ("-d d.vw --binary --top_k 2", "choose one of (--multiclass),", "-d d.vw {} --top_k 2"),
    ("-t -i numbers -d yes.vw --top_k 2", "train a new model with one of (--multiclass),",
     "-d yes.vw {} --learn_names --top_k 2"),
    ("--oaa 3 -d d.vw --binary", "leave (one) of them out", "--oaa 3 -d d.vw"),
    ("-d yes.vw --errors x", "such as (--multiclass)", "{} --learn_names -d yes.vw --errors x"),
    ("--oaa 3 -d d.vw --print_tree x", "such as (--multiclass)", "{} 3 -d d.vw --print_tree x"),
    ("-d same.vw", "give (--multiclass)$", "-d same.vw {}"),
    ("-d many.vw", "give (--loss_function squared)", "-d many.vw {}"),
    ("-d many.vw --binary", "give (--loss_function squared) as well", "-d many.vw --binary {}"),
    ("-d many.vw --binary", "(leave it out)", "-d many.vw"),
    ("-d names.vw --binary", "(leave it out)$", "-d names.vw"),
    ("-d many.vw --min_prediction 0", "(leave it out)$", "-d many.vw"),
    ("-d zeros.vw", "give (--loss_function squared)", "-d zeros.vw {}"),
    # merging
    ("merge zero one -f x", "train one of them again with (other) labels", "merge zero zero_too -f x"),
    # tables that are too small
    ("--oaa 40 -d wide.vw -b 8", r"give (-b \d+) ", "--oaa 40 -d wide.vw {}"),
    ("--oaa 40 -d wide.vw -b 8", "or a (reduction) whose table", "--multiclass -d wide.vw -b 8"),
    ("--mach 4,10 -d wide.vw -b 8", r"give (-b \d+) ", "--mach 4,10 -d wide.vw {}"),
    ("--oaa 3 -d wide.vw -b 8", r"give (-b \d+) ", "--oaa 3 -d wide.vw {}"),
    ("--log_multi 300 -d many.vw -b 12", r"each router, .*give at least (-b \d+)$", "--log_multi 300 -d many.vw {}"),
    ("--ect 300 -d many.vw -b 8", r"give at least (-b \d+)$", "--ect 300 -d many.vw {}"),
    ("--recall_tree 300 -d many.vw -b 12", r"give at least (-b \d+)$", "--recall_tree 300 -d many.vw {}"),
    ("--sparse_experts 300 -d many.vw -b 12", r"give at least (-b \d+)$", "--sparse_experts 300 -d many.vw {}"),
    # progress
    (f"{ONE} -P 1.0", "has to be above (1)", f"{ONE} -P {{}}.5"),
    (f"{ONE} -P 0", "is at least (1)", f"{ONE} -P {{}}"),
    ("--oaa 3 -d names.vw --named_labels @blank", "a name is (not empty)",
     "--oaa 4 -d names.vw --named_labels @names.txt"),
    (f"{ONE} -f /dev/full", "or give a file (elsewhere);", f"{ONE} -f n"),
    # further tables
    ("-d t.csv --label_column 0", "name one by (--label_column)", "-d t.csv {} label"),
    ("-d unnamed.csv --multiclass --label_column 1", "; (add) one", f"{TABLE} --label_column 1"),
    ("-d only.csv --multiclass", "a first line such as (sep=:) names", "-d colon.csv --multiclass"),
    ("-d semicolon.csv -d bar.csv --multiclass", "give files with the same (delimiter)",
     "-d semicolon.csv -d semicolon.csv --multiclass"),
    ("-d long.csv --multiclass", "look like rows; .* give (--quoting none)", "-d long.csv --multiclass {}"),
    ("compare s z --format vw", "(leave it out)", "compare s z"),
    ("compare p q --format vw", "give data with (-d) FILE", "compare p q --format vw {} d.vw"),
    # further reductions, runs and subcommands
    ("--plt 3 -d lists.vw --plt_tree two.tree", "give another (file)", "--plt 3 -d lists.vw --plt_tree one.tree"),
    ("--oaa 3 -d d.vw --probabilities raw --vw_exact", "leave out (raw)", "--oaa 3 -d d.vw --probabilities --vw_exact"),
    ("-d d.vw --means 2", "choose (--multiclass)$", "-d d.vw {}"),
    ("--multilabel_oaa 3 -d lists.vw --rank_by propensity --vw_exact", "leave out (one) of them",
     "--multilabel_oaa 3 -d lists.vw --rank_by propensity"),
    ("--recall_tree 300 -d d.vw -b 9", r"give at least (-b \d+)$", "--recall_tree 300 -d d.vw {}"),
    ("-d rows.vw --means 2", "of the numbers by (--dense),", "-d rows.vw --means 2 {} x"),
    ("--plt 3 -d lists.vw -r y", "; (--top_k) N -p FILE writes", "--plt 3 -d lists.vw {} 2 -p y"),
    ("-t -d d.vw --oaa 3", "give (-i) MODEL", "-t -d d.vw {} m"),
    (f"{ONE} --learning_rate --quiet", "give a number from (0) to", f"{ONE} --learning_rate {{}} --quiet"),
    ("-i m -d d.vw -b 12", "leave the (option) out", "-i m -d d.vw"),
    ("-i m -d d.vw -b 12", "or (train) a new model", f"{ONE} -b 12"),
    ("-d d.vw --multiclass --audit", "give (--explain) N", "-d d.vw --multiclass {} 1"),
    ("report -i m -d unlabelled.vw -o r.html", "give (labelled) data", "report -i m -d d.vw -o r.html"),
    ("shrink m -f y --keep .5 -d unlabelled.vw", "data with (labels)", "shrink m -f y --keep .5 -d d.vw"),
    ("shrink m -f y --size 1K", "give a larger (--size)", "shrink m -f y {} 9K"),
    # tuning
    ("tune --multiclass --settings 2 -f y", "give a file with (-d)", "tune --multiclass --settings 2 -f y {} many.vw"),
    ("tune --multiclass -d many.vw --settings 2 --memory x", "such as 1(G)",  # this process may take more than that
     "tune --multiclass -d many.vw --settings 2 --memory 60{}"),
    ("tune --multiclass -d many.vw --settings 2 --time x", "such as (5m)",
     "tune --multiclass -d many.vw --settings 2 --time {}"),
    ("tune --multiclass -d many.vw --time 0.01s", "give more (--time)",
     "tune --multiclass -d many.vw --settings 2 {} 60s"),
    ("tune --multiclass -d many.vw --settings 2 --range '--loss_function linear 0 1'", "give the kind `(one)`",
     "tune --multiclass -d many.vw --settings 2 --range '--loss_function {} squared logistic'"),
    ("tune --multiclass -d many.vw --settings 2 --state d.vw", "give another (--state)",
     "tune --multiclass -d many.vw --settings 2 {} y.state"),
    ("tune --multiclass -d many.vw --settings 2 --metric top5 --state old.state", "give another (--state)",
     "tune --multiclass -d many.vw --settings 2 --metric top5 {} y.state"),
    ("tune --multiclass -d many.vw --settings 2 --range '--trees log 1 3'", "give (int) or",
     "tune --multiclass -d many.vw --settings 2 --range '--trees {} 1 3'"),
    ("tune --multiclass -d many.vw --settings 2 --range '--l2 int 0 1'", "give log or (linear)",
     "tune --multiclass -d many.vw --settings 2 --range '--l2 {} 0 1'"),
    ("tune --multiclass -d many.vw --settings 2 --range '--l2 linear 0 1' --range '--l2 linear 0 2'", "give (one)",
     "tune --multiclass -d many.vw --settings 2 --range '--l2 linear 0 1'"),
    ("tune --multiclass --l2 0 -d many.vw --settings 2 --range '--l2 linear 0 1'", "drop (one) of them",
     "tune --multiclass -d many.vw --settings 2 --range '--l2 linear 0 1'"),
    ("tune --multilabel -d manylists.vw --settings 2 --metric log_loss", "give one of (\\w+)",
     "tune --multilabel -d manylists.vw --settings 2 --metric {}"),
    ("tune --softmax_tree 3 -d many.vw --settings 2 --passes 3", "(leave it out)",
     "tune --softmax_tree 3 -d many.vw --settings 2"),
    (NOTHING_LEFT, "leave out (some) of them", "tune --ect 3 -d many.vw --settings 2"),
    (NOTHING_LEFT, "or give (--range)$", f"{NOTHING_LEFT} {{}} '--l2 linear 0 1e-9'"),
    ("tune --means 3 -d many.vw --settings 2", "choose (--multiclass)$", "tune {} -d many.vw --settings 2"),
    ("tune -d numbers.vw --settings 2", "give (--multiclass)", "tune {} -d many.vw --settings 2"),
]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Make the models and the files that the rows of FOLLOWED name, in a folder of their own."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_files()
        Path("many.vw").write_text("".join(STREAM))
        lists = (line.replace(" |", f",{2 + i % 2} |", 1) for i, line in enumerate(STREAM))
        Path("manylists.vw").write_text("".join(lists))
        for name, rows in ARRAYS.items():
            np.save(name, rows)
        Path("cut.npy").write_bytes(Path("rows.npy").read_bytes()[:-9])
        shutil.copy("t.csv", "d.csv")
        Path("labels").write_text("1\n2\n")
        Path("rows.data").write_bytes(Path("rows.npy").read_bytes())
        for words in (
            "--oaa 3 -d d.vw -f m",
            "-d yes.vw --binary -f numbers",
            "--multilabel -d lists.vw -f lists.model",
            "--oaa 3 -d d.vw -p p --summary s",
            "--oaa 3 -d x.vw -f other -p q --summary z",
            "--cpt 3 -d d.vw --trees 2 --save_tree two.tree",
            "--cpt 3 -d d.vw --save_tree one.tree",
            "-d t.csv --multiclass -f table",
            "--oaa 3 -d names.vw --named_labels a,b,c -f named",
            "--multilabel -d lists.vw -p lists.p",
            "--multilabel -d lists.vw -p lists.p2",
            "--oaa 3 -d d.vw --predict_only_model -f lean",
            "-d rows.npy --means 2 -f means.model",
            "--vw_exact --oaa 3 -d from_zero.vw -f zero",
            "--vw_exact --oaa 3 -d from_zero.vw -d from_zero.vw -f zero_too",
            "--vw_exact --oaa 3 -d many.vw -f one",
            "--cpt 3 -d d.vw -f tree",
            "--cpt 3 -d many.vw -f other_tree",
            "-d rows.npy --multiclass -f columns",
            "-d d.vw --multiclass -f words",
            "-d x.vw --multiclass -f more_words",
            "--plt 3 -d lists.vw -f label_tree --save_tree labels.tree",
            "--plt 3 -d manylists.vw -f other_label_tree",
            "--oaa 3 -d d.vw --cache_file c.cache",
            "tune --multiclass -d many.vw --settings 2 --state old.state",
            "--oaa 3 -d d.vw --vw_exact -f vw.whole",
            "--oaa 3 -d d.vw --vw_exact --predict_only_model -f vw.lean",
        ):
            done = command(*words.split())
            assert done.status == 0, done.err
    return folder


@pytest.fixture
def with_models(models, tmp_path, monkeypatch):
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("words", "advice", "followed"), FOLLOWED)
def test_advice_is_followed(with_models, words, advice, followed):
    first = command(*shlex.split(words))
    message, shown = next(
        ((line, found) for line in first.err.splitlines() if (found := re.search(advice, line))), ("", None)
    )
    assert shown, first.err
    second = command(*shlex.split(followed.format(shown[1])))
    assert second.status == 0, (followed.format(shown[1]), second.err)
    assert message not in second.err.splitlines()


# an option that the advice about an option of VW names -> words of a run with it
WITH_OPTION = {
    "--adaptive": f"{ONE} --adaptive", "--audit": f"{ONE} --audit", "--constant": "-d yes.vw --constant .1",
    "--cpt": "--cpt 3 -d d.vw", "--cubic": "--oaa 3 -d x.vw --cubic xxx",
    "--format": f"{TABLE} --format csv", "--holdout_period": f"{ONE} --passes 2 --holdout_period 2",
    "--ignore": "--oaa 3 -d x.vw --ignore x", "--initial_weight": f"{ONE} --initial_weight .1",
    "--interactions": "--oaa 3 -d x.vw --interactions xx", "--invariant": f"{ONE} --invariant",
    "--invert_hash": f"{ONE} --invert_hash x", "--keep": "--oaa 3 -d x.vw --keep x", "--l1": f"{ONE} --l1 1e-9",
    "--l2": f"{ONE} --l2 1e-9", "--label_column": "-d k.jsonl --label_column intent",
    "--loss_function": f"{ONE} --loss_function squared", "--multiclass": "--multiclass -d d.vw",
    "--ngram": f"{ONE} --ngram 2", "--no_stdin": "--oaa 3 --no_stdin", "--noconstant": f"{ONE} --noconstant",
    "--normalized": f"{ONE} --normalized", "--oaa": ONE, "--passes": f"{ONE} --passes 2",
    "--per_class": f"{ONE} --per_class x", "--plt": "--plt 3 -d lists.vw", "--plt_alpha": "--plt 3 -d lists.vw "
    "--plt_tree online --plt_alpha .5", "--plt_tree": "--plt 3 -d lists.vw --plt_tree online",
    "--probabilities": f"{ONE} --probabilities",
    "--quantile_tau": "-d yes.vw --loss_function quantile --quantile_tau .3",
    "--quiet": f"{ONE} --quiet", "--readable_model": f"{ONE} --readable_model x",
    "--recall_tree": "--recall_tree 3 -d d.vw", "--resume": "-i m -d d.vw --resume first -f n",
    "--scores": f"{ONE} --scores",
    "--sgd": f"{ONE} --sgd", "--skips": f"{ONE} --ngram 2 --skips 1", "--softmax_tree": "--softmax_tree 3 -d d.vw",
    "--summary": f"{ONE} --summary x", "--threads": f"{ONE} --threads 1", "--top_k": f"{ONE} --top_k 2",
    "--trees": "--multiclass -d d.vw --trees 2", "--workers": None, "-q": "--oaa 3 -d x.vw -q xx",
    "-t": "-t -i m -d d.vw",
}  # fmt: skip


@pytest.mark.parametrize("option", sorted(name for name, words in WITH_OPTION.items() if words))
def test_an_option_that_advice_about_options_of_vw_names_is_accepted(with_models, option):
    """--workers starts a cluster, see tests/cluster."""
    words = WITH_OPTION[option].split()
    assert option in words
    done = command(*words)
    assert done.status == 0 and not re.search(f"{option}\\b.*no effect", done.err), done.err


def test_all_options_that_advice_about_options_of_vw_names_are_tried():
    named = set()
    for flags, words in (*vw_flags.ADVICE, *vw_flags.ELSEWHERE):
        named |= {*re.findall(r"(?<![\w'-])--?[a-zA-Z]\w*", words)} - {*flags.split()}
    assert named == {*WITH_OPTION}


STREAM = [f"{1 + i % 3} | w{i % 3} v{i % 7}\n" for i in range(60)]
ON = r"to go on, give the examples after the first (\d+) to xclass (.*)"


def stopped_by_a_bad_line(words):
    return command(*words, stdin="".join([*STREAM[:25], "x y z | a\n", *STREAM[25:]])).err


def stopped_by_a_signal(words):
    process = start_process(*words)
    process.stdin.write("".join(STREAM[:25]).encode())
    process.stdin.flush()
    for line in process.stderr:  # the table of a run has a line for 20 examples
        if line.split()[2:3] == [b"20"]:
            break
    deadline = time.monotonic() + 60
    while not Path("m").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=400)[1].decode()


@pytest.mark.parametrize("stopped", [stopped_by_a_bad_line, stopped_by_a_signal])
def test_a_run_with_checkpoints_goes_on_as_its_message_says(place, stopped):
    words = ("--oaa", 3, "-b", 10, "--checkpoint", 10)
    command(*words, "-f", "whole", "--quiet", stdin="".join(STREAM))
    said = stopped([*words, "-f", "m", "-P", 20])
    assert re.search("; m holds the checkpoint of [12]0 examples; ", said), said
    learned, follow = re.search(ON, said).groups()
    done = command(*shlex.split(follow.splitlines()[0]), stdin="".join(STREAM[int(learned) :]))
    assert done.status == 0, done.err
    assert Path("m").read_bytes() == Path("whole").read_bytes()


def test_a_process_whose_file_another_one_has_written_is_given_a_file_of_its_own(place):
    def trained(path):
        first = start_process("--oaa", 3, "-f", path)
        first.stdin.write(b"1 | a\n")
        first.stdin.flush()
        while b"features" not in first.stderr.readline():  # the head of the table, which the claim of the file precedes
            pass
        assert command("--oaa", 3, "-d", "d.vw", "-f", "m").status == 0
        said = first.communicate(b"2 | b\n", timeout=400)[1].decode()
        return first.returncode, said

    status, said = trained("m")
    assert status and "another process has saved a model here" in said and "give each process a file of its own" in said
    status, said = trained("own")
    assert status == 0, said


def test_data_are_given_as_the_message_says_where_standard_input_is_a_terminal(place):
    pty = pytest.importorskip("pty")
    ends = pty.openpty()

    def ran(*words, **streams):
        words = [sys.executable, "-m", "xclass", "--oaa", "3", *words]
        return run_forked(words, **{"stdin": ends[1], **streams}, capture_output=True, text=True)

    refused = ran()
    assert refused.returncode == 2
    assert "no data: give a file, or pipe examples to standard input" in refused.stderr
    with open("d.vw") as piped:
        for followed in (ran("d.vw"), ran("-d", "d.vw"), ran(stdin=piped)):
            assert followed.returncode == 0 and "no data" not in followed.stderr, followed.stderr
    for end in ends:
        os.close(end)
