"""Lost events, silent changes, polling, a lost root, and what lies beside checkpoints."""

from __future__ import annotations

import pytest

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import Failed, Looked, Overflowed, Polled, RootLost, Touched
from ckptsyncd.core.orders import Look
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.units import Member
from tests.core.stage import Stage, Thing, save


@pytest.fixture
def stage() -> Stage:
    """Return a directory that was empty at the first listing."""
    stage = Stage()
    stage.run(1)
    return stage


# Events and listings ----------------------------------------------------------------------------


def test_lost_events_start_a_listing_and_the_quiet_anew(stage: Stage) -> None:
    """After an overflow everything is listed, and quiet that was only silence does not count."""
    save(stage, "step_1", "a.pt")
    stage.run(3)
    stage.has_events = False
    stage.write("step_1/b.pt")
    stage.has_events = True
    scans = len(stage.scans)
    lost = stage.now
    stage.hear(Overflowed())
    stage.run(10)
    assert len(stage.scans) == scans + 1
    (settled,) = stage.settled()
    assert len(settled.listing.files) == 2
    assert stage.times("step_1")[0] >= lost + 5


def test_lost_events_do_not_make_a_marker_newest(stage: Stage) -> None:
    """Where events were lost, markers are judged by ctime: an old one stays old."""
    save(stage, "step-1", "__0_0.distcp", ".metadata")
    stage.has_events = False
    stage.run(0.05)
    stage.write("step-1/__0_0.distcp", 50)
    stage.has_events = True
    stage.hear(Overflowed())
    stage.run(30)
    assert stage.settled() == []


def test_a_growing_file_that_sends_no_event() -> None:
    """Without leases, a file that grows between two looks is not quiet, whatever events say."""
    stage = Stage(has_lease=False)
    stage.run(1)
    stage.open("a.bin", 1)
    for size in range(2, 80):
        stage.run(0.5)
        stage.grow("a.bin", size)
    assert stage.settled() == []
    stage.run(20)
    assert stage.evidence() == {"a.bin": "quiet"}


@pytest.mark.parametrize("has_lease", [True, False])
def test_a_temporary_file_that_grows_in_silence(*, has_lease: bool) -> None:
    """While a temporary file in it is written, for a minute, a checkpoint with its marker waits."""
    stage = Stage(has_lease=has_lease)
    stage.run(1)
    save(stage, "checkpoint-7", "model.safetensors", "trainer_state.json")
    stage.open("checkpoint-7/.opt.pt.UwTaSF", 1)
    for size in range(2, 60):
        stage.run(1)
        stage.grow("checkpoint-7/.opt.pt.UwTaSF", size)
    assert stage.settled() == []
    assert "temporary" in stage.reasons()["checkpoint-7"][1]
    stage.close("checkpoint-7/.opt.pt.UwTaSF")
    stage.remove("checkpoint-7/.opt.pt.UwTaSF")
    stage.run(10)
    assert stage.evidence() == {"checkpoint-7": "marker"}


def test_a_temporary_file_that_was_left_behind(stage: Stage) -> None:
    """A dead writer's temporary file in a checkpoint's directory holds nothing up for long."""
    stage.make("checkpoint-7")
    stage.open("checkpoint-7/.tmpAbCdEf")
    stage.close("checkpoint-7/.tmpAbCdEf", is_whole=False)
    stage.run(30)
    save(stage, "checkpoint-7", "model.safetensors", "trainer_state.json")
    stage.run(1)
    (settled,) = stage.settled()
    assert (settled.evidence, len(settled.listing.files)) == ("marker", 2)


def test_a_silent_change_is_ordered_by_ctime(stage: Stage) -> None:
    """A shard rewritten without any event is newer than the marker that was heard of."""
    save(stage, "step-1", "__0_0.distcp", ".metadata")
    stage.run(5)
    stage.has_events = False
    stage.write("step-1/__0_0.distcp", 50)
    stage.has_events = True
    stage.run(130)
    assert len(stage.settled()) == 1
    assert "ckptsyncd commit" in stage.reasons()["step-1"][1]


