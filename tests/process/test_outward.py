"""The real program as it tells others by itself: the dead-man switch, and what it never says."""

from __future__ import annotations

from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import until
from tests.process.saving import trainer_checkpoint
from tests.report.listener import listening


def test_the_heartbeat_stops_while_work_is_at_risk(
    root: Path, tmp_path: Path, program: Start
) -> None:
    """It beats while idle, is silent while a finished checkpoint cannot be stored, and resumes."""
    durable = tmp_path / "durable"
    with listening() as listener:
        daemon = program(
            root, f"file://{durable}", "--heartbeat-url", listener.url, "--heartbeat-seconds", "1s"
        ).start()
        assert listener.calls.get(timeout=60.0) == "GET /hook"
        until((durable / ".ckptsyncd").exists, "the store was tried out")
        durable.rename(tmp_path / "away")
        durable.write_bytes(b"no directory any more")
        trainer_checkpoint(root, 5)
        until(lambda: (daemon.status() or {"exit_code": 0})["exit_code"] != 0, "work is at risk")
        while not listener.calls.empty():
            listener.calls.get()
        status = daemon.status()
        until(lambda: (daemon.status() or {})["retries"] > (status or {})["retries"], "it tries")
        assert listener.calls.empty()
        durable.unlink()
        (tmp_path / "away").rename(durable)
        daemon.until_safe("checkpoint-5")
        assert listener.calls.get(timeout=60.0) == "GET /hook"
        assert daemon.stop() == 0
        assert listener.url not in daemon.log


def test_an_address_that_is_wrong_is_told_once(root: Path, durable: str, program: Start) -> None:
    """A heartbeat that is refused is one line without the address; the daemon goes on."""
    with listening() as listener:
        listener.status = 500
        daemon = program(
            root, durable, "--heartbeat-url", listener.url, "--heartbeat-seconds", "1s"
        ).start()
        for _ in range(3):
            listener.calls.get(timeout=60.0)
        trainer_checkpoint(root, 5)
        daemon.until_safe("checkpoint-5")
        assert daemon.stop() == 0
    assert daemon.log.count("heartbeat.failed") == 1
    assert listener.url not in daemon.log
