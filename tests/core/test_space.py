"""Room on the trainer's disk: only copies of what is safe and was seen to be, never the newest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.messages import Discarded, ObjectSeen, RecordRead
from ckptsyncd.core.orders import Discard, GetSmall, Stat
from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.core.records.manifest import Manifest, encode
from ckptsyncd.core.records.memory import Recalled, SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.tidying.space import Space
from ckptsyncd.core.turn import Notebook
from tests.core.parts import manifest, stored
from tests.core.stage import Stage

RULES = Policy(local_bytes=150)
NAMES = ("run/a.ckpt", "run/b.ckpt", "run/c.ckpt")


class World:
    """Three files of 100 bytes each on a disk, all of them safe."""

    def __init__(self, policy: Policy = RULES) -> None:
        """Let the eyes see them settle, and call them safe."""
        self.stage = Stage(policy, commits=True)
        self.editions = Editions(policy, "me", Recalled())
        self.runs = Runs(policy, "host", "me", {}, {})
        for number, name in enumerate(NAMES):
            self.stage.write(name)
            self.stage.run(10.0)
            self.commit(name, number)
        self.space = Space(policy, self.eyes, self.editions, self.runs)

    @property
    def eyes(self) -> Eyes:
        """The eyes on the disk."""
        return self.stage.eyes

    def commit(self, name: str, number: int) -> Manifest:
        """Call a name safe; later ones are newer."""
        (told,) = [one for one in self.stage.settled() if one.checkpoint == name]
        made = manifest(stored(name, 100), checkpoint=name, step=number, committed_at=6.0 + number)
        self.editions.safe[name] = SafeRow(made, told.listing)
        self.runs.saw_commit(made, Notebook())
        return made

    def asks(self) -> list[GetSmall | Stat]:
        """Return what the store is asked."""
        return list(self.space.orders())

    def confirm(self, name: str, fact: Callable[[ObjectFact], ObjectFact | None]) -> None:
        """Let the store show the manifest, and what it has of the file."""
        (ask,) = self.asks()
        row = self.editions.safe[name]
        assert ask.errand.checkpoint == name
        self.space.read(RecordRead(ask.errand, encode(row.manifest), "1"), Notebook())
        (look,) = self.asks()
        seen = fact(ObjectFact(name, 100, crc64nvme=99))
        self.space.seen(ObjectSeen(look.errand, seen), Notebook())


def test_the_oldest_goes_once_it_was_seen_in_the_store() -> None:
    """Manifest and object first; then the very listing that was committed; and once only."""
    world = World()
    assert list(world.space.removals()) == []
    world.confirm(NAMES[0], lambda fact: fact)
    (order,) = world.space.removals()
    assert isinstance(order, Discard)
    assert order.listing == world.editions.safe[NAMES[0]].listing
    world.space.discarded(Discarded(order.errand), Notebook())
    assert world.space.freed_bytes == 100
    (ask,) = world.asks()
    assert ask.errand.checkpoint == NAMES[1]


@pytest.mark.parametrize(
    "fact",
    [lambda _: None, lambda it: replace(it, size=99), lambda it: replace(it, crc64nvme=7)],
    ids=["missing", "short", "changed"],
)
def test_what_the_store_lacks_stays_here(
    fact: Callable[[ObjectFact], ObjectFact | None],
) -> None:
    """A copy whose other half is not as it should be is the only one."""
    world = World()
    world.confirm(NAMES[0], fact)
    assert list(world.space.removals()) == []
    (ask,) = world.asks()
    assert ask.errand.checkpoint == NAMES[1]


def test_a_manifest_that_is_gone_keeps_its_copy() -> None:
    """The list of the start may be old."""
    world = World()
    (ask,) = world.asks()
    world.space.read(RecordRead(ask.errand, None, ""), Notebook())
    (other,) = world.asks()
    assert other.errand.checkpoint == NAMES[1]


def test_the_newest_never_goes() -> None:
    """However little room there is, each series keeps its newest."""
    world = World(replace(RULES, local_bytes=0))
    for name in NAMES[:2]:
        world.confirm(name, lambda fact: fact)
        (order,) = world.space.removals()
        world.space.discarded(Discarded(order.errand), Notebook())
    assert world.asks() == []


def test_what_a_pointer_names_stays() -> None:
    """The trainer would go on from it."""
    world = World()
    world.runs.of("run").pointers["run/latest"] = Pointer("run/latest", "symlink", "a.ckpt")
    (ask,) = world.asks()
    assert ask.errand.checkpoint == NAMES[1]


@pytest.mark.parametrize("policy", [Policy(), Policy(local_bytes=300)], ids=["off", "enough room"])
def test_nothing_goes_without_need(policy: Policy) -> None:
    """It is off by default, and below the mark nothing is asked."""
    assert World(policy).asks() == []


def test_what_was_written_again_stays() -> None:
    """What lies there now is not what is safe."""
    world = World()
    world.stage.write(NAMES[0], 120)
    (ask,) = world.asks()
    assert ask.errand.checkpoint == NAMES[1]


def test_a_copy_that_could_not_be_removed_is_told_and_left() -> None:
    """A disk that says no is not asked again and again."""
    world, notes = World(), Notebook()
    world.confirm(NAMES[0], lambda fact: fact)
    (order,) = world.space.removals()
    world.space.discarded(Discarded(order.errand, "read-only file system"), notes)
    assert len(notes.moves) == 1
    (ask,) = world.asks()
    assert ask.errand.checkpoint == NAMES[1]
