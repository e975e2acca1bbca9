"""What the bucket does by itself: remove objects by age, keep half uploads, have another time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptsyncd.check.finding import Finding, advice, fail, ok, warn
from ckptsyncd.core.ports import Situation
from ckptsyncd.core.rules.bucket import BucketRule
from ckptsyncd.core.words import duration_words
from ckptsyncd.errors import Refused, StoreError

#: S3 refuses requests whose signature is this much off (15 minutes, its own error's words).
_REFUSED_SECONDS = 900.0
#: A Date header has whole seconds; from here on it is worth a line (guessed).
_WORTH_SECONDS = 10.0


def lifecycle(situation: Situation, prefix: str, *, keeps_parts: bool) -> Finding:
    """Judge the bucket's rules: one that removes checkpoints, or none that ends half uploads.

    ``keeps_parts``: begun uploads stay in this store until somebody aborts them.
    """
    try:
        found = situation.rules()
    except Refused:
        text = "the bucket's rules may not be read"
        hint = "allow it, or make sure that no rule expires this prefix"
        return warn("lifecycle", text, hint)
    except StoreError as error:
        return warn("lifecycle", f"the bucket's rules cannot be read: {error}", advice(error))
    if found is None:
        text = (
            "not told to who stores here; make sure that no rule of the account expires this prefix"
        )
        return ok("lifecycle", text)
    return judged(found, prefix, keeps_parts=keeps_parts)


def judged(rules: Sequence[BucketRule], prefix: str, *, keeps_parts: bool) -> Finding:
    """Judge rules that are known."""
    ours = [rule for rule in rules if not rule.is_tagged and _concerns(rule.prefix, prefix)]
    ends = [rule for rule in ours if rule.expires_days is not None]
    if ends:
        rule = min(ends, key=lambda one: one.expires_days or 0.0)
        days = f"after {rule.expires_days:g} days" if rule.expires_days else "on a date"
        text = f"the rule {rule.name!r} removes checkpoints {days}, also the newest"
        return fail("lifecycle", text, "let it exclude this prefix; use prune instead", 7)
    if keeps_parts and not any(rule.aborts_days is not None for rule in ours):
        text = "no rule ends unfinished uploads: what a lost machine had begun is paid for ever"
        hint = "add AbortIncompleteMultipartUpload after 7 days to the bucket's lifecycle"
        return warn("lifecycle", text, hint)
    return ok("lifecycle", "no rule of the bucket removes checkpoints")


def clock(situation: Situation, wall: Callable[[], float], *, signs: bool) -> Finding:
    """Compare this machine's clock with the server's; ``signs``: requests carry our time."""
    before = wall()
    try:
        there = situation.server_wall()
    except StoreError as error:
        return warn("clock", f"the store's clock is not known: {error}", advice(error))
    if there is None:
        return ok("clock", "the store shows no clock")
    return skew((before + wall()) / 2.0 - there, signs=signs)


def skew(seconds: float, *, signs: bool) -> Finding:
    """Judge how far this machine's clock is ahead of the server's (behind it: negative)."""
    off = abs(seconds)
    text = f"this machine's clock is {duration_words(off)} {'ahead' if seconds > 0 else 'behind'}"
    if signs and off >= _REFUSED_SECONDS:
        hint = "set the clock (chrony, ntpd): stores refuse what is signed 15 minutes off"
        return fail("clock", text, hint, 5)
    if off >= _WORTH_SECONDS:
        return warn("clock", text, "set the clock (chrony, ntpd)")
    return ok("clock", "this machine's clock agrees with the store's")


def _concerns(rule_prefix: str, prefix: str) -> bool:
    """Return whether a rule's prefix touches keys below ours."""
    return prefix.startswith(rule_prefix) or rule_prefix.startswith(prefix)
