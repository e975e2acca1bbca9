"""A large tree costs little: bytes per companion, and work per event however much lies there."""

from __future__ import annotations

import sys
import tracemalloc
from types import FrameType

import pytest

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import Looked, Scanned, Touched
from ckptsyncd.core.orders import Look, Scan
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes


def facts(companions: int, checkpoints: int) -> tuple[FileFact, ...]:
    """Return what a large tree holds."""
    logs = (f"runs/r{i % 50}/logs/output-of-some-step-{i:07d}.txt" for i in range(companions))
    saves = (f"runs/r{i % 50}/epoch={i}.ckpt" for i in range(checkpoints))
    return tuple(
        FileFact(path, "file", 1, number, 100, 1_700_000_000_000_000_000 + number)
        for number, path in enumerate((*logs, *saves))
    )


def eyes_on(found: tuple[FileFact, ...]) -> Eyes:
    """Return eyes that have listed this much, and were told that all of it is handled."""
    eyes = Eyes(Policy())
    scan = next(eyes.orders(1.0))
    assert isinstance(scan, Scan)
    eyes.ordered(scan)
    eyes.hear(Scanned(scan.errand, "", found), 1.0)
    eyes.sightings(1.0)
    for look in list(eyes.orders(1.2)):
        assert isinstance(look, Look)
        eyes.ordered(look)
        there = tuple(fact for fact in found[-1000:] if fact.path in look.roots)
        eyes.hear(Looked(look.errand, there, ()), 1.2)
    eyes.sightings(49.0)  # what was due by then is not the next event's work
    return eyes


def calls_of_an_event(eyes: Eyes, path: str) -> int:
    """Return how many functions are called for one event and what a turn asks after it."""
    count = 0

    def note(_frame: FrameType, event: str, _value: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        eyes.hear(Touched(path), 50.0)
        eyes.sightings(50.0)
        next(iter(eyes.orders(50.0)), None)
        eyes.next_alarm()
    finally:
        sys.setprofile(None)
    return count


def test_a_companion_costs_less_than_300_bytes() -> None:
    """A million companions fit into 300 MB, paths and all, after they were told."""
    tracemalloc.start()
    try:
        eyes = eyes_on(facts(20_000, 0))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / 20_000 < 300
    assert eyes.scanned_once


@pytest.mark.parametrize("path", ["runs/r1/logs/new.txt", "runs/r1/epoch=7000.ckpt", "latest"])
def test_an_event_costs_the_same_in_a_large_tree(path: str) -> None:
    """The work for one event does not grow with the tree: as many calls in 20 times as much."""
    small, large = (eyes_on(facts(n * 100, n * 10)) for n in (2, 40))
    assert calls_of_an_event(large, path) <= calls_of_an_event(small, path) * 1.1 + 2
