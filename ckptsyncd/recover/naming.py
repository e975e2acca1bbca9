"""What names a checkpoint from outside: the hint of its series, and the framework's pointers."""

from __future__ import annotations

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Latest
from ckptsyncd.core.sending.pointing import target_of
from ckptsyncd.errors import Missing, Never, PathRefused
from ckptsyncd.recover.catalog import Entry, Series
from ckptsyncd.recover.patience import Pace, patiently
from ckptsyncd.recover.pointing import stored_pointers


def named(store: Store, series: Series, pace: Pace) -> dict[str, str]:
    """Return the titles of a series that something names, and what names each.

    A pointer names the newest edition of the checkpoint that it names.
    """
    found = {}
    pointers, _ = stored_pointers(store, series.name, pace)
    known = [(entry.checkpoint, entry.step) for entry in series.entries]
    for pointer in pointers:
        target = target_of(pointer, known)
        entry = next((one for one in series.entries if one.checkpoint == target), None)
        if entry is not None:
            found[entry.title] = f"the pointer {pointer.path!r} names it"
    hinted = _hinted(store, series, pace)
    if hinted is not None:
        found[hinted.title] = "latest names it"
    return found


def _hinted(store: Store, series: Series, pace: Pace) -> Entry | None:
    key = names.latest_key(series.name)
    try:
        latest = Latest.decode(patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), pace)[0])
    except (Missing, Never, PathRefused):
        return None
    wanted = (latest.checkpoint, latest.edition)
    return next((one for one in series.entries if (one.checkpoint, one.edition) == wanted), None)
