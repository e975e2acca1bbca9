"""From the parts of all nodes to one manifest, or why they are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.sending.together.part import Part

#: So many nodes are named one by one (guessed).
MOST_NAMED = 8
#: What to do where files do not tell how many nodes there are.
COUNT_THEM = "tell how many nodes there are (--nodes)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The parts contradict each other; ``because`` names the file and both nodes."""

    because: str


@dataclass(frozen=True, slots=True)
class Lacks:
    """Something is missing although every node has its part in the store."""

    because: str


def merged(
    parts: Mapping[int, Part], frame: Manifest, *, is_counted: bool = True
) -> Manifest | Refused | Lacks:
    """Return the manifest of all parts; ``frame`` is one without files, made by who commits.

    The same file of two nodes is named once, with the nodes that have it. Where nobody counted the
    nodes it is whole only if indexes name every file with data and all that they name is there.
    """
    ordered = [parts[node] for node in sorted(parts)]
    strangers = [part.node for part in ordered if part.save_id != frame.save_id]
    if strangers:
        return Refused(f"{nodes_words(strangers)} of another save")
    files: dict[str, StoredFile] = {}
    for part in ordered:
        for stored in part.files:
            before = files.get(stored.path)
            if before is not None and not _same(before, stored):
                return Refused(_conflict(stored, (before.node, part.node)))
            files[stored.path] = _with(before, stored, part.node)
    reason = _missing(ordered, files) or ("" if is_counted else _undecided(ordered))
    if reason:
        return Lacks(reason)
    return replace(
        frame,
        step=ordered[0].step,
        after_step=max(part.after_step for part in ordered),
        layout=ordered[0].layout,
        evidence=_evidence(ordered),
        saved_at=max(frame.saved_at, *(part.saved_at for part in ordered)),
        files=tuple(files[path] for path in sorted(files)),
        stale=tuple(sorted({path for part in ordered for path in part.stale})),
        nodes=tuple(sorted(parts)),
        late=frame.late or any(part.late for part in ordered),
    )


def _same(one: StoredFile, other: StoredFile) -> bool:
    def content(stored: StoredFile) -> tuple[str, int, int, str | None]:
        return (stored.kind, stored.size, stored.crc64nvme, stored.target)

    return content(one) == content(other)


def _with(before: StoredFile | None, stored: StoredFile, node: int) -> StoredFile:
    if before is None:
        return replace(stored, node=node, also=())
    return replace(before, also=(*before.also, node))


def _conflict(stored: StoredFile, nodes: tuple[int, int]) -> str:
    return f"refused: nodes {nodes[0]} and {nodes[1]} have other content in {stored.path}"


def _missing(parts: Sequence[Part], files: Mapping[str, StoredFile]) -> str:
    for part in parts:
        for path in part.absent:
            if path not in files:
                return f"{path} is missing, which an index of node {part.node} names"
    return ""


def _undecided(parts: Sequence[Part]) -> str:
    """Return why nobody can tell whether other nodes have more, or nothing: indexes name it all."""
    named = {path for part in parts for path in part.named}
    if not named:
        nodes = nodes_words(part.node for part in parts)
        return f"no index tells which files there are beside those of {nodes}: {COUNT_THEM}"
    for part in parts:
        for path in part.loose:
            if path not in named:
                return f"no index names {path}, other nodes may have more like it: {COUNT_THEM}"
    return ""


def _evidence(parts: Sequence[Part]) -> str:
    """Return the evidence of the node that has most to go by: one with a mark, else the first."""
    marked = (part.evidence for part in parts if part.evidence in ("explicit", "marker"))
    return next(marked, parts[0].evidence)


def nodes_words(nodes: Iterable[int]) -> str:
    """Return ``node 3``, ``nodes 3, 7``, or the first ones and how many more."""
    numbers = sorted(nodes)
    told = ", ".join(str(number) for number in numbers[:MOST_NAMED])
    more = len(numbers) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{'node' if len(numbers) == 1 else 'nodes'} {told}{rest}"
