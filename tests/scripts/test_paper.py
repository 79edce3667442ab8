"""The scripts of the papers' experiments, each from its source's raw format to the table, and their downloads."""

import bz2
import functools
import gzip
import http.server
import json
import random
import re
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
from command import learn
from running import ROOT, environment, tool
from test_convert import compressed

from scripts.convert import fetch
from scripts.lib import papers, peers, runner, tables
from scripts.lib.experiments import EXPERIMENTS
from scripts.lib.results import binomial_interval, chi_squared_test, hoeffding_interval
from scripts.paper import run

PAPER = ROOT / "scripts" / "paper"
SETS = sorted(name for name, experiment in EXPERIMENTS.items() if experiment.origins)
OF_LISTS = ("oplt", "xmc")  # scripts for several sets of lists of labels
GIVEN = ("DATA", "TEXT", "GLOVE", "LSTM")  # variables of the environment


@pytest.fixture
def script(monkeypatch):
    """Run the rows of a set in this process: exit status, output and errors."""
    monkeypatch.setattr(run, "warm_up", lambda folder, learn: None)

    def execute(name, *words, **variables):
        for variable in GIVEN:
            monkeypatch.delenv(variable, raising=False)
        for variable, value in variables.items():
            monkeypatch.setenv(variable, str(value))
        result = tool("paper.run", name, *words)
        return result.returncode, result.stdout, result.stderr

    return execute


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


def test_every_set_has_a_small_source_and_a_script():
    assert set(SETS) == set(SOURCES)
    assert {path.stem for path in PAPER.glob("*.sh")} == {"run", *EXPERIMENTS}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "source"), [(name, name) for name in SETS], indirect=["source"])
def test_script_goes_from_its_source_to_the_table(name, source, tmp_path, script):
    small = [] if name in ("isolet", "ptb", "wiki_small") else ["--small"]
    words = ["--work", tmp_path / "work", "--bits", 16, "--methods", METHODS.get(name, "recall_tree"), *small]
    status, out, err = script(name, *words, DATA=source, TEXT="enwik8")
    assert status == 0, out + err
    folder = tmp_path / "work" / ("small" if small else "vw")
    found = json.loads((folder / "done.json").read_text())
    assert found and all(one["seconds"] >= 0 for one in found)
    assert min(one.get("error", 100 * one.get("squared", 0)) for one in found) < 70  # by chance 90 and more
    lines = [line for line in out.splitlines() if line.startswith("| ")]
    assert "| paper | xclass | difference | peer | p | s | paper's s |" in lines[0] and len(lines) >= 2 + len(found)
    assert (folder / "table.md").read_text().strip() in out
    assert "$ xclass -d train.vw" in out and "$ python -m scripts.convert." in out


