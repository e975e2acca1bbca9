"""Which edition goes first: newest finished first, and against a deadline what still fits.

Outside a drain an upload that has begun is finished before a newer one starts: when saves come
faster than uploads, starting over with each save would never finish any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ckptsyncd.core.edition import Edition
from ckptsyncd.core.series import Rank

RankOf = Callable[[Edition], Rank]


def calm_order(editions: Iterable[Edition], rank_of: RankOf) -> list[Edition]:
    """Return the editions in the order of their turns while nobody hurries.

    Begun ones first, oldest begun first; then what was seen being written, newest first; then
    what lay there at start, newest first.
    """

    def begun(edition: Edition) -> tuple[bool, float]:
        return (not edition.began, edition.settled_at if edition.began else 0.0)

    newest = sorted(editions, key=rank_of, reverse=True)
    found_last = sorted(newest, key=lambda edition: edition.settled.found)
    return sorted(found_last, key=begun)


def drain_order(
    editions: Iterable[Edition], rank_of: RankOf, seconds_left: float, rate: float
) -> list[Edition]:
    """Return the editions in the order in which they are worth the seconds that are left.

    The newest that fits goes first; an older one that fits beats a newer one that does not; what
    does not fit comes last, newest first: its pieces may be resumed by the next daemon on this
    disk. ``rate`` is bytes per second, 0 where nothing was measured (then everything fits).
    """
    newest = sorted(editions, key=rank_of, reverse=True)
    return sorted(newest, key=lambda edition: not fits(edition, seconds_left, rate))


def fits(edition: Edition, seconds_left: float, rate: float) -> bool:
    """Return whether the rest of an edition fits into the time at the measured rate."""
    rest = edition.listing.bytes - edition.bytes_stored
    return rate <= 0.0 or rest <= rate * seconds_left
