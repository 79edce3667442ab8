"""Every option of VW is one of ours, or is refused with advice."""

import importlib.util
import re
import subprocess
import sys

import pytest
from command import learn, xclass

from xclass.cli import command as cli
from xclass.cli import help_text, vw_flags
from xclass.options.words import advised

OURS = {
    flag
    for section in help_text.sections(*cli.option_groups())
    for option in section.options.values()
    for flag in option.flags
}
OURS |= {"--help", "-h", "--version"}
LISTED = [flag for flags, _ in vw_flags.ADVICE for flag in flags.split()]
ELSEWHERE = [flag for flags, _ in vw_flags.ELSEWHERE for flag in flags.split()]
ACCEPTED = set(vw_flags.ACCEPTED)
NOT_IN_HELP = {"--onethread"}  # an option of VW's own program, which its Python package does not list
DATA = "1 | a\n2 | b\n3 | a b a\n" * 4


@pytest.fixture(scope="module")
def flags_of_vw() -> set[str]:
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed: nothing to compare with")
    result = subprocess.run(
        [sys.executable, "-m", "vowpalwabbit", "--help"], capture_output=True, text=True, timeout=60
    )
    flags = re.findall(r"^ {4}(?:(-\w), )?(--\w+)", result.stdout, flags=re.MULTILINE)
    assert len(flags) > 400
    return {flag for pair in flags for flag in pair if flag}


def test_every_option_of_vw_is_supported_or_has_advice(flags_of_vw):
    assert not flags_of_vw - OURS - set(LISTED) - ACCEPTED


def test_advice_is_for_options_of_vw_that_are_not_supported(flags_of_vw):
    assert not set(LISTED) - flags_of_vw
    assert not set(ELSEWHERE) & flags_of_vw
    assert not ACCEPTED - flags_of_vw - NOT_IN_HELP
    assert not (set(LISTED) | set(ELSEWHERE) | ACCEPTED) & OURS


def test_no_option_is_listed_twice():
    every = [*LISTED, *ELSEWHERE, *vw_flags.ACCEPTED]
    assert len(every) == len(set(every))


def test_options_named_in_advice_exist():
    for flags, advice in (*vw_flags.ADVICE, *vw_flags.ELSEWHERE, *vw_flags.ACCEPTED.items()):
        advice = advice.replace("VW's --lambda", "").replace("taskset -c", "taskset").replace("with --daemon", "")
        named = set(re.findall(r"(?<![\w-])--?[a-zA-Z]\w*", advice))
        assert named <= OURS, flags


def test_advice_ends_without_a_full_stop():
    for _, advice in (*vw_flags.ADVICE, *vw_flags.ELSEWHERE):
        assert len(advice) > 10
        assert not advice.endswith(".")


@pytest.mark.parametrize("words", [["--csv"], ["--csoaa", "3"], ["--top_K=5"], ["--num_threads", "7"]])
def test_option_of_vw_is_refused_with_its_advice(words):
    result = xclass("data.vw", *words)
    assert result.status == 2
    flag = words[0].partition("=")[0]
    assert result.err == f"xclass: there is no option {flag}: {advised(flag, vw_flags.LISTS)}\n"


@pytest.mark.parametrize("flag", sorted(ACCEPTED))
def test_harmless_option_of_vw_is_accepted_with_a_note(flag, tmp_path):
    plain = learn("--oaa", 3, "-b", 10, "-f", "plain", "-p", "p", stdin=DATA, cwd=tmp_path)
    result = learn("--oaa", 3, flag, flag, "-b", 10, "-f", "m", "-p", "q", stdin=DATA, cwd=tmp_path)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "m").read_bytes()
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()
    if flag == "--driver_output_off":
        assert (result.err, bool(plain.err)) == ("", True)
    else:
        assert result.err.count(f"{flag}: {vw_flags.ACCEPTED[flag]}\n") == 1
    assert learn("--oaa", 3, flag, "-b", 10, "--quiet", stdin=DATA).err == ""


def test_strict_parse_has_its_effect_where_lines_would_be_read_as_vw_reads_them():
    text = DATA + "4 x | a:b:c\n"
    assert xclass("--vw_exact", "--oaa", 4, "-b", 10, stdin=text).status == 0
    assert xclass("--vw_exact", "--oaa", 4, "-b", 10, "--strict_parse", stdin=text).status == 1
    assert learn("--oaa", 3, "-b", 10, "--strict_parse", "--on_bad_line", "stop", stdin=DATA)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--save_resumes",), "there is no option --save_resumes"),
        (("--save_resume=1",), "--save_resume"),
    ],
)
def test_a_harmless_option_has_one_name_and_no_value(words, message):
    result = xclass("--oaa", 3, "-b", 10, *words, stdin=DATA)
    assert result.status == 2
    assert message in result.err
