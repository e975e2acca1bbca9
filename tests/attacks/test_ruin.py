"""What the daemon stands on is damaged or removed: it finds everything out again, and says so."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import by_rename, content, trainer_checkpoint

HASTY = ("--linger-seconds", "0s", "--sweep-seconds", "1s")


def older(ledger: Path) -> None:
    """Make it one of a schema before the first."""
    with sqlite3.connect(ledger) as db:
        db.execute("DROP TABLE rows")
        db.execute("PRAGMA user_version = 0")


def newer(ledger: Path) -> None:
    """Make it one of a schema to come."""
    with sqlite3.connect(ledger) as db:
        db.execute("PRAGMA user_version = 99")


def truncated(ledger: Path) -> None:
    """Leave the first part of it."""
    ledger.write_bytes(ledger.read_bytes()[:5000])


def garbage(ledger: Path) -> None:
    """Write something else over it."""
    ledger.write_bytes(b"\xde\xad\xbe\xef" * 4096)


def gone(ledger: Path) -> None:
    """Remove it, and the whole state with it."""
    shutil.rmtree(ledger.parent)


RUINS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "truncated": (truncated, True),
    "garbage": (garbage, True),
    "newer": (newer, True),
    "older": (older, False),
    "gone": (gone, False),
}


@pytest.mark.parametrize("ruin", RUINS)
def test_a_ruined_ledger_is_made_good_from_store_and_disk(
    ruin: str, tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """What was safe is safe again without a byte of it sent, and what comes next is saved."""
    root.mkdir()
    trainer_checkpoint(root, 10, weights=3000)
    by_rename(root / "model.pt", 3000, 1)
    daemon = program(root, durable, *HASTY, "--backlog", "keep-all").start()
    daemon.until_safe("checkpoint-10")
    daemon.until_safe("model.pt")
    assert daemon.stop() == 0
    damage, is_told = RUINS[ruin]
    damage(daemon.base / "state" / "ledger.sqlite")
    daemon.start()
    assert ("ledger.damaged" in daemon.log) == is_told
    daemon.until_safe("checkpoint-10")
    daemon.until_safe("model.pt")
    assert (daemon.status() or {})["bytes_sent"] < 3000
    trainer_checkpoint(root, 20, weights=3000)
    daemon.until_safe("checkpoint-20")
    assert daemon.stop() == 0
    manifests = sorted(p.name for p in (tmp_path / "durable/.ckptsyncd/manifests").iterdir())
    assert manifests == ["checkpoint-10.1.json", "checkpoint-20.1.json", "model.pt.1.json"]


def test_what_is_removed_here_stays_there(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """A root that is deleted costs nothing that is safe: nothing in the store goes with it."""
    root.mkdir()
    trainer_checkpoint(root, 10, weights=3000)
    daemon = program(root, durable, *HASTY).start()
    daemon.until_safe("checkpoint-10")
    saved = content(root)
    shutil.rmtree(root)
    shutil.rmtree(tmp_path / ".ckptsyncd", ignore_errors=True)
    until(lambda: not daemon.states(), "the checkpoint is gone from status")
    trainer_checkpoint(root, 20, weights=3000)
    daemon.until_safe("checkpoint-20")
    assert daemon.stop() == 0
    shutil.rmtree(root)
    back = command("restore", durable, str(tmp_path / "back"), "--checkpoint", "checkpoint-10")
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back") == saved


def test_a_socket_that_is_removed_comes_back(root: Path, durable: str, program: Start) -> None:
    """Whoever tidies up where sockets lie takes the daemon's voice away for some seconds."""
    daemon = program(root, durable, *HASTY).start()
    daemon.socket_path.unlink()
    assert daemon.status() is None
    until(daemon.status, "it answers again")
    assert daemon.socket_path.stat().st_mode & 0o777 == 0o600
    assert daemon.stop() == 0
    assert not daemon.socket_path.exists()


def test_pins_and_ledger_that_are_removed_under_it(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """In the midst of its work it loses pins and state: what is on the disk becomes safe."""
    root.mkdir()
    daemon = program(root, durable, *HASTY, "--bandwidth", "1MiB/s", "--piece-bytes", "256KiB")
    daemon.start()
    by_rename(root / "big.pt", 3 * 1024 * 1024, 1)
    until(lambda: daemon.states().get(("big.pt", 1)) == "uploading", "it uploads")
    shutil.rmtree(tmp_path / ".ckptsyncd")
    for path in (daemon.base / "state").iterdir():
        path.unlink()
    until(lambda: "safe" in daemon.states().values(), lambda: f"safe: {daemon.states()}")
    by_rename(root / "next.pt", 3000, 2)
    daemon.until_safe("next.pt")
    assert "removed" in daemon.log
    assert daemon.stop() == 0
    assert (daemon.base / "state" / "ledger.sqlite").exists()
    assert command("verify", durable, "--level", "full").returncode == 0
