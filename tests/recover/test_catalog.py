"""The catalog: manifests are the truth, newest first; and waiting for the first of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Latest
from ckptsyncd.errors import Again, NoCheckpoint, NothingVerifies, Refused, StoreError, UsageError
from ckptsyncd.recover.await_first import pause_seconds
from ckptsyncd.recover.catalog import read_catalog
from ckptsyncd.recover.patience import MOST_ATTEMPTS, Pace, pause_after
from ckptsyncd.recover.request import RestoreRequest, Silence
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench


def test_the_newest_comes_first(tmp_path: Path) -> None:
    """Lineage, then step, then save time order a series; the last commit orders the series."""
    store = MemoryStore()
    for run, step in (("a", 30), ("a", 200), ("b", 5)):
        bench.commit(store, tmp_path, bench.save(tmp_path, step, run=run))
    restarted = replace(bench.manifest_of(tmp_path, bench.save(tmp_path, 7, run="a")), lineage=1)
    bench.put_manifest(store, replace(restarted, committed_at=9e9))
    catalog = read_catalog(store, bench.pace())
    assert [series.name for series in catalog.series] == ["a", "b"]
    assert [entry.step for entry in catalog.entries] == [7, 200, 30, 5]


def test_the_hint_is_not_believed(tmp_path: Path) -> None:
    """A ``latest`` that names an older checkpoint, or nothing at all, changes nothing."""
    store = MemoryStore()
    for step in (10, 20):
        bench.commit(store, tmp_path, bench.save(tmp_path, step))
    stale = Latest("run", "run/checkpoint-10", 1, (0, 10, 1.0, 1), (), "n", 1.0)
    store.put_small(names.latest_key("run"), stale.encode(), None)
    top = read_catalog(store, bench.pace()).top("run")
    assert top is not None
    assert top.step == 20


def test_pruned_and_foreign_objects(tmp_path: Path) -> None:
    """A tombstone is told as pruned; what is no manifest's key is none of our business."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 10))
    store.put_small(names.tombstone_key("run/checkpoint-5", 1), b"{}", None)
    store.put_small(names.MANIFESTS + "readme.txt", b"hello", None)
    catalog = read_catalog(store, bench.pace())
    assert [entry.step for entry in catalog.entries] == [10]
    assert [(one.title, one.reason) for one in catalog.broken] == [
        ("run/checkpoint-5@1", "it was pruned")
    ]
    assert not catalog.unreadable
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert (result.lineage, result.skipped) == (0, ())
    request = RestoreRequest(checkpoint="run/checkpoint-5")
    with pytest.raises(NothingVerifies, match="it was pruned"):
        restore(store, tmp_path / "here", request, pace=bench.pace())


class Ticking:
    """A clock and an event: waiting moves the clock, and calls what happens meanwhile."""

    def __init__(self, meanwhile: Callable[[float], None]) -> None:
        """Start at zero."""
        self.now = 0.0
        self.waits: list[float] = []
        self._meanwhile = meanwhile
        self.event = _Event(self)

    def pace(self) -> Pace:
        """Return the pace that is made of it."""
        return Pace(self.event, lambda: self.now, lambda: 0.5)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.waits.append(seconds)
        self.now += seconds
        self._meanwhile(self.now)


class _Event(threading.Event):
    def __init__(self, owner: Ticking) -> None:
        super().__init__()
        self._owner = owner

    def wait(self, timeout: float | None = None) -> bool:
        self._owner.wait(timeout or 0.0)
        return self.is_set()


