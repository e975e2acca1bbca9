"""Directories of a checkpoint come back, the empty ones too, and so do second names of a file."""

from __future__ import annotations

import os
from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import content, trainer_checkpoint


def _folders(root: Path) -> dict[str, int]:
    """Return the mode of every directory below a checkpoint, its own too."""
    return {
        str(path.relative_to(root)): path.stat().st_mode & 0o7777
        for path in [root / "checkpoint-10", *sorted((root / "checkpoint-10").rglob("*"))]
        if path.is_dir()
    }


def _save(root: Path) -> None:
    """Save a checkpoint with directories of three modes, two of them empty, and odd files."""
    folder = trainer_checkpoint(root, 10)
    (folder / "empty" / "deeper").mkdir(parents=True)
    (folder / "global").mkdir(mode=0o700)
    os.link(folder / "model.safetensors", folder / "global" / "same.safetensors")
    with (folder / "global" / "sparse.bin").open("wb") as sparse:
        sparse.seek(8 << 20)
        sparse.write(b"end")
    (folder / "empty" / "deeper").chmod(0o2770)
    folder.chmod(0o750)
    others = [path.lstat().st_ctime_ns for path in folder.rglob("*")]

    def comes_last() -> bool:
        """Write the marker again; clocks of file systems have ticks of some milliseconds."""
        marker = folder / "trainer_state.json"
        marker.write_bytes(b'{"global_step": 10}')
        return marker.stat().st_mtime_ns > max(others)

    until(comes_last, "the marker is the newest")


def test_directories_come_back(root: Path, durable: str, program: Start, tmp_path: Path) -> None:
    """Empty directories, modes, duplicates and holes are restored, and nothing is sent again."""
    _save(root)
    program(root, durable).start().until_safe("checkpoint-10")
    there = tmp_path / "there"
    assert command("restore", durable, str(there)).returncode == 0
    assert _folders(there) == _folders(root)
    assert content(there) == content(root)
    names = [
        there / "checkpoint-10" / name for name in ("model.safetensors", "global/same.safetensors")
    ]
    assert len({name.stat().st_ino for name in names}) == 1
    assert names[0].stat().st_nlink == 2
    sparse = there / "checkpoint-10" / "global" / "sparse.bin"
    assert sparse.stat().st_blocks * 512 < sparse.stat().st_size // 2
    again = program(there, durable).start()
    again.until_safe("checkpoint-10")
    assert (again.status() or {})["bytes_sent"] == 0
