"""Begun uploads that nobody goes on with: found, remembered, and dropped when a hand is idle.

They cost money where nobody looks. So what is to be dropped is in the ledger until it is, and an
upload that may have been begun without anybody being told (a *stray*) is looked for in the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.facts import Begun, Limits
from ckptsyncd.core.orders import Abandon, Errand, ListUploads
from ckptsyncd.core.records import memory
from ckptsyncd.core.sending.edition import FileProgress
from ckptsyncd.core.turn import Notebook


@dataclass(slots=True)
class Leftovers:
    """What is to be dropped, and where strays are to be looked for.

    ``awaited`` are keys under which an upload is being begun for an edition that was given up
    meanwhile: until the answer comes, only the ledger's row keeps it from being forgotten.
    """

    can_abandon: bool = True
    garbage: dict[Errand, Begun] = field(default_factory=dict)
    strays: dict[Errand, ListUploads] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)

    def store_can(self, limits: Limits, notes: Notebook) -> None:
        """Take in what the store can do: where nothing can be dropped, it expires there."""
        self.can_abandon = limits.can_abandon
        if not self.can_abandon:
            for errand in [*self.garbage, *self.strays]:
                notes.ledger.append(memory.forget_garbage(errand.path))
            self.garbage.clear()
            self.strays.clear()

    def recall(self, begun: Iterable[Begun]) -> None:
        """Take in what a former daemon could not drop any more."""
        for one in begun:
            if one.token:
                self.garbage[_errand(one)] = one
            else:
                self.strays[_stray(one.key)] = ListUploads(_stray(one.key), one.key)

    def abandon(self, begun: Begun, notes: Notebook) -> None:
        """Have a begun upload dropped in the store."""
        if self.can_abandon:
            self.garbage[_errand(begun)] = begun
            notes.ledger.append(memory.garbage_row(begun))
            self.unbegun(begun.key, notes)

    def asked(self, waiting: FileProgress | None, key: str, notes: Notebook) -> None:
        """Note that an upload is being begun, for a file that may be stored by now."""
        if waiting is None:
            self.await_begun(key, notes)
        else:
            waiting.is_beginning = True

    def await_begun(self, key: str, notes: Notebook) -> None:
        """Remember that an upload is being begun under this key, for nobody any more."""
        if self.can_abandon:
            self.awaited.add(key)
            notes.ledger.append(memory.garbage_row(Begun(key, "", "", 0, 0)))

    def unbegun(self, key: str, notes: Notebook) -> None:
        """Take in that nothing more is being begun under a key."""
        if key in self.awaited:
            self.awaited.remove(key)
            notes.ledger.append(memory.forget_garbage(key))

    def not_begun(self, key: str, notes: Notebook, *, perhaps: bool) -> None:
        """Take in that an upload could not be begun, or that nobody knows."""
        if perhaps:
            self.look_for_stray(key, notes)
        else:
            self.unbegun(key, notes)

    def abandoned(self, errand: Errand, notes: Notebook) -> None:
        """Take in that a begun upload is dropped, or cannot be."""
        if self.garbage.pop(errand, None) is not None:
            notes.ledger.append(memory.forget_garbage(errand.path))

    def look_for_stray(self, key: str, notes: Notebook) -> None:
        """Look for an upload under this key that may have been begun."""
        self.awaited.discard(key)
        if self.can_abandon:
            self.strays[_stray(key)] = ListUploads(_stray(key), key)
            notes.ledger.append(memory.garbage_row(Begun(key, "", "", 0, 0)))

    def drop_strays(
        self, uploads: Iterable[Begun], key: str, known: Collection[str], notes: Notebook
    ) -> None:
        """Drop what was begun under one of our keys and is not among the known tokens."""
        if self.strays.pop(_stray(key), None) is not None:
            notes.ledger.append(memory.forget_garbage(key))
        for begun in uploads:
            if begun.key == key and begun.token not in known:
                self.abandon(begun, notes)

    def orders(self) -> Iterator[Abandon | ListUploads]:
        """Yield the orders to find and drop them."""
        yield from self.strays.values()
        for errand, begun in self.garbage.items():
            yield Abandon(errand, begun)


def _stray(key: str) -> Errand:
    return Errand("list strays", path=key)


def _errand(begun: Begun) -> Errand:
    return Errand("abandon", begun.key, path=begun.token)
