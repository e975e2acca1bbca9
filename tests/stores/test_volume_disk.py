"""A directory on a disk: how it is made, what leads nowhere, what is left over; nothing tears."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, IfMatches, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.volume.store import VolumeStore
from tests.stores.samples import NONCE, LyingBody, some_bytes, stored, upload


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a directory that does not exist yet."""
    return tmp_path / "durable"


@pytest.fixture
def store(root: Path) -> VolumeStore:
    """Return a store there."""
    return VolumeStore(str(root))


def workroom(root: Path) -> list[str]:
    """Return what lies where uploads are made, without the lock."""
    return sorted(one.name for one in (root / ".ckptsyncd/tmp").iterdir() if one.name != "lock")


# Making the directory ---------------------------------------------------------------------------


def test_the_directory_is_made_where_its_parent_exists(root: Path, store: VolumeStore) -> None:
    """The README's first command names a directory that does not exist yet."""
    store.put_small("x", b"1", None)
    assert (root / "x").read_bytes() == b"1"


def test_a_missing_parent_is_refused_and_never_made(tmp_path: Path) -> None:
    """A missing parent is a volume that is not mounted: nothing is made in its place."""
    store = VolumeStore(str(tmp_path / "mnt/durable"))
    for act in (lambda: store.put_small("x", b"1", None), lambda: list(store.list(""))):
        with pytest.raises(Never, match="does not exist") as caught:
            act()
        assert "mount the volume" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_directory_is_refused(root: Path, store: VolumeStore) -> None:
    """A URL that names a file is no destination."""
    root.write_text("I am a file")
    with pytest.raises(Never):
        store.put_small("x", b"1", None)
    assert root.read_text() == "I am a file"


def test_reading_makes_nothing(root: Path, store: VolumeStore) -> None:
    """Restore and list leave no trace, not even the directory."""
    assert list(store.list("")) == []
    with pytest.raises(Missing):
        store.stat("x")
    assert not root.exists()


# Nothing leads out ------------------------------------------------------------------------------


