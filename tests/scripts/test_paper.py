"""The scripts of the papers' experiments, each from its source's raw format to the table, and their downloads."""

from __future__ import annotations

import bz2
import functools
import gzip
import http.server
import json
import random
import re
import shlex
import subprocess
import sys
import threading
import zipfile

import pytest
from command import learn
from running import ROOT, environment, measuring_here
from test_convert import compressed

from scripts.convert import fetch
from scripts.lib import papers, processes, search
from scripts.lib.processes import BenchError
from scripts.paper import frequencies, row, table

PAPER = ROOT / "scripts" / "paper"
OF_LISTS = ("oplt", "xmc")  # scripts for several sets of lists of labels
SETS = sorted(path.stem for path in PAPER.glob("*.sh") if path.stem not in ("common", *OF_LISTS))


STUB = """import sys
if "-f" in sys.argv:
    open(sys.argv[sys.argv.index("-f") + 1], "w").close()
for name in ("average loss", "top-5 error", "perplexity", "average squared loss"):
    print(name, "= 0.5", file=sys.stderr)
for name in ("precision", "psp"):
    print(name, "at 1, 3, 5 = 0.5, 0.25, 0.125", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Environment in which xclass prints its options as usual but learns nothing."""
    place = tmp_path_factory.mktemp("quick")
    (place / "xclass").mkdir()
    (place / "xclass" / "__init__.py").write_text(
        "import contextlib, types\n"
        "def load(path): return contextlib.nullcontext(types.SimpleNamespace(predict=lambda line: 1))\n"
    )
    (place / "xclass" / "__main__.py").write_text(STUB)
    (place / "known").write_text(f"{' '.join(papers.METHODS)}\n{' '.join(sorted(search.known_options()))}\n")
    python = place / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in\n"-m scripts.paper.row --list") cat "{place}/known" ;;\n'
        f'*) exec "{sys.executable}" "$@" ;;\nesac\n'
    )
    python.chmod(0o755)
    return {"PYTHON": str(python), "PYTHONPATH": str(place)}


def script(name, *words, **more):
    """Run a script of the folder; return its exit status and what it wrote."""
    command = ["sh", PAPER / f"{name}.sh", *map(str, words)]
    env = environment(**{"PYTHON": sys.executable, **more})
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return result.returncode, result.stdout, result.stderr


# -- small files in the sources' formats -------------------------------------------------------------------------------


def features(rng, y, n=4):
    """Return n features that mostly depend on the class: (index, value)."""
    return [
        (1 + (3 * y + j if rng.random() < 0.9 else rng.randrange(30)), round(rng.random() + 0.1, 3)) for j in range(n)
    ]


