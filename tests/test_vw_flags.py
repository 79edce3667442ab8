"""Every option of VW is one of ours, or is refused with advice."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest
from command import xclass

from xclass import cli, vw_flags

OURS = {flag for section in cli.sections(*cli.rooms()) for one in section.options.values() for flag in one.flags}
OURS |= {"--help", "-h", "--version"}
LISTED = [flag for flags, _ in vw_flags.ADVICE for flag in flags.split()]


@pytest.fixture(scope="module")
def flags_of_vw() -> set[str]:
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed: nothing to compare with")
    done = subprocess.run([sys.executable, "-m", "vowpalwabbit", "--help"], capture_output=True, text=True, timeout=60)
    found = re.findall(r"^ {4}(?:(-\w), )?(--\w+)", done.stdout, flags=re.MULTILINE)
    assert len(found) > 400
    return {flag for pair in found for flag in pair if flag}


def test_every_option_of_vw_is_ours_or_has_advice(flags_of_vw):
    assert not flags_of_vw - OURS - set(LISTED)


def test_advice_is_for_options_of_vw_that_are_not_ours(flags_of_vw):
    assert not set(LISTED) - flags_of_vw
    assert not set(LISTED) & OURS


def test_no_option_is_listed_twice():
    assert len(LISTED) == len(set(LISTED))


def test_options_named_in_advice_are_ours():
    for flags, advice in vw_flags.ADVICE:
        named = set(re.findall(r"(?<![\w-])--?[a-zA-Z]\w*", advice))
        assert named <= OURS, flags


def test_advice_ends_without_a_full_stop():
    for _, advice in vw_flags.ADVICE:
        assert len(advice) > 10
        assert not advice.endswith(".")


@pytest.mark.parametrize("words", [["--bfgs"], ["--csoaa", "3"], ["--top_K=5"], ["--plt", "7"]])
def test_option_of_vw_is_refused_with_its_advice(words):
    done = xclass("data.vw", *words)
    assert done.status == 2
    flag = words[0].partition("=")[0]
    assert done.err == f"xclass: there is no option {flag}: {vw_flags.advice(flag)}\n"


def test_option_nobody_has_gets_the_nearest_name():
    assert "did you mean --oaa?" in xclass("data.vw", "--oaaa", "3").err
