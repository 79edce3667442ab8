"""Advice about workers is followed as it is shown, and leads to success, in programs and by the command."""

import functools
import gzip
import re

import pytest
from command import xclass as run
from streams import multiclass

import xclass
import xclass.ray
from xclass.cluster import run_state
from xclass.run.run import Run


@pytest.fixture(autouse=True)
def place(inline, tmp_path, monkeypatch):
    """A folder with files of several formats to run in."""
    monkeypatch.chdir(tmp_path)
    for k in range(2):
        (tmp_path / f"part-{k}.vw").write_text(multiclass(k, 9, 60))
        (tmp_path / f"named-{k}.vw").write_text("".join(f"c{3 * k + i % 3} | w{i % 3}\n" for i in range(60)))
        (tmp_path / f"lists-{k}.vw").write_text("a,b | x\nb | y\n" * 30)
    (tmp_path / "one.vw.gz").write_bytes(gzip.compress((tmp_path / "part-0.vw").read_bytes()))
    (tmp_path / "table").write_text("label,text\n" + "tea,hot\nrum,cold\n" * 90)
    return tmp_path


def fit(data, *options, workers=2, learner=None, **reading):
    """Return a call that learns on a cluster with a learner that the options make."""
    more = {name: reading.pop(name) for name in ("learn_names", "named_labels") if name in reading}
    new = functools.partial(xclass.Learner, *options, bits=12, **more)
    return lambda: xclass.ray.fit(data, learner or new(), workers=workers, **reading)


def alone(path, *options, **more):
    return lambda: xclass.Learner(*options, bits=12, **more).learn_file(path)


OAA, PLT = ("oaa", 9), ("plt", 2)
NAMED = {"learn_names": True}
# a call, and for its message the same call as the message advises, which gets the group of the message
OF_PROGRAMS = [
    (fit("part-0.vw", learner="m"), "give (xclass.Learner)\\(", lambda word: fit("part-0.vw", *OAA)),
    (fit("part-0.vw", learner="m"), "xclass.(load)\\(path\\)",
     lambda word: lambda: (xclass.Learner(*OAA, bits=12).save("m"),
                           fit("part-0.vw", learner=getattr(xclass, word)("m"))())),
    (lambda: xclass.Learner.from_command("--oaa 9 --workers 2"), "call xclass.ray.(fit)\\(paths, learner, workers=N\\)",
     lambda word: lambda: getattr(xclass.ray, word)("part-0.vw", xclass.Learner(*OAA, bits=12), workers=2)),
    (fit("part-0.vw", "recall_tree", 9), "or choose (multiclass)", lambda word: fit("part-0.vw", word)),
    (fit("part-0.vw", "recall_tree", 9), "(learn in one process)", lambda word: alone("part-0.vw", "recall_tree", 9)),
    (fit("lists-*.vw", *PLT, **NAMED), "list the names by (named_labels) without learn_names",
     lambda word: fit("lists-*.vw", *PLT, **{word: "a,b"})),
    (fit("lists-*.vw", *PLT, **NAMED), "or (learn in one process)", lambda word: alone("lists-0.vw", *PLT, **NAMED)),
    (fit("none-*.vw", *OAA), "(check the pattern)", lambda word: fit("part-*.vw", *OAA)),
    (fit("one.vw.gz", *OAA), "give at least (2) files",
     lambda word: fit([f"part-{k}.vw" for k in range(int(word))], *OAA)),
    (fit("one.vw.gz", *OAA), "or workers (1)", lambda word: fit("one.vw.gz", *OAA, workers=int(word))),
    (fit("table", "multiclass", format="csv"), "workers (1)",
     lambda word: fit("table", "multiclass", format="csv", workers=int(word))),
    (fit("named-*.vw", "oaa", 5, **NAMED), "the number of (classes)",
     lambda word: fit("named-*.vw", "oaa", 6, **NAMED)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "advice", "followed"), OF_PROGRAMS)
def test_advice_about_workers_of_a_program_is_followed(call, advice, followed):
    with pytest.raises(xclass.XclassError) as raised:
        call()
    found = re.search(advice, str(raised.value))
    assert found, str(raised.value)
    assert "--" not in found.string.removeprefix("--workers belongs")
    followed(found[1])()


LEARN = "--oaa 9 -d part-0.vw -d part-1.vw"
OF_COMMAND = [
    ("--oaa 9 --workers 2", "or URLs by (-d)", "--oaa 9 --workers 2 {} part-0.vw"),
    (f"--recall_tree 9 {LEARN[8:]} --workers 2", "or choose (--multiclass)", f"{{}} {LEARN[8:]} --workers 2"),
    ("--plt 2 --learn_names -d lists-0.vw --workers 2", "the names by (--named_labels) without",
     "--plt 2 {} a,b -d lists-0.vw --workers 2"),
    ("--oaa 9 -d one.vw.gz --workers 2", "or --workers (1)", "--oaa 9 -d one.vw.gz --workers {}"),
    (f"{LEARN} --workers 2 -f m --resume_run", "leave (--resume_run) out", f"{LEARN} --workers 2 -f m"),
    ("--oaa 5 --learn_names -d named-0.vw -d named-1.vw --workers 2", "the number of (classes) in all files",
     "--oaa 6 --learn_names -d named-0.vw -d named-1.vw --workers 2"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "advice", "instead"), OF_COMMAND)
def test_advice_about_workers_of_the_command_is_followed(words, advice, instead):
    refused = run(*words.split(), "-b", 12)
    found = re.search(advice, refused.err)
    assert refused.status and found, refused.err
    followed = run(*instead.format(found[1]).split(), "-b", 12)
    assert followed.status == 0, followed.err


class Death(BaseException):
    """The end of the process that coordinates."""


@pytest.mark.parametrize(
    ("words", "advice", "instead"),
    [
        ("-b 10 -f m --resume_run",
         "had --bit_precision 12, and now it has --bit_precision 10; give the (same command)",
         "-b 12 -f m --resume_run"),
        ("-b 12 -f m --passes 2 --holdout_off --resume_run",
         "had no --holdout_off, and now it has --holdout_off; give the (same command)", "-b 12 -f m --resume_run"),
        ("-b 12 -f other --resume_run", "or give the (-f) and the --checkpoint", "-b 12 {} m --resume_run"),
    ],
)  # fmt: skip
def test_advice_about_a_run_that_is_continued_is_followed(monkeypatch, words, advice, instead):
    save = Run.save_at

    def die(self, point):
        save(self, point)
        raise Death

    common = [*LEARN.split(), "--workers", 2, "--sync_every", 20, "--checkpoint", 40]
    with monkeypatch.context() as patch:
        patch.setattr(Run, "save_at", die)
        with pytest.raises(Death):
            run(*common, "-b", 12, "-f", "m")
    refused = run(*common, *words.split())
    found = re.search(advice, refused.err)
    assert refused.status and found, refused.err
    with monkeypatch.context() as patch:
        patch.setattr(run_state, "FORMAT", 0)
        assert "m.parts: another version" in run(*common, "-b", 12, "-f", "m", "--resume_run").err
    followed = run(*common, *instead.format(found[1]).split())
    assert followed.status == 0 and "continues from m.parts" in followed.err, followed.err
