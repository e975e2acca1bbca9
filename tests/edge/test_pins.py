"""Pinned files stay readable whatever the trainer does, and what was changed is noticed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Listing, Piece
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.folders import MOST_FOLDERS
from tests.edge.world import as_nobody, disk_at, held_open, listing, needs_root, unchecked

MODEL = "checkpoint-1/model.pt"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with one checkpoint: two files, a directory and a link."""
    root = tmp_path / "run"
    (root / "checkpoint-1/empty").mkdir(parents=True)
    (root / MODEL).write_bytes(b"weights")
    (root / MODEL).chmod(0o600)
    (root / "checkpoint-1/state.json").write_bytes(b"{}")
    (root / "checkpoint-1/last").symlink_to("model.pt")
    return root


def content(disk: RealDisk, pin_id: str, files: Listing, path: str = MODEL) -> bytes:
    """Return all bytes of a pinned file."""
    size = next(fact.size for fact in files.files if fact.path == path)
    body = disk.open_piece(pin_id, files, path, Piece(0, 0, size))
    return bytes(body.read(1000))


def test_pinned_files_survive_the_trainers_rmtree(root: Path) -> None:
    """After rmtree, and rmtree of the root itself, the pinned content is what it was."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    assert disk.pin("p1", files) == (files, "")
    shutil.rmtree(root / "checkpoint-1")
    assert content(disk, "p1", files) == b"weights"
    assert disk.look_again("p1", files) == ""
    shutil.rmtree(root)
    assert content(disk, "p1", files) == b"weights"
    assert disk.look_again("p1", files) == ""


def test_pins_that_somebody_removed_are_made_again(root: Path) -> None:
    """What is kept open of a pin's directory is not believed: a removed pin is gone, then anew."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    assert disk.pin("p1", files) == (files, "")
    assert content(disk, "p1", files) == b"weights"
    (place,) = (root.parent / ".ckptsyncd/pins").iterdir()
    shutil.rmtree(place)
    with pytest.raises(FileNotFoundError):
        content(disk, "p1", files)
    assert disk.pin("p1", files) == (files, "")
    assert len(list((place / "p1").iterdir())) == 2
    assert content(disk, "p1", files) == b"weights"


def test_nothing_stays_open_of_what_was_let_go_of(root: Path) -> None:
    """Pinning, opening and unpinning leave no descriptor behind, with many pins few at a time."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    for number in range(3 * MOST_FOLDERS):
        assert disk.pin(f"p{number}", files) == (files, "")
        assert content(disk, f"p{number}", files) == b"weights"
    assert 0 < len(held_open(root.parent)) <= MOST_FOLDERS
    assert content(disk, "p0", files) == b"weights"
    for number in range(3 * MOST_FOLDERS):
        disk.unpin(f"p{number}")
    assert held_open(root.parent) == []


def test_pins_leave_the_order_in_which_files_were_written(root: Path) -> None:
    """Links are made and removed oldest first: what was written last has the newest ctime."""
    (root / "many").mkdir()
    paths = [root / f"many/{number:04d}.pt" for number in reversed(range(3000))]
    for path in paths:
        path.touch()
    disk = disk_at(root)
    files = listing(disk, "many")
    written = [path.stat().st_ctime_ns for path in paths]
    for change in (disk.pin, lambda pin_id, _: disk.unpin(pin_id)):
        change("p1", files)
        moved = [path.stat().st_ctime_ns for path in paths]
        in_order = [after for _, after in sorted(zip(written, moved, strict=True))]
        assert in_order == sorted(moved)
        assert written[-1] < moved[0] < moved[-1]


def test_links_lie_beside_the_root_with_their_mode(root: Path) -> None:
    """Links are made beside the root when first needed, with the mode of what they link to."""
    disk = disk_at(root)
    assert not (root.parent / ".ckptsyncd").exists()
    files = listing(disk, "checkpoint-1")
    pinned, _ = disk.pin("p1", files)
    assert [fact.mode for fact in pinned.files] == [fact.mode for fact in files.files]
    (place,) = (root.parent / ".ckptsyncd/pins").iterdir()
    assert place.name.startswith("run-")
    names = sorted(entry.name for entry in (place / "p1").iterdir())
    assert names == [str(index) for index, fact in enumerate(files.files) if fact.kind == "file"]
    assert (root / MODEL).stat().st_nlink == 2
    assert (root / MODEL).stat().st_mode & 0o777 == 0o600


def test_unpinned_files_are_let_go(root: Path) -> None:
    """After unpin no link is left; unpinning what is not pinned is success."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    disk.pin("p2", files)
    assert disk.held() == ("p1", "p2")
    disk.unpin("p1")
    disk.unpin("p1")
    assert disk.held() == ("p2",)
    disk.unpin("p2")
    assert (root / MODEL).stat().st_nlink == 1


