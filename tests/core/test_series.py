"""One series: its epoch is taken once, its hint only moves up, and who was replaced finds out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import IfAbsent, IfMatches
from ckptsyncd.core.orders import GetSmall, PutSmall
from ckptsyncd.core.records.documents import Epoch, Latest, Pointer, Pointers
from ckptsyncd.core.sending.series import (
    Series,
    epoch_seen,
    latest_due,
    latest_seen,
    latest_written,
    missing,
    next_latest,
    wants_latest,
)
from tests.core.parts import LIMITS, NOW, POLICY, manifest

WHO = ("host", "me")


def hint(step: int = 100, epoch: int = 3, nonce: str = "me") -> Latest:
    """Return a hint that names a checkpoint of this step."""
    rank = (0, step, 5.0, 1)
    return Latest("run", f"run/{step}", 1, rank, ((0, epoch),), nonce, 6.0, step)


def taken(epoch: int, nonce: str) -> Epoch:
    """Return an epoch as it lies in the store."""
    return Epoch("run", 0, epoch, nonce, "host", 5.0)


def series(**other: object) -> Series:
    """Return a series whose epoch 3 is ours and whose hint is known to be absent."""
    made = Series("run", epoch=3, epoch_taken="yes", epoch_read=True, latest_known=True)
    for name, value in other.items():
        setattr(made, name, value)
    return made


def asked(one: Series, *, hasty: bool = False) -> list[GetSmall | PutSmall]:
    """Return the orders that the series needs now."""
    return list(missing(one, LIMITS, POLICY, WHO, NOW, hasty=hasty))


LEVELS: list[tuple[str, Series, list[str]]] = [
    ("new", Series("run"), ["read latest"]),
    ("nothing to say", Series("run", latest_known=True), []),
    ("first claim", Series("run", latest_known=True, epoch_wanted=True), ["read epoch"]),
    (
        "epoch read",
        Series("run", latest_known=True, epoch_wanted=True, epoch_read=True, epoch=1),
        ["take epoch"],
    ),
    ("epoch taken", series(), []),
    ("a commit", series(best=manifest()), ["move latest"]),
    ("a commit of the same rank", series(best=manifest(), latest=hint(), announced=True), []),
    ("a lower commit", series(best=manifest(step=50), latest=hint(), announced=True), []),
    ("epoch not announced", series(latest=hint()), ["move latest"]),
    ("pointers", series(pointers_wanted=Pointers("run", "run/100", 1, ())), ["pointers"]),
]


@pytest.mark.parametrize(("level", "one", "purposes"), LEVELS, ids=[row[0] for row in LEVELS])
def test_each_level_asks_for_its_own_orders(level: str, one: Series, purposes: list[str]) -> None:
    """The epoch comes before the first claim, the hint after a commit, pointers last."""
    del level
    assert [order.errand.purpose for order in asked(one)] == purposes


@pytest.mark.parametrize(
    ("version", "compares", "condition"),
    [(None, True, IfAbsent()), ("v7", True, IfMatches("v7")), ("v7", False, None)],
)
def test_the_hint_replaces_only_what_was_read(
    version: str | None, *, compares: bool, condition: object
) -> None:
    """Somebody else's newer hint is never overwritten, where the store can tell."""
    limits = replace(LIMITS, compare_and_set=compares)
    one = series(best=manifest(), latest_version=version)
    order = next(iter(missing(one, limits, POLICY, WHO, NOW, hasty=False)))
    assert isinstance(order, PutSmall)
    assert order.condition == condition


