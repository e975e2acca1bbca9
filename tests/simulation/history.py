"""What every name on a pretended disk ever held: it knows what was there as a whole, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Identity = tuple[int, int, int, int]
Spans = list[tuple[int, float]]


@dataclass(slots=True)
class History:
    """The contents of all names over ``now``, a count of changes (not a time).

    ``saves`` are the spans in which a checkpoint was being written or removed.
    """

    now: int = 0
    contents: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    identities: dict[Identity, set[bytes]] = field(default_factory=dict)
    unfinished: dict[str, Spans] = field(default_factory=dict)

    def note(self, path: str, data: bytes | None) -> None:
        """Note what a name holds from now on; ``None``: it is gone."""
        self.now += 1
        self.contents.setdefault(path, []).append((self.now, data))

    def identify(self, identity: Identity, data: bytes) -> None:
        """Note a content that was there while stat told this identity."""
        self.identities.setdefault(identity, set()).add(data)

    def begins(self, checkpoint: str) -> None:
        """Note that somebody begins to write or remove a checkpoint; whoever did before is dead."""
        if self.is_busy(checkpoint):
            self.ends(checkpoint)
        self.now += 1
        self.unfinished.setdefault(checkpoint, []).append((self.now, float("inf")))

    def ends(self, checkpoint: str) -> None:
        """Note that a checkpoint is whole, or gone."""
        self.now += 1
        begun = self.unfinished[checkpoint].pop()[0]
        self.unfinished[checkpoint].append((begun, self.now))

    def is_busy(self, checkpoint: str) -> bool:
        """Return whether somebody is writing or removing it, or was killed meanwhile."""
        spans = self.unfinished.get(checkpoint, [])
        return bool(spans) and spans[-1][1] == float("inf")

    def moments(self, checkpoint: str, files: Mapping[str, bytes]) -> Spans:
        """Return the spans in which the checkpoint was exactly these files."""
        spans: Spans = [(0, float("inf"))]
        below = checkpoint + "/"
        others = (p for p in self.contents if p == checkpoint or p.startswith(below))
        for path in {*files, *others}:
            spans = _both(spans, self._spans(path, files.get(path)))
        return spans

    def finished_moments(self, checkpoint: str, files: Mapping[str, bytes]) -> Spans:
        """Return those of the moments at which nobody was writing or removing it."""
        spans = self.moments(checkpoint, files)
        for begun, ended in self.unfinished.get(checkpoint, []):
            spans = _both(spans, [(0, begun), (int(min(ended, 2**62)), float("inf"))])
        return spans

    def _spans(self, path: str, wanted: bytes | None) -> Spans:
        rows = [(0, None), *self.contents.get(path, [])]
        ends = [*(start for start, _ in rows[1:]), float("inf")]
        return [
            (start, end) for (start, data), end in zip(rows, ends, strict=True) if data == wanted
        ]


def _both(one: Spans, other: Spans) -> Spans:
    """Return the parts that are in both."""
    found = []
    for start, end in one:
        for begun, ended in other:
            low, high = max(start, begun), min(end, ended)
            if low < high:
                found.append((low, high))
    return found