def test_pins_of_an_earlier_run_are_found(root: Path) -> None:
    """A restarted daemon lists, reads, checks and drops what was pinned before."""
    files = listing(disk_at(root), "checkpoint-1")
    disk_at(root).pin("p1", files)
    shutil.rmtree(root / "checkpoint-1")
    disk = disk_at(root)
    assert disk.held() == ("p1",)
    assert content(disk, "p1", files) == b"weights"
    assert disk.look_again("p1", files) == ""
    disk.unpin("p1")
    assert disk.held() == ()


def test_pinning_again_changes_nothing(root: Path) -> None:
    """The same pin twice is the same pin, also when the paths are gone by then."""
    disk = disk_at(root)
    files = listing(disk, MODEL)
    assert disk.pin("p1", files) == (files, "")
    (root / MODEL).unlink()
    assert disk.pin("p1", files) == (files, "")
    assert content(disk, "p1", files) == b"weights"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("unlink", "checkpoint-1/model.pt: vanished"),
        ("replace", "checkpoint-1/model.pt was replaced by another file"),
        ("grow", "checkpoint-1/model.pt changed: 7 bytes became 8"),
        ("touch", "checkpoint-1/model.pt was written again: mtime"),
        ("link", "checkpoint-1/model.pt: Too many levels of symbolic links"),
        ("state", "checkpoint-1/state.json: vanished"),
        ("last", "checkpoint-1/last points elsewhere: model.pt became other.pt"),
    ],
)
def test_what_differs_is_not_pinned(root: Path, change: str, text: str) -> None:
    """A file that vanished or changed since the listing is named, and nothing stays pinned."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    path, last = root / MODEL, root / "checkpoint-1/last"
    if change == "unlink":
        path.unlink()
    elif change == "replace":
        path.with_name("new").write_bytes(b"weights")
        path.with_name("new").replace(path)
    elif change == "grow":
        path.write_bytes(b"weights!")
    elif change == "touch":
        os.utime(path)
    elif change == "link":
        path.unlink()
        path.symlink_to("state.json")
    elif change == "state":
        (root / "checkpoint-1/state.json").unlink()
    else:
        last.with_name("new").symlink_to("other.pt")
        inode = last.lstat().st_ino
        last.with_name("new").replace(last)
        text = text if last.lstat().st_ino == inode else "checkpoint-1/last was replaced by another"
    pinned, error = disk.pin("p1", files)
    assert error.startswith(text)
    assert pinned == Listing(())
    assert disk.held() == ()


def test_overwriting_in_place_shows_at_the_second_look(root: Path) -> None:
    """A link does not protect against writing in place; size or mtime betray it."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    with (root / MODEL).open("r+b") as file:
        file.write(b"WEIGHTS")
    assert "was written again" in disk.look_again("p1", files)
    with pytest.raises(OSError, match="was written again") as caught:
        content(disk, "p1", files)
    assert caught.value.errno == errno.ESTALE
    (root / MODEL).write_bytes(b"more than that")
    assert "7 bytes became 14" in disk.look_again("p1", files)


def test_open_writer_shows_at_the_second_look(root: Path) -> None:
    """A pinned file that somebody has open for writing is not what can be committed."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    with (root / MODEL).open("r+b"):
        text = disk.look_again("p1", files)
    assert text.startswith(f"{MODEL} is held open for writing by pid {os.getpid()} (")
    assert disk.look_again("p1", files) == ""


def test_unlink_and_rename_are_no_change(root: Path) -> None:
    """What moves only the ctime (unlink, rename, our own link) is no change of content."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    (root / MODEL).rename(root / "kept.pt")
    (root / "checkpoint-1/state.json").unlink()
    assert disk.look_again("p1", files) == ""


