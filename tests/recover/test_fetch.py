"""Odd stores and early ends: what was checked stays checked, and nothing else is believed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.errors import Again, CkptsyncdError, Refused
from ckptsyncd.recover.assembly import Assembly
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.fetch import _Fetcher
from ckptsyncd.recover.readers import Readers
from ckptsyncd.recover.request import RestoreRequest, Silence, Step
from ckptsyncd.recover.restore import restore
from ckptsyncd.recover.staging import Staging
from ckptsyncd.recover.stream import Gap, Span, adds_up, gaps
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench


class Generous(MemoryStore):
    """A store that ignores the end of a range, and sends in blocks of odd sizes."""

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield everything from the offset."""
        data = self.objects()[key][offset:]
        yield b""
        for start in range(0, len(data) if length else 0, 999):
            yield data[start : start + 999]


class Stingy(MemoryStore):
    """A store whose connection ends after so many bytes, without an error."""

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield at most a thousand bytes."""
        yield self.objects()[key][offset : offset + min(length, 1000)]


class Dry(MemoryStore):
    """A store that never sends a byte, and says that all is well."""

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield nothing."""
        del key, offset, length
        yield from ()


@pytest.mark.parametrize("store", [Generous(), Stingy()], ids=["generous", "stingy"])
def test_ranges_that_are_not_kept(tmp_path: Path, store: MemoryStore) -> None:
    """More bytes than were asked for are cut off, fewer are asked for again."""
    name = bench.save(tmp_path / "there", 5)
    bench.commit(store, tmp_path / "there", name)
    request = RestoreRequest(piece_bytes=10_000)
    result = restore(store, tmp_path / "here", request, pace=bench.pace())
    assert bench.tree(tmp_path / "here", name) == bench.tree(tmp_path / "there", name)
    assert result.bytes_fetched == result.bytes


def test_a_whole_object_that_does_not_come_is_no_broken_one(tmp_path: Path) -> None:
    """Where the store says that an object is whole and sends nothing, the store is at fault."""
    store = Dry()
    bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", 5))
    with pytest.raises(Again, match="ended early"):
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())


def test_a_stop_forgets_nothing(tmp_path: Path) -> None:
    """A piece that is cut short because the work ends makes no file be called wrong."""
    store = MemoryStore()
    bench.write(tmp_path, "a.pt", b"x" * 1000)
    manifest = bench.commit(store, tmp_path, "a.pt")
    staging = Staging(tmp_path / "ours", "save")
    assembly = Assembly(staging, manifest.files[0])
    assembly.prepare()
    first, last = assembly.gaps(500)
    pace = bench.pace()
    fetcher = _Fetcher(store, Silence(), pace, Readers(8, pace.clock))
    assert fetcher.fill((assembly, first)).fault is None
    pace.stop.set()
    assert fetcher.fill((assembly, last)).fault is None
    staging.close()
    later = Staging(tmp_path / "ours", "save")
    assert Assembly(later, manifest.files[0]).prepare() == 500
    later.close()


class Ending(Silence):
    """Ends a restore at one step, as an error there would."""

    def __init__(self, at: Step) -> None:
        """End at this step."""
        self.at = at

    def reached(self, step: Step) -> None:
        """Raise at the right step."""
        if step == self.at:
            msg = "ended"
            raise Refused(msg)


def test_the_tree_is_built_anew(tmp_path: Path) -> None:
    """What an earlier attempt with other wishes built is not taken over."""
    store = MemoryStore()
    name = bench.save(tmp_path / "there", 5)
    bench.commit(store, tmp_path / "there", name)
    here = tmp_path / "here"
    with pytest.raises(Refused):
        restore(store, here, RestoreRequest(), Ending("built"), bench.pace())
    restore(store, here, RestoreRequest(only=("*.safetensors",)), pace=bench.pace())
    assert [path.name for path in (here / name).rglob("*")] == ["model.safetensors"]


def test_pieces_of_nothing() -> None:
    """An empty range has no pieces, an empty file adds up."""
    assert list(gaps(5, 5, 10)) == []
    assert list(gaps(0, 25, 10)) == [Gap(0, 10), Gap(10, 10), Gap(20, 5)]
    empty = StoredFile("a", "file", 0, 0, 0)
    assert adds_up(empty, [])
    assert not adds_up(replace(empty, size=1), [])
    assert not adds_up(empty, [Span(0, 1, 0)])


def test_the_first_error_ends_the_crew() -> None:
    """An error of one job is raised to whoever waits for the results; no more jobs are begun."""
    stop = threading.Event()
    done: list[int] = []

    def work(job: int) -> int:
        if job == 3:
            msg = "three"
            raise Again(msg)
        done.append(job)
        return job

    with pytest.raises(Again, match="three"):
        list(each(range(100_000), work, 2, stop))
    assert stop.is_set()
    assert len(done) < 100


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_ours_ends_the_crew_too() -> None:
    """A thread that dies of a mistake in this program holds nobody up."""

    def work(job: int) -> float:
        return 1 / job

    with pytest.raises(CkptsyncdError, match="error of this program"):
        list(each([0, 0, 0], work, 2, threading.Event()))
