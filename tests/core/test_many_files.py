"""What a checkpoint of very many files must not cost: the same kept twice, all counted anew."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.facts import FileLook
from ckptsyncd.core.records import names
from ckptsyncd.core.seeing.units import Member
from tests.core.parts import edition, fact, stored

SEEN = fact("run/step-1/a.pt", ctime_ns=3)


def member() -> Member:
    """Return a file of a checkpoint that was listed once."""
    one = Member(SEEN.path, 0)
    one.move("run/step-1")
    one.learn(SEEN, asked=1, now=1.0)
    return one


def test_what_is_heard_again_is_not_kept_again() -> None:
    """A listing that says the same, but for the ctime that our links move, leaves what settled."""
    one = member()
    assert not one.learn(replace(SEEN, ctime_ns=9), asked=2, now=2.0)
    assert one.fact is SEEN
    assert one.known == 2


def test_another_mode_is_noted() -> None:
    """A mode is no content, and a restore brings the newest back."""
    one = member()
    one.learn(replace(SEEN, mode=0o600), asked=2, now=2.0)
    assert one.fact is not None
    assert one.fact.mode == 0o600


def test_a_look_and_what_it_saw_are_one() -> None:
    """What a look found is kept once, and no look makes another content known."""
    one = member()
    look = FileLook(replace(SEEN), writer="none")
    one.examine(look)
    assert one.fact is look.fact
    one.examine(FileLook(replace(SEEN, size=99), writer="none"))
    assert one.fact is look.fact
    assert one.needs_look


def test_a_member_of_another_unit_has_another_path_in_it() -> None:
    """The path below the checkpoint follows where the file belongs."""
    one = member()
    assert one.rel == "a.pt"
    one.move("run")
    assert one.rel == "step-1/a.pt"
    one.move(".")
    assert one.rel == "run/step-1/a.pt"


def test_a_key_that_is_its_path_is_kept_once() -> None:
    """Nothing is encoded in most names: the key is the path's own object."""
    assert names.key_of_path(SEEN.path) is SEEN.path
    assert names.key_of_path("run/100%") == "run/100%25"


def test_stored_bytes_are_counted_as_they_come() -> None:
    """What is kept counts, and nothing does after a new beginning."""
    one = edition(fact("a", 10), fact("b", 5))
    one.keep(stored("a", 10))
    assert (one.bytes, one.bytes_stored) == (15, 10)
    one.keep(stored("b", 5))
    assert one.bytes_stored == 15
    one.begin_anew()
    assert (one.bytes_stored, one.files, one.stored) == (0, {}, {})
