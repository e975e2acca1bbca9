"""One file examined closely."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from ckptsyncd.core.facts import FileLook, Shape
from ckptsyncd.edge.disk import RealDisk
from tests.edge.world import as_nobody, disk_at, needs_root, only


def by_content(fd: int, path: str, size: int) -> tuple[Shape, bool, str]:
    """Call a file whole whose content says so."""
    assert size == os.fstat(fd).st_size
    data = os.pread(fd, 100, 0)
    if data == b"whole":
        return "whole", True, ""
    return "broken", True, f"{path} says {data.decode()}"


def test_finished_file_is_looked_at_by_content(tmp_path: Path) -> None:
    """Fact, writer and the verdict of the format check come in one look."""
    (tmp_path / "a.pt").write_bytes(b"whole")
    (tmp_path / "b.pt").write_bytes(b"half")
    disk = RealDisk(tmp_path, by_content)
    assert disk.look("a.pt") == FileLook(only(disk, "a.pt"), "none", "", "whole", True)
    assert disk.look("b.pt") == FileLook(
        only(disk, "b.pt"), "none", "", "broken", True, "b.pt says half"
    )


def test_file_being_written_is_not_judged(tmp_path: Path) -> None:
    """A file with a writer names it, and its format is not looked at."""
    with (tmp_path / "a.pt").open("wb") as file:
        file.write(b"half")
        file.flush()
        look = RealDisk(tmp_path, by_content).look("a.pt")
    assert look is not None
    assert (look.writer, look.shape, look.fault) == ("open", "unknown", "")
    assert look.writer_name.startswith(f"pid {os.getpid()} (")
    assert look.fact.size == 4


def test_file_written_during_the_look_has_a_writer(tmp_path: Path) -> None:
    """A file that changes while its format is checked counts as open for writing."""
    path = tmp_path / "a.pt"
    path.write_bytes(b"whole")

    def rewritten(fd: int, name: str, size: int) -> tuple[Shape, bool, str]:
        verdict = by_content(fd, name, size)
        path.write_bytes(b"longer content")
        return verdict

    look = RealDisk(tmp_path, rewritten).look("a.pt")
    assert look is not None
    assert (look.writer, look.shape, look.fact.size) == ("open", "unknown", 14)


def test_gone_file_has_no_look(tmp_path: Path) -> None:
    """What is gone is ``None`` and no error."""
    assert disk_at(tmp_path).look("none.pt") is None
    assert disk_at(tmp_path).look("no/dir.pt") is None


def test_links_and_directories_are_not_opened(tmp_path: Path) -> None:
    """A symlink is told as a link, even where its target is a file; nobody writes into it."""
    (tmp_path / "a.pt").write_bytes(b"whole")
    (tmp_path / "last.ckpt").symlink_to("a.pt")
    (tmp_path / "dir").mkdir()
    disk = RealDisk(tmp_path, by_content)
    for path in ("last.ckpt", "dir"):
        assert disk.look(path) == FileLook(only(disk, path), "none")


def test_read_error_in_the_format_is_told(tmp_path: Path) -> None:
    """A disk that cannot read the file is a fault of the file, in words."""
    (tmp_path / "a.pt").write_bytes(b"whole")

    def failing(fd: int, path: str, size: int) -> tuple[Shape, bool, str]:
        raise OSError(5, "Input/output error", f"{path} ({size} bytes, open: {fd >= 0})")

    look = RealDisk(tmp_path, failing).look("a.pt")
    assert look is not None
    assert look.fault == "unreadable: Input/output error: a.pt (5 bytes, open: True)"


@needs_root
def test_unreadable_file_says_who_can_read_it() -> None:
    """The 0600 file of another user (safetensors 0.8) names mode, owner and the remedy."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name) / "model.safetensors"
        path.write_bytes(b"x")
        path.chmod(0o600)
        with as_nobody():
            look = disk_at(Path(name)).look("model.safetensors")
            with pytest.raises(PermissionError):
                disk_at(Path(name)).read_small("model.safetensors", 10)
    assert look is not None
    assert look.fault == "unreadable: mode 0600 owned by uid 0; run ckptsyncd as that user"
    assert look.fact.size == 1


def test_longest_hold_is_measured(tmp_path: Path) -> None:
    """The disk remembers how long a lease of ours was held at most."""
    (tmp_path / "a.pt").write_bytes(b"whole")
    disk = disk_at(tmp_path)
    assert disk.longest_hold_seconds == 0
    disk.look("a.pt")
    assert 0 < disk.longest_hold_seconds < 1


def test_small_files_are_read_up_to_a_bound(tmp_path: Path) -> None:
    """A pointer's text is read by path, never more than asked for, never through a link."""
    (tmp_path / "latest").write_bytes(b"global_step10")
    (tmp_path / "link").symlink_to("latest")
    disk = disk_at(tmp_path)
    assert disk.read_small("latest", 100) == b"global_step10"
    assert disk.read_small("latest", 6) == b"global"
    assert disk.read_small("none", 6) is None
    with pytest.raises(OSError, match="symbolic links"):
        disk.read_small("link", 6)
