"""What lies beside the checkpoints: the frameworks' pointers, and companions such as logs.

Neither is part of a promise: pointers wait for their targets, companions for idle hands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.messages import Message, PointerRead, RecordPut
from ckptsyncd.core.orders import Errand, PutCompanion, ReadPointer
from ckptsyncd.core.records import names
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.sightings import CompanionSeen, PointerSeen


@dataclass(slots=True)
class Beside:
    """Pointers to be read and companions to be stored."""

    policy: Policy
    unread: dict[Errand, ReadPointer] = field(default_factory=dict)
    series_of: dict[str, str] = field(default_factory=dict)
    companions: dict[Errand, PutCompanion] = field(default_factory=dict)

    def pointer(self, seen: PointerSeen) -> None:
        """Have a pointer read."""
        self.series_of[seen.path] = seen.series
        errand = Errand("read pointer", path=seen.path)
        self.unread[errand] = ReadPointer(errand, seen.path)

    def companion(self, seen: CompanionSeen) -> None:
        """Have a companion stored as it is now, when a hand is idle."""
        size = seen.fact.size
        if not self.policy.companions or size > self.policy.companion_max_bytes:
            return
        errand = Errand("companion", path=seen.path)
        key = names.COMPANIONS + names.key_of_path(seen.path)
        self.companions[errand] = PutCompanion(errand, key, seen.path, size)

    def reads(self) -> Iterator[ReadPointer]:
        """Yield the pointers that are to be read."""
        yield from self.unread.values()

    def hear(self, message: Message, runs: Runs) -> bool:
        """Take in the answer to one of its own orders; return whether it was one."""
        if isinstance(message, PointerRead):
            self.unread.pop(message.errand, None)
            path = message.errand.path
            runs.saw_pointer(self.series_of.get(path, "."), path, message.kind, message.text)
            return True
        if isinstance(message, RecordPut) and message.errand.purpose == "companion":
            self.companions.pop(message.errand, None)
            return True
        return False

    def give_up(self, errand: Errand) -> None:
        """Forget a companion that cannot be stored; its next change brings it back."""
        self.companions.pop(errand, None)
