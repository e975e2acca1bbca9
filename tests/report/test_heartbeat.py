"""The dead-man switch: called only while everything that is whole is safe, and never waited for."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from queue import SimpleQueue

import pytest

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.grumble import Grumble
from ckptsyncd.report.heartbeat import Heartbeat
from tests.report.examples import BUSY, CALM, NOW, view
from tests.report.listener import Listener, listening

PATIENCE = 20.0


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Run somebody who listens."""
    with listening() as one:
        yield one


def at(seconds: float) -> Instant:
    """Return a moment so many seconds after the first."""
    return Instant(1000.0 + seconds, NOW + seconds)


def calls(listener: Listener) -> int:
    """Return how often the address was called since this was asked last."""
    count = 0
    while not listener.calls.empty():
        assert listener.calls.get() == "GET /hook"
        count += 1
    return count


def test_it_beats_while_everything_is_safe(listener: Listener) -> None:
    """The address is called once in the interval, however often the loop turns."""
    heard: SimpleQueue[str] = SimpleQueue()
    heartbeat = Heartbeat(listener.url, 60.0, heard.put)
    for seconds in (0.0, 1.0, 59.0, 60.0, 61.0, 125.0):
        heartbeat.turn([], at(seconds), CALM)
        assert heartbeat.close(PATIENCE)
    assert calls(listener) == 3
    assert [heard.get(timeout=PATIENCE) for _ in range(3)] == ["", "", ""]


@pytest.mark.parametrize(
    "shown",
    [
        BUSY,
        replace(CALM, checkpoints=(view(4300, "parked"),)),
        replace(CALM, unsynced_bytes=1),
        replace(CALM, store_failing="no route"),
        replace(CALM, state="starting"),
        replace(CALM, state="fenced"),
    ],
    ids=["uploading", "parked", "unsynced", "failing", "starting", "fenced"],
)
def test_it_is_silent_while_anything_is_not(listener: Listener, shown: Snapshot) -> None:
    """Work at risk, a store that fails, a start and a fence each keep the call back, at once."""
    heartbeat = Heartbeat(listener.url, 60.0, lambda _: None)
    for seconds in (0.0, 100.0, 200.0):
        heartbeat.turn([], at(seconds), shown)
    assert heartbeat.close(PATIENCE)
    assert calls(listener) == 0
    heartbeat.turn([], at(201.0), CALM)
    assert heartbeat.close(PATIENCE)
    assert calls(listener) == 1


def test_nobody_waits_for_an_address_that_is_silent() -> None:
    """Turns return at once, and no more than one call waits, where the address does not answer."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        heartbeat = Heartbeat(f"http://127.0.0.1:{port}/", 1.0, lambda _: None)
        for seconds in range(100):
            heartbeat.turn([], at(seconds), CALM)
        assert not heartbeat.close(0.05)


def test_failures_are_told_at_their_beginning_and_end(listener: Listener) -> None:
    """Ten calls that fail are one line, and one more when it works again, with the count."""
    written: list[tuple[str, str, object]] = []
    grumble = Grumble("heartbeat", lambda level, event, fields: written.append(
        (level, event, fields)
    ))  # fmt: skip
    heartbeat = Heartbeat(listener.url, 1.0, grumble.heard)
    listener.status = 500
    for turn in range(10):
        heartbeat.turn([], at(turn), CALM)
        assert heartbeat.close(PATIENCE)
    listener.status = 200
    for turn in range(10, 12):
        heartbeat.turn([], at(turn), CALM)
        assert heartbeat.close(PATIENCE)
    assert written == [
        ("warning", "heartbeat.failed", {"text": "HTTP 500"}),
        ("info", "heartbeat.recovered", {"failures": 10}),
    ]
