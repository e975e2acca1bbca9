"""What the settings of uploading do to the real program's requests."""

from __future__ import annotations

from pathlib import Path

from tests.process.conftest import Start
from tests.process.saving import MIB, by_rename


def test_no_request_is_larger_than_a_piece(root: Path, durable: str, program: Start) -> None:
    """A file over the wanted piece size goes out in pieces, however small the file is."""
    daemon = program(root, durable, "--piece-bytes", "256KiB").start()
    root.mkdir(exist_ok=True)
    by_rename(root / "ckpt.pt", MIB, 1)
    daemon.until_safe("ckpt.pt")
    status = daemon.status()
    assert status is not None
    assert status["pieces_stored"] >= 4
