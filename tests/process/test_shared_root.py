"""One file system that several daemons see: one uploads, the others idle and say so."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, content

OPTIONS = ("--shared-root", "--lease-seconds", "3s")


def reason_of(daemon: Program) -> str:
    """Return what the daemon says of itself."""
    return str((daemon.status() or {"daemon": {"reason": ""}})["daemon"]["reason"])


def test_one_uploads_and_the_next_takes_over(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """A second daemon on the same root idles, says so, and goes on when the first is gone."""
    root.mkdir()
    first = program(root, durable, *OPTIONS).start()
    by_rename(root / "a.pt", MIB, 1)
    first.until_safe("a.pt")
    second = program(root, durable, *OPTIONS).start()
    until(lambda: "uploads what lies here" in reason_of(second), lambda: str(second.status()))
    by_rename(root / "b.pt", MIB, 2)
    first.until_safe("b.pt")
    assert second.states() == {}
    first.signal(signal.SIGSTOP)
    by_rename(root / "c.pt", MIB, 3)
    for name in ("a.pt", "b.pt", "c.pt"):
        second.until_safe(name)
    first.signal(signal.SIGCONT)
    until(lambda: "uploads what lies here" in reason_of(first), lambda: str(first.status()))
    by_rename(root / "d.pt", MIB, 4)
    second.until_safe("d.pt")
    assert first.stop() == 0
    assert second.stop() == 0
    back = command("restore", durable, str(tmp_path / "back"), "--checkpoint", "d.pt")
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back")["d.pt"] == content(root)["d.pt"]
    assert command("verify", durable, "--level", "full").returncode == 0