def test_pins_removed_by_the_trainer_are_told(root: Path) -> None:
    """A trainer that removes our directory loses us the pin, and nothing crashes."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    shutil.rmtree(root.parent / ".ckptsyncd")
    assert disk.look_again("p1", files) == f"{MODEL}: the pin is gone: somebody removed it"
    with pytest.raises(FileNotFoundError, match="the pin is gone"):
        content(disk, "p1", files)
    assert disk.held() == ()
    assert disk.pin("p1", files) == (files, "")


def test_descriptors_where_links_do_not_reach(root: Path) -> None:
    """Where the place for links is on another device, files are held open, and found all the same.

    ``/dev/shm`` is a file system of its own on every Linux.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        disk = RealDisk(root, unchecked, pins=Path(elsewhere) / "pins")
        files = listing(disk, "checkpoint-1")
        assert disk.pin("p1", files) == (files, "")
        assert (root / MODEL).stat().st_nlink == 1
        shutil.rmtree(root / "checkpoint-1")
        assert content(disk, "p1", files) == b"weights"
        assert disk.look_again("p1", files) == ""
        assert disk.held() == ("p1",)
        assert len(held_open(root)) == 2
        disk.unpin("p1")
        assert held_open(root) == []
        assert disk.held() == ()


def test_descriptors_are_bounded(root: Path) -> None:
    """More files than may be held open are refused with the remedy, and none stays open."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        disk = RealDisk(root, unchecked, pins=Path(elsewhere) / "pins")
        disk._shelf.most_open = 1
        files = listing(disk, "checkpoint-1")
        _, error = disk.pin("p1", files)
        assert "no links can be made, and 1 files are held open; raise ulimit -n" in error
        assert held_open(root) == []


def test_names_that_are_no_names_are_refused(root: Path) -> None:
    """A pin id is one component of a path."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    for pin_id in ("", "..", "a/b"):
        _, error = disk.pin(pin_id, files)
        assert error


def test_open_of_an_unknown_path(root: Path) -> None:
    """A path that the listing does not have is said to be missing."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    disk.pin("p1", files)
    with pytest.raises(FileNotFoundError, match="not in the listing"):
        disk.open_piece("p1", files, "other", Piece(0, 0, 1))


@pytest.fixture
def foreign_root() -> Iterator[Path]:
    """Return a root's watch root that everybody may enter, in a directory nobody else may write."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        root = Path(name) / "run"
        root.mkdir()
        (root / "model.pt").write_bytes(b"weights")
        yield root


@needs_root
def test_inside_the_root_where_beside_cannot_be_written(foreign_root: Path) -> None:
    """Links go inside the root where its parent is not ours, and no walk shows them."""
    os.chown(foreign_root, 65534, 65534)
    os.chown(foreign_root / "model.pt", 65534, 65534)
    with as_nobody():
        disk = disk_at(foreign_root)
        files = listing(disk)
        assert disk.pin("p1", files) == (files, "")
        assert (foreign_root / ".ckptsyncd/pins/p1/0").read_bytes() == b"weights"
        assert listing(disk) == files


@needs_root
def test_another_owners_file_is_held_open(foreign_root: Path) -> None:
    """Where the kernel refuses a link to a file of another owner, a descriptor pins it."""
    with as_nobody():
        disk = disk_at(foreign_root)
        files = listing(disk)
        assert disk.pin("p1", files) == (files, "")
        assert disk.held() == ("p1",)
    shutil.rmtree(foreign_root)
    with as_nobody():
        assert bytes(disk.open_piece("p1", files, "model.pt", Piece(0, 0, 7)).read(9)) == b"weights"
        disk.unpin("p1")


@needs_root
def test_what_we_make_belongs_to_the_trainer(foreign_root: Path) -> None:
    """A daemon of root's makes directories that the owner of the root can remove."""
    os.chown(foreign_root, 65534, 65534)
    disk = RealDisk(foreign_root, unchecked, pins=foreign_root / ".ckptsyncd/pins")
    disk.pin("p1", listing(disk))
    with as_nobody():
        shutil.rmtree(foreign_root / ".ckptsyncd")
    assert disk.look_again("p1", listing(disk)) == "model.pt: the pin is gone: somebody removed it"


def test_a_foreign_directory_is_not_trusted(root: Path) -> None:
    """A symlink under our name is not followed: the pin goes inside the root instead."""
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    (root.parent / ".ckptsyncd").symlink_to(elsewhere)
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    assert disk.pin("p1", files) == (files, "")
    assert list(elsewhere.iterdir()) == []
    assert (root / ".ckptsyncd/pins/p1").is_dir()
