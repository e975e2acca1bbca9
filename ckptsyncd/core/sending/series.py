"""What the mind knows about one series: its run epoch, its latest, its pointers.

As with editions, progress is a level: ``missing`` says what is to be done next. The epoch is taken
once, by compare-and-set, before the first claim; ``latest`` is a hint that only ever moves up in
rank and carries the epochs, so that a daemon that was replaced finds out at its next move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.facts import Condition, IfAbsent, IfMatches, Instant, Limits
from ckptsyncd.core.orders import Errand, GetSmall, PutSmall
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Epoch, Latest, Pointer, Pointers
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Certainty

Rank = tuple[int, int, float, int]


@dataclass(slots=True)
class Series:
    """One sequence of checkpoints.

    ``epoch`` is ours once ``epoch_taken`` is ``yes``. ``last_epoch`` and ``last_nonces`` are
    what former daemons of this watch root had (from the ledger). ``latest_known`` is false until
    the store's hint was read, and again after it changed under us. Until ``trusts_until`` another
    node that committed is trusted to move it (boot seconds). ``best`` is the highest
    committed manifest that we know of.
    """

    name: str
    epoch: int = 0
    epoch_taken: Certainty = "no"
    epoch_version: str | None = None
    epoch_read: bool = False
    last_epoch: int | None = None
    last_nonces: tuple[str, ...] = ()
    latest: Latest | None = None
    latest_known: bool = False
    latest_version: str | None = None
    latest_written_at: float = float("-inf")
    announced: bool = False
    trusts_until: float = float("-inf")
    epoch_wanted: bool = False
    best: Manifest | None = None
    lineage: int = 0
    after_step: int = -1
    pointers: dict[str, Pointer] = field(default_factory=dict)
    pointers_wanted: Pointers | None = None
    pointers_stored: Pointers | None = None

    def rank_in_store(self) -> Rank | None:
        """Return the rank of the checkpoint that the store's hint names."""
        return None if self.latest is None else self.latest.rank


def missing(
    series: Series,
    limits: Limits,
    policy: Policy,
    who: tuple[str, str],
    now: Instant,
    *,
    hasty: bool,
    start: int | None = 0,
) -> Iterator[GetSmall | PutSmall]:
    """Yield the record orders that the series needs now. ``who`` is (host, process nonce).

    ``start`` is our number among those that started as this node, ``None`` while not known.
    """
    if not series.latest_known:
        lacks_epoch = series.epoch_wanted and series.epoch_taken != "yes"
        if not (hasty or lacks_epoch) and now.boot < series.trusts_until:
            return
        yield GetSmall(Errand("read latest", series.name), names.latest_key(series.name))
    elif series.epoch_taken != "yes" and (series.epoch_wanted or wants_latest(series)):
        if start is not None:
            yield from _epoch(series, limits, policy, who, now, start)
    elif latest_due(series, policy, now.boot, hasty=hasty) <= now.boot:
        yield _move_latest(series, limits, policy, who[1], now)
    elif series.pointers_wanted not in (None, series.pointers_stored):
        assert series.pointers_wanted is not None  # noqa: S101 - just compared
        key = names.pointers_key(series.name)
        yield PutSmall(Errand("pointers", series.name), key, series.pointers_wanted.encode(), None)


def condition(limits: Limits, version: str | None) -> Condition:
    """Return the condition under which a record may replace the version that was read."""
    if not limits.compare_and_set:
        return None
    return IfAbsent() if version is None else IfMatches(version)


def _epoch(
    series: Series,
    limits: Limits,
    policy: Policy,
    who: tuple[str, str],
    now: Instant,
    start: int,
) -> Iterator[GetSmall | PutSmall]:
    key = names.epoch_key(series.name, policy.node)
    if not series.epoch_read:
        yield GetSmall(Errand("read epoch", series.name), key)
        return
    host, nonce = who
    record = Epoch(series.name, policy.node, series.epoch, nonce, host, now.wall, start)
    order = Errand("take epoch", series.name)
    yield PutSmall(order, key, record.encode(), condition(limits, series.epoch_version))


