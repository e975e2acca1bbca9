"""What a walk yields, and what it does not touch."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from ckptsyncd.core.facts import FileFact
from tests.edge.world import as_nobody, disk_at, needs_root, only


def paths(root: Path, path: str = "", *, recursive: bool = True) -> dict[str, str]:
    """Return the kind of everything that a walk yields, by path."""
    return {fact.path: fact.kind for fact in disk_at(root).walk(path, recursive=recursive)}


def test_everything_below_is_yielded_once(tmp_path: Path) -> None:
    """Files, directories and symlinks are yielded, the root itself is not."""
    (tmp_path / "run/checkpoint-1").mkdir(parents=True)
    (tmp_path / "run/checkpoint-1/model.pt").write_bytes(b"12345")
    (tmp_path / "run/latest").symlink_to("checkpoint-1")
    assert paths(tmp_path) == {
        "run": "directory",
        "run/checkpoint-1": "directory",
        "run/checkpoint-1/model.pt": "file",
        "run/latest": "symlink",
    }
    assert paths(tmp_path, recursive=False) == {"run": "directory"}
    assert paths(tmp_path, "run", recursive=False) == {
        "run": "directory",
        "run/checkpoint-1": "directory",
        "run/latest": "symlink",
    }
    assert paths(tmp_path, "run/checkpoint-1/model.pt") == {"run/checkpoint-1/model.pt": "file"}


def test_facts_are_those_of_lstat(tmp_path: Path) -> None:
    """Size, mtime, mode, inode and link target are the kernel's; a directory has no own size."""
    path = tmp_path / "model.pt"
    path.write_bytes(b"12345")
    path.chmod(0o600)
    os.utime(path, ns=(5, 1_700_000_000_123_456_789))
    (tmp_path / "link").symlink_to("model.pt")
    (tmp_path / "dir").mkdir()
    disk, status = disk_at(tmp_path), path.stat()
    fact = only(disk, "model.pt")
    assert fact == FileFact(
        "model.pt", "file", status.st_dev, status.st_ino, 5, 1_700_000_000_123_456_789
    )
    assert (fact.mode, fact.ctime_ns) == (0o600, status.st_ctime_ns)
    assert only(disk, "link").target == "model.pt"
    assert (only(disk, "dir").size, only(disk, "dir").mtime_ns) == (0, 0)


def test_symlinked_directories_are_not_entered(tmp_path: Path) -> None:
    """A link to a directory is a link: what lies behind it is not yielded, loops do not matter."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    assert paths(root) == {"link": "symlink", "loop": "symlink"}
    assert paths(root, "link") == {"link": "symlink"}


def test_root_may_be_a_symlink_itself(tmp_path: Path) -> None:
    """The user's own link to the watch root is followed once."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/model.pt").write_bytes(b"x")
    (tmp_path / "root").symlink_to("real")
    assert paths(tmp_path / "root") == {"model.pt": "file"}


def test_names_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    """A name of any bytes is carried as surrogate escapes and leads back to its file."""
    name = os.fsdecode(b"caf\xe9 \xff.pt")
    (tmp_path / name).write_bytes(b"123")
    disk = disk_at(tmp_path)
    assert only(disk, name).size == 3
    assert list(paths(tmp_path)) == [name]
    assert disk.read_small(name, 10) == b"123"


def test_fifos_and_sockets_are_left_out(tmp_path: Path) -> None:
    """What is neither file, link nor directory does not exist for us, and is not opened."""
    os.mkfifo(tmp_path / "fifo")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert paths(tmp_path) == {}
        assert paths(tmp_path, "fifo") == {}
        assert disk_at(tmp_path).look("fifo") is None
        assert disk_at(tmp_path).read_small("fifo", 10) is None


def test_our_own_directory_is_left_out(tmp_path: Path) -> None:
    """Pins and records of ours are no content, wherever another daemon keeps them."""
    for directory in (".ckptsyncd/pins/1", "run/.ckptsyncd/pins"):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "0").write_bytes(b"x")
    assert paths(tmp_path) == {"run": "directory"}


def test_missing_paths_yield_nothing(tmp_path: Path) -> None:
    """A path that is not there, or lies below a file, is no error."""
    (tmp_path / "file").write_bytes(b"x")
    assert paths(tmp_path, "none") == {}
    assert paths(tmp_path, "file/below") == {}
    assert paths(tmp_path / "no root") == {}


def test_a_tree_removed_while_it_is_walked_is_left_out(tmp_path: Path) -> None:
    """What vanishes between two steps of a walk is left out, and what follows is yielded."""
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x")
    walk = disk_at(tmp_path).walk("", recursive=True)
    first = next(walk)
    for name in set("abc") - {first.path}:
        shutil.rmtree(tmp_path / name)
    rest = {fact.path for fact in walk}
    assert f"{first.path}/file" in rest
    assert len([path for path in rest if path.endswith("/file")]) == 1


def test_paths_that_leave_the_root_are_refused(tmp_path: Path) -> None:
    """No path with ``..`` or from the top is looked at."""
    for path in ("../x", "a/../../x", "/etc", "a\0b"):
        with pytest.raises(OSError, match="leaves the watch root"):
            paths(tmp_path, path)


@needs_root
def test_an_unreadable_directory_hides_no_other() -> None:
    """Everything that can be read is yielded before the error of what cannot is raised."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for number in range(5):
            (root / str(number)).mkdir()
            (root / str(number) / "file").write_bytes(b"x")
        (root / "2").chmod(0o700)
        seen: list[FileFact] = []
        with as_nobody(), pytest.raises(PermissionError):
            seen.extend(disk_at(root).walk("", recursive=True))
        assert len(seen) == 9
