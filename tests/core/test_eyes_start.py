"""What is found at the start, what is broken, what a user says, and eyes without leases."""

from __future__ import annotations

import pytest

from ckptsyncd.core.messages import CommitRequested
from tests.core.stage import Stage, save


@pytest.fixture
def stage() -> Stage:
    """Return a directory that was empty at the first listing."""
    stage = Stage()
    stage.run(1)
    assert stage.eyes.scanned_once
    return stage


# Broken -----------------------------------------------------------------------------------------


def test_a_killed_writer_is_parked_and_looked_at_again(stage: Stage) -> None:
    """A broken file is parked with its fault, and looked at again when touched and each minute."""
    stage.open("big.pt", 50)
    stage.close("big.pt", is_whole=False)
    stage.run(2)
    assert stage.reasons() == {"big.pt": ("parked", "truncated: big.pt: the end is missing")}
    looks = len(stage.looks)
    stage.run(130)
    assert len(stage.looks) == looks + 2
    stage.write("big.pt", 100)
    stage.run(1)
    assert stage.evidence() == {"big.pt": "format"}


# Found at start ---------------------------------------------------------------------------------


def test_what_lies_there_at_start() -> None:
    """Untouched checkpoints settle on the same evidence: marker by ctime, end marks, quiet."""
    stage = Stage(now=50)
    stage.has_events = False
    for name in ("checkpoint-1/a.pt", "checkpoint-1/trainer_state.json", "a.pt", "b.bin", "x.txt"):
        stage.write(name)
        stage.now += 1
    stage.write("step-2/.metadata")
    stage.now += 1
    stage.write("step-2/__0_0.distcp")
    stage.link("latest", "step-2")
    stage.has_events = True
    stage.now = 100.0
    stage.run(10)
    assert stage.evidence() == {"checkpoint-1": "marker", "a.pt": "format", "b.bin": "quiet"}
    assert all(settled.found for settled in stage.settled())
    assert stage.times("a.pt")[0] < 100.1
    assert stage.times("b.bin")[0] >= 105
    assert (stage.pointers(), stage.companions()) == (["latest"], ["x.txt"])
    state, reason = stage.reasons()["step-2"]
    assert (state, "ckptsyncd commit step-2" in reason) == ("parked", True)
    stage.write("a.pt")
    stage.run(1)
    assert not stage.settled()[-1].found


def test_what_was_handled_in_an_earlier_life() -> None:
    """Content that the ledger knows is not told again; a change to it is."""
    before = Stage()
    before.run(1)
    save(before, "checkpoint-1", "a.pt", "trainer_state.json")
    before.run(1)
    (settled,) = before.settled()
    stage = Stage(things=before.things, now=before.now)
    stage.eyes.remember("checkpoint-1", settled.listing)
    stage.run(10)
    assert stage.settled() == []
    assert stage.reasons() == {}
    save(stage, "checkpoint-1", "a.pt", "trainer_state.json")
    stage.run(1)
    assert stage.evidence() == {"checkpoint-1": "marker"}


def test_what_had_settled_in_an_earlier_life() -> None:
    """Content that was judged before is not judged again, although our links moved its ctimes."""
    before = Stage()
    before.run(1)
    save(before, "step-1", "__0_0.distcp", ".metadata")
    before.run(1)
    (settled,) = before.settled()
    for number, name in enumerate((".metadata", "__0_0.distcp")):
        before.things[f"step-1/{name}"].ctime = before.now + number
    stage = Stage(things=before.things, now=before.now + 10)
    stage.eyes.trust(settled)
    stage.run(1)
    assert stage.evidence() == {"step-1": "marker"}
    stage.write("step-1/__0_0.distcp")
    stage.run(60)
    assert len(stage.settled()) == 1


def test_the_newest_is_looked_at_first() -> None:
    """Among what lay there at start, what was written last is looked at first."""
    stage = Stage(now=50)
    stage.has_events = False
    for n in range(5):
        stage.write(f"{n}.pt")
        stage.now += 1
    stage.has_events = True
    stage.run(1)
    names = [look.errand.checkpoint for _, look in stage.looks]
    assert names == ["4.pt", "3.pt", "2.pt", "1.pt", "0.pt"]


# A user's word ----------------------------------------------------------------------------------


def test_commit_overrules_a_missing_marker(stage: Stage) -> None:
    """``ckptsyncd commit`` settles a checkpoint whose marker never came."""
    save(stage, "checkpoint-5", "optimizer.pt")
    stage.run(60)
    assert stage.settled() == []
    stage.hear(CommitRequested("checkpoint-5/"))
    stage.run(1)
    assert stage.evidence() == {"checkpoint-5": "explicit"}


@pytest.mark.parametrize("path", ["mine", "notes.txt", "checkpoint-9"])
def test_commit_of_anything(stage: Stage, path: str) -> None:
    """A user can name any directory or file, also before the eyes have seen anything of it."""
    names = [path] if "." in path else [f"{path}/a.txt", f"{path}/sub/b.txt"]
    stage.has_events = False
    for name in names:
        stage.write(name)
    stage.has_events = True
    stage.hear(CommitRequested(path))
    stage.run(1)
    (settled,) = stage.settled()
    assert (settled.checkpoint, settled.evidence) == (path, "explicit")
    assert [fact.path for fact in settled.listing.files] == names


def test_commit_waits_for_the_writer(stage: Stage) -> None:
    """A user's word does not make a file whole that somebody is still writing."""
    save(stage, "mine", "a.txt")
    stage.hear(CommitRequested("mine"))
    stage.open("mine/b.txt")
    stage.run(10)
    assert stage.settled() == []
    stage.close("mine/b.txt")
    stage.run(1)
    assert [len(s.listing.files) for s in stage.settled()] == [2]


# Without help -----------------------------------------------------------------------------------


def test_without_leases_quiet_decides() -> None:
    """Where no lease tells of writers, end mark and marker take 150 ms, anything else the quiet."""
    stage = Stage(has_lease=False)
    stage.run(1)
    stage.write("a.pt")
    save(stage, "step-1", "__0_0.distcp", ".metadata")
    stage.write("b.npy")
    start = stage.now
    stage.run(10)
    assert stage.evidence() == {"a.pt": "format", "step-1": "marker", "b.npy": "quiet"}
    assert 0.15 <= stage.times("a.pt")[0] - start < 0.25
    assert 0.15 <= stage.times("step-1")[0] - start < 0.25
    assert 5 <= stage.times("b.npy")[0] - start < 5.2