def highest_rank(series: Series) -> Rank | None:
    """Return the highest rank that is known to be committed, in the store's hint or by us."""
    known = [series.rank_in_store(), None if series.best is None else series.best.rank()]
    return max((rank for rank in known if rank is not None), default=None)


def epoch_seen(
    series: Series, record: Epoch | None, version: str, nonce: str, start: int = 0
) -> bool:
    """Take in the epoch in the store; return whether somebody else has taken the run over.

    Ours already: a put that was answered ambiguously succeeded. Higher than the one that this
    watch root's former daemon had, and not written by it: a replacement runs elsewhere. So it does
    where its holder started after us (``start``), even if we never had an epoch.
    """
    series.epoch_read = True
    series.epoch_version = version if record is not None else None
    found = 0 if record is None else record.epoch
    if record is not None and record.nonce == nonce:
        series.epoch = found
        series.epoch_taken = "yes"
        return False
    series.epoch = found + 1
    if record is not None and record.start > start and record.nonce not in series.last_nonces:
        return True
    if series.last_epoch is None or record is None or record.nonce in series.last_nonces:
        return False
    return found >= series.last_epoch


def wants_latest(series: Series) -> bool:
    """Return whether the store's hint should name something newer, or carry our epoch."""
    current = series.rank_in_store()
    if current is not None and series.epoch_taken == "yes" and not series.announced:
        return True
    return series.best is not None and (current is None or series.best.rank() > current)


def latest_due(series: Series, policy: Policy, now: float, *, hasty: bool) -> float:
    """Return when the hint may be written: at most every ``latest_seconds`` unless hasty."""
    if not wants_latest(series):
        return float("inf")
    due = max(series.latest_written_at + policy.latest_seconds, series.trusts_until)
    return now if hasty else due


def _move_latest(
    series: Series, limits: Limits, policy: Policy, nonce: str, now: Instant
) -> PutSmall:
    data = next_latest(series, policy.node, nonce, now.wall).encode()
    order = Errand("move latest", series.name)
    return PutSmall(
        order, names.latest_key(series.name), data, condition(limits, series.latest_version)
    )


def next_latest(series: Series, node: int, nonce: str, wall: float) -> Latest:
    """Return the hint as it should be: the highest rank known, with our epoch in it."""
    epochs = dict(series.latest.epochs) if series.latest is not None else {}
    epochs[node] = max(series.epoch, epochs.get(node, 0))
    current = series.latest
    best = series.best
    if best is None or (current is not None and current.rank >= best.rank()):
        assert current is not None  # noqa: S101 - wants_latest said so
        return Latest(
            series=series.name,
            checkpoint=current.checkpoint,
            edition=current.edition,
            rank=current.rank,
            epochs=tuple(sorted(epochs.items())),
            nonce=nonce,
            moved_at=wall,
            step=current.step,
            total_bytes=current.total_bytes,
            committed_at=current.committed_at,
        )
    return Latest(
        series=series.name,
        checkpoint=best.checkpoint,
        edition=best.edition,
        rank=best.rank(),
        epochs=tuple(sorted(epochs.items())),
        nonce=nonce,
        moved_at=wall,
        step=best.step,
        total_bytes=best.bytes,
        committed_at=best.committed_at,
    )


def latest_seen(series: Series, latest: Latest | None, version: str, node: int) -> bool:
    """Take in the store's hint; return whether it shows a newer epoch of our node than ours."""
    series.latest = latest
    series.latest_version = version if latest is not None else None
    series.latest_known = True
    if latest is None:
        return False
    series.after_step = max(series.after_step, latest.rank[1])
    series.lineage = max(series.lineage, latest.rank[0])
    series.announced = series.epoch_taken == "yes" and latest.epoch_of(node) >= series.epoch
    return series.epoch_taken == "yes" and latest.epoch_of(node) > series.epoch


def latest_written(series: Series, latest: Latest, version: str, now: float) -> None:
    """Take in that the hint was moved."""
    series.latest = latest
    series.latest_version = version
    series.latest_written_at = now
    series.announced = True
