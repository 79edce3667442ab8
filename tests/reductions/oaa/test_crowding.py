"""The warning that far more features have occurred than a table has rows."""

import pytest
from command import learn

import xclass
from xclass.reductions.oaa import crowding

K = 40
TEXT = "".join(f"{i % K + 1} | " + " ".join(f"w{(7 * i + j) % 2400}" for j in range(5)) + "\n" for i in range(1800))
FEW = "".join(f"{i % 8 + 1} |{line.partition('|')[2]}" for i, line in enumerate(TEXT.splitlines(keepends=True)))
LISTS = "".join(line.replace(str(i % K + 1), str(i % K), 1) for i, line in enumerate(TEXT.splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("words", "text", "rows"),
    [
        (["--oaa", K, "-b", 11], TEXT, 51),
        (["--oaa", K, "-b", 11, "--layout", "vw"], TEXT, 32),
        (["--oaa", K, "-b", 11, "--oaa_subsample", 3, "--passes", 2, "--cache", "-k", "--cache_file", "c"], TEXT, 51),
        (["--multilabel_oaa", K, "-b", 11], LISTS, 51),
        (["--mach", "4,10", "-b", 11], TEXT, 51),
        (["--oaa", 8, "-b", 9], FEW, 64),
        (["--oaa", 8, "-b", 10], FEW, None),  # 19 features a row, 2.3 for each hash
        (["--oaa", K, "-b", 12], TEXT, None),  # 24 features a row
        (["--oaa", K], TEXT, None),
        (["--oaa", K, "-b", 11, "--vw_exact"], TEXT, None),
    ],
)
def test_a_run_names_rows_features_and_the_size_to_give(words, text, rows, tmp_path):
    err = learn(*words, stdin=text, cwd=tmp_path).err if "--passes" not in words else _run_file(words, text, tmp_path)
    found = [line for line in err.splitlines() if "rows of weights" in line]
    if rows is None:
        assert not found
        return
    assert len(found) == 1  # said once, whatever follows
    bits = words[words.index("-b") + 1]
    most = min(32 * rows, 3 << bits)
    assert f"-b {bits} has {rows} rows of weights, but more than {most} features have occurred" in found[0]
    assert ("or more, or a reduction whose table does not grow with K") in found[0]


def _run_file(words, text, folder) -> str:
    (folder / "d").write_text(text)
    return learn("-d", "d", *words, cwd=folder).err


def test_the_library_warns_too_and_the_estimate_is_near(tmp_path):
    with xclass.Learner("oaa", 40, bits=11) as model, pytest.warns(xclass.XclassWarning, match="51 rows of weights"):
        model.learn_many(TEXT.splitlines())
    many = "".join(f"1 | w{i} v{i}\n2 | u{i}\n" for i in range(40_000))
    for bits, fires in ((20, False), (17, True)):  # 120,000 features, 26,214 and 3,276 rows of 40 weights
        err = learn("--oaa", 40, "-b", bits, stdin=many, cwd=tmp_path).err
        assert ("rows of weights" in err) == fires
    assert crowding.Crowding(26_214, 20, 12).log2_sampled == 8
