"""Whether a store is fit for several machines."""

from __future__ import annotations

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.errors import UsageError


def unfit(policy: Policy, limits: Limits) -> UsageError | None:
    """Return why several machines cannot store one checkpoint there, or nothing."""
    if limits.compare_and_set or not (policy.is_joint or policy.shared_root):
        return None
    what = "several daemons cannot share a directory"
    if policy.is_joint:
        what = f"{policy.nodes or 'several'} machines cannot store one checkpoint"
    msg = f"{what} with this store: it has no conditional writes, so they could not agree"
    hint = "use another store, or one destination for each machine, without --nodes"
    return UsageError(msg, hint=hint)