def sparse(seed, n, k, lowest=0, labels=1, first=0, head=""):
    """Return lines of LIBSVM text, classes from `lowest`, indices from `first`, with a comment and an empty line."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        y = rng.randrange(k)
        more = [rng.randrange(k) for _ in range(rng.randrange(labels))]
        label_list = ",".join(str(label + lowest) for label in dict.fromkeys([y, *more]))
        lines.append(label_list + "".join(f" {i + first}:{v}" for i, v in sorted(dict(features(rng, y)).items())))
    if not head:
        lines[n // 2 : n // 2] = ["", "# a comment"]
    return (head + "\n".join(lines) + "\n").encode()


def table_of_uci(seed, n):
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        y = rng.randrange(26)
        values = dict(features(rng, y))
        lines.append(", ".join(f"{values.get(i, 0):.4f}" for i in range(1, 90)) + f", {y + 1}.")
    return ("\n".join(lines) + "\n").encode()


def vw(seed, n, k):
    rng = random.Random(seed)
    labels = [rng.randrange(k) for _ in range(n)]
    return "".join(f"{y + 1} | " + " ".join(f"{i}:{v}" for i, v in features(rng, y)) + "\n" for y in labels).encode()


def text(seed, n):
    """Return n words that follow a pattern, some of them rare."""
    rng = random.Random(seed)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "so", "did", "one", "dog"]
    return " ".join(words[i % 11] if rng.random() < 0.9 else f"odd{rng.randrange(40)}" for i in range(n))


def dump():
    pages = "".join(
        f'<page><title>T{i}</title><text xml:space="preserve">{text(i, 60)} [[link|{i}]]\n{{{{box}}}}</text></page>\n'
        for i in range(40)
    )
    return f"<mediawiki>\n{pages}<page><text>#REDIRECT [[T1]]</text></page>\n".encode()


def zipped(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(path.stem, content)


SOURCES = {
    "aloi": {"aloi.bz2": bz2.compress(sparse(1, 300, 20))},
    "imagenet": {"training.txt.gz": gzip.compress(vw(1, 300, 20)), "testing.txt.gz": gzip.compress(vw(2, 60, 20))},
    "isolet": {"isolet1+2+3+4.data.Z": compressed(table_of_uci(1, 300)), "isolet5.data": table_of_uci(2, 60)},
    "ltcb": {"enwik8": dump()},
    "odp": {"odp_train.vw.gz": gzip.compress(vw(1, 300, 20)), "odp_test.vw": vw(2, 60, 20)},
    "ptb": {
        "ptb.train.txt": (text(1, 900) + "\n\n" + text(2, 900) + " \n").encode(),
        "ptb.test.txt": text(3, 99).encode(),
    },
    "rcv1": {
        "rcv1_topics_combined_test.svm.bz2": bz2.compress(sparse(1, 300, 12, labels=3)),
        "rcv1_topics_train.svm": sparse(2, 60, 12, labels=3),
    },
    "sector": {"sector.bz2": bz2.compress(sparse(1, 200, 15, 1)), "sector.t.gz": gzip.compress(sparse(2, 90, 15, 1))},
    "wiki_small": {
        "wiki_small_train.txt.gz": gzip.compress(sparse(1, 300, 20, labels=2, first=-1, head="300 40 20\n")),
        "wiki_small_test.txt": sparse(2, 60, 20, labels=2, first=-1, head="60 40 20\n"),
    },
}
METHODS = {"aloi": "filter_tree", "ltcb": "cpt", "rcv1": "cpt", "odp": "recall_tree"}  # else recall_tree


@pytest.fixture
def source(tmp_path, request):
    """A folder with the raw files of a set."""
    folder = tmp_path / "raw files"
    folder.mkdir()
    for name, content in SOURCES[request.param].items():
        (folder / name).write_bytes(content)
    if request.param == "ltcb":
        zipped(folder / "enwik8.zip", (folder / "enwik8").read_bytes())
        (folder / "enwik8").unlink()
    return folder


def test_every_set_has_a_small_source():
    assert set(SETS) == set(SOURCES)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "source"), [(name, name) for name in SETS], indirect=["source"])
def test_script_goes_from_its_source_to_the_table(name, source, tmp_path, quick):
    small = [] if name in ("isolet", "ptb", "wiki_small") else ["--small"]
    words = ["--work", tmp_path / "work", "--methods", METHODS.get(name, "recall_tree"), *small]
    status, out, err = script(name, *words, DATA=str(source), TEXT="enwik8", **quick)
    assert status == 0, out + err
    folder = tmp_path / "work" / ("small" if small else "vw")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    measured = [entry for entry in rows if not entry.get("left_out")]
    assert measured and all(set(entry["paper"]) <= set(entry["found"]) | {"seconds"} for entry in measured)
    table_lines = [line for line in out.splitlines() if line.startswith("| ")]
    assert "| paper | xclass | difference | s | paper's s |" in table_lines[0] and len(table_lines) > len(rows)
    assert "$ xclass -d train.vw" in out and "$ python -m scripts.convert." in out
    # the command lines are sound and the data can be learned
    wanted = measured[0]["paper"]
    learned, predict, *_ = (shlex.split(line)[2:] for line in out.splitlines() if line.startswith("$ xclass "))
    if "error" in wanted or "squared" in wanted:
        learn(*learned, cwd=folder)
        test_err = learn(*predict, cwd=folder).err
        name = "squared" if "squared" in wanted else "error"
        assert papers.measured(test_err, name) < 70  # by chance 90 and more


def with_lists(folder):
    """Write a set of the repository, packed, and one of VW text to a folder."""
    own = folder / "Eurlex"
    own.mkdir(parents=True)
    for part, n in (("train", 300), ("test", 60)):
        text = sparse(n, n, 20, labels=3, first=-1, head=f"{n} 40 20\n")
        (own / f"eurlex_{part}.txt.gz").write_bytes(gzip.compress(text))
    own = folder / "ml_cooking"
    own.mkdir()
    for part, n in (("train", 300), ("test", 60)):
        (own / f"{part}.vw").write_text(re.sub("^([0-9]+) ", r"\1,3 ", vw(n, n, 20).decode(), flags=re.MULTILINE))
    (own / "labels.txt").write_text("".join(f"{y}\tx\n" for y in range(21)))


@pytest.mark.parametrize("name", OF_LISTS)
def test_scripts_of_lists_make_a_table_of_each_set_that_is_there(name, tmp_path, quick):
    with_lists(tmp_path / "data")
    words = ["--small", "--sets", "EURLex-4K,ml_cooking,Wiki10-31K", "--work", tmp_path / "work", "--methods", "plt"]
    status, out, err = script(name, *words, DATA=str(tmp_path / "data"), **quick)
    assert status == 0, out + err
    assert f"left out: Wiki10-31K: not in DATA={tmp_path}/data" in out
    assert "300 training and 60 test examples, 20 classes" in out and out.count("| paper | xclass |") == 2
    assert "| P@1, % |  | 50.00 |  |" in out and "| P@5, % |  | 12.50 |  |" in out
    assert ("| P@3 before learning, % |  | 25.00 |" in out) == (name == "oplt")
    assert ("| PSP@3, % |  | 25.00 |" in out) == (name == "xmc")
    assert ("| Bonsai | README of omikuji | P@1, % | 82.80 |  |  |  | 87 |" in out) == (name == "xmc")
    assert ("| napkinXC, -m oplt | one pass | P@1, % | 60.50 |  |  |  | 4 |" in out) == (name == "oplt")
    commands = [shlex.split(line)[2:] for line in out.splitlines() if line.startswith("$ xclass ")]
    learned, predict = next(
        pair for pair in zip(commands[::2], commands[1::2], strict=True) if "--plt_tree" not in pair[0]
    )
    for folder in ("EURLex-4K", "ml_cooking"):  # the command lines are sound and the data can be learned
        own = tmp_path / "work" / folder / "small"
        assert (own / "test.vw").read_text().count(",") > 20
        k = str(len((own / "labels.txt").read_text().splitlines()))
        words = list(learned)
        words[words.index("--plt") + 1] = k
        learn(*words, cwd=own)
        summary = learn(*predict, cwd=own).err
        assert papers.measured(summary, "p1") > papers.measured(summary, "p5") > 10


def test_scripts_of_lists_take_files_of_other_names(tmp_path, quick):
    with_lists(tmp_path)
    (tmp_path / "Eurlex").rename(tmp_path / "EURLex-4K")
    for part in ("train", "test"):
        (tmp_path / "EURLex-4K" / f"eurlex_{part}.txt.gz").rename(tmp_path / "EURLex-4K" / f"{part}.txt.gz")
    words = ["--sets", "EURLex-4K", "--methods", "multilabel_oaa", "--work", tmp_path / "work"]
    status, out, err = script("xmc", *words, DATA=str(tmp_path), **quick)
    assert status == 0 and "$ xclass -d train.vw --multilabel_oaa 20 -b 26" in out, out + err


def test_scripts_of_lists_say_which_sets_they_have(tmp_path, quick):
    status, out, err = script("xmc", "--dry_run", "--work", tmp_path / "work", **quick)
    assert (status, err) == (0, "") and not (tmp_path / "work").exists()
    assert out.count("$ python -m scripts.convert.sparse") == 5
    assert "/WikiLSHTC-325K/raw wikiLSHTC_train.txt --page http://manikvarma.org" in out
    assert "$ xclass -d train.vw --plt $K -b 28 --propensity 0.6,2.6 -f plt.model" in out
    assert "left out: multilabel_oaa, one pass: its time grows with the number of labels" in out
    status, out, err = script("xmc", "--work", tmp_path / "work", DATA=str(tmp_path), **quick)
    assert status == 1 and "left out: ml_cooking: not in" in out
    assert err == "xmc: none of the sets is there; DATA=FOLDER says where they are, see --help\n"
    status, _, err = script("oplt", "--sets", "wordnet", **quick)
    assert status == 1 and err.startswith("oplt: --sets wordnet: must be one of ml_bibtex ml_delicious")
    status, _, err = script("rcv1", "--sets", "wordnet", **quick)
    assert status == 1 and err.startswith("rcv1: --sets is not known; --help tells")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["isolet"], indirect=True)
def test_nothing_is_converted_or_measured_twice(source, tmp_path):
    words = ["--work", tmp_path / "work", "--methods", "recall_tree"]
    status, out, err = script("isolet", *words, DATA=str(source))
    assert status == 0 and "scripts.convert" in out, out + err
    (first,) = [json.loads(line)["found"] for line in (tmp_path / "work/vw/rows.jsonl").read_text().splitlines()]
    assert 0 < first["error"] < 70
    status, out, err = script("isolet", *words, DATA=str(source))
    assert status == 0 and "as measured before" in out and "scripts.convert" not in out, out + err
    (again,) = [json.loads(line)["found"] for line in (tmp_path / "work/vw/rows.jsonl").read_text().splitlines()]
    assert again == first


def test_a_bad_line_of_a_source_stops_the_script(tmp_path, quick):
    (tmp_path / "aloi").write_text("1 1:1\n2 2:2\n\n3 3:x\n")
    status, out, err = script("aloi", "--work", tmp_path / "work", DATA=str(tmp_path), **quick)
    assert status == 1 and "| paper |" not in out
    assert err.endswith(f"sparse: {tmp_path}/aloi:4: '3:x' is no index:value such as 17:0.5\n")


@pytest.mark.parametrize("small", [[], ["--small"]])
def test_sets_of_vw_text_are_taken_as_they_are(tmp_path, small, quick):
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.vw.gz").write_bytes(gzip.compress(vw(1, 200, 20)))
    (data / "test.vw").write_bytes(vw(2, 50, 20))
    (data / "labels.txt.gz").write_bytes(gzip.compress(b"".join(b"%d\tx\n" % i for i in range(1, 21))))
    words = ["--work", tmp_path / "work", "--methods", "filter_tree", *small]
    status, out, err = script("isolet", *words, DATA=str(data), **quick)
    assert status == 0, out + err
    assert f"$ xclass -d train.vw{'' if small else '.gz'} --ect 20" in out
    assert re.search(r"\| filter_tree \| LOMTree paper, not tuned \| test error, % \| 15\.10 \| \d", out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "words"), [("ptb", []), ("odp", ["--small"]), ("aloi", ["--probes", "9"])])
def test_commands_are_printed_and_nothing_done(name, words, tmp_path, quick):
    status, out, err = script(name, "--dry_run", "--work", tmp_path / "work", *words, GLOVE="vectors.txt", **quick)
    assert (status, err) == (0, "")
    assert not (tmp_path / "work").exists()
    assert (
        "$ python -m scripts.convert.fetch" in out
        and "$ xclass -d train.vw --cpt $K" in out
        and "\n$ K=$(gzip -cdf labels.txt* | wc -l)\n" in out
    )
    if name == "aloi":
        assert (
            "/nikos/aloi_train.vw.gz" in out and "oaa, LOMTree paper, tuned; figures of the paper: error=13.78" in out
        )
        assert "--subtract_mean" in out and "-d train.vw --softmax_tree $K --l1 0.1 --tao_iterations 30" in out
    if name != "ptb":
        return
    assert "--exact --top_k 5" in out and " --beam 0 -f hsm.model" in out
    assert "/vectors.txt" in out
    assert (
        "$ xclass -d train.vw --cpt $K --ignore d" in out
        and "\n$ cd /" in out
        and "-p cpt.predictions --top_k 5 --perplexity" in out
    )


def test_losses_of_frequencies_are_those_counted_by_hand():
    """The table answers 1/2 for label 1 after page a, then counts it; page b is new to it."""
    train = frequencies.pairs(["1 |p a |q z\n", "2 |p a |q y\n"], ["q"])
    test = frequencies.pairs(["1 |p a\n", "1 |p a\n", "3 |p b |q x\n"], ["q"])
    assert frequencies.table_loss(train, test) == pytest.approx(((1 - 1 / 2) ** 2 + (1 - 2 / 3) ** 2 + 1) / 3)
    assert frequencies.best_possible(test) == 0
    assert frequencies.best_possible(train) == pytest.approx(0.25)
    assert frequencies.equivalent(0.25) == pytest.approx(2)


def test_methods_that_xclass_lacks_are_left_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "labels.txt").write_text("1\ta\n")
    monkeypatch.setitem(row.METHODS, "hsm", "--no_such_method {K}")
    monkeypatch.setattr(
        sys, "argv", ["row.py", str(tmp_path), "hsm", "default", "error=1", "--", "--no_such_option", "1"]
    )
    assert row.main() == 0
    assert capsys.readouterr().out == (
        "left out: hsm, default: xclass has no --no_such_method and no --no_such_option\n"
    )
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "oaa,none"], "aloi: --methods none: must be one of oaa recall_tree"),
        (["--bogus"], "aloi: --bogus is not known; --help tells"),
        (["--probes", "x"], "aloi: --probes x: must be a whole number"),
        (["--work"], "aloi: --work needs a value"),
    ],
)
def test_wrong_command_lines_are_refused(words, message, quick):
    status, _, err = script("aloi", *words, **quick)
    assert status == 1 and err.startswith(message)


def test_help_of_a_script():
    status, out, _ = script("rcv1", "--help")
    assert status == 0 and out.startswith("RCV1: news of Reuters") and "--small" in out and "set -eu" not in out


def test_folder_that_is_none_is_named(quick):
    status, _, err = script("aloi", DATA="/no/such/folder", **quick)
    assert status == 1 and "aloi: DATA=/no/such/folder is no folder" in err


def test_source_to_be_downloaded_by_hand_says_where_it_is(tmp_path, quick):
    status, _, err = script("wiki_small", "--work", tmp_path / "work", **quick)
    assert status == 1
    assert "wiki_small_train.txt has to be fetched by hand, from https://drive.google.com" in err and "DATA=" in err


@pytest.mark.parametrize("name", SETS)
def test_rows_that_differ_in_the_paper_differ_in_what_runs(name):
    runs: dict[str, str] = {}
    for kind, method, setting, _, *words in papers.lines(name)[1:]:
        at = words.index("--") if "--" in words else len(words)
        both = row.commands(ROOT, method, [papers.METHODS[method], *words[:at]], {"error": None}, words[at + 1 :])
        assert runs.setdefault(f"{kind} {both}", setting) == setting, f"{method}, {setting}"


SOFTMAX_TREE = {  # set -> what appendix C has for all of its softmax trees
    "aloi": "--l1 0.1 --tao_iterations 30 --tao_tolerance 0 --leaf_passes 20",
    "odp": "--l1 0.1 --tao_iterations 20 --tao_tolerance 0 --leaf_passes 20",
    "ptb": "--l1 1 --tao_iterations 20 --tao_tolerance 0 --tree_init random --leaf_passes 20",
    "wiki_small": "--l1 1 --tao_iterations 40 --tao_tolerance 0 --leaf_passes 20",
}


@pytest.mark.parametrize("name", SETS)
def test_rows_have_the_settings_of_their_paper(name):
    """Of the LOMTree paper and of Vowpal Wabbit, with which it was made; of table 3 of Recall Tree; of appendix C."""
    text = (PAPER / f"{name}.sh").read_text()
    variables = {found[1]: found[3] for found in re.finditer(r"\b(\w+)=(['\"])((?:\$\w+ )*-.*?)\2", text)}
    settings = set()
    for kind, method, setting, _, *words in papers.lines(name)[1:]:
        assert (method, setting) not in settings
        settings.add((method, setting))
        options = " ".join(words)
        for _ in range(2):  # one variable may be in another
            options = re.sub(r"\$(\w+)", lambda match: variables.get(match[1], match[0]), options)
        of_lomtree = setting.startswith("LOMTree paper")
        if of_lomtree:
            assert kind in ("tuned", "tunable") and "-l " not in options
            assert "--passes 20" in options or name in ("imagenet", "odp")
        if of_lomtree or "-l 1 " in options:
            assert method != "log_multi" or "--layout vw --loss_function quantile" in options
            assert method != "random_tree" or "--layout vw" in options
        if "Recall Tree paper, default" in setting or (name == "ltcb" and "-l 1" in options):
            assert "-l 1" in options and (method != "oaa" or "--loss_function logistic" in options)
        if method == "recall_tree" and ("Tree paper" in setting or (name == "ltcb" and "letter" not in setting)):
            assert "$vw_tree" in options or "--router_weight example --recall_stop never" in options
        if method in ("softmax_tree", "hsm") and name in ("aloi", "ptb") and setting != "default":
            assert any(words in options for words in ("--normalize_features none", "$unscaled", "--hsm_paper"))
        if method == "softmax_tree" and "--leaf_classes" in options:
            assert SOFTMAX_TREE[name] in options.replace("$unscaled ", "")
            start = "random" if "random start" in setting or name == "ptb" else "prototypes"
            assert f"--tree_init {start}" in options
        if setting.startswith("CPT paper"):
            assert kind == "tunable" and "--sgd --loss_function squared" in options


def test_both_rows_of_hsm_predict_as_their_settings_say(tmp_path):
    """The greedy one does not predict as the exact one does."""
    small_set(tmp_path)
    predictions = []
    for _, method, setting, _, *words in papers.lines("ptb")[1:]:
        if method == "hsm" and setting.startswith("paper"):
            options = shlex.split(papers.METHODS["hsm"].replace("{K}", "20"))
            options += [word for word in words if not word.startswith("$")]
            at = options.index("--") if "--" in options else len(options)
            commands = row.commands(tmp_path, "hsm", [*options[:at], "-b", "16"], {"error": None}, options[at + 1 :])
            for command in commands[:2]:
                learn(*command, cwd=tmp_path)
            predictions.append((tmp_path / "hsm.predictions").read_text())
    assert len(set(predictions)) == 2


# -- a row and the table -----------------------------------------------------------------------------------------------


def small_set(folder):
    (folder / "train.vw").write_bytes(vw(1, 200, 20))
    (folder / "test.vw").write_bytes(vw(2, 50, 20))
    (folder / "labels.txt").write_text("".join(f"{i}\tx\n" for i in range(1, 21)))


def made(folder, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["row.py", str(folder), *words])
    return row.main()


@pytest.mark.slow
def test_failed_row_is_reported_and_the_others_are_kept(tmp_path, monkeypatch, capsys):
    small_set(tmp_path)
    assert made(tmp_path, monkeypatch, "oaa", "bad", "error=9.5", "--", "-b", "99") == 1
    assert (
        made(tmp_path, monkeypatch, "recall_tree", "good", "error=9.5 progressive=? seconds=61", "--", "-b", "14") == 0
    )
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["table.py", str(tmp_path), "Title"])
    assert table.main() == 1
    out = capsys.readouterr().out
    assert "| oaa | bad | test error, % | 9.50 | failed |" in out
    assert re.search(r"\| recall_tree \| good \| test error, % \| 9.50 \| [\d.]+ \| [+-][\d.]+ \| [\d.]+ \| 61 \|", out)
    assert re.search(r"\|  \|  \| progressive error, % \|  \| [\d.]+ \|  \|  \|  \|", out)
    assert "failed: oaa, bad: exit status 2: " in out and "99 is out of range" in out


@pytest.fixture
def here(monkeypatch):
    """What a row runs is run in this process."""

    def run(words, folder):
        print(papers.as_typed(words))
        result = processes.measure([*processes.TOOLS["xclass"], *words], folder)
        return result.stderr, result.wall

    monkeypatch.setattr(row, "run", run)
    monkeypatch.setattr(row, "warm_up", lambda learn, folder: None)
    with measuring_here():
        yield


def test_tuned_row_takes_the_best_setting(tmp_path, monkeypatch, capsys, here):
    small_set(tmp_path)
    words = ("filter_tree", "tuned", "error=9.5", "--tuned")
    assert made(tmp_path, monkeypatch, *words, "--", "-b", "14") == 0
    assert "--probes 59 looks for them" in capsys.readouterr().out
    assert made(tmp_path, monkeypatch, *words, "--probes", "2", "--", "-b", "14") == 0
    out = capsys.readouterr().out
    (state,) = tmp_path.glob("filter_tree.*.tune")
    rows = [json.loads(line) for line in state.read_text().splitlines()[1:]]
    losses = {found["setting"].split()[-1]: sum(found["sums"]) for found in rows}
    rate = re.search(r" -l (\S+) -f", out)[1]
    assert len(rows) == 2 and losses[rate] == min(losses.values())


def test_errors_are_counted_where_the_summary_has_none(tmp_path, monkeypatch, here):
    small_set(tmp_path)
    assert made(tmp_path, monkeypatch, "oaa", "sub", "error=9.5", "--", "-b", "14", "--oaa_subsample", "4") == 0
    values = json.loads((tmp_path / "rows.jsonl").read_text())["found"]
    truth = [line.split()[0] for line in (tmp_path / "test.vw").read_text().splitlines()]
    predictions = (tmp_path / "oaa.predictions").read_text().split()
    assert values["error"] == 2 * sum(map(str.__ne__, truth, predictions)) and 0 < values["error"] < 80


def test_runs_with_other_seeds_have_a_mean_and_a_deviation(tmp_path, monkeypatch, capsys, here):
    small_set(tmp_path)
    measures = "error=9.5+-0.3 train=2 covered=70 covered_perplexity=? perplexity=? megabytes=? milliseconds=0.1"
    measures += " train_top5=1 train_covered=70 train_covered_perplexity=?"
    words = ("--runs", "2", "--", *["-b", "14", "--depth", "2", "--leaf_classes", "4", "--tree_init", "random"])
    assert made(tmp_path, monkeypatch, "softmax_tree", "small", measures, *words) == 0
    out = capsys.readouterr().out
    assert "--random_seed 1 -f" in out and "--random_seed 2 -f" in out
    found = json.loads((tmp_path / "rows.jsonl").read_text())
    assert set(found["found"]) == set(found["deviations"]) == {*papers.figures(measures), "seconds"}
    assert 0 < found["found"]["covered"] < 100 and found["found"]["milliseconds"] > 0
    assert found["found"]["train_top5"] <= found["found"]["train"]
    assert found["found"]["covered_perplexity"] < found["found"]["perplexity"]
    monkeypatch.setattr(sys, "argv", ["table.py", str(tmp_path), "Title"])
    assert table.main() == 0
    out = capsys.readouterr().out
    assert re.search(r"\| softmax_tree \| small \| test error, % \| 9.50 ± 0.30 \| [\d.]+ ± [\d.]+ \|", out)
    for name in papers.figures(measures):
        assert re.search(rf"\| {re.escape(table.TITLES[name])} \| [\d.± ]*\| [\d.]+ ± [\d.]+ \|", out), name


def test_figures_are_given_by_name():
    assert papers.figures("error=12.2+-0.3 train=?") == {"error": 12.2, "train": None}
    assert papers.deviations("error=12.2+-0.3 train=?") == {"error": 0.3}
    assert papers.figures("error=12.2 seconds=571 top5=?") == {"error": 12.2, "seconds": 571, "top5": None}
    with pytest.raises(BenchError, match="eror=1: no measure of this name"):
        papers.figures("eror=1")


# -- downloads ---------------------------------------------------------------------------------------------------------

CONTENT = random.Random(1).randbytes(300_000)


class Server(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT, by path: whole, in parts, cut short, or nothing."""

    requests: list[tuple[str, str | None]]

    def do_GET(self):
        range_header = self.headers.get("Range")
        self.requests.append((self.path, range_header))
        if self.path == "/gone":
            return self.send_error(404)
        start = int(range_header[6:-1]) if range_header and self.path != "/no_ranges" else 0
        if start >= len(CONTENT):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(CONTENT)}")
            self.end_headers()
            return None
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = len(CONTENT) if self.path != "/cut" else start + 120_000
        self.wfile.write(CONTENT[start:end])
        return None

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    requests = []
    handler = type("Handler", (Server,), {"requests": requests})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as http_server:
        threading.Thread(target=http_server.serve_forever, daemon=True).start()
        yield functools.partial("http://127.0.0.1:{}/{}".format, http_server.server_port), requests
        http_server.shutdown()


