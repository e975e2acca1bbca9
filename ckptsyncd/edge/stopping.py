"""Who will end this program, and how long that leaves between SIGTERM and the kill."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ckptsyncd.core.premises import StopBudget

#: The unit that is looked for where this process is in none (that of our own packages).
UNIT = "ckptsyncd.service"

_SERVICE = re.compile(r"/([^/\n]+\.service)(?:/|$)", re.MULTILINE)
_AMOUNT = re.compile(r"([0-9]+)(d|h|min|s|ms|us)?\b")
_SECONDS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_ASK_SECONDS = 10.0


def stop_budget(pid: int, platform: str) -> StopBudget:
    """Return what the service manager gives the unit of a process (0: none runs), and the platform.

    Where the process is in no service, the unit of our own packages is asked for. Without a service
    manager, or such a unit, only the platform is told.
    """
    own = _unit_of(pid) if pid else ""
    unit = own if own and own != "user@.service" else UNIT
    told = _told(unit)
    if not own and told.get("LoadState") != "loaded":
        return StopBudget(platform=platform)
    return StopBudget(unit, seconds_of(told.get("TimeoutStopUSec", "")), platform)


def seconds_of(text: str) -> float | None:
    """Return the seconds in ``1min 30s``; ``None`` for ``infinity`` and what cannot be read."""
    found = _AMOUNT.findall(text)
    if not found or "infinity" in text:
        return None
    return sum(float(number) * _SECONDS[unit or "us"] for number, unit in found)


def _unit_of(pid: int) -> str:
    """Return the innermost service that a process is in, from its control group."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = _SERVICE.findall(text)
    return found[-1] if found else ""


def _told(unit: str) -> dict[str, str]:
    """Return what ``systemctl show`` says of a unit; nothing where there is no service manager."""
    command = ["systemctl", "show", "--property=LoadState,TimeoutStopUSec", "--", unit]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, mark, value in pairs if mark}
