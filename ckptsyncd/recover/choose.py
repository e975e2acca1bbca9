"""Which editions a request means, newest first; pure.

Somebody who asks for what is not there is told what is, and never that a fresh start is right.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.records import names
from ckptsyncd.errors import CkptsyncdError, NoCheckpoint, UsageError
from ckptsyncd.recover.catalog import Broken, Catalog, Entry
from ckptsyncd.recover.request import RestoreRequest

#: How many names an error lists (guessed: what fits on a screen).
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """The editions to try, newest first, and unreadable ones that may have been meant.

    ``lack`` is the error to raise where there is nothing to try: NoCheckpoint where the store holds
    nothing at all, UsageError where nothing that it holds fits. It may go away with time.
    """

    entries: tuple[Entry, ...] = ()
    broken: tuple[Broken, ...] = ()
    lack: CkptsyncdError | None = None


def choose(catalog: Catalog, request: RestoreRequest) -> Choice:
    """Return what a request means; UsageError where several series fit."""
    if not catalog.entries and not catalog.broken:
        return Choice(lack=NoCheckpoint("there is no checkpoint in the store"))
    named, broken = fitting(catalog, request.checkpoint)
    if catalog.entries and request.checkpoint is None:
        broken = tuple(one for one in broken if not one.pruned)
    entries = tuple(entry for entry in named if _fits(entry, request))
    several = sorted({entry.series for entry in entries})
    if len(several) > 1:
        msg = f"several series fit: {_listing(several)}"
        raise UsageError(msg, hint="name one with --series")
    may_be_broken = broken and (request.checkpoint is not None or not catalog.entries)
    if not entries and not may_be_broken:
        known = _listing([entry.title for entry in catalog.entries])
        msg = f"no checkpoint fits; the store has {known}"
        return Choice(lack=UsageError(msg, hint="see 'ckptsyncd list URL'"))
    return Choice(entries, broken)


def fitting(catalog: Catalog, text: str | None) -> tuple[tuple[Entry, ...], tuple[Broken, ...]]:
    """Return the editions that ``NAME[@EDITION]`` means, and unreadable ones that it may mean."""
    name, edition = _named(catalog, text)
    entries = tuple(
        entry
        for entry in catalog.entries
        if name in (None, entry.checkpoint) and edition in (None, entry.edition)
    )
    broken = tuple(
        one
        for one in catalog.broken
        if edition in (None, one.edition)
        and (name is None or one.key == names.manifest_key(name, one.edition))
    )
    return entries, broken


def _named(catalog: Catalog, text: str | None) -> tuple[str | None, int | None]:
    """Return the name and the edition in ``NAME[@EDITION]``; a name may have an ``@`` itself."""
    if text is None or any(one.checkpoint == text for one in catalog.entries):
        return text, None
    name, at, number = text.rpartition("@")
    if at and name and number.isascii() and number.isdecimal() and len(number) < 10:  # noqa: PLR2004
        return name, int(number)
    return text, None


def _fits(entry: Entry, request: RestoreRequest) -> bool:
    in_series = request.series in (None, entry.series)
    return in_series and request.step in (None, entry.step)


def _listing(titles: list[str]) -> str:
    shown = ", ".join(repr(title) for title in titles[:_LISTED])
    return f"{shown} and {len(titles) - _LISTED} more" if len(titles) > _LISTED else shown
