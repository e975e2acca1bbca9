"""What goes, comes back, or is added to what was whole: what the eyes tell of it."""

from __future__ import annotations

import pytest

from ckptsyncd.core.messages import Polled, Touched
from tests.core.stage import Stage, save


@pytest.fixture
def stage() -> Stage:
    """Return a directory that was empty at the first listing."""
    stage = Stage()
    stage.run(1)
    assert stage.eyes.scanned_once
    return stage


def test_rotation_is_told_once_and_never_a_new_edition(stage: Stage) -> None:
    """While known content is deleted file by file, slowly, the remains are never a checkpoint."""
    save(stage, "checkpoint-5", "a.pt", "b.pt", "trainer_state.json")
    stage.run(2)
    for name in ("a.pt", "b.pt"):
        stage.remove(f"checkpoint-5/{name}")
        stage.run(70)
    assert len(stage.settled()) == 1
    assert stage.removed() == ["checkpoint-5"]
    assert stage.reasons()["checkpoint-5"][0] == "parked"
    stage.remove("checkpoint-5")
    stage.run(1)
    assert stage.removed() == ["checkpoint-5"]
    assert stage.reasons() == {}


def test_a_rotation_under_way_is_no_writing(stage: Stage) -> None:
    """While known content goes file by file, status does not call the remains a new edition."""
    save(stage, "checkpoint-5", "a.pt", "b.pt", "trainer_state.json")
    stage.run(2)
    for name in ("a.pt", "b.pt", "trainer_state.json"):
        stage.remove(f"checkpoint-5/{name}")
        stage.run(0.05)
        assert stage.reasons() == {}


def test_the_same_name_after_rotation(stage: Stage) -> None:
    """A name that was rotated away and is written again is a new checkpoint."""
    for _ in range(2):
        save(stage, "checkpoint-5", "a.pt", "trainer_state.json")
        stage.run(2)
        stage.remove("checkpoint-5")
        stage.run(2)
    assert len(stage.settled()) == 2
    assert stage.removed() == ["checkpoint-5"] * 2


def test_a_file_that_disappears_from_a_save_under_way(stage: Stage) -> None:
    """A member that goes away freezes a checkpoint until something new is written."""
    save(stage, "step_5", "a.pt", "scratch.pt")
    stage.remove("step_5/scratch.pt")
    stage.run(100)
    assert stage.settled() == []
    save(stage, "step_5", "b.pt")
    stage.run(10)
    assert [len(s.listing.files) for s in stage.settled()] == [2]


def test_a_file_that_only_the_look_found(stage: Stage) -> None:
    """What a look finds unasked is examined soon, and does not wait for quiet."""
    save(stage, "checkpoint-5", "a.pt")
    stage.run(1)
    stage.write("checkpoint-5/trainer_state.json")
    stage.has_events = False
    stage.write("checkpoint-5/b.pt")
    stage.has_events = True
    start = stage.now
    stage.run(10)
    assert [len(s.listing.files) for s in stage.settled()] == [3]
    assert stage.times("checkpoint-5")[0] - start < 0.5


def test_a_removal_that_no_event_told(stage: Stage) -> None:
    """A listing finds out that members are gone, with the same consequences."""
    save(stage, "step_5", "a.pt", "b.pt")
    stage.run(10)
    del stage.things["step_5/a.pt"]
    stage.run(70)
    assert stage.removed() == ["step_5"]
    assert len(stage.settled()) == 1


def test_replacing_by_unlink_is_no_removal(stage: Stage) -> None:
    """A file that is unlinked and made again within the probe time is only a new edition."""
    stage.write("latest.pt")
    stage.run(2)
    stage.remove("latest.pt")
    stage.write("latest.pt", 200)
    stage.run(2)
    assert stage.removed() == []
    assert [s.listing.files[0].size for s in stage.settled()] == [100, 200]


