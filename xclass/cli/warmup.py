"""Execute `xclass warmup`, which compiles kernels ahead."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError, XclassError
from ..options.declare import OptionGroup, option, options_of
from . import merge
from .declared import read, resolved

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import ReductionRecord
    from ..run.report.console import Console

USAGE = "xclass warmup [OPTIONS] [REDUCTION...]"
INTRO = (
    "Compile kernels ahead, for images of containers and nodes of a cluster. A reduction is named as in `xclass "
    "--help`, without dashes. What learning, predicting and serving with it need is compiled on all processors and "
    "kept, so that later runs only load it. What is kept already is not compiled again."
)
COMMON = (
    *("multiclass", "recall_tree", "log_multi", "plt", "multilabel", "cpt", "ect", "sparse_experts"),
    *("multilabel_oaa", "oaa"),
)
CLASSES = 40  # of the data from which each reduction learns, so many that what grows with them is enlarged
LINES = 2 * CLASSES
LABELS = {
    "multiclass": [f"{label}" for label in range(1, CLASSES + 1)],
    "multilabel": [f"{label},{(label + 1) % CLASSES}" for label in range(CLASSES)],
    "simple": ["1", "-1"],
}
NAMES = {
    "multiclass": [f"tea{label}" for label in range(CLASSES)],
    "multilabel": [f"tea{label},beer" for label in range(CLASSES - 1)],
}
EXAMPLES = {  # two examples in each format, by the extension
    "vw": "1 |a kettle |b leaf\n2 |a bean |b leaf\n",
    "csv": "label,a,b,text\n1,2,red,a kettle\n2,1e3,blue,a bean\n",
    "jsonl": '{"label": 1, "a": 2, "text": "a kettle"}\n{"label": 2, "b": "red", "text": "a bean"}\n',
    "fasttext": "__label__1 a kettle\n__label__2 a bean\n",
    "libsvm": "1 1:2 3:0.5\n2 2:1e3\n",
}


class WarmupOptions(OptionGroup):
    """Declare the options of the subcommand."""

    reductions: tuple[str, ...] = option("the reductions", flags=("REDUCTION...",), default_text=", ".join(COMMON))
    threads: int | None = option(
        "compile in at most N processes at the same time",
        minimum=1,
        default_text="the processors that the process may use",
    )
    quiet: bool = option("print nothing unless there is an error")


declared = partial(options_of, WarmupOptions)


def run(words: Sequence[str]) -> int:
    """Compile kernels as the words after `xclass warmup` say, and return the exit status."""
    options = WarmupOptions(**read(words, USAGE, declared()))

    from ..api import configuration
    from ..kernels import compiling, jit
    from ..options.spelling import suggestion
    from ..run.report.console import Console
    from ..system import thread_limit

    known = configuration.reductions()
    names = tuple(dict.fromkeys(options.reductions)) or COMMON
    for name in names:
        if name not in known:
            hint = suggestion(name.lstrip("-"), known, "{}", f"the reductions are {', '.join(known)}")
            raise UsageError(f"there is no reduction {name!r}{hint}")
    output = Console(options.quiet)
    with thread_limit.limited(options.threads), compiling.under_way(shown=False):
        jit.activate()
        folder = jit.folder()
        if folder is None:
            raise XclassError(jit.cache_problem() or "NUMBA_DISABLE_JIT is set, so that nothing is compiled; unset it")
        if jit.cache_problem():
            output.warn(jit.cache_problem())
        lacking = [name for name in names if jit.is_first_run(f"warmup-{name}")]
        if lacking and not jit.is_kept():
            raise XclassError(
                f"{folder}: the kernels of {', '.join(lacking)} cannot be kept there, because this user cannot write "
                "to this folder; let this user write there, or set NUMBA_CACHE_DIR to another folder"
            )
        total = _compile(lacking, output)
    size = sum(path.stat().st_size for path in folder.iterdir())
    kept = f"the kernels of {', '.join(names)} are kept in {folder}, which has {size / 1e6:.0f} MB"
    output.info(kept if total else f"nothing had to be compiled: {kept}")
    return 0


def _compile(names: Sequence[str], output: Console) -> int:
    """Compile the kernels of reductions, and note that; return how many there were."""
    from ..kernels import jit
    from ..reductions.core import base
    from ..run import warm_up

    jobs: dict[str, warm_up.Job] = {name: partial(use, name) for name in names}
    of_features = [name for name in names if _chosen(name)[0].dense != base.TAKEN]
    if of_features:
        jobs["files of each format"] = partial(read_files, of_features[0])
    total = 0
    for name, count in warm_up.ahead(jobs):
        output.info(f"{name}: {count} kernel{'s' * (count != 1)} compiled")
        total += count
    for name in names:
        jit.note_compiled(f"warmup-{name}")
    return total


def use(name: str) -> None:
    """Learn, predict, serve and merge with a reduction, by the library and by the command, with each kind of labels."""
    record, options = _chosen(name)
    for labels, named in ((LABELS, {}), (NAMES, {"learn_names": True})):
        if record.labels in labels:
            _use_library(record, labels[record.labels], name, {**options, **named})
            _use_command(record, labels[record.labels], {**options, **named})


def _use_library(record: ReductionRecord, labels: Sequence[str], name: str, options: Mapping[str, Any]) -> None:
    """Learn and predict rows of numbers, and serve the learner if it has columns for them."""
    import numpy as np

    from ..api.learner import Learner
    from ..serving.json_examples import load_request_kernels
    from ..serving.lines import LineHandler

    given: list[Any] = [
        [int(word) if word.lstrip("-").isdigit() else word for word in one.split(",")] for one in labels
    ]
    if record.labels != "multilabel":
        given = [label for (label,) in given]
    rows = np.eye(4, dtype=np.float32)[np.arange(LINES) % 4]
    more = {field: value for field, value in options.items() if field != name}
    with Learner(name, options.get(name), **more) as learner:
        learner.learn_many(rows, [given[i % len(given)] for i in range(LINES)], np.ones(LINES))
        learner.end_pass()
        for k in (None, 2)[: 1 + record.probabilities]:
            learner.predict_many(rows, k=k)
        if learner.core.schema.width:
            load_request_kernels(LineHandler(learner, True))
        learner.core.reduction.can_learn(np.array([1, 2]))  # as workers of a cluster ask


def _use_command(record: ReductionRecord, labels: Sequence[str], options: Mapping[str, Any]) -> None:
    """Learn from a file, learn on, predict, merge, and serve what was learned."""
    from ..api.inputs import Documents
    from ..api.learner import load
    from ..reductions.core.probabilities import NORMALIZED
    from ..serving.json_examples import load_request_kernels
    from ..serving.lines import LineHandler

    with tempfile.TemporaryDirectory() as folder:
        data, model, further, predictions = (f"{folder}/{name}" for name in ("data", "model", "further", "predictions"))
        with open(data, "w") as file:
            for i in range(LINES):
                label = labels[i % len(labels)]
                file.write(f"{label} {1 + i % 2} 'tag{i}|n 0:{i % 3} 1:{i} 2:.5 3:1e-3 |m b=red x{i % 3} w{i}\n")
        growing = {"bits": 6, "max_doublings": 4} if "max_doublings" in options_of(record.options) else {}
        _run(**options, **growing, data=(data,), final_regressor=model, predictions=predictions)
        _run(initial_regressor=model, data=(data,), final_regressor=further)
        listings: list[dict[str, Any]] = [{}, {"top_k": 5}, {"probabilities": NORMALIZED}]
        for listing in listings if record.probabilities else listings[:1]:
            _run(initial_regressor=model, testonly=True, data=(data,), predictions=predictions, **listing)
        if not record.not_merged:
            merge.run([model, further, "-f", f"{folder}/merged"])
        with load(model) as learner:
            if record.learns_at_end:  # else a server learns texts in advance
                learner.predict_many(Documents(["a red cup"]))
            for learns in (False,) if record.learns_at_end else (False, True):
                load_request_kernels(LineHandler(learner, learns))


def read_files(name: str) -> None:
    """Learn with a reduction from files of each format, from a cache of one, and from crossed namespaces."""
    record, options = _chosen(name)
    of_text = {"cache": True, "quadratic": ("ab",), **({} if record.learns_at_end else {"passes": 2})}
    with tempfile.TemporaryDirectory() as folder:
        for extension, text in EXAMPLES.items():
            data = Path(folder, f"data.{extension}")
            data.write_text(text)
            _run(**options, data=(str(data),), **(of_text if extension == "vw" else {}))


def _chosen(name: str) -> tuple[ReductionRecord, dict[str, Any]]:
    """Return the record of a reduction, and the options that choose it, field -> value."""
    from ..reductions import presets, registry
    from ..reductions.core import base

    (record,) = registry.records({presets.reductions(registry.all_names()).get(name, name)})
    options: dict[str, Any] = {} if name == "scalar" else {name: "2,8" if name == "mach" else CLASSES}
    return record, {**options, "dense": ("n:4",)} if record.dense == base.TAKEN else options


def _run(**given: Any) -> None:
    """Execute a run of the command that has these options."""
    from ..api import model_contents
    from ..run import run

    model = given.get("initial_regressor")
    contents = None if model is None else model_contents.load(model)
    run.run(resolved(given, contents), (), contents)
