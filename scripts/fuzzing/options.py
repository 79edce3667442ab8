"""Random combinations of options with ordinary and extreme values.

Options, their kinds, bounds and choices come from their declarations, so that a new option is tried at once. Every
combination ends well or with a message. One that is legal and takes long has to end after Ctrl-C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from scripts.fuzzing.draw import drawn
from scripts.fuzzing.models import DECLARED, MODEL, REALS, learn
from scripts.fuzzing.runs import Bench, Limits, Outcome, Part
from scripts.fuzzing.seeds import DATA, MODELS
from xclass.cli import command as cli
from xclass.options import declare

INPUTS = ("classes.vw", "names.vw", "numbers.vw", "signs.vw", "columns.vw", "lists.vw", "list_names.vw")
WRITTEN = ("out/a", "out/b", "missing/x", "/dev/null", "/dev/full", "stdout", "out", "", "classes.vw", "victim.txt/x")
READ = ("classes.vw", "nothing.vw", "sub", "", "/dev/null", "out/a", MODEL)
NUMBERS = (
    "-1", "0", "1", "2", "3", "7", "8", "12", "13", "20", "25", "26", "40", "64", "65", "1000", "1000000",
    "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807", "18446744073709551615",
    "18446744073709551616", "9" * 40, "", "x", "1.5", "+3", "0x10", "1e3", "٣",
)  # fmt: skip
NO_REALS = ("", "x", "0x1p3", "1_0")
TEXTS = (
    "", "a", "ab", "abc", "::", ":", "a3", "2", "0", "aaaaaaaaaa", "é", "\\x88a", "a,b,c", "name0,name1", "@names",
    "@nothing", "1.5", "\x1b[31m", "-1", "a" * 300, "general", "balanced", "kmeans", "huffman", "random", "\udc80",
    "stdout", ",".join(map(str, range(12))),
)  # fmt: skip
FIXED = (  # what is worth trying every time
    "--random_tree 1", "--random_tree 2", "--random_tree 268435456", "--random_tree 1000000", "--softmax_tree 1",
    "--softmax_tree 2", "--softmax_tree 2147483648", "--softmax_tree 1000000 --depth 20",
    "--softmax_tree 12 --depth 40", "--softmax_tree 12 --depth 20", "--softmax_tree 12 --depth 20 --tree_init random",
    "--softmax_tree 12 --leaf_classes 1000000000", "--softmax_tree 12 --beta 1e300", "--softmax_tree 12 --smooth 1",
    "--softmax_tree 12 --smooth 0", "--softmax_tree 12 --l1 1e30", "--softmax_tree 12 --l2 1e30",
    "--softmax_tree 12 --tao_iterations 1000000", "--softmax_tree 12 --leaf_passes 1000000 --leaf_solver steps",
    "--cpt 12 --trees 64", "--cpt 12 --trees 1000", "--cpt 12 --trees 64 --rerank",
    "--cpt 12 --rerank --candidates 1000", "--cpt 12 --rerank --candidates 1000000", "--cpt 2147483648",
    "--cpt 2147483647 --cpt_tree random", "--cpt 12 --cpt_arity 1024", "--cpt 2147483648 --cpt_arity 1024",
    "--cpt 12 --tree_noise 1e300 --trees 2", "--cpt 12 --rerank --rerank_rate 1e300",
    "--cpt 12 --cpt_tree kmeans --tree_sample 0", "--cpt 12 --cpt_tree kmeans --tree_sample 9223372036854775807",
    "--cpt 12 --cpt_tree huffman --tree_sample 1", "--recall_tree 12 --max_depth 26",
    "--recall_tree 12 --max_candidates 2147483647", "--recall_tree 9223372036854775807",
    "--recall_tree 12 --bern_hyper 1e300", "--recall_tree 1", "--log_multi 2147483647",
    "--log_multi 12 --max_predictors 134217728", "--log_multi 12 --swap_resistance 4294967296", "--ect 1",
    "--ect 1000000", "--ect 12 --error 1000", "--ect 12 --error 9223372036854775807", "--oaa 1",
    "--oaa 9223372036854775807", "--oaa 100000000", "--oaa 12 --oaa_subsample 9223372036854775807", "--oaa 12 -b 31",
    "--oaa 12 -b 1", "-b 31", "--cpt 12 -b 31", "--cpt 12 -b 1", "--multiclass 2147483648", "--multiclass 0 -b 31",
    "--oaa 12 --passes 9223372036854775807", "--oaa 12 --shuffle 9223372036854775807", "--oaa 12 --ngram 1000000",
    "--oaa 12 --ngram 1000 --skips 1000", "--oaa 12 --cubic ::: -q ::", "--oaa 12 --interactions ::::::",
    "--oaa 12 -l 1e300", "--oaa 12 -l 1e-300", "--oaa 12 --power_t 1e300", "--oaa 12 --power_t -1e300",
    "--oaa 12 --initial_t 1e300", "--oaa 12 --initial_weight 1e300", "--oaa 12 --random_seed 18446744073709551616",
    "--cpt 12 --random_seed 18446744073709551616", "--recall_tree 12 --random_seed 9223372036854775808",
    "--oaa 12 --tree_levels 64", "--oaa 12 --checkpoint 1 -f out/a", "--oaa 12 --holdout_period 1 --passes 2",
    "--oaa 12 --examples 1", "--oaa 12 --initial_pass_length 1", "-C 1e300", "-C nan", "--oaa 12 --l1 1e300",
    "--oaa 12 --l2 1e300", "--loss_function quantile --quantile_tau 0", "--oaa 12 -P 0", "--oaa 12 -P 1e-300",
    "--oaa 12 -P nan", "--oaa 12 -P 9" + "9" * 30, "--oaa 12 --top_k 1000", "--cpt 12 --top_k 1000",
    "--cpt 12 --beam 1",
)  # fmt: skip


class Case(NamedTuple):
    """A command line: options in the order in which they are given."""

    words: tuple[tuple[str, ...], ...]
    data: str


class OptionSets(Part):
    """The part `options` of the campaign."""

    name = "options"

    def __init__(self, only: str = "") -> None:
        self.limits = Limits(cpu=8.0, memory=4 << 30, interrupt=True)
        self._models = [name for name in MODELS if re.search(only, name)]
        self._first = True
        self._model = b""

    def prepare(self, bench: Bench) -> None:
        for data, options in map(MODELS.get, self._models):
            learn(bench, "-d", data, *options.split(), "-f", "out/m", "--quiet")
        self._model = Path("out/m").read_bytes()

    def cases(self, seed: int, n: int) -> list[Case]:
        fixed = []
        if self._first and n >= len(FIXED):  # in a short campaign they would take all of the time
            self._first = False
            fixed = [Case((tuple(words.split()),), "classes.vw") for words in FIXED]
        return fixed + drawn(self._strategy(), max(1, n - len(fixed)), seed)

    def _strategy(self) -> st.SearchStrategy[Case]:
        records = cli.option_groups()[1]
        own = {record.name: declare.options_of(record.options) for record in records}
        reductions = [name for name in own if name != "scalar"]
        common = {n: o for n, o in DECLARED.items() if not any(n in options for options in own.values())}

        def words(name: str, option: Any) -> st.SearchStrategy[tuple[str, ...]]:
            flag = st.sampled_from(option.flags)
            if option.kind is bool:
                return flag.map(lambda f: (f,))
            return st.tuples(flag, self._values(option))

        @st.composite
        def case(draw):
            chosen = []
            name = draw(st.sampled_from([*reductions, *reductions, "multiclass", "scalar", "any"]))
            pool = dict(common)
            if name == "any":
                pool = dict(DECLARED)
            elif name == "multiclass":
                chosen.append(("--multiclass",))
                pool |= own["cpt"]
            else:
                if name != "scalar":
                    chosen.append(
                        (f"--{name}", draw(st.sampled_from(["12", "12", "12", "12", "13", "1", "2", "1000", "100000"])))
                    )
                pool |= own[name]
                if draw(st.booleans()):
                    pool = {
                        **own[name],
                        **{n: pool[n] for n in draw(st.lists(st.sampled_from(sorted(pool)), max_size=5))},
                    }
            pool = {n: o for n, o in pool.items() if n != name and n not in ("data", "no_stdin")} or pool
            for key in draw(st.lists(st.sampled_from(sorted(pool)), max_size=6, unique=True)):
                chosen.append(draw(words(key, pool[key])))
            return Case(tuple(chosen), draw(st.sampled_from(["classes.vw", "classes.vw", "classes.vw", *INPUTS, ""])))

        return case()

    @staticmethod
    def _values(option: Any) -> st.SearchStrategy[str]:
        near = []
        for bound in (option.minimum, option.maximum):
            near += (
                [] if bound is None else [f"{bound:.17g}", f"{bound - 1:.17g}", f"{bound + 1:.17g}", str(int(bound))]
            )
        if option.choices:
            return st.sampled_from([*option.choices, *option.choices, "x", ""])
        if option.metavar == "FILE":
            return st.sampled_from(READ if option.reads else WRITTEN)
        if option.kind is int:
            return st.sampled_from([*near, *NUMBERS]) | st.integers(1, 30).map(str)
        if option.kind is float:
            return st.sampled_from([*near, *REALS, *NO_REALS]) | st.floats(1e-4, 2).map(lambda x: f"{x:.4g}")
        return st.sampled_from(TEXTS) | st.text(max_size=4).filter(lambda text: "\0" not in text)

    def group(self, case: Case) -> str:
        own = [word[0] for word in case.words if word[0].startswith("--")]
        return (
            "fixed"
            if len(case.words) == 1 and len(case.words[0]) > 1
            else next(iter(own), "none").lstrip("-")[:20]
            if own
            else "none"
        )

    def run(self, case: Case, bench: Bench) -> Outcome:
        bench.allowed_anywhere = ".cache" if {"-c", "--cache"} & {word[0] for word in case.words} else ""
        bench.put(MODEL, self._model)
        bench.put("names", b"name0\nname1\nname2\n")
        result = bench.xclass(*self.words(case), stdin=b"" if case.data else DATA["classes.vw"])
        if (
            result.trace
            and "UnicodeEncodeError" in result.trace
            and "surrogates" in result.trace
            and "click" in result.trace
        ):
            return Outcome("refused", "a word that no command line can hold")
        return bench.judge(result)

    def words(self, case: Case) -> tuple[str, ...]:
        given = [word for words in case.words for word in words]
        data = "classes.vw" if "classes.vw" in given else case.data  # which no output may replace, if it is the data
        return (*given, *(("-d", data) if data else ()))

    def smaller(self, case: Case) -> Iterator[Case]:
        for i in range(len(case.words)):
            yield case._replace(words=case.words[:i] + case.words[i + 1 :])

    def reproduction(self, case: Case) -> dict[str, bytes]:
        files = {MODEL: self._model, "names": b"name0\nname1\nname2\n"}
        return files if case.data else {**files, "stdin": DATA["classes.vw"]}
