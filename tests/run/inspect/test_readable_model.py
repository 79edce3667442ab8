"""Models as text, names of features and audits, against VW."""

import itertools
import re

import numpy as np
import pytest
from command import learn, xclass
from streams import multiclass, namespaces, real
from versus import needs_vw, run_vw

from xclass.binary import gd
from xclass.run.report import table_occupancy

TABLE = """\
1 ex1|w apple red |s size:2 weight:0.5
2 'ex2 |w banana yellow |s size:1.5 weight:0.25
3 2.0 ex3|w apple green |s size:1
1 |w apple red
 | w?
2 |w banana
3 0.5 |w green |s size:4
"""
NAMES = """\
w^green:506:0.327612
w^yellow:3055:0.184908
w^red:90448:0.115483
s^size:111673:0.147118
Constant:116060:0.64768
w^apple:207979:0.405568
s^weight:215260:0.508506
w^banana:226118:0.33343
"""


def vw(folder, *args: str) -> str:
    return run_vw("-d", "data", "--quiet", *args, cwd=folder).out


def run_xclass(folder, *args: str) -> str:
    return learn("--vw_exact", "-d", "data", "--quiet", *args, cwd=folder).out


def weights(path) -> dict[str, list[float]]:
    """`name:slot` -> numbers."""
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line in (":0", ":1"))
    by_feature = {}
    for line in lines[first + 1 :]:
        front, _, rest = line.rpartition(":")
        if front and all(re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", word) for word in rest.split()):
            assert front not in by_feature
            by_feature[front] = [float(word) for word in rest.split()]
    return by_feature


def assert_same_weights(actual: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, rtol=2e-3, atol=2e-3, err_msg=name)


def header(path) -> list[str]:
    """The lines of a model up to the weights that do not depend on who wrote it, numbers of many digits cut."""
    own = ("Id", "options:", "Checksum", "sum_loss", "dump_interval", "sd::oec")
    lines = []
    for line in path.read_text().splitlines():
        if re.match(r"^\S*\d+:-?[\d.]", line):
            break
        if not line.startswith(own):
            lines.append(re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", line).rstrip())
    return lines


@pytest.fixture
def table(tmp_path):
    (tmp_path / "data").write_text(TABLE)
    return tmp_path


def test_names_of_the_small_table(table):
    run_xclass(table, "--predict_only_model", "--invert_hash", "names")
    text = (table / "names").read_text()
    assert text.endswith("\n:0\n" + NAMES)


COMMANDS = [
    "",
    "-q ws",
    "--ngram 2 --cubic wws",
    "--noconstant -q :: --ignore_linear s",
    "--sgd",
    "--adaptive",
    "--normalized",
    "--l1 0.01 --l2 0.001",
    "--predict_only_model --l1 0.001",
    "--oaa 3",
    "--oaa 3 -q ws --ignore s",
    "--oaa 5 --predict_only_model -q ::",
    "--oaa 3 --loss_function logistic -b 10 --hash all --hash_seed 5",
    "--recall_tree 3 --max_candidates 2",
    "--recall_tree 5 --max_candidates 2 --node_only --keep ws",
    "--ect 3 -q ws",
    "--ect 5 --error 2",
    "--log_multi 5",
]


@pytest.mark.sampled(2)
@needs_vw
@pytest.mark.parametrize("command", COMMANDS)
def test_models_as_text_are_vws(command, table):
    for run, name in ((vw, "wanted"), (run_xclass, "found")):
        run(table, *command.split(), "--readable_model", name)
        run(table, *command.split(), "--invert_hash", name + ".names")
    for name in ("", ".names"):
        assert_same_weights(weights(table / f"found{name}"), weights(table / f"wanted{name}"))
        assert header(table / f"found{name}") == header(table / f"wanted{name}")


@needs_vw
@pytest.mark.parametrize("seed", range(6))
def test_names_of_random_data_are_vws(seed, tmp_path):
    command = ["", "-q ab", "--ngram 2 --ignore b", "--oaa 3 -q aa --permutations", "--oaa 3 -q ::", "--keep ac"][seed]
    labels = ("1 ", "2 ", "3 0.5 't ", "")
    (tmp_path / "data").write_text(namespaces(seed, 40, labels))
    for run, name in ((vw, "wanted"), (run_xclass, "found")):
        run(tmp_path, *command.split(), "--invert_hash", name, "-b", "22")
    assert_same_weights(weights(tmp_path / "found"), weights(tmp_path / "wanted"))


def audited(out: str) -> list[list[str]]:
    """Lines of an audit, each as its prediction and tag, or its features; numbers cut to three digits."""

    def cut(word: str) -> str:
        return re.sub(r"(?<=[:@])-?\d+\.\d+(e[-+]\d+)?|^-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}", word)

    lines = [line for line in out.splitlines() if not line.startswith("[")]
    return [[cut(word) for word in line.split("\t")] for line in lines]


@needs_vw
@pytest.mark.parametrize(
    "command",
    [
        *(words for words in COMMANDS if not re.search("tree|ect|log_multi", words) and "predict_only" not in words),
        "-q ws --permutations",
        "--loss_function logistic --binary",
    ],
)
def test_audit_is_vws(command, table):
    actual, expected = audited(run_xclass(table, "-a", *command.split())), audited(vw(table, "-a", *command.split()))
    assert len(actual) == len(expected)
    for actual_line, expected_line in zip(actual, expected, strict=True):
        assert actual_line[0].replace("-0.00", "0.00") == expected_line[0].replace("-0.00", "0.00")
        assert sorted(actual_line) == sorted(expected_line) or _close(actual_line, expected_line)


@needs_vw
@pytest.mark.parametrize("command", ["", "-q ws", "--ngram 2 --noconstant", "-q ws --ignore_linear s", "--oaa 3"])
def test_audit_of_a_cache_has_no_names_as_in_vw(command, table):
    """Without --vw_exact the text is read again, and all names are there."""
    args = ["-a", "-c", "-k", "--passes", "2", "--holdout_off", *command.split()]
    actual, expected = audited(run_xclass(table, *args)), audited(vw(table, *args))
    assert len(actual) == len(expected) > 20
    for actual_line, expected_line in zip(actual, expected, strict=True):
        assert actual_line[0].replace("-0.00", "0.00") == expected_line[0].replace("-0.00", "0.00")
        assert sorted(actual_line) == sorted(expected_line) or _close(actual_line, expected_line)
    assert sum(word.startswith(":") for line in actual for word in line) > 10
    (table / "data.cache").unlink()  # VW's
    for more in ([], ["--shuffle", "3"]):
        out = learn(
            "--layout", "vw", "--loss_function", "squared", "-d", "data", "--quiet", *args, *more, cwd=table
        ).out
        assert not any(word.startswith(":") for line in out.splitlines() for word in line.split("\t"))


def _close(actual: list[str], expected: list[str]) -> bool:
    """Whether only the last digit of a weight differs."""
    actual_values, expected_values = (
        {w.rpartition(":")[0]: w.rpartition(":")[2] for w in line[1:]} for line in (actual, expected)
    )
    return actual_values.keys() == expected_values.keys() and all(
        abs(float(a) - float(b)) < 0.011 * max(1, abs(float(b)))
        for key in actual_values
        for a, b in zip(actual_values[key].split("@"), expected_values[key].split("@"), strict=True)
    )


@needs_vw
@pytest.mark.parametrize("args", ["--recall_tree 3 --max_candidates 2", "--ect 3", "--ect 3 --error 1"])
def test_audit_of_a_tree_shows_what_predicts(args, table):
    """VW's audit has these lines too, among those of its learning."""
    args = ["-a", *args.split()]
    wanted = [tuple(line) for line in audited(vw(table, *args))]
    first = [tuple(line) for line in audited(run_xclass(table, *args))][:2]
    assert first == wanted[:2]


def test_audit_puts_what_matters_most_first(table):
    for line in run_xclass(table, "-a").splitlines()[1::2]:
        shares = [abs(float(w.split(":")[2]) * float(w.split(":")[3].split("@")[0])) for w in line.split("\t")[1:]]
        assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("layout", ["vw", "odd"])
@pytest.mark.parametrize(
    "reduction",
    [
        ["--loss_function", "squared"],
        ["--oaa", "5"],
        ["--recall_tree", "5", "--max_candidates", "2"],
        ["--ect", "5"],
        ["--ect", "5", "--error", "2"],
    ],
)
def test_names_are_found_for_a_saved_model(reduction, layout, tmp_path):
    """Without learning anew, from the model and the data: the weights of the run that learned, with names."""
    (tmp_path / "data").write_text(multiclass(4, 5, 60))
    args = [*reduction, "--layout", layout, "-q", "wn", "-b", "20"]
    learn("-d", "data", *args, "-f", "saved", "--invert_hash", "then", "--quiet", cwd=tmp_path)
    learn("-d", "data", "-t", "-i", "saved", "--invert_hash", "later", "--quiet", cwd=tmp_path)
    then, later = weights(tmp_path / "then"), weights(tmp_path / "later")
    slots = {front.rpartition(":")[2]: values for front, values in then.items()}
    assert slots == {front.rpartition(":")[2]: values for front, values in later.items()}
    named = {front for front in later if ":" in front}
    trees = ["--recall_tree"], ["--ect"]  # which evaluate other subproblems while they learn
    assert named <= then.keys() or reduction[:1] in trees
    assert len(named) > 0.7 * len(later)
    if reduction[:1] not in trees:
        assert named == set(later)
    assert any("*" in front for front in named)


def test_header_names_the_options(table):
    run_xclass(
        table, "--oaa", "3", "-q", "ws", "--ignore", "a", "--ngram", "2", "--ngram", "w3", "--readable_model", "text"
    )
    lines = (table / "text").read_text().splitlines()
    assert "2 ngram:2 w3 " in lines
    assert "options: --ignore a --oaa 3 --quadratic ws" in lines


def test_nothing_is_learned_without_input(tmp_path):
    result = learn("--no_stdin", "--readable_model", "text", "-f", "m", cwd=tmp_path)
    assert "number of examples = 0" in result.err
    assert weights(tmp_path / "text") == {}
    result = xclass("--no_stdin", "-d", "data", cwd=tmp_path)
    assert "--no_stdin has no effect: a data file is given" in result.err


# -- slots in use


def in_use(err: str) -> tuple[int, int]:
    match = re.search(r"^slots in use = (\d+) of (\d+) \((.*)%\)$", err, flags=re.MULTILINE)
    assert abs(100 * int(match[1]) / int(match[2]) - float(match[3])) <= 0.05
    return int(match[1]), int(match[2])


@pytest.mark.parametrize(
    ("args", "bits"),
    [
        *itertools.product(
            ["--loss_function squared", "--oaa 5", "--recall_tree 5", "--ect 5", "--sgd --oaa 5"], ["8", "20"]
        ),
        *itertools.product(["--initial_weight 1"], ["8", "14"]),  # every slot is a line of the text
    ],
)
def test_slots_in_use_are_those_of_the_model(args, bits, tmp_path):
    (tmp_path / "data").write_text(multiclass(4, 5, 60))
    result = learn("-d", "data", *args.split(), "-b", bits, "--readable_model", "text", cwd=tmp_path)
    used, total = in_use(result.err)
    assert total == 1 << int(bits)
    touched = weights(tmp_path / "text")
    if "--initial_weight" in args:
        touched = {slot: values for slot, values in touched.items() if values[1:] != [0, 0]}
    assert used == len(touched)


@pytest.mark.parametrize("planes", [False, True])
def test_slots_are_counted_with_and_without_knowledge_of_pages(planes, monkeypatch):
    rng = np.random.default_rng(2)
    options = gd.BinaryOptions(bits=16, learning_rate=0.5, initial_t=0.0, loss_function="squared")
    rule = gd.make_rule(options, reduction=True)
    table = gd.new_table(rule, 16, 1, 1, planes=planes)
    for kind in "wgn":
        slots = rng.integers(0, 1 << 16, 20)
        gd.columns(table)[kind][slots] = 1
        if planes:  # an update touches all three; pages are those of w
            gd.columns(table)["w"][slots] += 0.5
    columns = gd.columns(table)
    wanted = np.count_nonzero((columns["w"] != 0) | (columns["g"] != 0) | (columns["n"] != 0))
    assert table_occupancy.count_used([table], rule) == (wanted, 1 << 16, True)
    monkeypatch.setattr(table_occupancy, "_pages_in_use", lambda *_: np.empty(0, bool))
    assert table_occupancy.count_used([table], rule) == (wanted, 1 << 16, True)


@pytest.mark.parametrize("planes", [False, True])
def test_large_tables_are_sampled(planes):
    rng = np.random.default_rng(3)
    options = gd.BinaryOptions(bits=23, learning_rate=0.5, initial_t=0.0, loss_function="squared")
    rule = gd.make_rule(options, reduction=True)
    table = gd.new_table(rule, 23, 1, 1, planes=planes)
    slots = np.unique(rng.integers(0, 1 << 23, 1 << 18))
    for column in gd.columns(table).values():
        column[slots] = 1
    used, total, exact = table_occupancy.count_used([table], rule)
    assert (total, exact) == (1 << 23, False)
    assert abs(used / len(slots) - 1) < 0.03
    assert table_occupancy.line([table], rule).startswith("slots in use = about ")


def test_real_stream_fills_a_small_table(tmp_path):
    (tmp_path / "data").write_text(real(5, 200))
    used, total = in_use(learn("-d", "data", "-q", "ab", "-b", "4", cwd=tmp_path).err)
    assert used == total == 16


@pytest.mark.parametrize("layout", ["vw", "odd"])
def test_path_features_and_their_crosses_are_shown(layout, table):
    args = ["--recall_tree", "3", "--max_candidates", "1", "--bern_hyper", "0", "--interactions", "w\\x88"]
    out = learn("-d", "data", *args, "--layout", layout, "-a", "--invert_hash", "names", "--quiet", cwd=table).out
    scorer = out.splitlines()[-1].split("\t")[1:]
    assert [word.split(":")[0] for word in scorer].count("") == 2 * (1 + 1)  # two levels, with `green` and alone
    assert any(front.startswith("[") for front in weights(table / "names"))
