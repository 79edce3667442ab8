"""`--multilabel_oaa` under --vw_exact beside VW, on the data of VW's own tests and on random data."""

import importlib.util

import pytest

if importlib.util.find_spec("vowpalwabbit") is None:
    pytest.skip("vowpalwabbit is not installed: nothing to compare with", allow_module_level=True)

from scripts import compare_vw
from scripts.fuzzing import vw_cases, vw_process

MULTILABEL = (  # train-sets/multilabel of VW's repository
    b"0,1 | one\n1,2 | two\n2,3 | three\n3,4 | four\n2,3,4,5 | five\n6 | six\n5,7 | seven\n8 | eight\n9 | nine\n"
    b"1,8 | ten\n"
)
LOGISTIC = "--loss_function logistic"
TEST = f"-t -i model0 {LOGISTIC}"
CASES = {  # by the numbers of VW's tests; the command lines of a case use the same data
    "83": ("--multilabel_oaa 10",),
    "350": (f"--multilabel_oaa 10 {LOGISTIC} -f model0", TEST),
    "351": (f"--multilabel_oaa 10 --link logistic {LOGISTIC} -f model0", TEST),
    "probabilities": (f"--multilabel_oaa 10 --probabilities {LOGISTIC}",),
    "passes": ("--multilabel_oaa 10 --passes 2 -c -P 1",),
}  # fmt: skip


@pytest.fixture(scope="module")
def vw():
    with vw_process.VW() as process:
        yield process


@pytest.mark.parametrize("case", CASES)
def test_vws_own_tests_give_the_same(vw, tmp_path, case):
    steps = tuple(vw_cases.Step(MULTILABEL, (*args.split(), "-p", f"p{i}")) for i, args in enumerate(CASES[case]))
    failure = compare_vw.compare(vw, steps, tmp_path)
    assert failure is None, compare_vw.report(0, steps, failure)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(8))
def test_random_runs_give_the_same(vw, tmp_path, number):
    """`python -m scripts.compare_vw --lists --runs 300` compares as many as wanted."""
    steps = vw_cases.make(3, number, lists=True)
    failure = compare_vw.compare(vw, steps, tmp_path)
    assert failure is None, compare_vw.report(number, steps, failure)