def test_a_silent_change_to_a_first_save(stage: Stage) -> None:
    """The same before anything settled: the marker's event does not make it newest."""
    save(stage, "step-1", "__0_0.distcp", ".metadata")
    stage.write("step-1/scratch.tmp")
    stage.run(3)
    stage.has_events = False
    stage.write("step-1/__0_0.distcp", 50)
    stage.run(130)
    assert stage.settled() == []
    assert "newer than .metadata" in stage.reasons()["step-1"][1]


def test_an_event_behind_the_look_that_saw_its_effect() -> None:
    """An event within a second after content was first seen belongs to it, a later one does not."""
    member = Member("a", 0)
    member.touch(3, 10.0)
    member.learn(FileFact("a", "file", 1, 1, 5, 7), 4, 10.1)
    member.touch(6, 10.9)
    assert member.event == 6
    member.touch(9, 12.0)
    member.learn(FileFact("a", "file", 1, 1, 5, 7), 9, 12.1)
    assert member.event == 6


def test_a_removal_under_way_is_left_alone(stage: Stage) -> None:
    """What arrived by rename and is deleted file by file is not looked at in between."""
    stage.arrive("step_1", {f"{n}.bin": Thing(size=5, writers=1) for n in range(20)})
    stage.run(1)
    looks = len(stage.looks)
    for number in range(20):
        stage.remove(f"step_1/{number}.bin")
        stage.run(0.05)
    assert len(stage.looks) == looks


def test_changes_without_events_are_found_by_the_sweep(stage: Stage) -> None:
    """Everything is listed again after a minute, whatever the events said."""
    stage.has_events = False
    stage.write("a.pt")
    stage.run(62)
    assert stage.evidence() == {"a.pt": "format"}
    assert not stage.settled()[0].found


def test_a_tree_of_new_directories_is_listed_once(stage: Stage) -> None:
    """Directories that appear at once inside one another are listed with the outermost."""
    stage.has_events = False
    for path in ("a", "a/b", "a/b/c", "a/d"):
        stage.make(path)
    stage.has_events = True
    scans = len(stage.scans)
    for path in ("a", "a/b", "a/b/c", "a/d"):
        stage.eyes.hear(Touched(path, tree=True), stage.now)
    stage.run(1)
    assert [scan.path for _, scan in stage.scans[scans:]] == ["a"]


def test_polling() -> None:
    """A subtree without events is listed every two seconds, and quiet is what listings agree on."""
    stage = Stage(has_events=False, has_lease=False)
    stage.hear(Polled("nfs", "no events"))
    stage.hear(Polled("nfs/inner", "no events"))
    stage.run(1)
    start = stage.now
    for size in range(10):
        stage.write("nfs/step_1/a.bin", size + 1)
        stage.run(2)
    assert stage.settled() == []
    assert len([1 for at, scan in stage.scans if scan.path == "nfs" and at > start]) >= 9
    stage.run(10)
    assert stage.evidence() == {"nfs/step_1": "quiet"}
    assert stage.eyes.polled() == ("nfs",)


def test_an_event_during_a_look_makes_it_void() -> None:
    """What was heard after a look was ordered is newer than what the look found."""
    stage = Stage(latency=0.5, hears_writes=True)
    stage.run(2)
    stage.write("a.pt")
    stage.run(0.2)
    stage.open("a.pt", 50)
    stage.run(0.4)
    stage.close("a.pt")
    stage.run(0.2)
    assert stage.settled() == []
    stage.run(2)
    assert [s.listing.files[0].size for s in stage.settled()] == [50]


def test_failed_orders_are_tried_again(stage: Stage) -> None:
    """A scanner that could not carry out a look or a listing gets the order again, later."""
    stage.eyes.hear(Touched("a.pt"), stage.now)
    at = stage.now + 0.2
    (order,) = stage.eyes.orders(at)
    assert isinstance(order, Look)
    stage.eyes.ordered(order)
    assert list(stage.eyes.orders(at)) == []
    stage.eyes.hear(Failed(order.errand, "local", "no"), at)
    assert list(stage.eyes.orders(at + 1)) == []
    assert [o.errand for o in stage.eyes.orders(at + 2)] == [order.errand]


