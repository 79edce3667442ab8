"""How many errors merged models make beside one process: models of parts of the data, with and without a base.

    python -m scripts.bench.merging DATA_DIR --sets clinc150,reuters --reductions oaa,cpt,multiclass
    python -m scripts.bench.merging DATA_DIR --sets clinc150 --reductions oaa,multiclass --new_classes .25

DATA_DIR has a folder with train.vw.gz and test.vw.gz for every set. The examples of train.vw.gz are shuffled. The first
table has a row for each set and reduction, with test errors in percent: of one process; of the models of --parts parts,
their mean; of the merged model; the same with a base that has learned a fifth of the examples, from which the models
continue with the rest; and after --rounds rounds, in which all models continue from the last merged model. `--vw` adds
VW's own merged model of --oaa without a base.

With --new_classes, the base and the parts lack a share of the classes: the base has none of it, and each part has its
own classes of it. Models of --cpt are then not merged.
"""

from __future__ import annotations

import argparse
import gzip
import random
import warnings
from pathlib import Path

import xclass
from scripts.lib.command_line import names, run, work_folder
from scripts.lib.processes import BenchError

OPTIONS: dict[str, dict[str, object]] = {"oaa": {"bits": 18, "loss_function": "logistic"}, "cpt": {}, "multiclass": {}}
SEED = 1


