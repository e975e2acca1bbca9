"""The store, tried with the verbs that the daemon uses, on records of our own that are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from secrets import token_hex

from ckptsyncd.check.finding import Finding, fail, failed, ok, warn
from ckptsyncd.core.facts import IfAbsent, IfMatches, Limits
from ckptsyncd.core.ports import Expiring, Store
from ckptsyncd.core.records.names import OURS
from ckptsyncd.core.words import duration_words
from ckptsyncd.errors import Lost, Missing, Refused, StoreError

#: What is tried lies below this, in the store's own prefix.
PROBE = OURS + "probe/"
_CONTENT = b"ckptsyncd check: may be removed"
_OTHER = b"ckptsyncd check: written over"
#: Credentials that end sooner than this are worth a line (guessed: a night).
_SOON_SECONDS = 12 * 3600.0

#: How trustworthy each way of checking content is.
_STRONG = {
    "crc64nvme": "CRC64-NVME, part and whole",
    "crc32c": "CRC32C of every object",
    "sha256": "signed SHA-256 of every part",
    "md5": "MD5 of every part",
}


#: What a policy must allow for each step, where the store refuses it.
_ALLOW = {
    "write": "allow writing below the whole prefix",
    "read": "allow reading below the whole prefix: a restore and every comparison need it",
    "overwrite": "allow writing below the whole prefix, also over what is there",
    "list": "allow listing of the whole prefix: what is safe is known from the list",
}


def store(opened: Store, wall: float, *, prunes: bool) -> Iterator[Finding]:
    """Yield the findings as they are made; nothing is tried after the store could not be written.

    ``wall`` is the time now. ``prunes``: the settings have the daemon remove what is old.
    """
    try:
        limits = opened.limits
    except StoreError as error:
        yield failed("store", error)
        return
    yield ok("store", opened.describe())
    yield from (credentials(opened, wall), content(limits), conditions(limits))
    yield from Trial(opened).findings()
    if prunes:
        yield removal(opened)


def credentials(opened: Store, wall: float) -> Finding:
    """Judge when the credentials end, as far as the store's SDK tells."""
    end = opened.credentials_expire_at() if isinstance(opened, Expiring) else None
    if end is None:
        return ok("credentials", "accepted; they do not end, or are renewed by themselves")
    moment = datetime.fromtimestamp(end, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    text = f"accepted; they end {moment}, in {duration_words(end - wall)}, and nobody renews them"
    if end - wall < _SOON_SECONDS:
        return warn("credentials", text, "give credentials that outlive the run, or a role")
    return ok("credentials", text)


def content(limits: Limits) -> Finding:
    """Judge how the store proves that it has the bytes."""
    strong = _STRONG.get(limits.checksum)
    if strong:
        return ok("checksums", f"the store checks {strong}")
    if limits.checksum == "size":
        text = "content is not checked: files are safe (size only), as trust_size says"
        return warn("checksums", text, "take trust_size away, or use a store that checks")
    text = "the store checks no content; every object is read back before it is safe"
    return warn("checksums", text, "it is twice the traffic; a store that checks needs none of it")


def conditions(limits: Limits) -> Finding:
    """Judge whether two writers are kept apart."""
    missing = [
        what
        for what, able in (
            ("create-only uploads", limits.create_only_finish),
            ("compare-and-set", limits.compare_and_set),
        )
        if not able
    ]
    if missing:
        text = f"the store has no {' and no '.join(missing)}"
        return warn("conditions", text, "let a single daemon write below this prefix at a time")
    return ok("conditions", "create-only and compare-and-set are honoured")


def removal(opened: Store) -> Finding:
    """Judge whether checkpoints may be removed: rights may end below the trial's own place.

    What is removed is a key that nobody has: stores look at rights first, and so nothing lies there
    before or after (but in a bucket with versions, which may keep a mark of the removal).
    """
    try:
        opened.delete(f"check-{token_hex(8)}")
    except StoreError as error:
        text = f"checkpoints may not be removed: {error}"
        hint = "allow deleting below the whole prefix, or take keep_last and its like away"
        return warn("prune", text, hint)
    return ok("prune", "checkpoints may be removed, as the settings ask for")


class Trial:
    """Writes, reads, lists and removes one record, each as a finding of its own."""

    def __init__(self, opened: Store) -> None:
        """Choose a key that nobody else uses."""
        self._store = opened
        self._key = f"{PROBE}check-{token_hex(8)}"
        self._version = ""

    def findings(self) -> Iterator[Finding]:
        """Yield them; what is left of the trial is removed, whatever fails or interrupts."""
        try:
            yield from self._steps()
        finally:
            with suppress(StoreError):  # told already, by the step that removes it
                self._store.delete(self._key)

    def _steps(self) -> Iterator[Finding]:
        steps: tuple[tuple[str, Callable[[], Finding]], ...] = (
            ("write", self._write),
            ("read", self._read),
            ("overwrite", self._overwrite),
            ("list", self._list),
            ("delete", self._delete),
        )
        for subject, step in steps:
            finding = _done(subject, step)
            yield finding
            if subject == "write" and finding.level == "fail":
                return

    def _write(self) -> Finding:
        self._version = self._store.put_small(self._key, _CONTENT, IfAbsent())
        try:
            self._store.put_small(self._key, _OTHER, IfAbsent())
        except Lost:
            return ok("write", f"allowed below {PROBE}; a second create is refused")
        text = "a second create of the same key was not refused"
        return warn("write", text, "let a single daemon write below this prefix at a time")

    def _read(self) -> Finding:
        data, self._version = self._store.get_small(self._key, len(_CONTENT))
        size = self._store.stat(self._key).size
        if data not in (_CONTENT, _OTHER) or size != len(data):
            hint = "do not keep checkpoints there: it gives other bytes back than it was given"
            return fail("read", "other bytes came back than were written", hint, 5)
        return ok("read", "the same bytes come back")

    def _overwrite(self) -> Finding:
        stale = self._version
        self._version = self._store.put_small(self._key, _OTHER, IfMatches(stale))
        try:
            self._store.put_small(self._key, _CONTENT, IfMatches(stale))
        except Lost:
            return ok("overwrite", "allowed, and refused over what somebody else wrote")
        text = "a write over a newer version was not refused"
        return warn("overwrite", text, "let a single daemon write below this prefix at a time")

    def _list(self) -> Finding:
        if any(fact.key == self._key for fact in self._store.list(PROBE)):
            return ok("list", "allowed; what was written is listed")
        return fail("list", "what was written is not listed", _ALLOW["list"], 5)

    def _delete(self) -> Finding:
        self._store.delete(self._key)
        try:
            self._store.stat(self._key)
        except Missing:
            return ok("delete", f"allowed below {PROBE}; nothing of the trial is left")
        except StoreError:  # told already, by the step that reads
            return ok("delete", f"allowed below {PROBE}; that it is gone could not be seen")
        text = f"{self._key} is still there after it was deleted"
        return warn("delete", text, "prune and cleaning up need it; uploads do not")


def _done(subject: str, step: Callable[[], Finding]) -> Finding:
    """Return what a step found, or what its failure means."""
    try:
        return step()
    except StoreError as error:
        if subject == "delete":
            text = f"not allowed, so what the trial wrote stays below {PROBE}: {error}"
            return warn("delete", text, "prune and cleaning up need it; uploads do not")
        if isinstance(error, Refused) and error.hint == Refused.hint:
            return fail(subject, str(error), _ALLOW[subject], error.exit_code)
        return failed(subject, error)
