"""Frameworks at work on a pretended disk: what the eyes tell, when, and on what evidence."""

from __future__ import annotations

import pytest

from ckptsyncd.core.messages import Touched, Woken
from tests.core.stage import Stage, Thing, save


@pytest.fixture
def stage() -> Stage:
    """Return a directory that was empty at the first listing."""
    stage = Stage()
    stage.run(1)
    assert stage.eyes.scanned_once
    return stage


# Renames ----------------------------------------------------------------------------------------


def test_a_rename_from_a_temporary_name_settles_at_once(stage: Stage) -> None:
    """What arrives under its final name whole is whole after the 20 ms that a late close takes."""
    stage.open(".tmpAbCdEf", 500)
    stage.run(30)
    stage.rename(".tmpAbCdEf", "model.safetensors")
    moved = stage.now
    stage.run(0.003)
    stage.close("model.safetensors")
    stage.run(1)
    assert stage.evidence() == {"model.safetensors": "rename"}
    assert stage.times("model.safetensors")[0] - moved < 0.05


def test_a_rename_within_the_tree_proves_nothing(stage: Stage) -> None:
    """A file that had another lasting name before is judged like any other."""
    stage.write("a.bin")
    stage.run(2)
    stage.rename("a.bin", "b.bin")
    stage.run(10)
    assert stage.evidence() == {"b.bin": "quiet"}


def test_other_messages_come_between_the_halves_of_a_rename(stage: Stage) -> None:
    """The two halves of a rename follow each other among events, not among all messages."""
    stage.write("a.bin")
    stage.run(2)
    stage._move("a.bin", "b.bin")
    stage.hear(Touched("a.bin", gone=True))
    stage.hear(Woken())
    stage.hear(Touched("b.bin", arrived=True))
    stage.run(10)
    assert stage.evidence() == {"b.bin": "quiet"}


def test_a_rename_from_outside_right_after_a_removal(stage: Stage) -> None:
    """A removal just before an arrival is no pair with it, if the inodes are known to differ."""
    stage.write("old.bin")
    stage.run(10)
    stage.remove("old.bin")
    stage.arrive("new.bin", {"": Thing(size=9, changed_at=1.0, has_end=False)})
    stage.run(1)
    assert stage.evidence() == {"old.bin": "quiet", "new.bin": "rename"}


def test_a_writer_that_outlives_the_rename_is_waited_for(stage: Stage) -> None:
    """A descriptor that a child inherited keeps the file open after its rename (1.8 s seen)."""
    stage.open("x.bin.tmp", 10, has_end=False)
    stage.rename("x.bin.tmp", "x.bin")
    stage.run(1.79)
    assert "held open" in stage.reasons()["x.bin"][1]
    stage.close("x.bin")
    stage.run(10)
    assert stage.evidence() == {"x.bin": "quiet"}


def test_a_directory_that_is_moved_in_is_one_checkpoint(stage: Stage) -> None:
    """A directory of any name that arrives whole is whole, though nothing in it tells a layout."""
    things = {rel: Thing(size=5, changed_at=1.0) for rel in ("w.pt", "sub/o.pt", "note")}
    stage.arrive("mine", things)
    stage.run(1)
    (settled,) = stage.settled()
    assert (settled.checkpoint, settled.evidence) == ("mine", "rename")
    assert len(settled.listing.files) == 3


def test_a_run_that_is_moved_in_keeps_its_checkpoints_apart(stage: Stage) -> None:
    """A moved directory that holds checkpoints is none itself; each of them has arrived."""
    things = {f"checkpoint-{n}/w.bin": Thing(size=5, has_end=False) for n in (1, 2)}
    stage.arrive("run", things)
    stage.run(1)
    assert stage.evidence() == {"run/checkpoint-1": "rename", "run/checkpoint-2": "rename"}


def test_a_checkpoint_under_another_name_stays_together(stage: Stage) -> None:
    """A checkpoint that a user renames is the same files under another name, still as one."""
    save(stage, "step_5", "a.pt", "b.pt")
    stage.run(10)
    stage.rename("step_5", "best")
    stage.run(10)
    assert stage.evidence() == {"step_5": "quiet", "best": "rename"}
    assert stage.removed() == ["step_5"]


# Markers ----------------------------------------------------------------------------------------


def test_a_second_save_into_the_same_directory_needs_a_new_marker(stage: Stage) -> None:
    """While shards are rewritten the old marker lies there, and proves nothing."""
    save(stage, "step-1", "__0_0.distcp", "__1_0.distcp", ".metadata")
    stage.run(5)
    stage.open("step-1/__0_0.distcp", 50)
    stage.run(20)
    stage.close("step-1/__0_0.distcp")
    stage.run(20)
    stage.write("step-1/__1_0.distcp", 50)
    stage.run(40)
    assert len(stage.settled()) == 1
    assert ".metadata is older than this save" in stage.reasons()["step-1"][1]
    stage.remove("step-1/.metadata")
    stage.write("step-1/.metadata.tmp")
    stage.rename("step-1/.metadata.tmp", "step-1/.metadata")
    stage.run(1)
    assert [s.evidence for s in stage.settled()] == ["marker", "marker"]
    assert stage.settled()[-1].stale == ()


