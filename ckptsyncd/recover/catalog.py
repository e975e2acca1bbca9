"""What a store holds: every manifest in short, by series, newest first.

Manifests are the truth; ``latest`` is only a hint and is not looked at. A manifest may have a
hundred megabytes, so only its outline is kept, and it is read again when it is needed. What cannot
be read is told with the reason and disturbs nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import MAX_MANIFEST_BYTES, Manifest, decode
from ckptsyncd.errors import Again, Missing, Never, PathRefused
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.patience import Pace, not_given, patiently

#: Manifests read at the same time: they are small, so the way to the store is what takes time
#: (guessed), but each may be large and is held while it is parsed.
READERS = 4
#: With more manifests than these that the store does not give it is the store that fails (guessed:
#: each takes as long as bounded retries do).
MOST_KEPT = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One committed edition in short; ``rank`` orders the editions of a series, oldest first."""

    key: str
    checkpoint: str
    edition: int
    series: str
    step: int | None
    lineage: int
    layout: str
    bytes: int
    files: int
    saved_at: float
    committed_at: float
    save_id: str
    nodes: tuple[int, ...]
    rank: tuple[int, int, float, int]

    @property
    def title(self) -> str:
        """The name by which a user asks for exactly this edition."""
        return f"{self.checkpoint}@{self.edition}"


@dataclass(frozen=True, slots=True)
class Broken:
    """A manifest that cannot be used: why, and what its key says about the rest.

    ``refused``: a name in it would leave the root. ``pruned``: removed on purpose.
    """

    key: str
    checkpoint: str
    edition: int
    reason: str
    refused: bool = False
    pruned: bool = False

    @property
    def title(self) -> str:
        """The name by which a user asks for exactly this edition."""
        return f"{self.checkpoint}@{self.edition}"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A manifest that the store has, and did not give after bounded retries."""

    key: str
    error: Again


@dataclass(frozen=True, slots=True)
class Series:
    """The committed editions of one series, newest first; never empty."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that a store holds; the series that was committed to last comes first."""

    series: tuple[Series, ...]
    broken: tuple[Broken, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every committed edition, series by series, newest first."""
        return tuple(entry for series in self.series for entry in series.entries)

    def top(self, series: str) -> Entry | None:
        """Return the newest edition of a series."""
        return next((one.entries[0] for one in self.series if one.name == series), None)

    @property
    def unreadable(self) -> tuple[Broken, ...]:
        """What may have been newer than anything that can be read; pruned ones never are."""
        return tuple(broken for broken in self.broken if not broken.pruned)


def read_catalog(store: Store, pace: Pace) -> Catalog:
    """Read every manifest below the store's prefix.

    Raises StoreError where the store does not answer after bounded retries. One that gives other
    manifests and not this one has a broken one.
    """
    stop = threading.Event()
    patient = replace(pace, stop=stop)
    pruned = patiently(lambda: [_pruned(fact.key) for fact in store.list(names.TOMBSTONES)], pace)
    found = patiently(lambda: list(_listed(store)), pace)
    rows = list(_given(each(found, lambda fact: _outline(store, fact, patient), READERS, stop)))
    entries = [row for row in rows if isinstance(row, Entry)]
    there = {fact.key for fact in found}
    gone = [row for row in pruned if row is not None and row.key not in there]
    broken = sorted((*gone, *(r for r in rows if isinstance(r, Broken))), key=lambda b: b.key)
    return Catalog(_grouped(entries), tuple(broken))


def read_manifest(store: Store, key: str, pace: Pace) -> Manifest:
    """Return the manifest under a key, sound in itself and named as its key says.

    Raises Missing, Never (it is none that we can read), PathRefused, and what the store raises.
    """
    data, _ = patiently(lambda: store.get_small(key, MAX_MANIFEST_BYTES), pace)
    return _decoded(key, data)


def _decoded(key: str, data: bytes) -> Manifest:
    manifest = decode(data)
    if names.manifest_key(manifest.checkpoint, manifest.edition) != key:
        msg = f"it says that it is {manifest.checkpoint!r:.80}@{manifest.edition}, its key does not"
        raise Never(msg)
    return manifest


def _listed(store: Store) -> Iterator[ObjectFact]:
    """Yield the objects that a manifest's key names; others are none of our business."""
    for fact in store.list(names.MANIFESTS):
        if names.parse_manifest_key(fact.key) is not None:
            yield fact


def _given(rows: Iterator[Entry | Broken | _Kept | None]) -> Iterator[Entry | Broken | None]:
    """Yield what was read; raise for what was not, unless most others are read."""
    read = kept = 0
    for row in rows:
        if isinstance(row, _Kept):
            kept += 1
            if not read or kept > MOST_KEPT:
                raise row.error
            yield _broken(row.key, not_given(row.error))
        else:
            read += isinstance(row, Entry)
            yield row


def _outline(store: Store, fact: ObjectFact, pace: Pace) -> Entry | Broken | _Kept | None:
    """Return a manifest in short, why it cannot be used, or ``None``: gone since it was listed."""
    if fact.size > MAX_MANIFEST_BYTES:
        return _broken(fact.key, f"it has {fact.size} bytes, at most {MAX_MANIFEST_BYTES} are read")
    try:
        data, _ = patiently(lambda: store.get_small(fact.key, MAX_MANIFEST_BYTES), pace)
        return outline(fact.key, _decoded(fact.key, data))
    except PathRefused as error:
        return replace(_broken(fact.key, str(error)), refused=True)
    except Never as error:
        return _broken(fact.key, str(error))
    except Again as error:
        return _Kept(fact.key, error)
    except Missing:
        return None


def outline(key: str, manifest: Manifest) -> Entry:
    """Return a manifest in short."""
    return Entry(
        key=key,
        checkpoint=manifest.checkpoint,
        edition=manifest.edition,
        series=manifest.series,
        step=manifest.step,
        lineage=manifest.lineage,
        layout=manifest.layout,
        bytes=manifest.bytes,
        files=sum(1 for stored in manifest.files if stored.kind != "directory"),
        saved_at=manifest.saved_at,
        committed_at=manifest.committed_at,
        save_id=manifest.save_id,
        nodes=manifest.nodes,
        rank=manifest.rank(),
    )


def _pruned(key: str) -> Broken | None:
    """Return a pruned edition under the key that its manifest had, by its tombstone's key."""
    if names.parse_tombstone_key(key) is None:
        return None
    manifest_key = names.MANIFESTS + key[len(names.TOMBSTONES) :]
    return replace(_broken(manifest_key, "it was pruned"), pruned=True)


def _broken(key: str, reason: str) -> Broken:
    quoted, edition = names.parse_manifest_key(key) or (key, 0)
    name = unquote_to_bytes(quoted).decode("utf-8", "surrogateescape")
    is_root = quoted == names.quoted(".")
    return Broken(key, "." if is_root else name, edition, reason)


def _grouped(entries: list[Entry]) -> tuple[Series, ...]:
    """Return the series, the one that was committed to last first, each newest first."""
    newest_first = sorted(entries, key=lambda entry: (entry.rank, entry.checkpoint), reverse=True)
    named: dict[str, list[Entry]] = {}
    for entry in newest_first:
        named.setdefault(entry.series, []).append(entry)
    series = [Series(name, tuple(rows)) for name, rows in named.items()]
    return tuple(sorted(series, key=lambda one: -max(e.committed_at for e in one.entries)))