def test_symlinks_are_not_followed_out(tmp_path: Path, root: Path, store: VolumeStore) -> None:
    """A link to a directory or a file elsewhere is refused for writing, reading and deleting."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    store.put_small("x", b"1", None)
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    with pytest.raises(Never):
        store.put_small("dir/new", b"1", None)
    with pytest.raises(Never):
        store.put_whole("dir/new", BytesBody(b"1"), NONCE, create_only=True)
    for key in ("dir/secret", "file"):
        with pytest.raises(Never):
            store.get_small(key, 100)
        with pytest.raises(Never):
            list(store.read_range(key, 0, 1))
    with pytest.raises(Never):
        store.delete("dir/secret")
    store.delete("file")
    assert [fact.key for fact in store.list("")] == ["x"]
    assert {one.name for one in outside.iterdir()} == {"secret"}
    assert (outside / "secret").read_text() == "secret"


def test_overwriting_a_link_replaces_the_link(
    tmp_path: Path, root: Path, store: VolumeStore
) -> None:
    """A file link in the place of an object is replaced, its target stays as it was."""
    target = tmp_path / "target"
    target.write_text("mine")
    store.put_small("y", b"1", None)
    (root / "x").symlink_to(target)
    store.put_small("x", b"2", None)
    assert target.read_text() == "mine"
    assert (root / "x").read_bytes() == b"2"


def test_what_is_no_regular_file_is_no_object(root: Path, store: VolumeStore) -> None:
    """A FIFO neither blocks a reader nor is listed, and a directory is not deleted as an object."""
    store.put_small("dir/x", b"1", None)
    os.mkfifo(root / "fifo")
    with pytest.raises(Missing):
        store.stat("fifo")
    with pytest.raises(Missing):
        store.stat("dir")
    store.delete("dir")
    assert [fact.key for fact in store.list("")] == ["dir/x"]


def test_a_file_in_the_way_of_a_directory_is_refused(store: VolumeStore) -> None:
    """Below a key that is a file nothing can be stored, and nothing is there to read."""
    store.put_small("a", b"1", None)
    with pytest.raises(Never):
        store.put_small("a/b", b"1", None)
    with pytest.raises(Missing):
        store.stat("a/b")
    store.delete("a/b")
    assert store.get_small("a", 9)[0] == b"1"


def test_the_workroom_is_no_place_for_objects(store: VolumeStore) -> None:
    """A key inside the directory of unfinished uploads is refused."""
    for key in (".ckptsyncd/tmp/x", ".ckptsyncd/tmp/lock", ".ckptsyncd/tmp"):
        with pytest.raises(Never):
            store.put_small(key, b"1", None)


def test_a_token_leads_nowhere_else(root: Path, store: VolumeStore) -> None:
    """A token from a ledger that somebody wrote into does not name other directories."""
    store.put_small("x", b"1", None)
    for token in ("..", ".", "", "../..", "a/b", "unknown"):
        begun = store.begin("y", 1, 1, NONCE)
        other = type(begun)("y", token, NONCE, 1, 1)
        with pytest.raises(Gone):
            store.put_piece(other, Piece(0, 0, 1), BytesBody(b"x"))
        store.abandon(other)
        store.abandon(begun)
    assert (root / "x").read_bytes() == b"1"


# Uploads and their leftovers --------------------------------------------------------------------


def test_the_workroom_is_empty_after_every_end(root: Path, store: VolumeStore) -> None:
    """After success, a lost race, a lie and an abandoned upload nothing is left over."""
    stored(store, "x", some_bytes(3000))
    store.put_whole("small", BytesBody(b"1"), NONCE, create_only=True)
    with pytest.raises(Lost):
        store.put_whole("small", BytesBody(b"2"), NONCE, create_only=True)
    with pytest.raises(Lost):
        store.put_small("small", b"2", IfAbsent())
    with pytest.raises(Again):
        store.put_whole("lie", LyingBody(b"2"), NONCE, create_only=True)
    store.abandon(store.begin("gone", 10, 10, NONCE))
    assert workroom(root) == []


def test_a_crashed_upload_is_found_with_everything_known(root: Path, store: VolumeStore) -> None:
    """Another process finds key, size, pieces and nonce of what a killed one had begun."""
    begun = store.begin("run/a", 2000, 1000, NONCE)
    assert list(VolumeStore(str(root)).uploads("run/")) == [begun]


def test_an_upload_whose_note_is_cut_can_still_be_abandoned(root: Path, store: VolumeStore) -> None:
    """A crash while an upload was begun leaves something that is listed and can be removed."""
    begun = store.begin("run/a", 2000, 1000, NONCE)
    (root / ".ckptsyncd/tmp" / begun.token / "begun.json").write_text('{"key": "ru')
    (found,) = store.uploads("")
    assert (found.key, found.token) == ("", begun.token)
    store.abandon(found)
    assert workroom(root) == []


def test_a_crash_between_link_and_unlink_is_no_lost_race(root: Path, store: VolumeStore) -> None:
    """A finish that finds its own file under the name succeeds."""
    data = some_bytes(1500)
    begun = store.begin("x", 1500, 1000, NONCE)
    receipts = upload(store, begun, data)
    os.link(root / ".ckptsyncd/tmp" / begun.token / "data", root / "x")
    store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert (root / "x").read_bytes() == data
    assert workroom(root) == []


def test_an_upload_that_lost_bytes_is_dropped(root: Path, store: VolumeStore) -> None:
    """A file shorter than what was written to it is never given a name."""
    data = some_bytes(1500)
    begun = store.begin("x", 1500, 1000, NONCE)
    receipts = upload(store, begun, data)
    os.truncate(root / ".ckptsyncd/tmp" / begun.token / "data", 1000)
    with pytest.raises(Gone, match="1000 of 1500"):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert not (root / "x").exists()
    assert workroom(root) == []


def test_reading_back_sees_a_volume_that_damages(root: Path) -> None:
    """Where objects are read back, other bytes of the right size never get the name."""
    store = VolumeStore(str(root), read_back=True)
    data = some_bytes(1500)
    begun = store.begin("x", 1500, 1000, NONCE)
    receipts = upload(store, begun, data)
    with (root / ".ckptsyncd/tmp" / begun.token / "data").open("r+b") as file:
        file.write(b"????")
    with pytest.raises(Gone, match="other bytes"):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert not (root / "x").exists()


def test_empty_directories_go_with_their_last_object(root: Path, store: VolumeStore) -> None:
    """Pruning leaves no tree of empty directories, and keeps those that hold anything."""
    store.put_small("a/b/c/x", b"1", None)
    store.put_small("a/y", b"1", None)
    store.delete("a/b/c/x")
    assert sorted(one.name for one in (root / "a").iterdir()) == ["y"]
    store.delete("a/y")
    assert not (root / "a").exists()
    assert root.exists()


def test_pruning_beside_an_upload_costs_at_most_another_try(store: VolumeStore) -> None:
    """Where the new directory of an object is removed under it, that is Again and no other kind."""

    def put(number: int) -> None:
        while True:
            try:
                store.put_small(f"a/b/{number % 2}", b"1", None)
                stored(store, f"a/b/c{number % 3}", b"data", create_only=False)
            except Again:
                continue
            return

    def prune(number: int) -> None:
        store.delete(f"a/b/{number % 2}")
        store.delete(f"a/b/c{number % 3}")

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(act, number) for number in range(60) for act in (put, prune)]
    assert [error for one in done if (error := one.exception()) is not None] == []


def test_a_held_lock_is_again_and_links_need_none(root: Path, store: VolumeStore) -> None:
    """While another process replaces a record, replacing must come again; creating need not."""
    version = store.put_small("x", b"1", None)
    with (root / ".ckptsyncd/tmp/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Again) as caught:
            store.put_small("x", b"2", IfMatches(version))
        assert caught.value.wait_seconds
        store.put_small("y", b"1", IfAbsent())
    store.put_small("x", b"2", IfMatches(version))
    assert workroom(root) == []
