"""A real directory, a disk on it, and other users and processes to disturb them."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.facts import FileFact, Listing, Shape
from ckptsyncd.core.messages import Message, Touched
from ckptsyncd.edge.disk import RealDisk

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes another user")


def unchecked(fd: int, path: str, size: int) -> tuple[Shape, bool, str]:
    """Say nothing about any format."""
    del fd, path, size
    return "unknown", False, ""


def disk_at(root: Path) -> RealDisk:
    """Return a disk that knows no formats."""
    return RealDisk(root, unchecked)


def listing(disk: RealDisk, path: str = "") -> Listing:
    """Return everything at and below a path, sorted by path."""
    facts = sorted(disk.walk(path, recursive=True), key=lambda fact: fact.path)
    return Listing(tuple(facts))


def only(disk: RealDisk, path: str) -> FileFact:
    """Return the fact of one path."""
    return next(iter(disk.walk(path, recursive=False)))


def descriptors() -> dict[str, str]:
    """Return what this process has open: the numbers of descriptors and what they lead to."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # the one that listed them
            found[number] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
    return found


def held_open(place: Path) -> list[str]:
    """Return what lies at and below a place and is open here; others may close theirs meanwhile."""
    return [path for path in descriptors().values() if path.startswith(str(place))]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Act as a user without any rights for a while."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def child(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a script in a process of its own; it starts when its first line is printed."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()


class Inbox:
    """Collects messages and waits for what is awaited."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.seen: list[Message] = []

    def put(self, message: Message) -> None:
        """Take a message from any thread."""
        self._queue.put(message)

    def until(self, met: Callable[[list[Message]], bool], seconds: float = 20.0) -> list[Message]:
        """Return all messages so far once the condition is met; fail after so many seconds."""
        deadline = time.monotonic() + seconds
        while not met(self.seen):
            self._take(deadline - time.monotonic())
        return self.seen

    def _take(self, seconds: float) -> None:
        try:
            self.seen.append(self._queue.get(timeout=max(0.0, seconds)))
        except queue.Empty:
            pytest.fail(f"not met in time by {self.seen[-20:]}")

    def drained(self) -> list[Message]:
        """Return all messages so far without waiting."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.seen.append(self._queue.get_nowait())
        return self.seen


class Mind:
    """Knows the paths that somebody knows who looks wherever a hint says, when it says so."""

    def __init__(self, disk: RealDisk) -> None:
        """Know nothing yet."""
        self._disk = disk
        self._heard = 0
        self.known: set[str] = set()

    def knows(self, wanted: set[str]) -> Callable[[list[Message]], bool]:
        """Return the condition that all these paths are known."""

        def met(seen: list[Message]) -> bool:
            for message in seen[self._heard :]:
                if isinstance(message, Touched):
                    facts = self._disk.walk(message.path, recursive=message.tree)
                    self.known.update(fact.path for fact in facts)
            self._heard = len(seen)
            return wanted <= self.known

        return met
