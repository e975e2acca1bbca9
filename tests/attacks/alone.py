"""Runs the program against S3 in a network that has one kind of loopback: ``HOST FOLDER``.

Started in a network namespace of its own; ends with 0 where all went well.
"""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

from tests.process.program import Program, command
from tests.process.saving import MIB, by_rename
from tests.servers import ENVIRONMENT, S3Server, answers, running
from tests.servers import command as found

#: Ports are our own here.
STORE, METRICS = 8001, 8002


def main(host: str, folder: Path) -> None:
    """Save, scrape, stop, verify."""
    shown = f"[{host}]" if ":" in host else host
    server = S3Server("moto", f"http://{shown}:{STORE}", "bucket")
    log = folder / "moto.log"
    with running([found("moto_server") or "", "-H", host, "-p", str(STORE)], log) as process:
        answers(server, process, log)
        told(server, f"http://{shown}:{METRICS}/synced", host, folder)


def told(server: S3Server, probe: str, host: str, folder: Path) -> None:
    """Run a daemon, and ask it over the network whether all is safe."""
    store = ("--s3-endpoint", server.endpoint, "--s3-path-style")
    more = ("--metrics-port", str(METRICS), "--metrics-host", host)
    daemon = Program(
        folder / "watch", "s3://bucket/run", folder / "d", (*store, *more), ENVIRONMENT
    )
    daemon.start()
    by_rename(daemon.root / "a.pt", 20 * MIB, 1)
    daemon.until_safe("a.pt")
    with urllib.request.urlopen(probe, timeout=10) as answer:  # noqa: S310 - our own
        assert answer.status == 200
    assert daemon.stop() == 0
    verified = command("verify", daemon.url, "--level", "full", *store, env=ENVIRONMENT)
    assert verified.returncode == 0, verified.stderr


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
