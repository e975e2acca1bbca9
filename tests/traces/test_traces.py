"""Every recorded trace, replayed against real eyes: nothing unfinished is ever told to be whole."""

from __future__ import annotations

import pytest

from ckptsyncd.core.messages import Polled
from ckptsyncd.core.sightings import Settled
from tests.core.stage import Stage, Told
from tests.traces.player import NAMES, START, Player
from tests.traces.table import TABLE

#: Parts of names that nobody restores.
TEMPORARY = (".tmp", "orbax-checkpoint-tmp", "tempstate", "_temp/", ".rsync-partial", ".__lock")
#: Times in the table are rounded to a tenth of a millisecond.
ROUNDED = 0.0002


def play(name: str, **settings: bool) -> Player:
    """Replay a trace."""
    row = TABLE[name]
    player = Player(name, frozenset(row.torn), frozenset(row.endless), **settings)
    player.play()
    return player


def tellings(stage: Stage) -> list[tuple[Told, Settled]]:
    """Return what was told to be whole, in order."""
    return [(told, told.sighting) for told in stage.told if isinstance(told.sighting, Settled)]


def check_finished(player: Player) -> None:
    """Assert that everything told was finished at that moment, and holds no temporary name."""
    for told, settled in tellings(player.stage):
        for fact in settled.listing.files:
            assert not any(part in fact.path for part in TEMPORARY)
            assert fact.mtime_ns / 1e9 <= told.at
        assert told.is_finished, f"{settled.checkpoint} at {told.at - START}"


def test_every_trace_has_a_row_and_every_row_a_trace() -> None:
    """A trace that nobody judged fails, and so does a row for nothing."""
    assert sorted(TABLE) == NAMES


@pytest.mark.parametrize("hears_writes", [False, True], ids=["closes", "writes"])
@pytest.mark.parametrize("name", NAMES)
def test_replay(name: str, *, hears_writes: bool) -> None:
    """Each finished checkpoint is told once, in order, with its name, step, series and evidence."""
    player, row = play(name, hears_writes=hears_writes), TABLE[name]
    check_finished(player)
    told = [
        (s.checkpoint, s.step, s.evidence, len(s.listing.files)) for _, s in tellings(player.stage)
    ]
    assert told == [(s.name, s.step, s.evidence, s.files) for s in row.whole]
    for (telling, settled), save in zip(tellings(player.stage), row.whole, strict=True):
        assert telling.at > START + save.at
        newest = max(f.mtime_ns for f in settled.listing.files if f.kind == "file") / 1e9
        assert newest <= START + save.at + ROUNDED
        assert settled.series == (save.name.rpartition("/")[0] or ".")
        assert not settled.stale
        assert not settled.copy
    assert set(player.stage.pointers()) == row.pointer


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missed_is_known(name: str) -> None:
    """Everything that a trace wrote is told, or the table says why not, in the words of status."""
    player, row = play(name), TABLE[name]
    there = player.units() - {save.name for save in row.whole}
    assert there == set(row.missed)
    reasons = player.stage.reasons()
    for checkpoint, why in row.missed.items():
        if why != "removed":
            state, reason = reasons[checkpoint]
            assert state == "parked"
            assert reason.startswith(why)
        else:
            assert checkpoint in player.stage.removed()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("has_events", [True, False], ids=["events", "polled"])
def test_without_leases(name: str, *, has_events: bool) -> None:
    """Where nobody can tell who writes, with events or by polling, nothing unfinished is told."""
    row = TABLE[name]
    player = Player(name, frozenset(row.torn), frozenset(row.endless), has_lease=False)
    if not has_events:
        player.stage.has_events = False
        player.stage.hear(Polled("", "no events here"))
    player.play()
    check_finished(player)
    names = {settled.checkpoint for _, settled in tellings(player.stage)}
    # Files of one moment are in no order to somebody who only polls.
    in_disorder = {name for name, why in row.missed.items() if "newer than" in why}
    assert names <= {save.name for save in row.whole} | (set() if has_events else in_disorder)


@pytest.mark.parametrize("name", NAMES)
def test_without_commits(name: str) -> None:
    """The same checkpoints settle where nothing is ever uploaded, only later."""
    player = play(name, commits=False)
    check_finished(player)
    names = {settled.checkpoint for _, settled in tellings(player.stage)}
    assert names == {save.name for save in TABLE[name].whole}
