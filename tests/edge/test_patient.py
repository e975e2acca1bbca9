"""The loop waits for the ledger's disk a little and goes on without it; nothing is lost by that."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from ckptsyncd.core.moves import Complained, Move, Recovered
from ckptsyncd.core.orders import Forget, LedgerOrder, Remember
from ckptsyncd.edge.aside import Aside, Late
from ckptsyncd.edge.ledger import Ledger
from ckptsyncd.edge.patient import PatientLedger
from ckptsyncd.edge.scribe import LATE_SECONDS, Scribe
from tests.process.program import until

FIRST, SECOND = Remember("epoch", "run", "1"), Remember("epoch", "run", "2")
THIRD = Forget("safe", "a")


class HangingLedger(Ledger):
    """A ledger whose disk does not answer until ``answers`` is set; ``wrote`` is what it did."""

    def __init__(self, path: Path) -> None:
        """Let the disk answer."""
        super().__init__(path, "here")
        self.answers = threading.Event()
        self.answers.set()
        self.wrote: list[tuple[LedgerOrder, ...]] = []
        self.error: OSError | None = None

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Write when the disk answers."""
        self.answers.wait()
        if self.error is not None:
            raise self.error
        super().apply(orders)
        self.wrote.append(tuple(orders))


@pytest.fixture
def ledger(tmp_path: Path) -> HangingLedger:
    """Open a ledger whose disk can hang."""
    return HangingLedger(tmp_path / "ledger.sqlite")


def until_written(ledger: HangingLedger, count: int) -> None:
    """Wait until so many transactions were written."""
    until(lambda: len(ledger.wrote) == count, lambda: str(ledger.wrote))


def test_what_is_under_way_is_not_written_twice(ledger: HangingLedger) -> None:
    """Rows that come too late are written once, in their order, and the next ones after them."""
    patient = PatientLedger(ledger, 0.01)
    scribe = Scribe(patient)
    ledger.answers.clear()
    assert scribe.write([FIRST]) == scribe.write([SECOND]) == scribe.write([]) == []
    assert scribe.kept == [FIRST, SECOND]
    ledger.answers.set()
    until_written(ledger, 1)
    until(lambda: not (scribe.write([]) or scribe.kept), "all is written")
    scribe.write([THIRD])
    until(lambda: not (scribe.write([]) or scribe.kept), "all is written")
    assert ledger.wrote == [(FIRST,), (SECOND,), (THIRD,)]
    assert patient.rows("epoch") == [("run", "2")]


def test_what_failed_while_nobody_waited_is_written_again(ledger: HangingLedger) -> None:
    """A late error is told as any other, and those rows go first the next time."""
    scribe = Scribe(PatientLedger(ledger, 0.01))
    ledger.answers.clear()
    assert scribe.write([FIRST]) == []
    ledger.error = OSError(28, "No space left on device")
    ledger.answers.set()
    told: list[Move] = []

    def is_told() -> bool:
        told.extend(scribe.write([SECOND]))
        return bool(told)

    until(is_told, "it is told")
    assert isinstance(told[0], Complained)
    ledger.error = None
    until(lambda: not (scribe.write([]) or scribe.kept), "all is written")
    assert [order for rows in ledger.wrote for order in rows if order == FIRST] == [FIRST]
    assert ledger.wrote[-1][-1] == SECOND


def test_a_status_row_does_not_wait_for_others(ledger: HangingLedger) -> None:
    """Whoever writes rows that may be lost is refused while others are under way, at once."""
    patient = PatientLedger(ledger, 0.01)
    ledger.answers.clear()
    for rows in ([FIRST], [THIRD], [THIRD]):
        with pytest.raises(Late):
            patient.apply(rows)
    ledger.answers.set()
    until_written(ledger, 1)
    with suppress(Late):
        patient.apply([THIRD])
    until_written(ledger, 2)
    assert ledger.wrote == [(FIRST,), (THIRD,)]


def test_an_end_does_not_wait_for_a_disk_that_hangs(ledger: HangingLedger) -> None:
    """Closing comes back although the disk does not answer; what it held up is written later."""
    patient = PatientLedger(ledger, 0.01)
    ledger.answers.clear()
    with pytest.raises(Late):
        patient.apply([FIRST])
    patient.close([FIRST])
    assert ledger.wrote == []
    ledger.answers.set()
    until_written(ledger, 1)


def test_the_last_rows_are_written_at_the_end(ledger: HangingLedger) -> None:
    """What a disk held up is written before the file is closed, where it answers by then."""
    patient = PatientLedger(ledger, 20.0)
    patient.close([FIRST])
    assert ledger.wrote == [(FIRST,)]
    with pytest.raises(OSError, match="closed"):
        patient.rows("epoch")


class LateLedger:
    """A ledger that has not answered for ``seconds``, unless that is 0."""

    seconds = 0.0

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Be late."""
        if orders and self.seconds:
            raise Late(self.seconds)


def test_a_slow_disk_is_no_news_and_a_hung_one_is() -> None:
    """Under ten seconds nobody is told; then once in a quiet time too, and when it is over."""
    late = LateLedger()
    scribe = Scribe(late)
    late.seconds = LATE_SECONDS - 1.0
    assert scribe.write([FIRST]) == scribe.write([]) == []
    late.seconds = 0.0
    assert scribe.write([]) == []
    late.seconds = LATE_SECONDS - 1.0
    assert scribe.write([FIRST]) == []
    late.seconds = LATE_SECONDS
    (told,) = scribe.write([])
    assert isinstance(told, Complained)
    assert "has not answered for 10 s" in told.text
    assert "disk answers" in told.hint
    assert scribe.write([]) == []
    late.seconds = 0.0
    assert scribe.write([]) == [Recovered("ledger", 2)]


def test_an_error_of_somebody_elses_is_raised_once() -> None:
    """What is done aside fails as if it were done here, and then the next thing is done."""
    aside = Aside("test")
    aside.begin(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        aside.wait(20.0)
    aside.wait(0.0)
    done: list[int] = []
    aside.begin(lambda: done.append(1))
    aside.wait(20.0)
    assert done == [1]
