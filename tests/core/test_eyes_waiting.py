"""Writers that never rest, refused pins, drains, and how little is disturbed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ckptsyncd.core.messages import Touched, Woken
from tests.core.stage import Stage, save


@pytest.fixture
def stage() -> Stage:
    """Return a directory that was empty at the first listing."""
    stage = Stage()
    stage.run(1)
    return stage


# Rewritten faster than it uploads ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["ckpt.pt", "ckpt.bin"])
def test_never_quiet(stage: Stage, name: str) -> None:
    """A file rewritten every 90 ms is told after a minute, to be copied, once nobody writes it."""
    start = stage.now
    while stage.now < start + 70 and not stage.settled():
        stage.open(name)
        stage.run(0.01)
        stage.close(name)
        stage.run(0.08)
    (settled,) = stage.settled()
    assert 60 <= stage.times(name)[0] - start < 64
    assert settled.evidence == ("format" if name == "ckpt.pt" else "copy")
    assert settled.copy == (name == "ckpt.bin")


def test_two_torn_uploads_ask_for_a_copy(stage: Stage) -> None:
    """After two uploads that were changed under the way the next one comes from a copy."""
    for number in range(3):
        stage.write("ckpt.pt", 100 + number)
        stage.run(1)
        stage.eyes.void("ckpt.pt", stage.now)
        stage.write("ckpt.pt", 200 + number)
        stage.run(1)
    copies = [settled.copy for settled in stage.settled()]
    assert copies == [False, False, False, True, True, True]
    assert stage.settled()[-1].evidence == "copy"
    stage.eyes.committed("ckpt.pt", stage.settled()[-1].listing)
    stage.write("ckpt.pt", 300)
    stage.run(1)
    assert not stage.settled()[-1].copy


def test_one_torn_upload_and_a_minute(stage: Stage) -> None:
    """A minute after the first torn upload the next one comes from a copy, too."""
    stage.write("ckpt.pt")
    stage.run(1)
    stage.eyes.void("ckpt.pt", stage.now)
    stage.run(61)
    stage.write("ckpt.pt")
    stage.run(1)
    assert [settled.copy for settled in stage.settled()] == [False, False, True]


def test_a_directory_that_is_rewritten_without_rest(stage: Stage) -> None:
    """A directory whose files are all written again and again is copied, never in its midst."""
    start = stage.now
    while stage.now < start + 90:
        save(stage, "step_1", "a.bin", "b.bin", size=int(stage.now))
        stage.run(0.5)
    assert stage.settled()
    assert all(settled.copy for settled in stage.settled())
    assert all(told.is_finished for told in stage.told)


def test_a_long_first_save_is_not_copied(stage: Stage) -> None:
    """A save that takes minutes, with pauses between its files, is never told before it ends."""
    for number in range(40):
        save(stage, "step_1", f"part{number}.bin")
        stage.run(4)
    assert stage.settled() == []
    stage.run(2)
    assert [len(settled.listing.files) for settled in stage.settled()] == [40]


# The rest of the mind ---------------------------------------------------------------------------


def test_a_refused_pin_is_tried_again_ever_later(stage: Stage) -> None:
    """Where pinning fails, the checkpoint is looked at and told again, with growing pauses."""
    stage.write("a.pt")
    for _ in range(12):
        stage.run(0.3)
        told = len(stage.settled())
        if stage.settled():
            stage.eyes.refuse("a.pt", "no room", stage.now)
        while len(stage.settled()) == told and stage.now < 1000:
            stage.run(0.1)
    times = stage.times("a.pt")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == sorted(gaps)
    assert 59 < gaps[-1] < 62


def test_the_same_content_is_told_once(stage: Stage) -> None:
    """Touching a file without changing it tells nothing new, also after it is safe."""
    stage.write("a.pt")
    stage.run(1)
    for _ in range(2):
        stage.hear(Touched("a.pt"))
        stage.run(2)
        stage.eyes.committed("a.pt", stage.settled()[0].listing)
    assert len(stage.settled()) == 1
    assert stage.reasons() == {}


def test_unknown_names_are_no_error(stage: Stage) -> None:
    """The rest of the mind may speak of checkpoints that are gone from the disk by now."""
    stage.write("a.pt")
    stage.run(1)
    listing = stage.settled()[0].listing
    stage.remove("a.pt")
    stage.run(1)
    stage.eyes.void("a.pt", stage.now)
    stage.eyes.refuse("a.pt", "vanished", stage.now)
    stage.eyes.committed("a.pt", listing)
    stage.hear(Woken(3.0))
    stage.run(100)
    assert len(stage.settled()) == 1


def test_draining_hurries_what_waits(stage: Stage) -> None:
    """When a drain begins, what is quiet for a second settles, and ranks' after five."""
    save(stage, "step_1", "a.pt")
    save(stage, "global_step2", "mp_rank_00_model_states.pt")
    stage.run(1.5)
    assert stage.settled() == []
    stage.eyes.hurry(True)
    stage.eyes.hurry(True)
    stage.run(0.2)
    assert stage.evidence() == {"step_1": "quiet"}
    stage.run(4)
    assert stage.evidence() == {"step_1": "quiet", "global_step2": "quiet"}
    stage.eyes.hurry(False)
    save(stage, "step_3", "a.pt")
    stage.run(2)
    assert "step_3" not in stage.evidence()


