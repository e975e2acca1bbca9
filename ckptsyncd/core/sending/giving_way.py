"""Which checkpoints give way to a newer one of their series before anything of them was sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ckptsyncd.core.sending.edition import Edition

#: A checkpoint that could not begin for so long gives way to a newer one: the link is the limit.
#: With a free hand an edition begins within milliseconds (guessed).
SUPERSEDED_SECONDS = 1.0


def given_way(aside: Iterable[Edition], opened: Collection[Edition]) -> list[Edition]:
    """Return what gave way to a newer one of its series and was not written again since."""
    names = {edition.checkpoint for edition in opened}
    return [e for e in aside if e.gave_way and e.checkpoint not in names]


def outrun(editions: Iterable[Edition], series: str, now: float) -> Iterator[tuple[Edition, str]]:
    """Yield who gives way at ``now`` (boot seconds), and to whose sake; they are marked so.

    They may settle in any order after a pause.
    """
    waiting = [
        edition
        for edition in editions
        if edition.state == "settled" and not edition.began and edition.series == series
    ]
    for other in waiting:
        newer = next((edition for edition in waiting if edition.is_newer_than(other)), None)
        waited = now - other.settled_at >= SUPERSEDED_SECONDS
        if newer is not None and waited and not other.settled.found:
            other.gave_way = True
            yield other, f"{newer.checkpoint} goes first"