EPOCHS: list[tuple[str, Epoch | None, tuple[int | None, str], bool, int]] = [
    # in the store, the ledger's, replaced?, epoch to take
    ("nobody was here", None, (None, ""), False, 1),
    ("somebody was, we are new", taken(4, "x"), (None, ""), False, 5),
    ("our former daemon", taken(4, "old"), (4, "old"), False, 5),
    ("a killed one of ours was late", taken(4, "older"), (4, "old"), False, 5),
    ("another took the same number", taken(4, "x"), (4, "old"), True, 5),
    ("another took a later one", taken(6, "x"), (4, "old"), True, 7),
    ("ours was never taken", taken(3, "x"), (4, "old"), False, 4),
    ("the bucket was emptied", None, (4, "old"), False, 1),
]


@pytest.mark.parametrize(
    ("what", "record", "last", "replaced", "epoch"), EPOCHS, ids=[row[0] for row in EPOCHS]
)
def test_a_replaced_daemon_finds_out(
    what: str, record: Epoch | None, last: tuple[int | None, str], *, replaced: bool, epoch: int
) -> None:
    """A later epoch than the one that this watch root had means that another machine goes on."""
    del what
    one = Series("run", last_epoch=last[0], last_nonces=("older", last[1]))
    assert epoch_seen(one, record, "v1", "me") == replaced
    assert (one.epoch, one.epoch_taken) == (epoch, "no")


def test_an_epoch_put_that_was_answered_badly_may_be_ours() -> None:
    """Our own nonce in the store means that it is taken."""
    one = Series("run", epoch=4)
    assert not epoch_seen(one, taken(4, "me"), "v1", "me")
    assert (one.epoch, one.epoch_taken, one.epoch_version) == (4, "yes", "v1")


@pytest.mark.parametrize(
    ("latest", "fenced", "announced"),
    [
        (None, False, False),
        (hint(epoch=2), False, False),
        (hint(epoch=3), False, True),
        (hint(epoch=4), True, True),
    ],
)
def test_the_hint_shows_who_is_newer(
    latest: Latest | None, *, fenced: bool, announced: bool
) -> None:
    """A higher epoch of our node in the hint means that we were replaced."""
    one = series()
    assert latest_seen(one, latest, "v1", 0) == fenced
    assert (one.announced, one.latest_known) == (announced, True)


def test_the_hint_carries_every_nodes_epoch() -> None:
    """Other nodes' epochs are kept, and our own never goes down."""
    latest = replace(hint(epoch=9), epochs=((0, 9), (1, 4)))
    moved = next_latest(series(latest=latest, best=manifest(step=200)), 0, "me", 7.0)
    assert (moved.step, moved.epochs, moved.nonce) == (200, ((0, 9), (1, 4)), "me")


def test_the_hint_never_goes_back() -> None:
    """A lower commit leaves the name in the hint as it is."""
    moved = next_latest(series(latest=hint(500), best=manifest(step=100)), 0, "me", 7.0)
    assert (moved.checkpoint, moved.rank) == ("run/500", (0, 500, 5.0, 1))


def test_the_hint_is_written_at_most_every_so_often() -> None:
    """Some stores allow one write a second; a drain does not wait."""
    one = series(best=manifest())
    latest_written(one, hint(), "v1", now=NOW.boot)
    one.best = manifest(step=200)
    assert wants_latest(one)
    assert latest_due(one, POLICY, NOW.boot, hasty=False) == NOW.boot + POLICY.latest_seconds
    assert latest_due(one, POLICY, NOW.boot, hasty=True) == NOW.boot
    assert (asked(one), len(asked(one, hasty=True))) == ([], 1)


def test_nothing_to_say_is_never_due() -> None:
    """A hint that is as it should be sets no alarm."""
    one = series(latest=hint(), best=manifest(), announced=True)
    assert latest_due(one, POLICY, NOW.boot, hasty=True) == float("inf")


def test_stored_pointers_are_not_stored_again() -> None:
    """Pointers are written once for what they say."""
    pointers = Pointers("run", "run/100", 1, (Pointer("run/latest", "file", "100"),))
    assert len(asked(series(pointers_wanted=pointers))) == 1
    assert asked(series(pointers_wanted=pointers, pointers_stored=pointers)) == []