class Lines(Silence):
    """Keeps what is said."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.lines: list[str] = []

    def said(self, text: str) -> None:
        """Keep it."""
        self.lines.append(text)


def test_waiting_for_the_first_checkpoint(tmp_path: Path) -> None:
    """A waiting restore looks again with growing pauses, says so once, and takes the first."""
    store = MemoryStore()
    claim = Claim("run/checkpoint-5", 1, "run", "s", "n", 1, 0, "", 1.0)
    store.put_small(names.claim_key("run/checkpoint-5", 1), claim.encode(), None)

    def meanwhile(now: float) -> None:
        if now > 20 and not read_catalog(store, bench.pace()).entries:
            bench.commit(store, tmp_path, bench.save(tmp_path, 5))

    ticking, lines = Ticking(meanwhile), Lines()
    request = RestoreRequest(wait=True, timeout_seconds=600)
    result = restore(store, tmp_path / "here", request, lines, ticking.pace())
    assert result.entry is not None
    assert ticking.waits == sorted(ticking.waits)
    assert 20 < ticking.now < 60
    waiting = [line for line in lines.lines if line.startswith("waiting")]
    lack = "waiting: there is no checkpoint in the store"
    assert waiting == [f"{lack}; run/checkpoint-5@1 is being uploaded (0 objects, 0 B there)"]


def test_a_writer_that_moves_is_followed(tmp_path: Path) -> None:
    """Each object that arrives is told, and the next look comes soon, not ever later."""
    store = MemoryStore()
    claim = Claim("run/checkpoint-5", 1, "run", "s", "n", 1, 0, "", 1.0)
    store.put_small(names.claim_key("run/checkpoint-5", 1), claim.encode(), None)
    store.put_small(names.claim_key("run/checkpoint-4", 1), b"rubbish", None)
    manifest = bench.manifest_of(tmp_path, bench.save(tmp_path, 5))
    rows = [row for row in manifest.files if row.kind == "file"]

    def meanwhile(now: float) -> None:
        if rows and now > 100 * (4 - len(rows)):
            row = rows.pop()
            body = BytesBody((tmp_path / row.path).read_bytes())
            store.put_whole(row.key, body, "n.1", create_only=True)
        elif not rows and not store.objects().get(names.manifest_key("run/checkpoint-5", 1)):
            bench.put_manifest(store, manifest)

    ticking, lines = Ticking(meanwhile), Lines()
    request = RestoreRequest(wait=True, timeout_seconds=900)
    result = restore(store, tmp_path / "here", request, lines, ticking.pace())
    assert result.entry is not None
    told = [line.rpartition("uploaded ")[2] for line in lines.lines if "being uploaded" in line]
    assert [text.partition(",")[0] for text in told] == [
        "(0 objects",
        "(1 object",
        "(2 objects",
        "(3 objects",
    ]
    assert len([seconds for seconds in ticking.waits if seconds < 1.0]) == len(told)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (RestoreRequest(wait=True, timeout_seconds=100), NoCheckpoint),
        (RestoreRequest(wait=False, timeout_seconds=100), NoCheckpoint),
    ],
)
def test_the_wait_has_an_end(
    tmp_path: Path, request_: RestoreRequest, error: type[Exception]
) -> None:
    """After the time-out the answer is that of a restore that did not wait."""
    ticking = Ticking(lambda _now: None)
    with pytest.raises(error):
        restore(MemoryStore(), tmp_path / "here", request_, pace=ticking.pace())
    assert ticking.now == (100 if request_.wait else 0)
    assert not (tmp_path / "here").exists()


def test_waiting_for_a_step(tmp_path: Path) -> None:
    """What is waited for is what was asked for, not just anything."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 5))
    ticking = Ticking(lambda _now: None)
    request = RestoreRequest(step=6, wait=True, timeout_seconds=10)
    with pytest.raises(UsageError, match="checkpoint-5@1"):
        restore(store, tmp_path / "here", request, pace=ticking.pace())
    assert ticking.now == 10


@pytest.mark.parametrize(("error", "waits"), [(Again("503"), True), (Refused("no"), False)])
def test_waiting_through_bad_weather(tmp_path: Path, error: StoreError, waits: bool) -> None:  # noqa: FBT001
    """A wait sits out a store that is down, and not wrong credentials."""
    ticking = Ticking(lambda _now: None)
    faulty = FaultyStore(MemoryStore(), lambda _verb, _key: Fault(error))
    request = RestoreRequest(wait=True, timeout_seconds=900)
    with pytest.raises(type(error)):
        restore(faulty, tmp_path / "here", request, pace=ticking.pace())
    assert (ticking.now >= 900) == waits


def test_a_wait_can_be_ended(tmp_path: Path) -> None:
    """Setting the event ends the wait at once."""
    ticking = Ticking(lambda now: ticking.event.set() if now > 5 else None)
    with pytest.raises(NoCheckpoint):
        restore(MemoryStore(), tmp_path, RestoreRequest(wait=True), pace=ticking.pace())
    assert ticking.now < 15


def test_pauses_grow_and_end() -> None:
    """Pauses double up to half a minute; attempts in a row are counted, the store's wish kept."""
    assert [pause_seconds(n, 1.0) for n in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert pause_seconds(3, 0.0) == 4
    assert pause_after(Again("x", wait_seconds=7), 1, 0.9) == 7
    assert pause_after(Again("x"), MOST_ATTEMPTS, 0.9) is None
    assert pause_after(Again("x"), MOST_ATTEMPTS - 1, 0.0) == 0
