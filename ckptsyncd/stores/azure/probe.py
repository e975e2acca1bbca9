"""What this server really does, found out by trying: emulators do not have all of it."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.errors import Again, Lost, Never
from ckptsyncd.stores.azure.blobs import (
    IF_FREE,
    NO_CONDITION,
    Blobs,
    Condition,
    Label,
    block_id,
    declared_of,
    if_matches,
)
from ckptsyncd.stores.azure.faults import says_damaged
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.rounds import Notes

#: Checks that the service has, the stronger one first.
CHECKS = ("crc64nvme", "md5")

#: A version that no blob has.
NOWHERE = "0x0000000000000000"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out.

    ``check`` was seen to be refused where it is wrong, of blocks and of whole blobs; empty where
    none was. Conditions: ``create_only`` of a put, ``matches`` of a put over a version,
    ``commits_create_only`` of the commit that ends an upload.
    """

    check: str
    create_only: bool
    matches: bool
    commits_create_only: bool

    def in_words(self) -> str:
        """Say it in one line."""
        ignored = [
            name
            for name, honoured in (
                ("create-only", self.create_only),
                ("compare-and-set", self.matches),
                ("create-only at the end of uploads", self.commits_create_only),
            )
            if not honoured
        ]
        conditions = f"ignores {', '.join(ignored)}" if ignored else "every condition is honoured"
        return f"{self.check or 'no checksum'} checked for each block; {conditions}"


@dataclass(frozen=True, slots=True)
class Known:
    """What single steps found out, and ``all`` of them once nothing is missing."""

    check: str | None = None
    create_only: bool | None = None
    matches: bool | None = None
    commits_create_only: bool | None = None
    all: Findings | None = None


class Probe:
    """One round of trying, on one blob of its own, which it removes."""

    def __init__(self, blobs: Blobs, name: str, notes: Notes[Known]) -> None:
        """Try at ``name``; ``notes`` are what earlier rounds found out."""
        self._blobs = blobs
        self._name = name
        self._notes = notes

    def findings(self) -> Findings:
        """Try; what was staged meanwhile goes with the blob."""
        is_new = self._notes.known.all is None
        found = self._notes.step("all", self._try_all)
        if is_new:
            self._blobs.delete(self._name)
        return found

    def _try_all(self) -> Findings:
        check = self._notes.step("check", self._check)
        self._put(IF_FREE)
        return Findings(
            check=check,
            create_only=self._step_refuses("create_only", IF_FREE),
            matches=self._step_refuses("matches", if_matches(NOWHERE)),
            commits_create_only=self._notes.step("commits_create_only", self._refuses_commit),
        )

    def _check(self) -> str:
        return next((check for check in CHECKS if self._is_checked(check)), "")

    def _step_refuses(self, name: str, condition: Condition) -> bool:
        return self._notes.step(name, lambda: self._refuses(condition))

    def _is_checked(self, check: str) -> bool:
        wrong = declared_of(check, b"!")
        try:
            self._blobs.stage(self._name, block_id("probe", 0), BytesBody(b"?"), wrong)
        except Again as error:
            if not says_damaged(error):
                raise
        except Never:
            return False
        else:
            return False
        return self._is_checked_whole(check)

    def _is_checked_whole(self, check: str) -> bool:
        try:
            self._blobs.put(self._name, b"?", None, declared_of(check, b"!"), NO_CONDITION)
        except Again as error:
            if not says_damaged(error):
                raise
            return True
        self._blobs.delete(self._name)
        return False

    def _put(self, condition: Condition) -> None:
        self._blobs.put(self._name, b"?", None, {}, condition)

    def _refuses(self, condition: Condition) -> bool:
        try:
            self._put(condition)
        except Lost:
            return True
        return False

    def _refuses_commit(self) -> bool:
        block = block_id("probe", 0)
        self._blobs.stage(self._name, block, BytesBody(b"?"), {})
        try:
            self._blobs.commit(self._name, [block], Label("probe", 0, ""), IF_FREE)
        except Lost:
            return True
        return False
