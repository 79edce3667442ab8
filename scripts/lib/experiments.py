"""Read the table of the papers' experiments, experiments.ini, which says what its sections mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.lib.measurements import table_of

TABLE = table_of(Path(__file__).with_suffix(".ini"))
SHARED = {key: text.strip() for key, text in TABLE.defaults().items()}  # $NAME -> text for all sections
REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"
NUMBERS = ("small", "classes", "examples", "features")


@dataclass(frozen=True)
class Origin:
    """Name files of a public source and the commands of scripts/ that make a set of them."""

    files: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """Hold a section of the table; `names` are its texts, and `sets` those of each of several sets."""

    title: str
    about: str
    rows: str
    origins: tuple[Origin, ...] = ()
    small: int = 1000
    classes: int = 0
    examples: int = 0
    features: int = 0
    names: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, str] = field(default_factory=dict)
    sets: dict[str, dict[str, str]] = field(default_factory=dict)


def filled(text: str) -> str:
    """Return a text with the texts for all sections in it, which may have several lines."""
    for key in sorted(SHARED, key=len, reverse=True):
        text = text.replace(key, SHARED[key])
    return text.strip()


def experiment(section: dict[str, str]) -> Experiment:
    """Return an experiment from the keys and values of its section."""
    found: dict[str, Any] = {"names": {}, "ranges": {}, "sets": {}}
    origins: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, text in section.items():
        kind, _, name = key.partition(" ")
        if key.startswith("$"):
            found["names"][key[1:]] = " ".join(filled(text).split())
        elif kind in ("files", "commands"):
            origins.setdefault(name, {})[kind] = tuple(filled(text).replace("\\\n", "").splitlines())
        elif kind == "range":
            found["ranges"][name] = text
        elif kind == "set":
            found["sets"][name] = dict(
                pair.strip().split(": ") if ": " in pair else (pair.strip(" :"), "") for pair in text.split(";")
            )
        else:
            found[kind] = int(text) if kind in NUMBERS else filled(text)
    return Experiment(**found, origins=tuple(Origin(**one) for one in origins.values()))


def read() -> dict[str, Experiment]:
    """Return the experiments by the names of their scripts."""
    found = {}
    for name in TABLE.sections():
        own = {key: text for key, text in TABLE[name].items() if key not in SHARED}
        found[name] = experiment(own)
    return found


EXPERIMENTS = read()
VW_TREE, VW_LOMTREE, PLAIN_STEPS = (SHARED[f"${name}"] for name in ("vw_tree", "vw_lomtree", "plain_steps"))
