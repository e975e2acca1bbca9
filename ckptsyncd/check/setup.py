"""The settings and their places: where each was said, and whether a daemon has them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ckptsyncd.check.finding import Finding, fail, ok


def settings(config_file: str, origins: Sequence[tuple[str, str]]) -> Finding:
    """Tell which settings hold that are no defaults, by where they were said."""
    kinds = Counter(_kind(where, config_file) for _, where in origins)
    said = ", ".join(f"{count} by {kind}" for kind, count in kinds.items()) or "all are defaults"
    file = f"config file {config_file}" if config_file else "no config file"
    return ok("settings", f"{file}; {said}")


def state(state_dir: str, *, is_writable: bool, holder: str, is_alive: bool) -> Finding:
    """Judge the state directory; ``holder`` is who used it last, in words."""
    if not is_writable:
        text = f"{state_dir} cannot be made or written"
        return fail("state", text, "make it writable, or name another one with --state-dir", 2)
    if is_alive:
        return ok("state", f"{state_dir}; a daemon runs: {holder}")
    last = f"; no daemon runs, the last was {holder}" if holder else "; no daemon runs"
    return ok("state", state_dir + last)


def _kind(where: str, config_file: str) -> str:
    if config_file and where.startswith(config_file):
        return "the file"
    return "variables" if where.startswith("CKPTSYNCD_") else "flags"