def test_download_goes_on_where_it_was_cut_short(server, tmp_path):
    url, requests = server
    assert fetch.fetch(tmp_path, "a", [url("cut")], len(CONTENT)).read_bytes() == CONTENT
    assert requests == [("/cut", None), ("/cut", "bytes=120000-"), ("/cut", "bytes=240000-")]
    assert fetch.fetch(tmp_path, "a", [url("gone")], len(CONTENT)) == tmp_path / "a"
    assert len(requests) == 3 and not (tmp_path / "a.part").exists()


def test_download_goes_on_after_another_process(server, tmp_path):
    url, requests = server
    for have, path in ((1000, "whole"), (1000, "no_ranges"), (len(CONTENT), "whole"), (len(CONTENT) + 5, "whole")):
        (tmp_path / "a.part").write_bytes((CONTENT + b"extra")[:have])
        assert fetch.fetch(tmp_path, "a", [url(path)]).read_bytes() == CONTENT
        assert requests[0] == (f"/{path}", f"bytes={have}-")
        (tmp_path / "a").unlink()
        requests.clear()


def test_addresses_are_tried_in_turn_and_files_checked(server, tmp_path):
    url, _ = server
    digest = fetch.hashlib.md5(CONTENT).hexdigest()
    urls = [url("gone"), "http://127.0.0.1:1/refused", url("whole")]
    assert fetch.fetch(tmp_path, "a", urls, md5=digest).read_bytes() == CONTENT
    with pytest.raises(fetch.DownloadError, match=r"a: MD5 .*, not 00; remove it"):
        fetch.fetch(tmp_path, "a", urls, md5="00")
    with pytest.raises(fetch.DownloadError, match=r"(?s)b cannot be had.*/whole: 300,000 bytes, not 5\n.*DATA=FOLDER"):
        fetch.fetch(tmp_path, "b", [url("whole")], 5)
    assert not (tmp_path / "b.part").exists()


