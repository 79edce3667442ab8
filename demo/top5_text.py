"""From TfidfVectorizer to the five most probable classes of a text.

    python demo/top5_text.py [FOLDER] [PLOT.png]

FOLDER has train.vw.gz, test.vw.gz and labels.txt.gz with texts as VW text, as ../shared/data/clinc150 (the default) has
requests to an assistant with 150 intents. Without the folder, the texts are the docstrings of Python's standard
library, and the class of a docstring is its module. It needs the extra sklearn, and for the plot the extra plot; see
docs/quickstart.md.
"""

from __future__ import annotations

import ast
import gzip
import sys
import sysconfig
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from xclass.sklearn import XClassifier


def read(folder: Path, part: str) -> tuple[list[str], np.ndarray]:
    """Return the texts and the names of the classes of a data set."""
    with gzip.open(folder / "labels.txt.gz", "rt", encoding="utf-8") as file:
        names = dict(line.rstrip("\n").split("\t")[:2] for line in file)
    with gzip.open(folder / f"{part}.vw.gz", "rt", encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("|", 1) for line in file]
    texts = [text.partition(" ")[2] for _, text in pairs]  # without the name of the namespace
    return texts, np.array([names[label.split()[0]] for label, _ in pairs])


def docstrings() -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Return docstrings of the standard library and their modules, for training and for testing."""
    texts, modules = [], []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [text for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]
        if len(found) >= 10:
            texts += found
            modules += [path.stem] * len(found)
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled, names = [texts[i] for i in order], np.array(modules)[order]
    end = len(texts) * 9 // 10
    return shuffled[:end], names[:end], shuffled[end:], names[end:]


def short(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text.split())[:70]


def draw(path: Path, texts: list[str], truth: np.ndarray, names: np.ndarray, p: np.ndarray) -> None:
    """Draw the k most probable classes of n texts, `names` and `p` of shape (n, k), with the true ones in green."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(texts), 1, figsize=(8, 2 * len(texts)), layout="constrained")
    for axis, text, true, name, share in zip(axes, texts, truth, names, p, strict=True):
        colours = ["tab:green" if label == true else "tab:grey" for label in name[::-1]]
        axis.barh(name[::-1], share[::-1], color=colours)
        axis.set(xlim=(0, 1), title=repr(text))
    axes[-1].set_xlabel("probability (green: the true class)")
    figure.savefig(path)


def main() -> None:
    """Learn, print the five most probable classes of three texts, and draw them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data" / "clinc150"
    plot = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("top5_text.png")
    if (folder / "train.vw.gz").exists():
        train, labels, test, truth = *read(folder, "train"), *read(folder, "test")
    else:
        print(f"{folder} has no train.vw.gz; the texts are the docstrings of Python's standard library")
        train, labels, test, truth = docstrings()

    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), XClassifier(passes=5)).fit(train, labels)
    print(f"{len(train):,} texts, {len(model.classes_)} classes, test accuracy {model.score(test, truth):.3f}")
    names, p = model[-1].predict_top_k(model[0].transform(test), k=5)
    shown = np.argsort(p[:, 0])[[len(test) // 50, len(test) // 10, len(test) // 2]]  # from doubtful to certain

    for i, best, share in zip(shown, names[shown], p[shown], strict=True):
        print(f"\n{short(test[i])!r} is {truth[i]}")
        print(*(f"  {q:.3f}  {name}" for name, q in zip(best, share, strict=True)), sep="\n")
    try:
        draw(plot, [short(test[i]) for i in shown], truth[shown], names[shown], p[shown])
    except ImportError:
        print("\nno plot, because matplotlib is not installed: pip install matplotlib")
    else:
        print(f"\nplot: {plot}")


if __name__ == "__main__":
    main()