def test_a_second_marker_written_later(stage: Stage) -> None:
    """Megatron's ``metadata.json`` follows ``.metadata``, which alone completes nothing there."""
    save(stage, "iter_0000100", "common.pt", "__0_0.distcp", ".metadata")
    stage.run(3)
    assert stage.settled() == []
    save(stage, "iter_0000100", "metadata.json")
    stage.run(1)
    assert stage.evidence() == {"iter_0000100": "marker"}


def test_other_ranks_are_waited_for_and_then_known(stage: Stage) -> None:
    """A late rank is waited for during the grace; once its series is known, as long as it takes."""
    files = ("model.safetensors", "optimizer.pt", "rng_state_0.pth", "trainer_state.json")
    save(stage, "checkpoint-5", *files)
    marked = stage.now
    stage.run(1.97)
    save(stage, "checkpoint-5", "rng_state_1.pth")
    stage.run(10)
    (first,) = stage.settled()
    assert first.listing.files[2].path == "checkpoint-5/rng_state_0.pth"
    assert 5 <= stage.times("checkpoint-5")[0] - marked < 5.2
    stage.eyes.committed("checkpoint-5", first.listing)
    save(stage, "checkpoint-10", "rng_state_1.pth", *files)
    stage.run(1)
    assert stage.evidence() == {"checkpoint-5": "marker", "checkpoint-10": "marker"}


def test_stale_members_are_named(stage: Stage) -> None:
    """What a second save did not write anew goes with it after the grace, and is named."""
    save(stage, "checkpoint-5", "optimizer.pt", "extra.bin", "trainer_state.json")
    stage.run(5)
    save(stage, "checkpoint-5", "optimizer.pt", "trainer_state.json")
    saved = stage.now
    stage.run(10)
    assert len(stage.settled()) == 2
    assert stage.settled()[1].stale == ("checkpoint-5/extra.bin",)
    assert stage.times("checkpoint-5")[1] - saved >= 5


def test_the_unfinished_mark_of_nemo(stage: Stage) -> None:
    """A checkpoint beside ``-unfinished`` waits however quiet it is, and is whole without it."""
    stage.write("m--step=10-last-unfinished", 0)
    save(stage, "m--step=10-last.ckpt", "w.pt")
    stage.run(100)
    assert stage.settled() == []
    assert "unfinished" in stage.reasons()["m--step=10-last.ckpt"][1]
    stage.remove("m--step=10-last-unfinished")
    stage.run(1)
    assert stage.evidence() == {"m--step=10-last.ckpt": "marker"}


def test_an_index_over_missing_shards(stage: Stage) -> None:
    """A second save with fewer shards deletes the old ones first: no moment of it is whole."""
    old = [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
    save(stage, "out", "config.json", *old, "model.safetensors.index.json")
    stage.run(10)
    save(stage, "out", "config.json")
    for name in old:
        stage.remove(f"out/{name}")
    stage.run(60)
    save(stage, "out", "model-00001-of-00002.safetensors")
    stage.run(60)
    save(stage, "out", "model-00002-of-00002.safetensors")
    stage.run(60)
    assert len(stage.settled()) == 1
    save(stage, "out", "model.safetensors.index.json")
    stage.run(10)
    assert len(stage.settled()) == 2
    assert len(stage.settled()[1].listing.files) == 4


# No marker --------------------------------------------------------------------------------------


def test_a_late_rank_and_a_dead_rank(stage: Stage) -> None:
    """A first save waits 30 s for ranks; in a later one a missing rank shows by its siblings."""
    name = "zero_pp_rank_{}_mp_rank_00_optim_states.pt"
    save(stage, "global_step1", "mp_rank_00_model_states.pt", name.format(0))
    stage.run(3)
    save(stage, "global_step1", name.format(1))
    stage.run(31)
    (first,) = stage.settled()
    assert (first.evidence, len(first.listing.files)) == ("quiet", 3)
    stage.eyes.committed("global_step1", first.listing)
    save(stage, "global_step2", "mp_rank_00_model_states.pt", name.format(0), name.format(1))
    stage.run(2)
    assert stage.evidence()["global_step2"] == "shape"
    save(stage, "global_step3", "mp_rank_00_model_states.pt", name.format(0))
    stage.run(89)
    assert "global_step3" not in stage.evidence()
    assert name.format(1) in stage.reasons()["global_step3"][1]
    stage.run(2)
    assert stage.evidence()["global_step3"] == "quiet, shape differs"


def test_appending_with_pauses_is_never_mistaken(stage: Stage) -> None:
    """A file without an end mark that is closed between appends waits for the whole quiet time."""
    for n in range(1, 8):
        stage.write("shard.bin", n * 100)
        stage.run(4.5)
    assert stage.settled() == []
    stage.run(1)
    assert stage.settled()[0].listing.files[0].size == 700


def test_a_part_of_a_group_alone_is_a_companion(stage: Stage) -> None:
    """An ``.index`` without TensorFlow's data is no checkpoint; its data makes it one."""
    stage.write("faiss.index")
    stage.run(30)
    assert (stage.settled(), stage.companions()) == ([], ["faiss.index"])
    stage.write("faiss.data-00000-of-00001")
    stage.write("faiss.index")
    stage.run(1)
    assert stage.evidence() == {"faiss": "marker"}
