"""When everything is listed at the start: once, as soon as nothing can happen unseen."""

from __future__ import annotations

import pytest

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Message, RootLost, Touched, Woken
from ckptsyncd.core.orders import Scan
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import WATCHES_SECONDS
from ckptsyncd.core.wishes import Who


def watching() -> Brain:
    """Return a mind whose watches are being put in place since second 100."""
    brain = Brain(Policy(), Who("host", "nonce", "1"), lambda: 0.5)
    brain.eyes.await_watches(100.0)
    return brain


def listings(brain: Brain, message: Message, now: float) -> int:
    """Return how many listings a turn orders."""
    turn = brain.handle(message, Instant(now, now))
    return sum(isinstance(order, Scan) for order in turn.orders)


@pytest.mark.parametrize("word", [Touched("", tree=True), RootLost(present=False)])
def test_the_watcher_says_when(word: Message) -> None:
    """Nothing is listed before its word, then everything at once, and not once more after it."""
    brain = watching()
    assert listings(brain, Woken(), 100.0) == 0
    assert listings(brain, word, 100.5) == 1
    assert listings(brain, Woken(), 100.0 + WATCHES_SECONDS) == 0


def test_a_watcher_that_takes_long_is_not_waited_for() -> None:
    """Where there are many directories, what lies there is listed meanwhile, and again after."""
    brain = watching()
    assert listings(brain, Woken(), 100.0) == 0
    assert brain.next_alarm(100.0) <= 100.0 + WATCHES_SECONDS
    assert listings(brain, Woken(), 100.0 + WATCHES_SECONDS) == 1
