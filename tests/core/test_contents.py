"""Checkpoints that are given other names after they were whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.messages import Polled
from ckptsyncd.core.seeing.contents import MOST_FILES, Contents
from tests.core.stage import Stage, save

FILES = ("config.json", "model.safetensors", "trainer_state.json")


def listing(name: str, *files: tuple[str, int], size: int = 5) -> Listing:
    """Return files with their inodes."""
    facts = (FileFact(f"{name}/{rel}", "file", 1, inode, size, 9) for rel, inode in files)
    return Listing(tuple(facts))


@pytest.mark.parametrize("has_events", [True, False])
def test_a_whole_checkpoint_stays_whole_under_another_name(*, has_events: bool) -> None:
    """Links of ours moved its ctimes since, and its marker is not the newest of its files."""
    stage = Stage(has_events=has_events)
    if not has_events:
        stage.hear(Polled("", "asked for"))
    stage.run(1)
    save(stage, "checkpoint-1", *FILES)
    stage.run(30)
    stage.things["checkpoint-1/config.json"].ctime = stage.now
    stage.rename("checkpoint-1", "checkpoint-2")
    stage.run(30)
    assert stage.evidence() == {"checkpoint-1": "marker", "checkpoint-2": "rename"}


def test_other_content_under_another_name_is_judged_anew() -> None:
    """One file more, less, larger, replaced or named otherwise, and it is not what was whole."""
    contents = Contents()
    contents.keep("a", listing("a", ("x", 1), ("y", 2)))
    assert contents.has("b/c", listing("b/c", ("x", 1), ("y", 2)))
    assert contents.has("a", listing("a", ("x", 1), ("y", 2)))
    for other in (
        listing("b", ("x", 1)),
        listing("b", ("x", 1), ("y", 2), ("z", 3)),
        listing("b", ("x", 1), ("y", 3)),
        listing("b", ("x", 1), ("z", 2)),
        listing("b", ("x", 1), ("y", 2), size=6),
        Listing(()),
    ):
        assert not contents.has("b", other)


def test_what_is_remembered_is_bounded() -> None:
    """The oldest contents are forgotten, the newest never, however many files it has."""
    contents = Contents()
    small = [listing(f"s{k}", *((f"{n:05d}", k * 2000 + n) for n in range(1000))) for k in range(9)]
    for number, each in enumerate(small):
        contents.keep(f"s{number}", each)
    assert contents.has("s0", small[0])
    files = [(f"{n:05d}", 10**6 + n) for n in range(MOST_FILES + 1)]
    contents.keep("large", listing("large", *files))
    assert contents.has("other", listing("other", *files))
    assert not any(contents.has(f"s{number}", each) for number, each in enumerate(small))
    contents.keep("s0", small[0])
    contents.keep("s1", small[1])
    assert contents.has("s0", small[0])
    assert not contents.has("large", listing("large", *files))


def test_a_copy_that_kept_its_times_is_whole() -> None:
    """Moved to another disk and back it has new inodes; one file whose time is newer is no copy."""
    made = [FileFact(f"a/{rel}", "file", 1, at, 5, at) for at, rel in enumerate("xyz", 1)]
    there = [replace(fact, path=f"b/{fact.path[2:]}", device=2, inode=9) for fact in made]
    contents = Contents()
    contents.keep("a", Listing(tuple(made)))
    assert contents.has("b", Listing(tuple(there)))
    assert not contents.has("b", Listing((*there[:2], replace(there[2], mtime_ns=9))))
    assert not contents.has("b", Listing((*there[:2], replace(there[2], size=4))))
