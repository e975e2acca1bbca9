"""Trying a server out in rounds, until one comes through, and removing what failed ones left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import Field, replace
from secrets import token_hex
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ckptsyncd.core.records.names import OURS
from ckptsyncd.errors import Again, StoreError
from ckptsyncd.stores.conditions import Tried


class Row(Protocol):
    """A store's own row of what its rounds find out.

    That is a frozen dataclass, with ``None`` in every field at first.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T")
K = TypeVar("K", bound=Row)


class Notes(Generic[K]):
    """What rounds have found out so far, kept from one to the next."""

    def __init__(self, nothing: K) -> None:
        """Know nothing yet."""
        self.known = nothing

    def step(self, name: str, act: Callable[[], T]) -> T:
        """Return what the field of this name says; found out where it says nothing."""
        found: T | None = getattr(self.known, name)
        if found is None:
            found = act()
            self.known = replace(self.known, **{name: found})
        return found


class Rounds(Generic[K, T]):
    """Tries a server out, each round below a name that nobody has used before.

    A round that fails is tried again next time; what it found out need not be found out again, so
    that a bad moment costs one step, not all of them. ``wipe`` removes what lies below a name.
    """

    def __init__(
        self,
        root: str,
        nothing: K,
        one: Callable[[str, Notes[K]], T],
        wipe: Callable[[str], object],
    ) -> None:
        """Try nothing yet. ``one`` makes one round, and leaves nothing behind where it succeeds.

        ``nothing`` is what is known before the first one.
        """
        self._root = root
        self._one = one
        self._wipe = wipe
        self._notes = Notes(nothing)
        self._failed: list[str] = []
        self._tried = Tried(self._try_out)

    @property
    def known(self) -> T | None:
        """What was found out, ``None`` where no round came through yet."""
        return self._tried.known

    def found(self) -> T:
        """Try the server out, once; everybody else waits. A failure is tried again next time.

        What failed rounds left there is removed afterwards, one with each call. What may not be
        removed, or listed, is left to the bucket's own rules.
        """
        found = self._tried.found()
        with suppress(IndexError):  # another thread was quicker
            if self._failed:
                self._remove(self._failed.pop())
        return found

    def _remove(self, name: str) -> None:
        try:
            self._wipe(name)
        except Again:
            self._failed.append(name)
        except StoreError:
            return

    def _try_out(self) -> T:
        """Try in rounds: one that found out something before it failed is followed at once.

        It takes ten to twenty requests, of which one fails most of the time where many do.
        """
        while True:
            before = self._notes.known
            try:
                return self._round()
            except Again as error:
                if self._notes.known == before or error.wait_seconds:
                    raise

    def _round(self) -> T:
        name = f"{self._root}{OURS}probe/{token_hex(8)}"
        self._failed.append(name)
        found = self._one(name, self._notes)
        self._failed.remove(name)
        return found
