"""The webhook: what is sent and when, and that nobody waits for an address that does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from queue import SimpleQueue

import pytest

from ckptsyncd.core.draining.drain_report import DrainReport
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.moves import DaemonMoved, Said
from ckptsyncd.report.webhook import MOST_WAITING, Webhook
from tests.report.examples import BUSY, CALM, DAEMON, NOW
from tests.report.listener import Listener, listening

PATIENCE = 20.0
STALL = 300.0
BEGAN = DaemonMoved("running", "draining", "spot")
REPORTED = Said("drain.reported", ())
AT = Instant(1000.0, NOW)
NOTICED = replace(BUSY, state="draining", notice=Notice("aws", "n", "binding", 1100.0, "spot"))
DRAINED = replace(
    NOTICED, last_drain=DrainReport("aws", "n", "spot", "drained", NOW, NOW + 9, NOW + 100)
)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Run somebody who listens."""
    with listening() as one:
        yield one


def test_a_notice_and_its_end_are_sent(listener: Listener) -> None:
    """Two documents: the notice with the plan's place, and the report; nothing in between."""
    failures: list[str] = []
    hook = Webhook(listener.url, DAEMON, failures.append, STALL)
    hook.turn([BEGAN], AT, NOTICED)
    hook.turn([DaemonMoved("draining", "drained", "spot"), Said("trainer.told", ())], AT, NOTICED)
    hook.turn([DaemonMoved("drained", "draining", "spot")], AT, NOTICED)
    hook.turn([REPORTED], AT, DRAINED)
    assert hook.close(PATIENCE)
    first, second = (listener.taken.get(timeout=PATIENCE) for _ in range(2))
    assert (first["event"], first["notice"]["source"]) == ("notice", "aws")
    assert first["daemon"]["host"] == "gpu-7"
    assert (second["event"], second["last_drain"]["outcome"]) == ("drain", "drained")
    assert listener.taken.empty()
    assert "checkpoints" not in first
    assert failures == []


def test_a_stop_is_no_notice(listener: Listener) -> None:
    """Where no source gave a notice, nothing is sent."""
    hook = Webhook(listener.url, DAEMON, lambda _: None, STALL)
    hook.turn([BEGAN], AT, replace(NOTICED, notice=None))
    assert hook.close(PATIENCE)
    assert listener.taken.empty()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_no_yes_is_a_failure(listener: Listener, status: int) -> None:
    """Redirects are not followed; the reason is told, and not the address, which may be secret."""
    failures: SimpleQueue[str] = SimpleQueue()
    listener.status = status
    Webhook(listener.url, DAEMON, failures.put, STALL).turn([BEGAN], AT, NOTICED)
    assert failures.get(timeout=PATIENCE) == f"the notice was not delivered: HTTP {status}"


def test_nobody_waits_for_an_address_that_is_silent() -> None:
    """Turns return at once however many documents wait, and so does the end of the program."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        hook = Webhook(
            f"http://127.0.0.1:{silent.getsockname()[1]}/", DAEMON, lambda _: None, STALL
        )
        for _ in range(10 * MOST_WAITING):
            hook.turn([REPORTED], AT, DRAINED)
        assert not hook.close(0.05)


def test_an_address_that_refuses_is_a_failure() -> None:
    """What is wrong is told by its kind."""
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        port = gone.getsockname()[1]
    failures: SimpleQueue[str] = SimpleQueue()
    Webhook(f"http://127.0.0.1:{port}/", DAEMON, failures.put, STALL).turn([BEGAN], AT, NOTICED)
    assert failures.get(timeout=PATIENCE) == "the notice was not delivered: NewConnectionError"


def test_a_stall_and_its_end_are_sent_once(listener: Listener) -> None:
    """Finished work that waits without a piece moving is told once, and once that it goes on."""
    hook = Webhook(listener.url, DAEMON, lambda _: None, STALL)
    for seconds in (0.0, STALL - 1, STALL, 2 * STALL):
        hook.turn([], Instant(1000.0 + seconds, NOW + seconds), BUSY)
    hook.turn([], Instant(2000.0, NOW), replace(BUSY, pieces_stored=BUSY.pieces_stored + 1))
    assert hook.close(PATIENCE)
    first, second = (listener.taken.get(timeout=PATIENCE) for _ in range(2))
    assert (first["event"], first["unsynced_bytes"]) == ("stall", BUSY.unsynced_bytes)
    assert second["event"] == "stall_ended"
    assert listener.taken.empty()


def test_pieces_and_calm_are_no_stall(listener: Listener) -> None:
    """However long it takes: while pieces arrive, or nothing waits, there is no stall."""
    hook = Webhook(listener.url, DAEMON, lambda _: None, STALL)
    for turn in range(5):
        at = Instant(1000.0 + turn * 0.9 * STALL, NOW)
        hook.turn([], at, replace(BUSY, pieces_stored=turn))
    for turn in range(5):
        hook.turn([], Instant(5000.0 + turn * STALL, NOW), CALM)
    assert hook.close(PATIENCE)
    assert listener.taken.empty()