def test_sh_runs_the_set_that_it_is_named_after(tmp_path):
    command = ["sh", str(PAPER / "isolet.sh"), "--dry_run", "--work", str(tmp_path)]
    result = subprocess.run(
        command, env=environment(PYTHON=sys.executable), capture_output=True, text=True, timeout=300
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "isolet1+2+3+4.data.Z https://archive.ics.uci.edu" in result.stdout


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
def test_scripts_of_lists_make_a_table_of_each_set_that_is_there(name, tmp_path, script):
    with_lists(tmp_path / "data")
    words = ["--small", "--sets", "EURLex-4K,ml_cooking,Wiki10-31K", "--work", tmp_path / "work", "--methods", "plt"]
    status, out, err = script(name, *words, DATA=tmp_path / "data")
    assert status == 0, out + err
    assert f"left out: Wiki10-31K: not in DATA={tmp_path}/data" in out
    assert out.count("| paper | xclass |") == 2
    assert ("| P@3 before learning, % | | " in out) == (name == "oplt")
    assert ("| PSP@3, % | | " in out) == (name == "xmc")
    for which in ("EURLex-4K", "ml_cooking"):
        found = json.loads((tmp_path / "work" / which / "small" / "done.json").read_text())
        assert all(one["p1"] > one["p5"] > 10 for one in found)


def test_all_methods_run_on_the_sets_that_stand_in(tmp_path, script):
    vw_set(tmp_path / "clinc150")
    words = ["--sets", "clinc150,wordnet", "--small", "--bits", 14, "--work", tmp_path / "work"]
    words += ["--json", tmp_path / "measured"]
    status, out, err = script("stand_ins", *words, DATA=tmp_path)
    assert status == 0 and "left out: wordnet: not in" in out, out + err
    found = json.loads((tmp_path / "work/clinc150/small/done.json").read_text())
    assert len(found) == 9 and all(0 <= one["error"] < 70 for one in found)
    assert sum("test_squared" in one for one in found) == 6
    measured = json.loads((tmp_path / "measured").read_text())
    (row,) = tables.of_page("stand_ins", measured).splitlines()[2:]
    percents = {one["method"]: f"{one['percent']:.1f}" for one in measured}
    assert row.replace("*", "").startswith(
        f"| Sector | clinc150 | 20 | {percents['oaa']} | {percents['recall_tree']} | "
    )
    assert "--passes 4 --holdout_off -b 14" in out  # of five, cut for --small


def vw_set(folder, k=20):
    folder.mkdir(exist_ok=True)
    (folder / "train.vw.gz").write_bytes(gzip.compress(vw(1, 200, k)))
    (folder / "test.vw").write_bytes(vw(2, 50, k))
    (folder / "labels.txt.gz").write_bytes(gzip.compress(b"".join(b"%d\tx\n" % i for i in range(1, k + 1))))
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "words"), [("ptb", []), ("odp", ["--small"]), ("aloi", ["--probes", "9"])])
def test_commands_are_printed_and_nothing_done(name, words, tmp_path, script):
    status, out, err = script(name, "--dry_run", "--peers", "--work", tmp_path / "work", *words, GLOVE="vectors.txt")
    assert (status, err) == (0, "")
    assert not (tmp_path / "work").exists()
    k = EXPERIMENTS[name].classes
    assert "$ python -m scripts.convert.fetch" in out and f"$ xclass -d train.vw --cpt {k}" in out
    assert "  in the paper: error=" in out and " of weights" in out and "\n$ cd /" in out
    if name == "aloi":
        assert "/nikos/aloi_train.vw.gz" in out and "the best of 9 random settings" in out
        assert "--subtract_mean" in out and "-d train.vw --softmax_tree 1000 --l1 0.1 --tao_iterations 30" in out
        assert (
            "--loss_function logistic --l2 1.03e-06" in out
            and "-b 26" in out
            and "again with --holdout_off and the best number of passes" in out
        )
    if name == "ptb":
        assert "--exact --top_k 5" in out and " --beam 0 -f hsm.model" in out and "/vectors.txt" in out
        assert "--top_k" not in out.partition("hsm, HSM-approx")[2].partition("\nhsm, default")[0]


@pytest.mark.parametrize("name", [*SETS, "ptb_lstm"])
def test_rows_that_differ_in_the_paper_differ_in_what_runs(name):
    runs: dict[str, str] = {}
    settings = set()
    for row in papers.rows(name):
        assert (row.method, row.setting, row.centred) not in settings
        settings.add((row.method, row.setting, row.centred))
        key = f"{row.kind} {row.method} {row.options} {row.testing} {row.centred} {row.figures.split('=')[0]}"
        assert runs.setdefault(key, row.setting) == row.setting
        papers.figures(row.figures)