def test_missing_source_is_reported(server, tmp_path, monkeypatch, capsys):
    url, _ = server
    words = [str(tmp_path), "a", url("gone"), "http://127.0.0.1:1/x", "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fetch.py", *words])
    assert fetch.main() == 1
    err = capsys.readouterr().err
    assert "fetch: a cannot be had from its source:" in err and "/gone: HTTP 404 Not Found" in err
    assert "Connection refused" in err and "run with DATA=FOLDER" in err
    (tmp_path / "a.bz2").touch()
    assert fetch.main() == 0
    assert capsys.readouterr().out == f"{tmp_path}/a.bz2\n"


def test_ranges_of_a_reduction_are_those_it_has():
    ranges = search.defaults(["--recall_tree", "1000", "--max_depth", "9"], 1000)
    assert ranges[0] == "-l linear 0.1 4" and "--bern_hyper log 0.01 10" in ranges
    assert not [text for text in ranges if text.startswith("--max_depth")]  # chosen already
    assert search.defaults(["--oaa", "26", "--passes", "20"], 26) == [search.STEPS]
    assert search.defaults(["--cpt", "26", "--cpt_tree", "random"], 26) == ["-l log 0.05 5"]
    assert search.unknown(["--recall_tree", "-b", "--no_such", "24", "-7"]) == ["--no_such"]
    with pytest.raises(BenchError, match="no ranges are known"):
        search.defaults(["-b", "3"], 5)