def test_an_order_waits_until_it_is_handed_out(stage: Stage) -> None:
    """Orders that nobody took are wanted again, and an answer to nothing changes nothing."""
    stage.eyes.hear(Touched("a.pt"), stage.now)
    stage.eyes.hear(Touched("b.pt"), stage.now)
    at = stage.now + 0.2
    first = next(stage.eyes.orders(at))
    assert next(stage.eyes.orders(at)) == first
    assert len(list(stage.eyes.orders(at))) == 2
    stage.eyes.hear(Looked(first.errand, (), ()), at)
    assert len(list(stage.eyes.orders(at))) == 2


def test_a_lost_root(stage: Stage) -> None:
    """When the watch root goes, so does everything in it; when it comes back, it is listed."""
    stage.write("a.pt")
    stage.run(1)
    stage.hear(RootLost(present=False))
    assert stage.removed() == ["a.pt"]
    stage.things.clear()
    stage.run(5)
    stage.has_events = False
    stage.write("b.pt")
    stage.has_events = True
    stage.hear(RootLost(present=True))
    stage.run(1)
    assert stage.evidence() == {"a.pt": "format", "b.pt": "format"}


# Links, pointers, companions --------------------------------------------------------------------


def test_links(stage: Stage) -> None:
    """A link beside a checkpoint that names it is a pointer, one inside it is a member."""
    save(stage, "step_10", "a.pt")
    stage.link("step_10/alias.pt", "a.pt")
    stage.link("newest", "step_10")
    stage.link("last.ckpt", "epoch=1.ckpt")
    stage.link("abs", "/somewhere/else/step_10/")
    stage.link("elsewhere", "/data/set")
    stage.link("out", "../../x")
    stage.run(20)
    assert sorted(stage.pointers()) == ["abs", "last.ckpt", "newest"]
    assert sorted(stage.companions()) == ["elsewhere", "out"]
    (settled,) = stage.settled()
    assert [f.target for f in settled.listing.files] == [None, "a.pt"]


def test_a_file_that_becomes_a_link(stage: Stage) -> None:
    """``last.ckpt`` is a checkpoint while it is a file, and a pointer once it is a link."""
    stage.write("last.ckpt")
    stage.run(1)
    stage.remove("last.ckpt")
    stage.link("last.ckpt", "epoch=1.ckpt")
    stage.run(20)
    assert stage.evidence() == {"last.ckpt": "format"}
    assert stage.pointers() == ["last.ckpt"]
    assert stage.removed() == ["last.ckpt"]


def test_pointers_are_told_when_they_change(stage: Stage) -> None:
    """A pointer is told soon after it was written, again when it changes, and never twice."""
    stage.write("latest", 11)
    stage.run(1)
    stage.hear(Touched("latest"))
    stage.run(1)
    stage.write("latest", 12)
    stage.run(1)
    assert stage.pointers() == ["latest", "latest"]


def test_companions_rest_first(stage: Stage) -> None:
    """A companion is told once it rested for 15 s; one that never rests, once a minute."""
    start = stage.now
    stage.write("config.yaml")
    while stage.now < start + 121:
        stage.write("train.log", int(stage.now))
        stage.run(1)
    assert stage.companions() == ["config.yaml", "train.log", "train.log"]


def test_companions_can_be_switched_off() -> None:
    """Without companions nothing is remembered of them, and pointers are told all the same."""
    stage = Stage(Policy(companions=False))
    stage.write("old.txt")
    stage.run(1)
    stage.write("config.yaml")
    stage.write("latest")
    stage.run(30)
    assert (stage.companions(), stage.pointers()) == ([], ["latest"])


def test_streams_inside_a_checkpoint_do_not_hold_it_up(stage: Stage) -> None:
    """A log that is open in a checkpoint's directory is no member of it."""
    save(stage, "step_1", "a.pt")
    stage.open("step_1/train.log")
    stage.run(10)
    (settled,) = stage.settled()
    assert [f.path for f in settled.listing.files] == ["step_1/a.pt"]
