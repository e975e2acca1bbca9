"""The hands' threads: as many as there are, and one more for each that is stuck."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from ckptsyncd.core.facts import Instant, Limits
from ckptsyncd.core.messages import Answer, Failed, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall
from ckptsyncd.edge.clock import ticks
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.hands import Hands
from ckptsyncd.errors import Never
from ckptsyncd.formats import check
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import MemoryStore
from tests.report.examples import CALM
from tests.servers import until

PATIENCE = 20.0


def test_one_that_is_stuck_does_not_keep_an_order_from_a_hand(tmp_path: Path) -> None:
    """With one hand whose request is never answered, the next order is done all the same."""
    let_go = threading.Event()

    def fault(_: str, key: str) -> Fault | None:
        if key == "stuck":
            let_go.wait(PATIENCE)
        return None

    store = FaultyStore(MemoryStore(Limits(1, 10, 10, 100)), fault)
    answers: SimpleQueue[Answer] = SimpleQueue()
    hands = Hands(1, store, RealDisk(tmp_path, check), answers.put, ticks)
    before = threading.active_count()
    hands.submit(GetSmall(Errand("one"), "stuck"))
    hands.submit(GetSmall(Errand("two"), "free"))
    answer = answers.get(timeout=PATIENCE)
    assert isinstance(answer, RecordRead)
    assert answer.errand.purpose == "two"
    let_go.set()
    assert answers.get(timeout=PATIENCE).errand.purpose == "one"
    for number in range(20):
        hands.submit(GetSmall(Errand(f"more {number}"), "free"))
        answers.get(timeout=PATIENCE)
    assert threading.active_count() == before + 1


class Puzzling(MemoryStore):
    """A store whose SDK raises what nobody expects."""

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Raise where the key says so."""
        if key == "puzzling":
            raise KeyError(key)
        return super().get_small(key, most_bytes)


def test_a_hand_outlives_what_nobody_expected(tmp_path: Path) -> None:
    """An error of no known kind is an answer too, to be tried again, and its hand does the next."""
    answers: SimpleQueue[Answer] = SimpleQueue()
    store = Puzzling(Limits(1, 10, 10, 100))
    before = threading.active_count()
    hands = Hands(1, store, RealDisk(tmp_path, check), answers.put, ticks)
    hands.submit(GetSmall(Errand("one"), "puzzling"))
    failed = answers.get(timeout=PATIENCE)
    assert isinstance(failed, Failed)
    assert (failed.errand.purpose, failed.kind, failed.ambiguous) == ("one", "again", True)
    assert failed.text == "GetSmall: KeyError: 'puzzling'"
    hands.submit(GetSmall(Errand("two"), "free"))
    assert isinstance(answers.get(timeout=PATIENCE), RecordRead)
    assert threading.active_count() == before + 1


class Priorities(MemoryStore):
    """A store that notes at which priority it is asked."""

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Tell it by an error."""
        del most_bytes
        found = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        msg = f"{key} at {found}"
        raise Never(msg)


def test_others_go_first_until_time_is_short(tmp_path: Path) -> None:
    """Hands work at the lower priority, at the process' own while it drains, and lower again."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    lower = min(own + 3, 19)
    answers: SimpleQueue[Answer] = SimpleQueue()
    store = Priorities(Limits(1, 10, 10, 100))
    before = threading.active_count()
    hands = Hands(2, store, RealDisk(tmp_path, check), answers.put, ticks, nice=3)

    def asked() -> str:
        hands.submit(GetSmall(Errand("look"), "asked"))
        failed = answers.get(timeout=PATIENCE)
        assert isinstance(failed, Failed)
        return failed.text

    now = Instant(0.0, 0.0)
    assert asked() == f"asked at {lower}"
    hands.turn((), now, CALM)
    assert asked() == f"asked at {lower}"
    hands.turn((), now, replace(CALM, state="draining"))
    assert {asked() for _ in range(5)} == {f"asked at {own}"}
    hands.turn((), now, replace(CALM, state="running"))
    assert {asked() for _ in range(5)} == {f"asked at {lower}"}
    assert own == os.getpriority(os.PRIO_PROCESS, 0)
    assert until(lambda: threading.active_count() == before + 2)
