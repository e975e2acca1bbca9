"""The real program as it is watched: scraped, probed, reloaded, and told to the service manager."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import trainer_checkpoint
from tests.servers import free_ports


def got(port: int, path: str) -> tuple[int, str]:
    """Return status and body of a page, 0 where nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def values(port: int) -> dict[str, float]:
    """Return the metrics without labels, and those of the only series."""
    families = text_string_to_metric_families(got(port, "/metrics")[1])
    samples = [sample for family in families for sample in family.samples]
    return {s.name: s.value for s in samples if set(s.labels) <= {"series"}}


def lines(daemon: Program, event: str) -> list[dict[str, Any]]:
    """Return the log's lines about an event."""
    told = [json.loads(text) for text in daemon.log.splitlines() if text.startswith("{")]
    return [line for line in told if line["event"] == event]


def test_a_scrape_tells_what_is_safe(root: Path, durable: str, program: Start) -> None:
    """After a save the recovery point, its bytes and its latency are there; probes say so too."""
    port = free_ports(1)[0]
    daemon = program(root, durable, "--metrics-port", str(port)).start()
    trainer_checkpoint(root, 7)
    daemon.until_safe("checkpoint-7")
    until(lambda: values(port).get("ckptsyncd_recovery_point_step") == 7, "step 7 is scraped")
    found = values(port)
    assert found["ckptsyncd_commit_latency_seconds_count"] == 1
    assert found["ckptsyncd_sent_bytes_total"] >= found["ckptsyncd_recovery_point_bytes"] > 0
    assert found["ckptsyncd_behind_seconds"] == 0
    assert [got(port, path)[0] for path in ("/healthz", "/readyz", "/synced")] == [200] * 3
    asked = command("status", "--probe", "synced", "--socket", str(daemon.socket_path))
    assert (asked.returncode, asked.stdout) == (0, got(port, "/synced")[1])
    assert daemon.stop() == 0
    assert got(port, "/healthz")[0] == 0
    asked = command("status", "--probe", "healthz", "--socket", str(daemon.socket_path))
    assert asked.returncode == 5


def test_a_taken_port_is_told_before_anything_starts(
    root: Path, durable: str, program: Start
) -> None:
    """A port that somebody else has is an error of usage with exit code 2, not a silent absence."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        daemon = program(root, durable, "--metrics-port", str(port)).start()
        assert daemon.wait() == 2
    assert "cannot serve metrics" in daemon.log


def test_hangup_reloads_what_can_be(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """SIGHUP takes new rules and refuses the rest by name; a file that is wrong changes nothing."""
    config = tmp_path / "c.toml"
    config.write_text('log_level = "info"\nquiet_seconds = "1h"\n')
    daemon = program(root, durable, "--config", str(config)).start()
    root.mkdir(exist_ok=True)
    (root / "odd.pt").write_bytes(pickle.dumps({"weights": [1.5] * 1000}))
    until(lambda: daemon.states().get(("odd.pt", 1)) == "writing", "it is seen")
    config.write_text('quiet_seconds = "200ms"\nhands = 7\n')
    daemon.signal(signal.SIGHUP)
    daemon.until_safe("odd.pt")
    (line,) = lines(daemon, "settings.reloaded")
    assert line["changed"] == "quiet_seconds"
    (line,) = lines(daemon, "settings.kept")
    assert line["setting"] == "hands"
    config.write_text("quiet_seconds = 0\n")
    daemon.signal(signal.SIGHUP)
    until(lambda: lines(daemon, "settings.refused"), "the file is refused")
    assert "quiet_seconds" in lines(daemon, "settings.refused")[0]["text"]
    assert daemon.stop() == 0


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Listen as a service manager does."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(address)
        server.settimeout(60.0)
        yield server, address


def test_the_service_manager_is_told_all_its_life(
    root: Path, durable: str, program: Start, manager: tuple[socket.socket, str]
) -> None:
    """Ready, status, reloading and ready again, more time while draining, and stopping."""
    server, address = manager
    env = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "4000000"}
    daemon = program(root, durable, "--linger-seconds", "2", env=env).start()
    heard: list[str] = []

    def until_heard(start: str) -> None:
        while not any(text.startswith(start) for text in heard):
            heard.append(server.recv(4096).decode())

    for start in ("READY=1", "WATCHDOG=1", "STATUS=running"):
        until_heard(start)
    heard.clear()
    daemon.signal(signal.SIGHUP)
    until_heard("RELOADING=1\nMONOTONIC_USEC=")
    until_heard("READY=1")
    trainer_checkpoint(root, 1)
    daemon.until_safe("checkpoint-1")
    daemon.signal()
    until_heard("EXTEND_TIMEOUT_USEC=")
    until_heard("STOPPING=1")
    assert daemon.wait() == 0


def test_a_restore_before_the_start_asks_for_time(
    root: Path, durable: str, program: Start, manager: tuple[socket.socket, str]
) -> None:
    """A manager that would end a slow start hears of the restore before it hears READY."""
    server, address = manager
    first = program(root, durable).start()
    trainer_checkpoint(root, 1)
    first.until_safe("checkpoint-1")
    first.kill()
    shutil.rmtree(root)
    program(root, durable, "--restore", env={"NOTIFY_SOCKET": address}).start()
    heard = [server.recv(4096).decode()]
    while heard[-1] != "READY=1":
        heard.append(server.recv(4096).decode())
    assert heard[0].startswith("EXTEND_TIMEOUT_USEC=")
    assert any(text.startswith("STATUS=restoring: 100 %") for text in heard)
    assert (root / "checkpoint-1").is_dir()


def test_secrets_of_the_environment_are_not_logged(
    root: Path, tmp_path: Path, program: Start
) -> None:
    """A secret that turns up in a name, as it might in an error, is hidden."""
    secret = "s3cr3t-" + os.urandom(6).hex()
    daemon = program(root, f"file://{tmp_path}/d", env={"AWS_SECRET_ACCESS_KEY": secret})
    daemon.start()
    trainer_checkpoint(root / secret, 1)
    daemon.until_safe(f"{secret}/checkpoint-1")
    assert "[hidden]/checkpoint-1" in daemon.log
    assert secret not in daemon.log
