"""``ckptsyncd drill``: what would be lost if a notice came now, found out by a real drain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.find import client
from ckptsyncd.cli.options import socket_options
from ckptsyncd.cli.wait import seconds
from ckptsyncd.core.words import duration_words, printable, size_words
from ckptsyncd.errors import CkptsyncdError, DaemonUnreachable, Fenced, Unsynced

#: The report is there this long after the deadline at the latest (guessed: some turns).
_AFTER_SECONDS = 5.0

Json = dict[str, Any]


@click.command(
    "drill",
    cls=Command,
    short_help="Drain on a pretended notice, and say what would be lost.",
    examples=("ckptsyncd drill --deadline 30s",),
)
@click.option("--deadline", metavar="DURATION", default="30s", show_default=True,
              help="How long before the end the pretended notice comes.")  # fmt: skip
@socket_options
@click.pass_context
def command(
    context: click.Context, /, deadline: str, socket: str | None, config: str | None
) -> None:
    """Drain as on a real notice, end nothing, and say what would have been lost.

    The trainer is told nothing, and nobody is acknowledged anything; what is uploaded stays. Exit
    code 0: nothing would have been lost; 6: something would; 5: the daemon went away.
    """
    daemon = client(socket, config)
    left = seconds("--deadline", deadline)
    drill = daemon.drill(left)
    answer = daemon.wait_for_drain(drill, left + _AFTER_SECONDS)
    outcome, reason = answer.get("outcome"), str(answer.get("reason", ""))
    if outcome not in ("drained", "deadline"):
        kind = {"fenced": Fenced, "timeout": CkptsyncdError}.get(str(outcome), DaemonUnreachable)
        msg = f"the drill has no result ({outcome}): {reason}"
        raise kind(msg)
    report = daemon.status().get("last_drain") or {}
    for line in _told(report, left):
        click.echo(printable(line))
    context.exit(Unsynced.exit_code if report.get("left") else 0)


def _told(report: Json, deadline: float) -> Iterator[str]:
    took = duration_words(float(report.get("ended_at", 0.0)) - float(report.get("began_at", 0.0)))
    left = report.get("left", [])
    if not left:
        yield f"nothing would have been lost: all that is finished was safe after {took}"
    else:
        size = size_words(float(report.get("bytes_left", 0)))
        yield f"{size} would have been lost with {duration_words(deadline)} of warning:"
    for row in left:
        rest = size_words(row["bytes"] - row["bytes_stored"])
        why = f" ({row['reason']})" if row.get("reason") else ""
        yield f"  {row['checkpoint']}: {rest} of {size_words(row['bytes'])} not in the store{why}"
    points = ", ".join(report.get("points", [])) or "nothing"
    yield f"a restore would have found: {points}"
    if report.get("writing"):
        yield f"not finished, and so not counted: {', '.join(report['writing'])}"
    if rate := float(report.get("bytes_per_second", 0.0)):
        yield f"measured: {size_words(rate)}/s"
