"""Convert an example that is a dictionary, from namespaces to features, as VW's Python module takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..system.printable import short_repr


class _Features(Mapping[str, Any]):
    """Hold the features of a namespace, in which a name may occur several times."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._pairs = pairs

    def items(self) -> Any:
        """Return the pairs of names and values."""
        return self._pairs

    def __getitem__(self, name: str) -> Any:
        return dict(self._pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def namespaces(content: Mapping[str, Any]) -> dict[str, _Features]:
    """Return the namespaces of an example that is a dictionary, see `Example`."""
    converted = {}
    for namespace, features in content.items():
        if not isinstance(features, (Mapping, list, tuple)):
            raise UsageError(f"namespace {namespace!r}: {short_repr(features)} is neither a dictionary nor a list")
        items = features.items() if isinstance(features, Mapping) else features
        pairs = []
        for item in items:
            name, value = item if isinstance(item, tuple) and len(item) == 2 else (item, 1.0)
            if not isinstance(name, str):
                raise UsageError(f"namespace {namespace!r}: the feature {short_repr(name)} is not text; give its name")
            pairs.append((name, value))
        converted[namespace or " "] = _Features(pairs)
    return converted
