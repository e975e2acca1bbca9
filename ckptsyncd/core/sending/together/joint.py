"""How far one edition is that several machines store together, as one of them knows it.

A level like all progress of an edition: ``asking`` reads it and says what is to be asked of the
store next, ``replies`` changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.sending.together.part import Part
from ckptsyncd.core.sending.together.patience import HASTY_SECONDS

NO_PARTS: Mapping[int, Part] = MappingProxyType({})


@dataclass(slots=True)
class Joint:
    """Our share in an edition, and what was seen of the others'.

    ``save_id`` is the claim's: the name that all nodes have for this save. ``part``: whether our
    part is in the store; ``mine`` is that part. ``is_laid``: our files were laid out. ``checked``:
    nobody newer is on this node, as far as the store knew when all our files were stored.
    ``here`` are the nodes whose parts were listed, ``parts`` those that were read, ``whole`` what
    they make together; ``confirmed_at``: the claim still stood then, and nobody had pruned it.
    ``seeks``: the next question is for the manifest, else for the list. ``bids``: we would commit,
    if nobody else has said so. ``reads``: the others' parts are to be read, for we commit. ``due``
    is when to ask again and ``since`` when our part was there (boot seconds); ``reason`` says what
    is waited for.
    """

    save_id: str = ""
    part: Literal["no", "doubt", "yes"] = "no"
    mine: Part | None = None
    is_laid: bool = False
    checked: bool = False
    here: frozenset[int] = frozenset()
    parts: dict[int, Part] = field(default_factory=dict)
    whole: Manifest | None = None
    confirmed_at: float = float("-inf")
    seeks: bool = False
    reads: bool = False
    bids: bool = False
    asks: int = 0
    was_whole: bool = False
    due: float = float("-inf")
    waits_since: float = float("-inf")
    since: float = float("inf")
    reason: str = ""

    def due_at(self, *, hasty: bool) -> float:
        """Return when to ask again: what was put off before time became short is asked soon."""
        return min(self.due, self.waits_since + HASTY_SECONDS) if hasty else self.due

    @property
    def is_waiting(self) -> bool:
        """Whether everything of ours is in the store, and only others are waited for."""
        return self.part == "yes"

    @property
    def is_incomplete(self) -> bool:
        """Whether others were waited for longer than is usual."""
        return self.reason.startswith(INCOMPLETE)

    def nodes(self, counted: int) -> Iterable[int]:
        """Return the nodes whose parts are to be read: all, or who is there if nobody counted."""
        return range(counted) if counted else sorted(self.here)

    def begin_again(self, parts: Mapping[int, Part] = NO_PARTS) -> None:
        """Forget what was seen of the others but these parts: ask for the manifest, then list."""
        self.parts = dict(parts)
        self.whole = None
        self.reads, self.seeks, self.was_whole = False, True, False


#: How the reason of an edition begins that waited for other nodes longer than is usual.
INCOMPLETE = "incomplete: "
