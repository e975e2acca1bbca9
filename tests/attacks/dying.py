"""Runs one pass again and again, killed at another point each time, and then once more to its end.

A point is the moment before the n-th order of a kind is given, after the n-th message of a kind
was posted, or before or after the n-th write of the ledger. Run as a program: ``dying.py BASE``
prints one line of JSON for each point.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ckptsyncd.app import Program, sync
from ckptsyncd.cli.run import make_places
from ckptsyncd.core.messages import Message
from ckptsyncd.core.orders import LedgerOrder
from ckptsyncd.settings.load import load
from tests.process.saving import by_rename, trainer_checkpoint

#: Of each kind of point so many are tried, the first ones: later ones are alike; but each record
#: that is written is another one.
MOST_OF_A_KIND, MOST_RECORDS = 1, 12


@dataclass
class Points:
    """Counts what happens, and ends the process at one point (``None``: writes all of them)."""

    chosen: str | None
    file: Path
    seen: Counter[str] = field(default_factory=Counter)

    def pass_by(self, kind: str) -> None:
        """Count a point; end here, if it is the one."""
        self.seen[kind] += 1
        point = f"{kind} {self.seen[kind]}"
        if self.chosen is None:
            with self.file.open("a") as file:
                file.write(f"{point}\n")
        elif point == self.chosen:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Given:
    """Whoever gets orders, with a point before each."""

    inner: Any
    points: Points

    def submit(self, order: object) -> None:
        """Pass an order on."""
        self.points.pass_by(f"before {type(order).__name__}")
        self.inner.submit(order)

    def set_pace(self, bytes_per_second: int | None) -> None:
        """Pass it on."""
        self.inner.set_pace(bytes_per_second)


@dataclass
class Inbox:
    """A queue with a point after each message that is posted and before it is heard."""

    points: Points
    queue: SimpleQueue[Message] = field(default_factory=SimpleQueue)

    def put(self, message: Message) -> None:
        """Put a message."""
        self.points.pass_by(f"posted {type(message).__name__}")
        self.queue.put(message)

    def get(self, timeout: float | None = None) -> Message:
        """Get one."""
        return self.queue.get(timeout=timeout)

    def get_nowait(self) -> Message:
        """Get one that is there."""
        return self.queue.get_nowait()


@dataclass
class Written:
    """A ledger with a point before and after each write."""

    inner: Any
    points: Points

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Write."""
        self.points.pass_by("before a write")
        self.inner.apply(orders)
        self.points.pass_by("after a write")


def one_pass(base: Path, points: Points) -> int:
    """Do what ``ckptsyncd sync`` does, with points."""
    program = Program(settings(base), one_pass=True, inbox=Inbox(points))  # type: ignore[arg-type]
    loop = program.loop
    loop.hands, loop.scanner = Given(loop.hands, points), Given(loop.scanner, points)
    loop.scribe.ledger = Written(loop.scribe.ledger, points)
    program.stop(float("inf"))
    try:
        return program.turn()
    finally:
        program.close()


def settings(base: Path) -> Any:
    """Return the settings of a run below a directory."""
    said = {
        "dir": str(base / "root"),
        "url": f"file://{base}/durable",
        "state_dir": str(base / "state"),
        "socket": str(base / "socket"),
        "piece_bytes": "256KiB",
        "hands": "2",
        "quiet_seconds": "200ms",
        "linger_seconds": "0s",
        "log_level": "error",
        "backlog": "keep-all",
    }
    found = load(said, {}).settings
    make_places(found)
    return found


def saved(base: Path) -> None:
    """Lay out what a trainer left: a large file, a directory, a pointer, a note."""
    root = base / "root"
    root.mkdir(parents=True)
    by_rename(root / "big.pt", 700 * 1024, 1)
    trainer_checkpoint(root, 10, weights=2000)
    (root / "last.pt").symlink_to("big.pt")
    (root / "train.log").write_text("loss 1.0\n")


def in_a_child(act: Callable[[], int]) -> int:
    """Do something in a process of its own; return its exit code, or minus the signal."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def chosen(lines: Sequence[str]) -> Iterator[str]:
    """Yield the points that are tried."""
    for line in dict.fromkeys(lines):
        kind, _, number = line.rpartition(" ")
        is_record = kind in ("before PutSmall", "posted RecordPut")
        if int(number) <= (MOST_RECORDS if is_record else MOST_OF_A_KIND):
            yield line


def tried(base: Path, point: str) -> dict[str, object]:
    """Kill a pass at a point, let another one end, and say how both ended."""
    shutil.rmtree(base, ignore_errors=True)
    saved(base)
    killed = in_a_child(lambda: one_pass(base, Points(point, base / "points")))
    last = in_a_child(lambda: sync(settings(base)))
    if last == 0 and left_begun(base):
        # All is safe: what was begun in vain is in the ledger, and the next pass drops it.
        last = in_a_child(lambda: sync(settings(base)))
    return {"point": point, "killed": killed, "last": last, "base": str(base)}


def left_begun(base: Path) -> list[str]:
    """Return the uploads that were begun in the store and neither finished nor dropped."""
    workroom = base / "durable" / ".ckptsyncd" / "tmp"
    # What was stored in one go is swept an hour later (tests/stores/test_volume.py).
    names = [path.name for path in workroom.iterdir() if path.is_dir()]
    return [name for name in names if not name.endswith(".whole")]


def main() -> None:
    """Find out which points there are, and try them."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads; there are none
    base = Path(sys.argv[1])
    saved(base / "dry")
    points = base / "points"
    in_a_child(lambda: one_pass(base / "dry", Points(None, points)))
    for number, point in enumerate(chosen(points.read_text().splitlines())):
        sys.stdout.write(json.dumps(tried(base / str(number), point)) + "\n")


if __name__ == "__main__":
    main()
