"""``python -m benchmarks [--quick]``: everything is measured, and a table is written.

Rounds are interleaved (each uploader once, then each again), so that what else happens on the
machine happens to all of them. ``--quick`` proves that the harness works and measures nothing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import figures
from benchmarks.clouds import SERVERS, Server
from benchmarks.daemon import daemon
from benchmarks.data import FULL, GIB, QUICK, Case, make
from benchmarks.meter import Cost, PeerFailedError, run, warmed
from benchmarks.peers import PEERS, Peer
from benchmarks.results import FOLDER, US, Results, Row, newest
from benchmarks.server import NotBuiltError, Target
from ckptsyncd import __version__

#: The one that comes with the program itself.
QUICK_PEER = "boto3 upload_file"
#: So much memory at most is touched before each measured run.
WARM_BYTES = 4 * GIB


def say(text: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def described() -> tuple[dict[str, str], dict[str, str]]:
    """Return the machine and the versions."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    machine = {
        "cores": str(os.cpu_count()),
        "processor": model,
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }
    versions = {"ckptsyncd": __version__, "Python": platform.python_version()}
    versions |= {peer.package: peer.version for peer in PEERS if peer.is_here and peer.version}
    return machine, versions


def rounds_of(
    target: Target, case: Case, work: Path, peers: Sequence[Peer], rounds: int
) -> Iterator[Row]:
    """Measure one case: every uploader once, and again."""
    source = make(case, work)
    found: dict[str, list[Cost]] = {US: [], **{peer.name: [] for peer in peers}}
    base = Path(tempfile.mkdtemp(dir=work, prefix="daemon-"))
    with daemon(target, base) as ours:
        for turn in range(rounds):
            say(f"{target.name}, {case.title}: round {turn + 1} of {rounds}")
            warmed(min(2 * case.total_bytes, WARM_BYTES))
            found[US].append(ours.measured(source))
            for peer in peers:
                found[peer.name] += measured(peer, target, source)
    shutil.rmtree(base)
    checks = {US: target.cloud.checks, **{peer.name: peer.checks for peer in peers}}
    for who, costs in found.items():
        if costs:
            yield Row(target.name, case.title, who, checks[who], tuple(costs))


def measured(peer: Peer, target: Target, source: Path) -> list[Cost]:
    """Run a peer once; one that fails is said to, and left out."""
    command = peer.command(target, f"peer-{time.monotonic_ns()}", source)
    warmed(WARM_BYTES // 4)
    try:
        return [run(command, target.environment, target.pid)]
    except PeerFailedError as error:
        say(f"{peer.name} failed: {error}")
        return []


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured: parts of names of servers and peers, cases; everything where empty."""

    quick: bool = False
    rounds: int = 5
    server: str = ""
    cases: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    figures: bool = True

    def plan(self) -> Iterator[tuple[Server, Case]]:
        """Yield what is measured where, in order."""
        cases = {case.name: case for case in (QUICK if self.quick else FULL)}
        for server in SERVERS[: 1 if self.quick else None]:
            if self.server in ("", server.name.partition(",")[0]):
                for name in server.cases:
                    if name in cases and name in (self.cases or cases):
                        yield server, cases[name]

    def wants(self, peer: Peer, server: Server) -> bool:
        """Tell whether a peer is measured."""
        if peer.cloud != server.cloud or (peer.needs_no_key and server.checks_signatures):
            return False
        if self.quick:
            return peer.name == QUICK_PEER
        return not self.peers or any(part in peer.name for part in self.peers)


def measure(work: Path, choice: Choice, keep: Callable[[Results], object]) -> Results:
    """Measure everything and return it; ``keep`` is given what there is after every case."""
    machine, versions = described()
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    results = Results(today, machine, versions)
    missing = [peer.name for peer in PEERS if not peer.is_here]
    if missing:
        results.notes.append(f"not installed here: {', '.join(missing)}")
    for server, case in choice.plan():
        peers = [one for one in PEERS if one.is_here and choice.wants(one, server)]
        try:
            with server.run(work, server.name) as target:
                results.rows += rounds_of(target, case, work, peers, choice.rounds)
        except NotBuiltError as error:
            if server is SERVERS[0]:
                raise
            results.notes.append(f"{server.name}: {error}")
        except (PeerFailedError, OSError, RuntimeError) as error:  # the other cases go on
            results.notes.append(f"{case.title}, {server.name}: broke off: {error}")
        keep(results)
    for figure in figures.all_of(work, quick=choice.quick) if choice.figures else ():
        results.figures.append(figure)
        keep(results)
    results.machine["load after"] = f"{os.getloadavg()[0]:.1f}"
    keep(results)
    return results


def added(before: Results | None, results: Results) -> Results:
    """Return both results as one, the newer one's rows in the place of the older one's."""
    if before is None or before.date != results.date:
        return results
    anew = {(row.server, row.case, row.who) for row in results.rows}
    kept = [row for row in before.rows if (row.server, row.case, row.who) not in anew]
    names = {one.name for one in results.figures}
    figures_kept = [one for one in before.figures if one.name not in names]
    return replace(results, rows=[*kept, *results.rows], figures=[*figures_kept, *results.figures])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, and say where."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="try the harness; measures nothing")
    parser.add_argument("--rounds", type=int, default=0, help="default: 5, and 1 with --quick")
    parser.add_argument("--server", default="", help="only one, as https or Azurite")
    parser.add_argument("--cases", default="", help="only these cases, as 4g,k64")
    parser.add_argument("--peers", default="", help="only peers whose names contain one of these")
    parser.add_argument("--no-figures", action="store_true", help="uploads only")
    parser.add_argument("--add", action="store_true", help="add to the results of the same day")
    parser.add_argument("--work", type=Path, help="where data is made (default: a temporary one)")
    parser.add_argument("--to", type=Path, default=FOLDER, help="where the results go")
    options = parser.parse_args(arguments)
    choice = Choice(
        quick=options.quick,
        rounds=options.rounds or (1 if options.quick else 5),
        server=options.server,
        cases=tuple(filter(None, options.cases.split(","))),
        peers=tuple(filter(None, options.peers.split(","))),
        figures=not options.no_figures,
    )
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)

        def keep(so_far: Results) -> Path:
            """Write it, beside what others added meanwhile."""
            before = newest(options.to) if options.add else None
            return added(before, so_far).save(options.to)

        try:
            results = measure(work, choice, keep)
        except NotBuiltError as error:
            say(f"nothing can be measured here: {error}")
            return 2
    sys.stdout.write(f"{keep(results)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
