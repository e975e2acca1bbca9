"""What a check can say."""

from __future__ import annotations

from ckptsyncd.core.facts import Shape

#: Shape, whether the format has an end mark, and what is wrong in words.
Verdict = tuple[Shape, bool, str]

WHOLE: Verdict = ("whole", True, "")
UNKNOWN: Verdict = ("unknown", False, "")


def broken(fault: str) -> Verdict:
    """Return that a file of a format with an end mark is not whole."""
    return "broken", True, fault
