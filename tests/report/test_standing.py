"""A loop that stands cannot say so: somebody else does, once a minute, and says when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.report.probes import HEALTHY_SECONDS
from ckptsyncd.report.standing import REPEAT_SECONDS, Standing
from tests.report.examples import CALM


@contextmanager
def standing(clock: FakeClock, said: list[tuple[str, str, str]]) -> Iterator[Standing]:
    """Look after a loop; what is said is kept."""
    made = Standing(
        clock.now, lambda level, event, fields: said.append((level, event, str(fields["text"])))
    )
    try:
        yield made
    finally:
        assert made.close(0.0)


def passing(seconds: float, clock: FakeClock, made: Standing) -> None:
    """Let time pass, and look every five seconds."""
    for _ in range(round(seconds / 5.0)):
        clock.advance(5.0)
        made.look()


def test_a_loop_that_stands_is_told_and_its_turns_too() -> None:
    """After half a minute without a turn there is a line, another a minute later, and the end."""
    clock, said = FakeClock(), list[tuple[str, str, str]]()
    with standing(clock, said) as made:
        passing(HEALTHY_SECONDS, clock, made)
        made.look()
        assert said == [("error", "loop.stands", "the loop has not turned for 30 s")]
        passing(REPEAT_SECONDS, clock, made)
        assert said[1:] == [("error", "loop.stands", "the loop has not turned for 1 min 30 s")]
        made.turn((), clock.now(), CALM)
        made.look()
        made.look()
        assert said[2:] == [("warning", "loop.turns", "the loop turns again")]


def test_a_loop_that_turns_is_left_alone() -> None:
    """Nothing is said while it turns, however long that goes on."""
    clock, said = FakeClock(), list[tuple[str, str, str]]()
    with standing(clock, said) as made:
        for _ in range(100):
            clock.advance(5.0)
            made.turn((), clock.now(), CALM)
            made.look()
    assert said == []


def test_whoever_was_stopped_as_a_whole_did_not_stand() -> None:
    """A process that is stopped for minutes, or sleeps with its machine, blames no disk."""
    clock, said = FakeClock(), list[tuple[str, str, str]]()
    with standing(clock, said) as made:
        clock.advance(180.0)
        made.look()
        assert said == []
        passing(HEALTHY_SECONDS, clock, made)
        assert [event for _, event, _ in said] == ["loop.stands"]
