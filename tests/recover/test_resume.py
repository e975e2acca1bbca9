"""A restore that was interrupted goes on where it was, and trusts nothing unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptsyncd.errors import AlreadyRunning, NothingVerifies, Refused
from ckptsyncd.recover.ground import claimed
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench

REQUEST = RestoreRequest(piece_bytes=10_000, workers=1)


def interrupted(tmp_path: Path, store: MemoryStore, after: int) -> int:
    """Restore until so many pieces were read, then lose the credentials; return the bytes."""
    count = 0

    def weather(verb: str, _key: str) -> Fault | None:
        nonlocal count
        count += verb == "read_range"
        return Fault(Refused("expired")) if count > after else None

    with pytest.raises(Refused):
        restore(FaultyStore(store, weather), tmp_path / "here", REQUEST, pace=bench.pace())
    return sum(
        path.stat().st_blocks * 512
        for path in (tmp_path / "here/.ckptsyncd").glob("restore-*/data/*")
    )


def stored(tmp_path: Path) -> tuple[MemoryStore, str]:
    """Return a store with one checkpoint of about fifteen pieces, and its name."""
    store = MemoryStore()
    name = bench.save(tmp_path / "there", 500)
    bench.commit(store, tmp_path / "there", name)
    return store, name


def test_checked_pieces_are_not_fetched_again(tmp_path: Path) -> None:
    """The second attempt fetches what is missing and no more, in other pieces too."""
    store, name = stored(tmp_path)
    interrupted(tmp_path, store, 9)
    result = restore(store, tmp_path / "here", RestoreRequest(piece_bytes=777), pace=bench.pace())
    assert bench.tree(tmp_path / "here", name) == bench.tree(tmp_path / "there", name)
    assert result.bytes_resumed == 7 * 10_000 + 2 * 10_000
    assert result.bytes_fetched + result.bytes_resumed == result.bytes
    assert not list((tmp_path / "here/.ckptsyncd").glob("restore-*"))


def test_a_piece_that_the_disk_lost_is_fetched_again(tmp_path: Path) -> None:
    """After a power cut the journal may know more than the disk: noted pieces are read back."""
    store, name = stored(tmp_path)
    interrupted(tmp_path, store, 9)
    data = (tmp_path / "here/.ckptsyncd").glob("restore-*/data/*")
    largest = max(data, key=lambda path: path.stat().st_blocks)
    with largest.open("r+b") as handle:
        handle.seek(5)
        handle.write(bytes(100))
    result = restore(store, tmp_path / "here", REQUEST, pace=bench.pace())
    assert bench.tree(tmp_path / "here", name) == bench.tree(tmp_path / "there", name)
    assert result.bytes_resumed == 8 * 10_000


def test_zeros_are_written_over_what_is_none(tmp_path: Path) -> None:
    """A hole is left only where there is one: rubbish of an earlier attempt is overwritten."""
    store = MemoryStore()
    bench.write(tmp_path / "there", "a.pt", b"head" + bytes(200_000) + b"tail")
    bench.commit(store, tmp_path / "there", "a.pt")
    interrupted(tmp_path, store, 2)
    staged = next((tmp_path / "here/.ckptsyncd").glob("restore-*/data/*"))
    with staged.open("r+b") as handle:
        handle.seek(100_000)
        handle.write(b"rubbish")
    restore(store, tmp_path / "here", REQUEST, pace=bench.pace())
    assert (tmp_path / "here/a.pt").read_bytes() == (tmp_path / "there/a.pt").read_bytes()


@pytest.mark.parametrize("line", ["rubbish", "0" * 32 + " 0 5", "\udcff", "9" * 500])
def test_a_torn_journal_is_no_harm(tmp_path: Path, line: str) -> None:
    """A journal whose last line a kill tore still tells the rest."""
    store, name = stored(tmp_path)
    interrupted(tmp_path, store, 9)
    journal = next((tmp_path / "here/.ckptsyncd").glob("restore-*/journal"))
    with journal.open("ab") as handle:
        handle.write(line.encode("utf-8", "surrogateescape"))
    result = restore(store, tmp_path / "here", REQUEST, pace=bench.pace())
    assert bench.tree(tmp_path / "here", name) == bench.tree(tmp_path / "there", name)
    assert result.bytes_resumed == 9 * 10_000


def test_what_is_resumed_is_checked_as_a_whole(tmp_path: Path) -> None:
    """An object that changed between two attempts is found out by the whole file's checksum."""
    store, name = stored(tmp_path)
    interrupted(tmp_path, store, 3)
    key = f"{name}/model.safetensors"
    data = bytes(byte ^ 1 for byte in store.objects()[key])
    store.delete(key)
    store.put_whole(key, BytesBody(data), "other", create_only=True)
    with pytest.raises(NothingVerifies, match=r"model\.safetensors"):
        restore(store, tmp_path / "here", REQUEST, pace=bench.pace())
    assert not (tmp_path / "here/run").exists()


def test_a_half_done_restore_is_not_taken_for_content(tmp_path: Path) -> None:
    """``--if-empty`` finishes what an earlier attempt began."""
    store, name = stored(tmp_path)
    interrupted(tmp_path, store, 9)
    request = RestoreRequest(if_empty=True)
    first = restore(store, tmp_path / "here", request, pace=bench.pace())
    second = restore(store, tmp_path / "here", request, pace=bench.pace())
    assert first.placed == (name,)
    assert second.entry is None
    assert "nothing to do" in second.reason


def test_two_restores_do_not_meet(tmp_path: Path) -> None:
    """A second restore into the same directory is refused while the first one runs."""
    store, _ = stored(tmp_path)
    with claimed(tmp_path / "here"), pytest.raises(AlreadyRunning):
        restore(store, tmp_path / "here", REQUEST, pace=bench.pace())


@pytest.mark.parametrize(
    ("path", "occupied"),
    [
        ("run/checkpoint-5/model.safetensors", True),
        ("checkpoint-5/anything", True),
        ("epoch=1.ckpt", True),
        ("logs/events.out.tfevents.1.host.1.0", False),
        ("train.log", False),
        ("config.yaml", False),
        (".tmpAbCdEf", False),
        ("lost+found/x.pt", False),
    ],
)
def test_what_counts_as_empty(tmp_path: Path, path: str, occupied: bool) -> None:  # noqa: FBT001
    """Only what looks like a checkpoint keeps ``--if-empty`` from restoring."""
    store, _ = stored(tmp_path)
    bench.write(tmp_path / "here", path, b"x")
    result = restore(store, tmp_path / "here", RestoreRequest(if_empty=True), pace=bench.pace())
    assert (result.entry is None) == occupied
    assert (path in result.reason) == occupied
