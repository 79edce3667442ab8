"""Read the texts that the report shows for classes whose labels are numbers."""

from __future__ import annotations

import re

from ..errors import DataError
from ..system.printable import short_repr

LABEL = re.compile(r"\s*[0-9]{1,18}\s*")


def read(path: str) -> dict[int, str]:
    """Return the text of each class in a file whose lines are a label, a tab and a text."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is no UTF-8; give a text file with the encoding UTF-8") from None
    texts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or not LABEL.fullmatch(label) or not text.strip():
            raise DataError(
                f"{path}:{number}: the line is {short_repr(line)}; it has to be the label of a class, a tab and a text"
            )
        if int(label) in texts:
            raise DataError(f"{path}:{number}: label {int(label)} has the text {short_repr(texts[int(label)])} already")
        texts[int(label)] = text.strip()
    if not texts:
        raise DataError(f"{path}: the file is empty; its lines have to be the label of a class, a tab and a text")
    return texts
