"""What a process costs: CPU seconds and memory, from the kernel's own books."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")
_BLOCK = bytes(2**20)


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: wall and CPU seconds (user and system), the most memory, the server's CPU."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    server_cpu_seconds: float = 0.0


class PeerFailedError(Exception):
    """A peer did not do its work; says how it ended."""


def warm(size_bytes: int) -> None:
    """Touch so much memory, and let go of it.

    A virtual machine may have given free memory back to its host, and whoever touches it next pays
    for the return: 4 GiB written into the page cache took 0.9 s of CPU time, and 4 to 8 s cold.
    """
    with mmap.mmap(-1, size_bytes) as memory:
        for at in range(0, size_bytes, len(_BLOCK)):
            memory[at : at + len(_BLOCK)] = _BLOCK[: min(len(_BLOCK), size_bytes - at)]


def warmed(size_bytes: int) -> None:
    """Touch memory in a process of its own: what this one ever had would count as a child's."""
    program = f"from benchmarks.meter import warm; warm({size_bytes})"
    run([sys.executable, "-c", program], {})


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a running process and of its threads, ended ones included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    """Return a process' memory; ``VmHWM`` is the most it ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def run(command: Sequence[str], env: Mapping[str, str], server_pid: int = 0) -> Cost:
    """Run a program to its end and return its cost.

    A program whose last line of output is a JSON object of ``wall_seconds`` and ``cpu_seconds`` has
    measured itself, without its start and imports, which a daemon pays once.
    """
    server = cpu_of(server_pid) if server_pid else 0.0
    begun = time.perf_counter()
    process = subprocess.Popen(
        command,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    wall = time.perf_counter() - begun
    if process.returncode:
        msg = f"{' '.join(command)[:200]} ended with {process.returncode}: {said[-600:]!r}"
        raise PeerFailedError(msg)
    own = measured(said)
    return Cost(
        own.get("wall_seconds", wall),
        own.get("cpu_seconds", usage.ru_utime + usage.ru_stime),
        usage.ru_maxrss / 1024,
        cpu_of(server_pid) - server if server_pid else 0.0,
    )


def measured(said: bytes) -> dict[str, float]:
    """Return what a program says that it cost, nothing where it does not say."""
    last = said.strip().rpartition(b"\n")[2]
    if not last.startswith(b'{"wall_seconds"'):
        return {}
    found: dict[str, float] = json.loads(last)
    return found