SOFTMAX_TREE = {  # set -> what appendix C has for all of its softmax trees
    "aloi": "--l1 0.1 --tao_iterations 30 --tao_tolerance 0 --leaf_solver steps --leaf_passes 20",
    "odp": "--l1 0.1 --tao_iterations 20 --tao_tolerance 0 --leaf_passes 20",
    "ptb": "--l1 1 --tao_iterations 20 --tao_tolerance 0 --tree_init random --leaf_solver steps --leaf_passes 20",
    "ptb_lstm": "--l1 1 --tao_iterations 20 --tao_tolerance 0 --tree_init random --leaf_solver steps --leaf_passes 20",
    "wiki_small": "--l1 1 --tao_iterations 40 --tao_tolerance 0 --leaf_passes 20",
}
BITS = {"aloi": "-b 26", "imagenet": "-b 30", "odp": "-b 31", "ltcb": ("-b 31", "-b 30")}  # of the demo; 32 is too many


@pytest.mark.parametrize("name", [*SETS, "ptb_lstm"])
def test_rows_have_the_settings_of_their_paper(name):
    """Of the LOMTree paper and of Vowpal Wabbit, with which it was made; of table 3 of Recall Tree; of appendix C."""
    to_the_letter = False
    for row in papers.rows(name):
        options, setting = " ".join(row.options), row.setting
        if setting.startswith("LOMTree paper, table 4"):
            assert row.kind in ("tuned", "tunable") and "-l " not in options
            assert "--passes 20" in options or name in ("imagenet", "odp")
        if row.method == "log_multi" and "paper" in setting:
            assert "--layout vw --loss_function quantile" in options
        if "table 2, default" in setting:
            assert "-l 1" in options and (row.method != "oaa" or "--loss_function logistic" in options)
            assert "x88" not in options and "node_only" not in options
        if "x88" in options and name != "ltcb":  # whatever the namespaces of the data of DATA are called
            assert r"-q \x88:" in options
        if "letter" in setting:
            to_the_letter = True
            assert {"--router_weight", "--recall_stop"} <= set(row.options) and "x88" not in options
        of_paper = any(word in setting for word in ("table 2", "table 9", "demo", "section"))
        if row.method == "recall_tree" and of_paper and row.kind != "absent":
            assert "--router_weight example" in options
        if name in BITS and any(word in setting for word in ("table 2", "demo", "letter")):
            assert options.endswith(BITS[name])
        if row.method == "softmax_tree" and "--leaf_classes" in options:
            start = "random" if "random start" in setting or name.startswith("ptb") else "prototypes"
            assert SOFTMAX_TREE[name] in options and f"--tree_init {start}" in options
        if row.method in ("softmax_tree", "hsm") and name in ("aloi", "ptb_lstm") and setting != "default":
            assert any(words in options for words in ("--normalize_features none", "--hsm_paper"))
        if setting.startswith("CPT paper"):
            assert row.kind == "tunable" and "--sgd --loss_function squared" in options
    assert to_the_letter == (name in ("aloi", "imagenet", "odp", "ltcb"))


def test_sizes_of_tables_are_those_that_runs_say(tmp_path):
    for method in ("oaa", "recall_tree", "filter_tree", "log_multi", "random_tree", "cpt"):
        words = [*papers.METHODS[method].replace("{K}", "20").split(), "-b", "18"]
        line = re.search(r"Weights: .*at most ([\d,.]+) MB", learn(*words, stdin="1 | a\n").err)
        assert papers.table_bytes(method, words) == int(line[1]) << 20, method


# -- rows and the table ------------------------------------------------------------------------------------------------

MEASURES = "error=9.5+-0.3 train=2 covered=70 covered_perplexity=? perplexity=? megabytes=? milliseconds=0.1"
MEASURES += " train_top5=1 train_covered=70 train_covered_perplexity=? depth=2 leaves=4 leaf_classes=4"
ROWS = f"""oaa bad error=9.5 -b 99
absent SAG figures gone
tuned filter_tree tuned error=9.5 -b 14 --passes 2
retrained oaa again error=9.5 --passes 8 -b 14
oaa sub error=9.5 -b 14 --oaa_subsample 4
recall_tree planes 'error=? hyperplanes=50' -b 14 --max_depth 1 --max_candidates 3
cpt losses 'squared=? test_squared=?' --sgd --loss_function squared
softmax_tree small '{MEASURES}' --depth 2 --leaf_classes 4 --tree_init random"""