def test_what_went_and_came_back_is_whole_again(stage: Stage) -> None:
    """A file that was moved out of a whole checkpoint and back again: the same content is told."""
    save(stage, "checkpoint-5", "a.pt", "b.pt", "trainer_state.json")
    stage.run(2)
    kept = stage.things["checkpoint-5/a.pt"]
    stage.remove("checkpoint-5/a.pt")
    stage.run(10)
    stage.things["checkpoint-5/a.pt"] = kept
    stage.hear(Touched("checkpoint-5/a.pt", arrived=True))
    stage.run(10)
    assert stage.removed() == ["checkpoint-5"]
    first, again = stage.settled()
    assert first.listing == again.listing
    assert stage.reasons() == {}


def listed_late(*names: str) -> Stage:
    """Return a new directory whose files only a listing can find, which is not answered yet."""
    stage = Stage(latency=0.3, has_events=False)
    stage.run(1)
    save(stage, "step_5", *names)
    stage.has_events = True
    stage.hear(Touched("step_5", tree=True))
    stage.run(0.01)
    return stage


@pytest.mark.parametrize("away_seconds", [0.0, 0.1, 0.4, 20.0])
def test_a_directory_that_goes_and_comes_while_it_is_listed(away_seconds: float) -> None:
    """What a listing from before found is not there in between, and was not removed from it."""
    stage = listed_late("a.bin", "b.bin")
    away = {path: stage.things.pop(path) for path in list(stage.things)}
    stage.hear(Touched("step_5", gone=True))
    stage.run(away_seconds)
    stage.things |= away
    stage.hear(Touched("step_5", arrived=True, tree=True))
    stage.run(40)
    assert stage.reasons() == {}
    assert [len(s.listing.files) for s in stage.settled()] == [2]


def test_a_name_that_is_written_again_while_it_is_listed() -> None:
    """A file of the former content that only a listing from before found is no part of it."""
    stage = listed_late("a.bin", "b.bin")
    stage.remove("step_5")
    save(stage, "step_5", "a.bin")
    stage.run(40)
    assert stage.reasons() == {}
    assert [len(s.listing.files) for s in stage.settled()] == [1]


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_listing_finds_both_new_and_missing(order: int) -> None:
    """One file for another between two listings is a new content, not a removal."""
    stage = Stage(has_events=False)
    stage.hear(Polled("", "asked for"))
    old, new = ("a.bin", "c.bin")[::order]
    save(stage, "step_5", old, "b.bin")
    stage.run(10)
    stage.remove(f"step_5/{old}")
    stage.write(f"step_5/{new}")
    stage.run(90)
    assert stage.reasons() == {}
    assert [f.path for f in stage.settled()[-1].listing.files] == sorted(
        ["step_5/b.bin", f"step_5/{new}"]
    )


def test_another_framework_under_a_name_that_was_emptied(stage: Stage) -> None:
    """What was saved under this name before does not tell what is to be in it now."""
    save(stage, "step_5", "__0_0.distcp", ".metadata")
    stage.run(2)
    stage.remove("step_5")
    save(stage, "step_5", "a.bin", "b.bin")
    stage.run(10)
    assert [s.layout for s in stage.settled()] == ["torch-distributed", "directory"]


@pytest.mark.parametrize(
    ("names", "seconds"), [(("a.bin", "b.bin"), 7), (("a.pt", "trainer_state.json"), 40)]
)
def test_files_that_are_added_to_a_whole_one(
    stage: Stage, names: tuple[str, ...], seconds: float
) -> None:
    """A README in a finished checkpoint is a new content of it when that is quiet."""
    save(stage, "checkpoint-5", *names)
    stage.run(10)
    save(stage, "checkpoint-5", "README.md")
    stage.run(4)
    assert len(stage.settled()) == 1
    stage.run(seconds)
    assert stage.evidence() == {"checkpoint-5": "quiet"}
    assert len(stage.settled()) == 2
