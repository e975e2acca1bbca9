"""What was safe is not in the store any more: nothing calls it so, and what lies here is whole.

It settles again on the evidence that it had. Its number is free, so its claim is read: one that was
pruned on purpose is not stored again, and in an emptied bucket everything is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.records.memory import SafeRow
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.sightings import Settled
from ckptsyncd.core.turn import Notebook


@dataclass(frozen=True, slots=True)
class Minders:
    """Who remembers what is safe."""

    eyes: Eyes
    editions: Editions
    runs: Runs


def gone(minders: Minders, checkpoint: str, number: int, now: float, notes: Notebook) -> None:
    """Forget that an edition is safe, everywhere; ``now`` is boot seconds."""
    eyes, editions, runs = minders.eyes, minders.editions, minders.runs
    row = editions.safe.get(checkpoint)
    editions.pruned(checkpoint, number, notes)
    _forget_points(runs, checkpoint, number)
    notes.said("checkpoint.gone", ("checkpoint", checkpoint), ("edition", number))
    if row is None or row.manifest.edition != number:
        return
    runs.forgot(checkpoint)
    if not editions.of(checkpoint):
        editions.numbers[checkpoint] = number - 1
        eyes.renew(_settled(row), now)


def _forget_points(runs: Runs, checkpoint: str, number: int) -> None:
    """Let the newest commit that is left be the recovery point of its series."""
    for series in runs.known.values():
        best, latest = series.best, series.latest
        if best is not None and (best.checkpoint, best.edition) == (checkpoint, number):
            others = runs.committed.get(series.name, [])
            left = [m for m in others if (m.checkpoint, m.edition) != (checkpoint, number)]
            series.best = max(left, key=lambda manifest: manifest.rank(), default=None)
        if latest is not None and (latest.checkpoint, latest.edition) == (checkpoint, number):
            series.latest = None


def _settled(row: SafeRow) -> Settled:
    manifest = row.manifest
    return Settled(
        checkpoint=manifest.checkpoint,
        series=manifest.series,
        step=manifest.step,
        layout=manifest.layout,
        evidence=manifest.evidence,
        listing=row.listing,
        found=True,
        stale=manifest.stale,
    )
