"""Where the store lies, and whether the rules about that hold."""

from __future__ import annotations

from ckptsyncd.check.finding import Finding, fail, failed, ok
from ckptsyncd.core.ports import Situation
from ckptsyncd.core.rules.bucket import Location
from ckptsyncd.core.rules.residency import Residency, refusal
from ckptsyncd.errors import PolicyRefused, StoreError


def place(situation: Situation, rules: Residency, machine: Location | None) -> Finding:
    """Ask the store for its region and judge it; without rules an unknown region is no fault."""
    try:
        there = situation.location()
    except StoreError as error:
        if rules.has_rules:
            return failed("region", error)
        return ok("region", f"it is not told ({error}); no rule asks for it")
    if reason := refusal(rules, there, machine):
        hint = "use another bucket, or change allowed_regions, country or egress"
        return fail("region", reason, hint, PolicyRefused.exit_code)
    asked = "as the rules allow" if rules.has_rules else "no rule restricts it"
    return ok("region", f"{there.words}; {asked}")
