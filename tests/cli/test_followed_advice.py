"""Advice of the command's messages is followed as it is shown, and then the message is gone.

`tests/contract/test_advice_of_every_interface.py` does so for the other interfaces.
"""

from __future__ import annotations

import re
import shlex
import signal
import time
from pathlib import Path

import pytest
from command import start_process
from command import xclass as command

from xclass.cli import declared, vw_flags
from xclass.options.declare import options_of

FILES = {
    "d.vw": "1 | a\n2 | b\n",
    "x.vw": "1 |x a b\n2 |x b\n",
    "lists.vw": "1,2 | a\n2 | b\n",
    "bad.vw": "1 | a\n2 x y | b\n2 | b\n",
    "zero.vw": "1 | a\n0 | b\n",
    "nine.vw": "1 | a\n9 | b\n",
    "yes.vw": "-1 | a\n1 | b\n",
    "t.csv": "label,text,price\ntea,hot,1\nrum,cold,2\n",
    "k.jsonl": '{"intent": "tea", "text": "hot"}\n{"intent": "rum", "text": "cold"}\n',
    "q.csv": 'label,text\ntea, "hot"\nrum,cold\n',
    "e.csv": "intent,label,text\ntea,,hot\nrum,,cold\n",
    "latin": "label,text\nth\xe9,hot\nrum,cold\n",
}
ONE = "--oaa 3 -d d.vw"
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
    (f"{ONE} --early_terminate 2", "give (--passes)", ""),
    (f"{ONE} --holdout_period 2", "give (--passes)", ""),
    (f"{ONE} --holdout_period 2", "or (--holdout_after) N", "--holdout_period 2"),
    (f"{ONE} --decay_learning_rate .5", "give (--passes)", ""),
    (f"{ONE} --quantile_tau .3", "needs (--loss_function quantile)", ""),
    (f"{ONE} --loss_function log_loss", "mean (logistic)", "log_loss"),
    (f"{ONE} --loss_function Logistic", "mean (logistic)", "Logistic"),
    (f"{ONE} --lerning_rate 1", "mean (--learning_rate)", "--lerning_rate"),
    (f"{ONE} --eta0 1", "mean (--learning_rate)", "--eta0"),
    (f"{ONE} --epochs 2", "mean (--passes)", "--epochs"),
    (f"{ONE} --n_jobs 2", "mean (--threads)", "--n_jobs"),
    (f"{ONE} -learning_rate 1", "mean (--learning_rate)", "-learning_rate"),
    (f"{ONE} --permutations", "give (-q)", ""),
    (f"{ONE} -q a", "such as (-q ab)", "-q a"),
    (f"{ONE} -q a", "or (-q 'user\\|item')", "-q a"),
    (f"{ONE} --cubic ab", "such as (--cubic abc)", "--cubic ab"),
    ("--oaa 3 -d x.vw --ngram x2 --skips b1", "add (--ngram b2)", ""),
    ("--oaa 3 -d x.vw --skips x1", "needs (--ngram)", ""),
    (f"{ONE} --link glf1", "give (identity) or", "glf1"),
    (f"{ONE} --link glf1", "or (logistic)", "glf1"),
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
    ("-d t.csv --ngram 2 --text_chars 3-4", "give (--text_ngram)", "--ngram"),
]  # fmt: skip
VALUES = {  # given for what an option of advice takes, if it is shown without a value
    "--passes": "2", "--holdout_after": "1", "--ngram": "2", "-q": "xx", "--threads": "1", "--top_k": "2",
    "--label_column": "intent",
}  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="latin-1")


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


def test_advice_about_options_of_vw_names_options_that_exist():
    groups, _ = declared.option_groups()
    known = {flag for group in groups.values() for one in options_of(group).values() for flag in one.flags}
    known |= {flag for group in groups.values() for one in options_of(group).values() for flag in one.aliases}
    for flags, words in (*vw_flags.ADVICE, *vw_flags.ELSEWHERE):
        for named in re.findall(r"(?<![\w'-])--?[a-zA-Z]\w*", words):
            assert named in known or named in flags.split() or named == "--lambda", (flags, named)


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