def test_draining_hurries_what_was_looked_at(stage: Stage) -> None:
    """A file that was looked at already and only waits for quiet settles with one more look."""
    stage.write("a.bin")
    stage.run(2)
    stage.eyes.hurry(True)
    stage.run(0.01)
    assert stage.evidence() == {"a.bin": "quiet"}


# Disturbing nobody ------------------------------------------------------------------------------


def test_no_lease_while_somebody_writes(stage: Stage) -> None:
    """No file is looked at closely within 100 ms of an event on its checkpoint."""
    for number in range(50):
        stage.open("a.pt", number + 1)
        stage.run(0.05)
        stage.close("a.pt")
        stage.run(0.04)
    assert stage.looks == []


def test_a_save_under_way_is_left_alone(stage: Stage) -> None:
    """Nobody looks into a save before its marker, or the quiet, could settle it."""
    for name in ("config.json", "model.safetensors", "optimizer.pt", "scheduler.pt"):
        save(stage, "checkpoint-5", name)
        stage.run(2)
    assert stage.looks == []
    save(stage, "checkpoint-5", "trainer_state.json")
    stage.run(1)
    assert len(stage.looks) == 1
    for name in ("a.pt", "b.pt"):
        save(stage, "step_1", name)
        stage.run(3)
    assert len(stage.looks) == 1


def test_a_long_first_save_is_left_alone(stage: Stage) -> None:
    """Also a save that takes minutes is looked into only where it pauses for the quiet time."""
    for number in range(60):
        save(stage, "step_1", f"part{number}.bin")
        stage.run(2)
    assert stage.looks == []


def test_only_what_changed_is_looked_at_closely(stage: Stage) -> None:
    """A second look examines the files that changed since the first, and no others."""
    save(stage, "step_1", "a.pt", "b.pt")
    stage.run(10)
    stage.write("step_1/b.pt")
    stage.run(10)
    closely = [sorted(look.closely) for _, look in stage.looks]
    assert closely == [["step_1/a.pt", "step_1/b.pt"], ["step_1/b.pt"]]


def test_a_file_held_open_is_looked_at_ever_more_rarely(stage: Stage) -> None:
    """A file that stays open without events costs less and less, and settles when it is closed."""
    stage.open("slow.pt")
    stage.run(200)
    assert len(stage.looks) < 10
    assert stage.eyes.is_writing(stage.now)
    assert stage.reasons() == {"slow.pt": ("writing", "slow.pt is held open for writing")}
    stage.close("slow.pt")
    stage.run(1)
    assert stage.evidence() == {"slow.pt": "format"}
    assert not stage.eyes.is_writing(stage.now)
    assert stage.eyes.is_writing(stage.now - 2)


def test_what_status_is_told(stage: Stage) -> None:
    """A checkpoint that is not whole yet says what it waits for, and until when."""
    save(stage, "step_1", "a.pt", size=7)
    last = stage.now
    stage.run(2)
    (view,) = stage.eyes.views()
    assert (view.checkpoint, view.series, view.step) == ("step_1", ".", 1)
    assert (view.layout, view.state, view.files) == ("directory", "writing", 1)
    assert view.reason == "waiting for quiet"
    assert view.until == pytest.approx(last + 5)
    assert view.since < last
    stage.run(4)
    assert stage.eyes.views() == ()
    assert stage.eyes.next_alarm() == pytest.approx(160, abs=0.1)
