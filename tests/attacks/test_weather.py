"""The daemon in bad weather: all is safe in the end, nothing is torn, nothing is left over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.attacks.storm import ANSWERS, Storm, storming
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, content
from tests.process.test_kill import begun_uploads
from tests.proxy import Proxy
from tests.servers import S3Server

#: By hand for longer: CKPTSYNCD_TEST_WEATHER_SECONDS=600.
SECONDS = float(os.environ.get("CKPTSYNCD_TEST_WEATHER_SECONDS", "10"))
#: After bad weather the next try may be a minute away, and so may the one after it.
PATIENCE_SECONDS = 180.0


def options(proxy: Proxy) -> tuple[str, ...]:
    """Return how the daemon reaches the store."""
    return (
        *("--s3-endpoint", proxy.endpoint, "--s3-path-style", "--piece-bytes", "5MiB"),
        *("--linger-seconds", "0s", "--stop-timeout", "60s"),
    )


def resident_mib(daemon: Program) -> float:
    """Return how much memory the daemon's process has."""
    assert daemon.process is not None
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


@contextmanager
def trainer(
    root: Path, keep: int, pause_seconds: float = 0.5, first: int = 0
) -> Iterator[list[str]]:
    """Save again and again, rotating as trainers do; yields the names in their order."""
    names: list[str] = []
    stop = threading.Event()

    def train() -> None:
        while not stop.is_set():
            number = first + len(names)
            name = f"model-{number:05d}.pt"
            by_rename(root / name, 6 * MIB, number)
            names.append(name)
            for old in names[:-keep]:
                (root / old).unlink(missing_ok=True)
            stop.wait(pause_seconds)

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    try:
        yield names
    finally:
        stop.set()
        thread.join()


@pytest.mark.server
@pytest.mark.slow
def test_mixed_trouble_loses_nothing(
    tmp_path: Path, root: Path, program: Start, proxy: Proxy, s3_server: S3Server, prefix: str
) -> None:
    """A third of all requests goes wrong in nine ways: the last save is safe, each commit whole."""
    root.mkdir()
    daemon = program(root, prefix, *options(proxy)).start()
    with storming(proxy, Storm(Random(9), 0.3)) as storm, trainer(root, keep=3) as names:
        until(lambda: len(names) >= 4, "some are saved")
        before = resident_mib(daemon)
        ends = time.monotonic() + SECONDS
        until(lambda: time.monotonic() > ends, "the storm is over", SECONDS + 60)
    until(
        lambda: daemon.states().get((names[-1], 1)) == "safe",
        lambda: f"{names[-1]} is safe: {daemon.states()}\n{daemon.log[-2000:]}",
        PATIENCE_SECONDS,
    )
    until(lambda: (daemon.status() or {}).get("unsynced_bytes") == 0, "all", PATIENCE_SECONDS)
    assert resident_mib(daemon) < before + 64, storm.did
    assert daemon.stop(120) == 0
    assert len(storm.did) >= 4, storm.did
    assert begun_uploads(s3_server, prefix) == []
    to_read = options(proxy)[:3]
    assert command("verify", prefix, "--level", "full", *to_read).returncode == 0
    back = command("restore", prefix, str(tmp_path / "back"), *to_read)
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back")[names[-1]] == content(root)[names[-1]]


@pytest.mark.server
def test_revoked_credentials_are_waited_for(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """In the midst of an upload the store refuses us: that is told, and later it goes on."""
    root.mkdir()
    daemon = program(root, prefix, *options(proxy), "--hands", "1").start()
    third = proxy.rule("answer", "*", r"partNumber=3", answer=ANSWERS["403"])
    by_rename(root / "big.pt", 22 * MIB, 1)
    until(third.reached.is_set, "it is refused")
    revoked = proxy.rule("answer", "*", "", times=10**6, answer=ANSWERS["403"])
    until(lambda: "ExpiredToken" in daemon.log, "the refusal is told")
    until(lambda: (daemon.status() or {}).get("exit_code") != 0, "status says so")
    sent = proxy.data_bytes(r"partNumber=[12]&")
    revoked.times = 0
    until(
        lambda: daemon.states().get(("big.pt", 1)) == "safe",
        lambda: f"safe: {daemon.states()}\n{daemon.log[-2000:]}",
        PATIENCE_SECONDS,
    )
    assert proxy.data_bytes(r"partNumber=[12]&") == sent, "what was stored is not sent again"
    assert daemon.stop() == 0


@pytest.mark.server
def test_an_idle_daemon_asks_the_store_for_nothing(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """When everything is safe no request is made, however often the disk is looked at."""
    root.mkdir()
    daemon = program(root, prefix, *options(proxy), "--sweep-seconds", "1s").start()
    by_rename(root / "a.pt", MIB, 1)
    daemon.until_safe("a.pt")
    until(lambda: proxy.sent("PUT", r"/latest/"), "the hint is written")
    settled = len(proxy.requests)
    sweeps = time.monotonic() + 4
    until(lambda: time.monotonic() > sweeps, "some sweeps went by")
    assert proxy.requests[settled:] == []
    assert not [one for one in proxy.requests[settled:] if "list-type" in one.target]
    assert daemon.stop() == 0