class Bench:
    """Measure one set with one reduction.

    Parameters
    ----------
    folder : with train.vw.gz and test.vw.gz
    reduction : key of OPTIONS
    parts : number of models to merge
    work : folder for files
    """

    def __init__(self, folder: Path, reduction: str, parts: int, work: Path) -> None:
        self.reduction, self.parts, self.work = reduction, parts, work
        self.train, self.test = (_lines(folder / f"{n}.vw.gz") for n in ("train", "test"))
        random.Random(SEED).shuffle(self.train)
        self.classes = max(int(line.split(None, 1)[0]) for line in self.train)

    def new(self) -> xclass.Learner:
        """Return a new learner."""
        classes = None if self.reduction == "multiclass" else self.classes
        return xclass.Learner(self.reduction, classes, **OPTIONS[self.reduction])

    def learned(self, model: xclass.Learner, lines: list[str]) -> xclass.Learner:
        """Return a model after it has learned some lines."""
        model.learn_file(self._written("train.vw", lines))
        return model

    def error(self, model: xclass.Learner, lines: list[str] | None = None) -> float:
        """Return the error on some lines, by default those of the test, in percent."""
        return 100 * model.evaluate(self._written("test.vw", self.test if lines is None else lines))["average_loss"]

    def continued(self, base: Path, lines: list[str]) -> list[xclass.Learner]:
        """Return models that have continued from a base, each with a part of some lines."""
        n = len(lines)
        shares = [lines[i * n // self.parts : (i + 1) * n // self.parts] for i in range(self.parts)]
        return [self.learned(xclass.load(base), share) for share in shares]

    def saved(self, model: xclass.Learner, name: str) -> Path:
        """Save a model and return its file."""
        model.save(self.work / name)
        return self.work / name

    def _written(self, name: str, lines: list[str]) -> Path:
        path = self.work / name
        path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
        return path

    # tables

    def row(self, rounds: int, vw: bool) -> list[str]:
        """Return the errors of the first table."""
        cells: list[float | None] = [self.error(self.learned(self.new(), self.train))]
        n, parts = len(self.train), self.parts
        models = [self.learned(self.new(), self.train[i * n // parts : (i + 1) * n // parts]) for i in range(parts)]
        cells += [self._mean(models), self._error_of_merged(models, None)]
        first, rest = self.train[: n // 5], self.train[n // 5 :]
        base = self.saved(self.learned(self.new(), first), "base.bin")
        models = self.continued(base, rest)
        cells += [self._mean(models), self._error_of_merged(models, base)]
        try:
            for r in range(rounds):
                models = self.continued(base, rest[r * len(rest) // rounds : (r + 1) * len(rest) // rounds])
                base = self.saved(xclass.merge(models, base=base), f"round{r % 2}.bin")
            cells.append(self.error(xclass.load(base)))
        except xclass.ModelError:  # different trees
            cells.append(None)
        texts = ["-" if cell is None else f"{cell:.2f}" for cell in cells]
        return [*texts, *([f"{self.error_of_vw():.2f}" if self.reduction == "oaa" else "-"] if vw else [])]

    def rows_with_new_classes(self, share: float) -> list[tuple[str, list[float]]]:
        """Return rows of the second table: errors on all test examples, on those of old and of new classes."""
        labels = sorted({line.split(None, 1)[0] for line in self.train})
        random.Random(SEED).shuffle(labels)
        new = labels[: int(share * len(labels))]
        owner = {label: i % self.parts for i, label in enumerate(new)}
        n = len(self.train)
        first = [line for line in self.train[: n // 3] if line.split(None, 1)[0] not in owner]
        rest = self.train[n // 3 :]
        shares: list[list[str]] = [[] for _ in range(self.parts)]
        for i, line in enumerate(rest):
            shares[owner.get(line.split(None, 1)[0], i % self.parts)].append(line)
        base = self.saved(self.learned(self.new(), first), "base.bin")
        models = [self.learned(xclass.load(base), lines) for lines in shares]
        rows = [("one process", self._by_class(self.learned(xclass.load(base), rest), owner))]
        rows += [(f"part {i + 1}", self._by_class(model, owner)) for i, model in enumerate(models)]
        try:
            return [*rows, ("merged", self._by_class(xclass.merge(models, base=base), owner))]
        except xclass.ModelError:  # different trees
            return rows

    def _by_class(self, model: xclass.Learner, owner: dict[str, int]) -> list[float]:
        new = [line for line in self.test if line.split(None, 1)[0] in owner]
        old = [line for line in self.test if line.split(None, 1)[0] not in owner]
        return [self.error(model), self.error(model, old), self.error(model, new)]

    def _mean(self, models: list[xclass.Learner]) -> float:
        return sum(self.error(model) for model in models) / len(models)

    def _error_of_merged(self, models: list[xclass.Learner], base: Path | None) -> float | None:
        try:
            return self.error(xclass.merge(models, base=base))
        except xclass.ModelError:  # different trees
            return None

    def error_of_vw(self) -> float:
        """Return the test error of VW's merged model of --oaa, which has VW's default size."""
        import vowpalwabbit

        n = len(self.train)
        paths = [str(self.work / f"part{i}.vw.model") for i in range(self.parts)]
        for i, path in enumerate(paths):
            words = f"--quiet --preserve_performance_counters --oaa {self.classes} --loss_function logistic"
            workspace = vowpalwabbit.Workspace(words)
            for line in self.train[i * n // self.parts : (i + 1) * n // self.parts]:
                workspace.learn(line.rstrip("\n"))
            workspace.save(path)
            workspace.finish()
        loaded = [vowpalwabbit.Workspace(f"--quiet --preserve_performance_counters -i {path}") for path in paths]
        merged = vowpalwabbit.merge_models(None, loaded)
        wrong = sum(merged.predict(line.rstrip("\n")) != int(line.split(None, 1)[0]) for line in self.test)
        return 100 * wrong / len(self.test)


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape") as file:
        return file.readlines()


def main() -> None:
    """Measure every set with every reduction and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--reductions", type=names, default=list(OPTIONS))
    options.add_argument("--parts", type=int, default=4)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--new_classes", type=float, metavar="SHARE", help="share of the classes that the base lacks")
    options.add_argument("--vw", action="store_true", help="merge with VW, too")
    given = options.parse_args()
    if unknown := set(given.reductions) - set(OPTIONS):
        raise BenchError(f"--reductions: {', '.join(sorted(unknown))} is none of {', '.join(OPTIONS)}")
    warnings.simplefilter("ignore", xclass.XclassWarning)
    if given.new_classes is None:
        print(f"| set | reduction | one process | part | merged | part, base | merged, base | {given.rounds} rounds |"
              + (" VW merged |" if given.vw else ""))  # fmt: skip
        print("| --- | --- " + "| --: " * (7 if given.vw else 6) + "|", flush=True)
    else:
        print("| set | reduction | model | all | old classes | new classes |\n| --- | --- | --- | --: | --: | --: |")
    for name in given.sets:
        for reduction in given.reductions:
            with work_folder(None) as work:
                bench = Bench(given.data_dir / name, reduction, given.parts, work)
                if given.new_classes is None:
                    print(
                        f"| {name} | {reduction} | " + " | ".join(bench.row(given.rounds, given.vw)) + " |", flush=True
                    )
                    continue
                for model, errors in bench.rows_with_new_classes(given.new_classes):
                    cells = " | ".join(f"{error:.2f}" for error in errors)
                    print(f"| {name} | {reduction} | {model} | {cells} |", flush=True)


if __name__ == "__main__":
    run(main)
