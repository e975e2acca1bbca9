"""A disk that is full, read-only or gone is told as what it is, on every kind of file system."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Begun, Piece
from ckptsyncd.errors import Again, Never, Refused, StoreError
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.volume.faults import BY_ERRNO, classify
from ckptsyncd.stores.volume.probe import file_system_of
from ckptsyncd.stores.volume.store import VolumeStore
from tests.servers import stop
from tests.stores.mounts import fuse_process, mounted, nearly_full, unmount
from tests.stores.samples import NONCE, some_bytes, upload


@pytest.fixture(params=["tmpfs", "ext4", "xfs", "overlayfs"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Mount a file system with room for 4 MiB, where this user may."""
    with nearly_full(request.param, tmp_path) as point:
        yield point


@pytest.fixture(params=["tmpfs", "ext4", "xfs", "overlayfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of each kind."""
    with mounted(request.param, tmp_path) as one:
        yield one.path


def workroom(root: Path) -> list[str]:
    """Return what lies where uploads are made, without the lock."""
    return sorted(one.name for one in (root / ".ckptsyncd/tmp").iterdir() if one.name != "lock")


# The disk itself --------------------------------------------------------------------------------


def test_a_full_disk_is_again_and_tears_nothing(small_disk: Path) -> None:
    """A file that does not fit is not there, the old ones are, and it fits once there is room."""
    store = VolumeStore(str(small_disk / "durable"))
    store.put_whole("old", BytesBody(some_bytes(2_000_000)), NONCE, create_only=True)
    data = some_bytes(3_000_000, seed=2)
    begun = store.begin("new", len(data), 1_000_000, NONCE)
    with pytest.raises(Again) as caught:
        upload(store, begun, data)
    assert "room" in caught.value.hint
    assert [fact.key for fact in store.list("")] == ["old"]
    assert store.stat("old").crc64nvme == crc64nvme(some_bytes(2_000_000))
    store.delete("old")
    receipts = upload(store, begun, data)
    store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert store.stat("new").crc64nvme == crc64nvme(data)


def filled(disk: Path) -> None:
    """Write until nothing more fits."""
    with suppress(OSError), (disk / "last bytes").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_an_upload_that_cannot_begin_leaves_nothing(small_disk: Path) -> None:
    """Where there is no room even for the note about an upload, its directory goes again."""
    store = VolumeStore(str(small_disk / "durable"))
    store.put_small("record", b"1", None)
    filled(small_disk)
    note = "n" * 8000  # longer than what is left of any block
    with pytest.raises(Again):
        store.begin("new", 10, 10, note)
    with pytest.raises(Again):
        store.put_whole("new", BytesBody(b"x" * 8000), note, create_only=True)
    assert workroom(small_disk / "durable") == []


def test_a_full_disk_keeps_no_half_of_a_small_file(small_disk: Path) -> None:
    """Small files and records that do not fit leave neither an object nor a leftover."""
    store = VolumeStore(str(small_disk / "durable"))
    store.put_small("x", b"1", None)
    with pytest.raises(Again):
        store.put_whole("big", BytesBody(some_bytes(5_000_000)), NONCE, create_only=True)
    with pytest.raises(Again):
        store.put_small("x", some_bytes(5_000_000), None)
    assert store.get_small("x", 9)[0] == b"1"
    assert [fact.key for fact in store.list("")] == ["x"]
    assert workroom(small_disk / "durable") == []


def test_a_disk_that_becomes_read_only_is_refused_and_readable(disk: Path) -> None:
    """Writing says that the volume is mounted read-only, begun uploads too; reading works."""
    root = disk / "durable"
    store = VolumeStore(str(root))
    store.put_small("x", b"1", None)
    begun = store.begin("y", 1, 1, NONCE)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, timeout=20)
    for act in (
        lambda: store.put_small("x", b"2", None),
        lambda: store.put_whole("z", BytesBody(b"2"), NONCE, create_only=True),
        lambda: store.put_piece(begun, Piece(0, 0, 1), BytesBody(b"x")),
        lambda: store.begin("w", 1, 1, NONCE),
        lambda: store.delete("x"),
        lambda: VolumeStore(str(root)).put_small("y", b"2", None),
    ):
        with pytest.raises(Refused) as caught:
            act()
        assert "mount" in caught.value.hint
    assert VolumeStore(str(root)).get_small("x", 9)[0] == b"1"


def test_a_vanished_volume_is_again_and_nothing_is_written_in_its_place(disk: Path) -> None:
    """After an unmount nothing is called missing, stored or deleted, and nothing is made."""
    store = VolumeStore(str(disk / "durable"))
    store.put_small("x", b"1", None)
    begun = store.begin("y", 1, 1, NONCE)
    unmount(disk)
    for act in every_verb(store, begun):
        with pytest.raises(Again, match="not there any more"):
            act()
    assert list(disk.iterdir()) == []


def test_a_program_behind_the_mount_that_ends_is_a_lost_mount(tmp_path: Path) -> None:
    """While the mount of a dead program is there, and when it is gone, everything is Again."""
    with fuse_process(tmp_path) as (disk, process):
        store = VolumeStore(str(disk / "durable"))
        store.put_small("x", b"1", None)
        begun = store.begin("y", 1, 1, NONCE)
        stop(process)
        process.wait(20)
        for act in every_verb(store, begun):
            with pytest.raises(Again) as caught:
                act()
            assert "mounted" in caught.value.hint
        unmount(disk)
        for act in every_verb(store, begun):
            with pytest.raises(Again, match="not there any more"):
                act()
        assert list(disk.iterdir()) == []


def every_verb(store: VolumeStore, begun: Begun) -> tuple[Callable[[], object], ...]:
    """Return a call of each verb that touches the volume."""
    return (
        lambda: store.put_small("x", b"2", None),
        lambda: store.put_whole("z", BytesBody(b"2"), NONCE, create_only=True),
        lambda: store.put_piece(begun, Piece(0, 0, 1), BytesBody(b"x")),
        lambda: store.get_small("x", 9),
        lambda: store.stat("x"),
        lambda: list(store.list("")),
        lambda: store.delete("x"),
        lambda: store.abandon(begun),
    )


# The tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "kind", "ambiguous"),
    [
        (errno.ENOSPC, Again, False),
        (errno.EDQUOT, Again, False),
        (errno.EROFS, Refused, False),
        (errno.EACCES, Refused, False),
        (errno.EPERM, Refused, False),
        (errno.ESTALE, Again, True),
        (errno.EIO, Again, True),
        (errno.ENOTCONN, Again, True),
        (errno.ETIMEDOUT, Again, True),
        (errno.EMFILE, Again, False),
        (errno.ENAMETOOLONG, Never, False),
        (errno.ENOTDIR, Never, False),
        (errno.EFBIG, Never, False),
        (errno.EUCLEAN, Again, True),
    ],
)
def test_an_errno_means_one_thing(number: int, kind: type[StoreError], ambiguous: bool) -> None:  # noqa: FBT001
    """Each errno has its kind, and says whether a write may have happened."""
    error = OSError(number, os.strerror(number))
    found = classify(error, "key", writes=True)
    assert type(found) is kind
    assert found.ambiguous is ambiguous
    assert not classify(error, "key", writes=False).ambiguous


def test_every_errno_has_a_hint() -> None:
    """Whatever the table yields, a user is told what to do next."""
    assert all(verdict.hint or verdict.kind.hint for verdict in BY_ERRNO.values())


def test_the_file_system_is_the_innermost_mount(tmp_path: Path) -> None:
    """The type is that of the longest mount point above the path, spaces in it included."""
    table = tmp_path / "mountinfo"
    table.write_text(
        "6 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "7 6 0:30 / /mnt rw shared:1 - xfs /dev/vdb rw\n"
        "8 7 0:31 / /mnt/my\\040bucket rw - fuse.mount-s3 mountpoint-s3 rw\n"
    )
    types = {
        "/home": "ext4",
        "/mnt": "xfs",
        "/mnt/x": "xfs",
        "/mntx": "ext4",
        "/mnt/my bucket/y": "fuse.mount-s3",
    }
    assert {path: file_system_of(path, str(table)) for path in types} == types
    assert file_system_of("/x", str(tmp_path / "none")) == "unknown"
