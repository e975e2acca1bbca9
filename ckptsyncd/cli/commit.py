"""``ckptsyncd commit``: the trainer's own word that a checkpoint is whole."""

from __future__ import annotations

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.find import absolute, client
from ckptsyncd.cli.options import socket_options
from ckptsyncd.cli.wait import LONGEST, conclude, seconds
from ckptsyncd.core.words import printable


@click.command(
    "commit",
    cls=Command,
    short_help="Say that a checkpoint is whole.",
    examples=("ckptsyncd commit /data/run/checkpoint-500 --wait",),
)
@click.argument("path", type=click.Path())
@click.option("--wait/--no-wait", default=False, show_default=True, help="Wait until it is safe.")
@click.option("--timeout", metavar="DURATION", default=LONGEST, help="Wait at most so long (10m).")
@socket_options
@click.pass_context
def command(
    context: click.Context,
    /,
    path: str,
    timeout: str,
    socket: str | None,
    config: str | None,
    *,
    wait: bool,
) -> None:
    """Tell the daemon that the checkpoint at PATH is whole, whatever its files look like.

    PATH is a file or directory below the watch root, absolute, relative to the current directory,
    or relative to the watch root.
    """
    daemon = client(socket, config)
    most = seconds("--timeout", timeout)
    name = str(daemon.commit(absolute(path)).get("checkpoint", path))
    if wait:
        context.exit(conclude(daemon.wait_for_checkpoint(name, most)))
    click.echo(f"{printable(name)} is taken for whole")
