"""What this server really does, found out by trying: emulators accept much and do half of it."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.errors import Gone, Lost, Missing, Never, Refused
from ckptsyncd.stores.gcs.objects import IF_FREE, Label, Objects
from ckptsyncd.stores.gcs.parts import Parts
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.rounds import Notes

#: What servers answer to what they do not have; Google itself knows every request of ours.
UNKNOWN = (Never, Missing, Gone)


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out.

    Conditions: ``create_only`` of a put, ``matches`` of a put over a version, ``moves_create_only``
    of the move that ends an upload.
    """

    multipart: bool
    moves: bool
    create_only: bool
    matches: bool
    moves_create_only: bool

    def in_words(self) -> str:
        """Say it in one line."""
        way = "parallel parts" if self.multipart else "one ordered session per file"
        end = "a move" if self.moves else "a copy inside the store"
        ignored = [
            name
            for name, honoured in (
                ("create-only", self.create_only),
                ("compare-and-set", self.matches),
                ("create-only at the end of uploads", self.moves_create_only),
            )
            if not honoured
        ]
        conditions = f"ignores {', '.join(ignored)}" if ignored else "every condition is honoured"
        return f"{way}, ended by {end}; crc32c compared; {conditions}"


@dataclass(frozen=True, slots=True)
class Known:
    """What single steps found out, and ``all`` of them once nothing is missing.

    ``moves``: whether there is a move, and whether its like respects a key that is taken.
    """

    moves: tuple[bool, bool] | None = None
    multipart: bool | None = None
    create_only: bool | None = None
    matches: bool | None = None
    all: Findings | None = None


class Probe:
    """One round of trying, on two objects of its own, which it removes."""

    def __init__(
        self, objects: Objects, parts: Parts, name: str, notes: Notes[Known], *, resumable: bool
    ) -> None:
        """Try below ``name``; ``notes`` are what earlier rounds found out."""
        self._objects = objects
        self._parts = parts
        self._name = name
        self._notes = notes
        self._resumable = resumable

    def findings(self) -> Findings:
        """Try, writing each object once: the store asks for at most one write a second to each."""
        is_new = self._notes.known.all is None
        found = self._notes.step("all", lambda: self._try_all(f"{self._name}.a"))
        if is_new:
            self.wipe()
        return found

    def wipe(self) -> None:
        """Remove what a round stores."""
        for name in (f"{self._name}.a", f"{self._name}.b"):
            self._objects.delete(name)

    def wipe_all(self) -> None:
        """Remove also what nobody was told of."""
        self.wipe()
        if not self._resumable:
            for name, upload_id in self._parts.list(self._name):
                self._parts.abort(upload_id, name)

    def _try_all(self, taken: str) -> Findings:
        made = self._put(taken, IF_FREE)
        wrong = str(int(made["generation"]) - 1)
        moves, moves_create_only = self._notes.step("moves", lambda: self._moving(taken))
        return Findings(
            multipart=not self._resumable and self._notes.step("multipart", self._has_multipart),
            moves=moves,
            create_only=self._notes.step("create_only", lambda: self._refuses(taken, IF_FREE)),
            matches=self._notes.step(
                "matches", lambda: self._refuses(taken, {"ifGenerationMatch": wrong})
            ),
            moves_create_only=moves_create_only,
        )

    def _put(self, name: str, condition: dict[str, str]) -> dict[str, str]:
        return self._objects.insert(name, Passing(BytesBody(b"?")).summed(), None, condition)

    def _refuses(self, name: str, condition: dict[str, str]) -> bool:
        try:
            self._put(name, condition)
        except Lost:
            return True
        return False

    def _moving(self, taken: str) -> tuple[bool, bool]:
        """Return whether there is a move, and whether its like respects a key that is taken."""
        name = f"{self._name}.b"
        self._put(name, IF_FREE)
        try:
            self._objects.move(name, taken, IF_FREE)
        except Lost:
            return True, True
        except UNKNOWN:
            return False, self._copying(name, taken)
        return True, False

    def _copying(self, name: str, taken: str) -> bool:
        try:
            self._objects.rewrite(name, taken, Label("probe"), IF_FREE)
        except Lost:
            return True
        return False

    def _has_multipart(self) -> bool:
        name = f"{self._name}.c"
        try:
            upload_id = self._parts.begin(name, Label("probe"))
        except (*UNKNOWN, Refused):  # a role may allow objects and no multipart uploads
            return False
        self._parts.abort(upload_id, name)
        return True
