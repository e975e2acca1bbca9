"""Names of series as label values: text that no scraper refuses, and not more than a fixed number.

Each series is a time series in the monitoring system for as long as that remembers, so the number
is bounded for the life of the program, not only at one moment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from ckptsyncd.core.words import printable

#: So many series have a label of their own in the life of a program (guessed: a sweep).
MOST_SERIES = 100
#: The label of all the others together.
OVERFLOW = "_other"
#: Longer names are cut, with a hash of the whole at their end.
MOST_LETTERS = 120

Pair = tuple[str, float]


class SeriesNames:
    """Gives out labels: the first names have their own, those that come later share one."""

    def __init__(self, most: int = MOST_SERIES) -> None:
        """Give out at most so many labels beside the shared one."""
        self._most = most
        self._labels: set[str] = set()

    def label(self, series: str) -> str:
        """Return the label of a series, the same whenever it is asked."""
        label = _text(series)
        if label in self._labels:
            return label
        if len(self._labels) >= self._most:
            return OVERFLOW
        self._labels.add(label)
        return label

    def folded(self, values: Iterable[Pair], fold: Callable[[float, float], float]) -> list[Pair]:
        """Return one value for each label; those that share a label are folded into one."""
        found: dict[str, float] = {}
        for series, value in values:
            label = self.label(series)
            found[label] = fold(found[label], value) if label in found else value
        return list(found.items())


def _text(series: str) -> str:
    text = printable(series) or "."
    if len(text) > MOST_LETTERS:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        text = f"{text[:MOST_LETTERS]}~{digest}"
    return text
