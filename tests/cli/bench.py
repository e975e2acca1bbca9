"""A daemon as far as commands see it, and commands run in this process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from ckptsyncd.cli import main
from ckptsyncd.core.messages import Message
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.edge.holder import Holder
from ckptsyncd.edge.ledger import Ledger, scope_of
from ckptsyncd.edge.lock import Locks, lock_root
from ckptsyncd.report.api import Api
from ckptsyncd.report.last_snapshot import LastSnapshot
from ckptsyncd.report.status_json import DaemonView
from tests.report.examples import BUSY, CALM

PATIENCE = 10.0
URL = "s3://bucket/run"
Captured = pytest.CaptureFixture[str]


@dataclass
class Daemon:
    """A daemon as far as commands see it: socket, lock and ledger."""

    home: Path
    name: str = "one"
    shown: Snapshot = CALM
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        """Lock, listen, and leave a snapshot in the ledger."""
        self.root = self.home / f"root-{self.name}"
        self.root.mkdir()
        self.state_dir = self.home / "state" / self.name
        self.path = self.home / "run" / f"{self.name}.sock"
        clock = BootClock()
        self.locks: Locks = lock_root(
            Holder(
                pid=os.getpid(),
                host="gpu-7",
                socket=str(self.path),
                state_dir=str(self.state_dir),
                watch_root=str(self.root),
                url=URL,
            )
        )
        self.ledger = Ledger(self.state_dir / "ledger.sqlite", scope_of(str(self.root), URL))
        process = DaemonView(os.getpid(), clock.now().wall - 60, str(self.root), URL, "gpu-7")
        self.last = LastSnapshot(self.ledger.apply, process)
        self.last.keep(clock.now(), replace(BUSY, taken_at=clock.now().wall - 185))
        self.api = Api(
            self.path,
            snapshot=lambda: self.shown,
            post=self.inbox.put,
            now=clock.now,
            daemon=process,
        )
        self.api.start()

    def die(self) -> None:
        """End as a killed daemon does, leaving lock file and ledger behind."""
        self.api.close()
        self.locks.release()
        self.ledger.close()


def ended(*arguments: str) -> int:
    """Return the exit code of a command run in this process."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    code = caught.value.code
    assert isinstance(code, int)
    return code
