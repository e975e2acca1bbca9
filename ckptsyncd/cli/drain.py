"""``ckptsyncd drain``: a notice by hand, or from a preStop hook."""

from __future__ import annotations

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.find import client
from ckptsyncd.cli.options import socket_options
from ckptsyncd.cli.wait import conclude, seconds
from ckptsyncd.core.words import duration_words

_DEFAULT = "120s"


@click.command(
    "drain",
    cls=Command,
    short_help="Make everything safe by a deadline.",
    examples=("ckptsyncd drain --deadline 90s", "ckptsyncd drain --pre-stop"),
)
@click.option("--deadline", metavar="DURATION",
              help="When this machine will be gone, from now. [default: 120s; with --pre-stop the "
              "daemon's stop timeout]")  # fmt: skip
@click.option("--pre-stop", is_flag=True,
              help="From a preStop hook: the stop signal follows when this returns.")  # fmt: skip
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the drain's end.")
@socket_options
@click.pass_context
def command(
    context: click.Context,
    /,
    deadline: str | None,
    socket: str | None,
    config: str | None,
    *,
    pre_stop: bool,
    wait: bool,
) -> None:
    """Tell the daemon that this machine will be gone, and wait until everything is safe.

    The newest finished checkpoint that fits the deadline goes first. Exit code 0: everything that
    is finished is safe; 6: the deadline came first; 5: the daemon went away.
    """
    daemon = client(socket, config)
    text = deadline or (None if pre_stop else _DEFAULT)
    given = None if text is None else seconds("--deadline", text)
    answer = daemon.drain(given, pre_stop=pre_stop)
    left = float(answer["deadline_seconds"])
    if wait:
        context.exit(conclude(daemon.wait_for_drain(answer, left)))
    click.echo(f"draining, {text or duration_words(left)} left")