def test_every_kind_of_row_has_its_figures(tmp_path, monkeypatch, script):
    pytest.importorskip("vowpalwabbit")
    experiment = EXPERIMENTS["isolet"]
    monkeypatch.setitem(EXPERIMENTS, "isolet", experiment.__class__(**{**vars(experiment), "rows": ROWS}))
    data, work = vw_set(tmp_path / "data"), tmp_path / "work" / "vw"
    words = ("isolet", "--work", tmp_path / "work", "--probes", 5, "--runs", 2, "--peers")
    status, out, err = script(*words, DATA=data)
    assert status == 1 and "failed: oaa, bad: exit status" in out and "99 is out of range" in out, out + err
    assert "left out: SAG, figures: gone" in out and "| oaa | bad | test error, % | 9.50 | failed |" in out
    _, _, sub, planes, losses, first, second = json.loads((work / "done.json").read_text())
    errors = json.loads(next(work.glob("*.tune")).read_text())
    assert 1 < len(errors) <= 5 and f"{min(errors, key=errors.__getitem__)} -f" in out
    assert any("--holdout_off" in line for line in out.splitlines() if line.startswith("$ xclass") and "--oaa" in line)
    truth = [line.split()[0] for line in (data / "test.vw").read_text().splitlines()]
    predictions = (work / "oaa.predictions").read_text().split()
    assert sub["error"] == 2 * sum(map(str.__ne__, truth, predictions))
    assert 3 <= planes["hyperplanes"] <= 5  # three candidates and, as in VW, the routers of two levels
    assert 0 < losses["squared"] != losses["test_squared"] > 0
    assert {*papers.figures(MEASURES), "seconds", "tests"} < set(first) and 0 < first["covered"] < 100
    assert first["train_top5"] <= first["train"] and first["covered_perplexity"] < first["perplexity"]
    mean = f"{(first['error'] + second['error']) / 2:.2f}"
    assert re.search(rf"\| small \| test error, % \| 9.50 \(sd 0.30\) \| {mean} ± [\d.]+ \(sd [\d.]+\) \|", out)
    assert re.search(r"\| VW [\d.]+ ± [\d.]+ \| [\d.e-]+ \|", out)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("words", "most"), [("beta=9 start=random", 0.2), ("start=prototypes", 0.02)])
def test_softmax_trees_of_another_implementation_learn(words, most, tmp_path):
    pytest.importorskip("sklearn", minversion="1.8")
    rng = np.random.default_rng(3)
    for part in ("train", "test"):
        labels = rng.integers(1, 7, 300)
        lines = [f"{y} | {y} {7 + y // 2} {rng.integers(11, 15)}\n" for y in labels]
        (tmp_path / f"{part}.vw").write_text("".join(lines))
    given = f"tree scaled depth=2 leaf_classes=3 alpha=0.1 iterations=3 {words}".split()
    assert runner.run(peers.SKLEARN, given, tmp_path)["error"] < most


def test_intervals_and_tests_are_those_of_the_textbooks():
    assert binomial_interval(0.0636, 780) == pytest.approx(0.0171, abs=5e-5)  # as printed in the LOMTree paper
    assert hoeffding_interval(23_149) == pytest.approx(0.0089, abs=5e-5)
    assert chi_squared_test(0.5, 100, 0.5, 100) == 1
    # 15 of 100 and 30 of 100: (N - 1) (ad - bc)^2 / (r1 r2 c1 c2) = 199 * 1500^2 / (100 * 100 * 45 * 155)
    assert chi_squared_test(0.15, 100, 0.3, 100) == pytest.approx(0.011292, abs=1e-4)


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
