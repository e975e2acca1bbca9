"""What object stores do alike: conditions on writes, and trying out once what a server can do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ckptsyncd.core.facts import Condition, IfAbsent, IfMatches
from ckptsyncd.errors import Lost, Missing

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Conditions(Generic[T]):
    """How a store writes conditions, and how it asks for an object's version (Missing: none).

    Where a server ignores conditions somebody else may still write between the look and the write:
    that is what ``Limits`` then say.
    """

    none: T
    if_free: T
    if_matches: Callable[[str], T]
    version: Callable[[str], str]

    def free(self, key: str, *, honoured: bool) -> T:
        """Return the condition that nothing has this key; Lost where a look shows something."""
        if honoured:
            return self.if_free
        try:
            self.version(key)
        except Missing:
            return self.none
        msg = f"{key}: exists already"
        raise Lost(msg)

    def asked(self, key: str, condition: Condition, *, creates: bool, matches: bool) -> T:
        """Return what a record is written under; Lost where a look shows another version.

        ``creates``, ``matches``: the server was seen to honour this kind of condition.
        """
        if isinstance(condition, IfAbsent):
            return self.free(key, honoured=creates)
        if not isinstance(condition, IfMatches):
            return self.none
        if matches:
            return self.if_matches(condition.version)
        try:
            same = self.version(key) == condition.version
        except Missing:
            same = False
        if not same:
            msg = f"{key}: is not at version {condition.version} any more"
            raise Lost(msg)
        return self.none


class Tried(Generic[T]):
    """What trying a server out has found. Several threads may ask; one tries, the others wait."""

    def __init__(self, try_out: Callable[[], T]) -> None:
        """Try nothing yet."""
        self._try_out = try_out
        self._lock = threading.Lock()
        self.known: T | None = None

    def found(self) -> T:
        """Return what was found; tried where it was not yet, and again after a failure."""
        with self._lock:
            if self.known is None:
                self.known = self._try_out()
            return self.known
