"""The time between SIGTERM and the kill: what the settings say against what the platform gives."""

from __future__ import annotations

from ckptsyncd.check.finding import Finding, fail, ok, warn
from ckptsyncd.core.draining.deadlines import stop_seconds
from ckptsyncd.core.premises import StopBudget
from ckptsyncd.core.words import duration_words

#: The kill may come this much earlier than it says (guessed: a hook before it, a slow signal).
_MARGIN_SECONDS = 1.0
#: How each platform is told to wait longer.
_MORE = {
    "kubernetes": "raise terminationGracePeriodSeconds",
    "container": "stop with 'docker stop --time'",
}


def stop(budget: StopBudget, stop_timeout: float, kill_after: float | None) -> Finding:
    """Judge ``stop_timeout`` against whoever kills: the unit, what the user says, the platform."""
    given, who, hint = _given(budget, kill_after)
    ours = f"stop_timeout is {duration_words(stop_timeout)}"
    if given is None:
        return ok("stop", f"{ours}; {who}")
    text = f"{ours}; {who} {duration_words(given)} after SIGTERM"
    if stop_timeout > given:
        return fail("stop", text, f"set stop_timeout below that, or {hint}", 2)
    if stop_timeout > given - _MARGIN_SECONDS:
        return warn("stop", text, f"leave a second between them, or {hint}")
    if stop_timeout < given / 2 and given > stop_seconds(()):
        return warn("stop", text, "raise stop_timeout: the rest of the time is not used")
    return ok("stop", text)


def _given(budget: StopBudget, kill_after: float | None) -> tuple[float | None, str, str]:
    """Return the time to the kill (``None``: never), who kills, and how it is made longer."""
    if kill_after is not None:
        return kill_after, "the kill comes (kill_after)", "give the platform more, and kill_after"
    if budget.unit:
        who = f"{budget.unit} is killed"
        if budget.unit_seconds is None:
            return None, f"{budget.unit} is never killed by its manager", ""
        return budget.unit_seconds, who, "raise TimeoutStopSec= in the unit"
    if not budget.platform:
        return None, "nobody is known to kill this process later", ""
    how = _MORE.get(budget.platform, "give it more")
    who = f"unless kill_after says otherwise, {budget.platform} kills"
    return stop_seconds((budget.platform,)), who, f"{how}, and set kill_after to it"
