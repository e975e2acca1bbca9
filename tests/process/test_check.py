"""The preflight beside a running daemon."""

from __future__ import annotations

from pathlib import Path

from tests.check.asked import check, save
from tests.process.conftest import Start


def test_a_running_daemon_is_looked_after(root: Path, durable: str, program: Start) -> None:
    """Beside a daemon the same root can be checked; its line names the process."""
    save(root)
    daemon = program(root, durable).start()
    assert daemon.process is not None
    found = check(root, durable, "--state-dir", daemon.base / "state")
    assert found.code == 0
    assert f"a daemon runs: pid {daemon.process.pid}" in found.text("state")
    daemon.until_safe("checkpoint-10")


def test_the_daemons_settings_are_found(root: Path, durable: str, program: Start) -> None:
    """Without DIR and URL the running daemon that is named is looked after."""
    save(root)
    daemon = program(root, durable).start()
    found = check("--socket", daemon.socket_path)
    assert found.code == 0
    assert str(root) in found.text("watch root")
