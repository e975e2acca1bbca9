"""What was measured, as JSON and as tables."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.meter import Cost

FOLDER = Path(__file__).parent / "results"
US = "ckptsyncd"


@dataclass(frozen=True, slots=True)
class Row:
    """All rounds of one uploader in one case on one server."""

    server: str
    case: str
    who: str
    checks: str
    costs: tuple[Cost, ...]

    @property
    def wall(self) -> float:
        """The median of the wall seconds."""
        return statistics.median(cost.wall_seconds for cost in self.costs)

    @property
    def cpu(self) -> float:
        """The median of the CPU seconds."""
        return statistics.median(cost.cpu_seconds for cost in self.costs)

    @property
    def peak_mib(self) -> float:
        """The most memory in any round."""
        return max(cost.peak_mib for cost in self.costs)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that stands alone: what, its values, their unit, and the goal."""

    name: str
    values: tuple[float, ...]
    unit: str
    note: str = ""


@dataclass
class Results:
    """One run of the harness: when, where, which versions, what came out."""

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def save(self, folder: Path = FOLDER) -> Path:
        """Write JSON and Markdown; return the Markdown's path."""
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{self.date}.md"
        made.with_suffix(".json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        made.write_text(self.markdown())
        return made

    def markdown(self) -> str:
        """Return everything as tables."""
        about = {**self.machine, **self.versions}
        lines = [f"# Measured {self.date}", ""]
        lines += ["; ".join(f"{key} {value}" for key, value in about.items()) + ".", ""]
        lines += [f"- {note}" for note in self.notes]
        for server, case in dict.fromkeys((row.server, row.case) for row in self.rows):
            lines += ["", f"## {case}, {server}", "", *self.table(server, case)]
        if self.figures:
            lines += ["", "## Single figures", "", *figures_table(self.figures)]
        return "\n".join(lines) + "\n"

    def of(self, server: str, case: str) -> list[Row]:
        """Return the rows of one case, the cheapest in CPU time first."""
        found = [row for row in self.rows if (row.server, row.case) == (server, case)]
        return sorted(found, key=lambda row: row.cpu)

    def table(self, server: str, case: str) -> list[str]:
        """Return one case as a table."""
        rows = self.of(server, case)
        ours = next((row for row in rows if row.who == US), None)
        head = "| uploader | the server checks | rounds | wall s (range) | CPU s (range) | "
        head += "peak MiB | wall / ours | CPU / ours |"
        return [head, "|---|---|---|---|---|---|---|---|", *(line_of(row, ours) for row in rows)]


def line_of(row: Row, ours: Row | None) -> str:
    """Return one row of a table."""
    walls = [cost.wall_seconds for cost in row.costs]
    cpus = [cost.cpu_seconds for cost in row.costs]
    cells = [
        row.who,
        row.checks or "nothing",
        str(len(row.costs)),
        f"{row.wall:.2f} ({min(walls):.2f} to {max(walls):.2f})",
        f"{row.cpu:.2f} ({min(cpus):.2f} to {max(cpus):.2f})",
        f"{row.peak_mib:.0f}",
        f"{row.wall / ours.wall:.2f}" if ours else "",
        f"{row.cpu / ours.cpu:.2f}" if ours and ours.cpu else "",
    ]
    return "| " + " | ".join(cells) + " |"


def figures_table(figures: list[Figure]) -> list[str]:
    """Return the single figures as a table."""
    lines = ["| what | median | range | unit | |", "|---|---|---|---|---|"]
    for one in figures:
        median, low, high = statistics.median(one.values), min(one.values), max(one.values)
        span = f"{low:.4g} to {high:.4g}" if len(one.values) > 1 else ""
        lines.append(f"| {one.name} | {median:.4g} | {span} | {one.unit} | {one.note} |")
    return lines


def load(path: Path) -> Results:
    """Read what ``save`` wrote."""
    found = json.loads(path.read_text())
    found["rows"] = [
        Row(**{**row, "costs": tuple(Cost(**cost) for cost in row["costs"])})
        for row in found["rows"]
    ]
    found["figures"] = [
        Figure(**{**one, "values": tuple(one["values"])}) for one in found["figures"]
    ]
    return Results(**found)


def newest(folder: Path = FOLDER) -> Results | None:
    """Return the newest results that were kept, if any."""
    kept = sorted(folder.glob("*.json"))
    return load(kept[-1]) if kept else None


def summary(results: Results) -> list[str]:
    """Return the one table for the README: our cost beside the best peers of each kind."""
    lines = [
        "| upload, to a sink on the same machine | ckptsyncd, CPU s | best that checks | best that checks nothing | limit | ckptsyncd, wall s | fastest peer |",  # noqa: E501 - one row
        "|---|---|---|---|---|---|---|",
    ]
    for server, case in dict.fromkeys((row.server, row.case) for row in results.rows):
        if not server.startswith("http"):  # a server of its own weight, not the sink
            continue
        rows = results.of(server, case)
        ours = [row for row in rows if row.who == US]
        raw = [row for row in rows if "raw" in row.who]
        peers = [row for row in rows if row not in (*ours, *raw)]
        if not ours or not peers:
            continue
        checking = [row for row in peers if row.checks]
        careless = [row for row in peers if not row.checks]
        fastest = min(peers, key=lambda row: row.wall)
        cells = [
            f"{case}, {server}",
            f"**{ours[0].cpu:.2f}**",
            _best(checking),
            _best(careless),
            f"{raw[0].cpu:.2f}" if raw else "",
            f"**{ours[0].wall:.2f}**",
            f"{fastest.wall:.2f} {fastest.who}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _best(rows: list[Row]) -> str:
    return f"{rows[0].cpu:.2f} {rows[0].who}" if rows else ""
