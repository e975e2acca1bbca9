"""Which checkpoints of a series stay, and why; everything else may go. Pure.

A checkpoint stays where any rule keeps it. Whatever the rules say, the newest stays, what a pointer
or a hint names stays, and so many that verify stay; and nothing goes before so many newer ones were
seen to be whole in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Retention:
    """What a user wants to keep; ``None`` and empty rules keep nothing.

    ``keep_last`` counts from the newest. ``every_steps`` and ``every_seconds`` keep one for each
    such stretch, counted from the oldest. ``newer_seconds`` keeps what was saved so recently.
    ``pinned`` are globs of names (``checkpoint-500``, ``best*``) or ``NAME@EDITION``. ``min_keep``
    that verify always stay, at least one.
    """

    keep_last: int | None = None
    every_steps: int | None = None
    every_seconds: float | None = None
    newer_seconds: float | None = None
    pinned: tuple[str, ...] = ()
    min_keep: int = 2

    @property
    def is_said(self) -> bool:
        """Whether anything but pins says what to keep: without that nothing may go."""
        rules = (self.keep_last, self.every_steps, self.every_seconds, self.newer_seconds)
        return any(rule is not None for rule in rules)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One committed edition as far as retention looks at it; ``rank`` orders those of a series.

    ``named``: what names it (``latest``, a pointer), empty where nothing does.
    """

    checkpoint: str
    edition: int
    series: str
    step: int | None
    saved_at: float
    rank: tuple[int, int, float, int]
    named: str = ""

    @property
    def title(self) -> str:
        """The name by which a user asks for exactly this edition."""
        return f"{self.checkpoint}@{self.edition}"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one: it stays for a reason, or (no reason) it may go."""

    candidate: Candidate
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Everybody's fate, newest first; or ``ask``: it must be verified before it can be said."""

    fates: tuple[Fate, ...] = ()
    ask: Candidate | None = None

    @property
    def going(self) -> tuple[Candidate, ...]:
        """Those that may go, the oldest first."""
        return tuple(fate.candidate for fate in reversed(self.fates) if not fate.keeps)


def decide(
    candidates: Iterable[Candidate], rules: Retention, now: float, verdicts: Mapping[str, bool]
) -> Decision:
    """Return what may go of one series, or the one that must be verified next.

    ``verdicts`` says of titles whether they are whole in the store; ``now`` is wall time.
    """
    newest_first = sorted(candidates, key=lambda one: one.rank, reverse=True)
    kept = _kept(newest_first, rules, now)
    least, whole = max(rules.min_keep, 1), 0
    fates = []
    for candidate in newest_first:
        reason = kept.get(candidate.title, "")
        if whole < least:
            if candidate.title not in verdicts:
                return Decision(ask=candidate)
            is_whole = verdicts[candidate.title]
            whole += is_whole
            reason = reason or (f"one of {least} that verify" if is_whole else "too few verify")
        fates.append(Fate(candidate, reason))
    return Decision(tuple(fates))


def _kept(newest_first: Sequence[Candidate], rules: Retention, now: float) -> dict[str, str]:
    """Return the titles that a rule keeps, with the first rule that does."""
    kept: dict[str, str] = {}
    for number, candidate in enumerate(newest_first):
        reason = _reason(candidate, number, rules, now)
        if reason:
            kept[candidate.title] = reason
    for title, reason in _spaced(list(reversed(newest_first)), rules).items():
        kept.setdefault(title, reason)
    return kept


def _reason(candidate: Candidate, number: int, rules: Retention, now: float) -> str:
    if not number:
        return "the newest"
    if candidate.named:
        return candidate.named
    if rules.keep_last is not None and number < rules.keep_last:
        return f"keep_last = {rules.keep_last}"
    if rules.newer_seconds is not None and now - candidate.saved_at < rules.newer_seconds:
        return "newer_than"
    names = (candidate.checkpoint, candidate.title)
    return next((f"pinned by {g!r}" for g in rules.pinned for n in names if fnmatchcase(n, g)), "")


def _spaced(oldest_first: Sequence[Candidate], rules: Retention) -> dict[str, str]:
    """Return those that keep one for each stretch; the oldest is the first, so it stays so."""
    kept: dict[str, str] = {}
    lineage = -1
    last_step: int | None = None
    last_time: float | None = None
    for one in oldest_first:
        if one.rank[0] != lineage:  # steps start again after a step back
            lineage, last_step = one.rank[0], None
        far = one.step is not None and (
            last_step is None or one.step - last_step >= (rules.every_steps or 0)
        )
        if rules.every_steps is not None and far:
            kept[one.title], last_step = f"keep_every = {rules.every_steps} steps", one.step
        long = last_time is None or one.saved_at - last_time >= (rules.every_seconds or 0.0)
        if rules.every_seconds is not None and long:
            kept.setdefault(one.title, "keep_every")
            last_time = one.saved_at
    return kept
