"""``ckptsyncd drain``: a notice by hand, or from a preStop hook."""

from __future__ import annotations

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.find import client
from ckptsyncd.cli.options import socket_options
from ckptsyncd.cli.wait import conclude, seconds


@click.command(
    "drain",
    cls=Command,
    short_help="Make everything safe by a deadline.",
    examples=("ckptsyncd drain --deadline 90s",),
)
@click.option("--deadline", metavar="DURATION", default="120s", show_default=True,
              help="When this machine will be gone, from now.")  # fmt: skip
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the drain's end.")
@socket_options
@click.pass_context
def command(
    context: click.Context, /, deadline: str, socket: str | None, config: str | None, *, wait: bool
) -> None:
    """Tell the daemon that this machine will be gone, and wait until everything is safe.

    The newest finished checkpoint that fits the deadline goes first. Exit code 0: everything that
    is finished is safe; 6: the deadline came first; 5: the daemon went away.
    """
    daemon = client(socket, config)
    left = seconds("--deadline", deadline)
    answer = daemon.drain(left)
    if wait:
        context.exit(conclude(daemon.wait_for_drain(answer, left)))
    click.echo(f"draining, {deadline} left")
