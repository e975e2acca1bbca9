"""The process that speaks to Weights & Biases: lines of JSON in, one run there, until input ends.

The first line says which run, every further one is a reading (see ``wandb_pipe``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def plotted(lines: Iterable[str]) -> None:
    """Log every reading to the run that the first line names; the same run after a restart."""
    import wandb  # noqa: PLC0415 - an extra, and only in this process

    rows = map(json.loads, lines)
    head = next(rows)
    settings = wandb.Settings(console="off", silent=True, x_disable_stats=True, disable_git=True)
    with wandb.init(
        project=head["project"],
        id=head["id"],
        dir=head["dir"],
        resume="allow",
        job_type="checkpoints",
        settings=settings,
    ) as run:
        seen: set[str] = set()
        for row in rows:
            prefix = prefix_of(row["series"])
            if prefix not in seen:
                seen.add(prefix)
                run.define_metric(f"{prefix}/*", step_metric=f"{prefix}/step")
            run.log(_values(prefix, row))


def prefix_of(series: str) -> str:
    """Return what stands before the names of a series' metrics."""
    return "ckptsyncd" if series in ("", ".") else f"ckptsyncd/{series}"


def _values(prefix: str, row: dict[str, Any]) -> dict[str, float]:
    values = {f"{prefix}/{name}": value for name, value in row["values"].items()}
    return {**values, f"{prefix}/step": row["step"] or 0}


if __name__ == "__main__":
    plotted(sys.stdin)
