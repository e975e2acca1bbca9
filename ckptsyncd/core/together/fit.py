"""Whether a store is fit for several machines."""

from __future__ import annotations

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.rules.policy import Policy


def unfit(policy: Policy, limits: Limits) -> str:
    """Return why several machines cannot store one checkpoint there, or nothing."""
    if policy.nodes == 1 or limits.compare_and_set:
        return ""
    return (
        f"{policy.nodes} machines cannot store one checkpoint here: "
        "the store has no conditional writes, so they could not agree"
    )
