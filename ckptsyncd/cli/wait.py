"""``ckptsyncd wait``: the blocking answer to "is it safe?"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.find import absolute, client
from ckptsyncd.cli.options import socket_options
from ckptsyncd.core.words import printable
from ckptsyncd.errors import (
    CkptsyncdError,
    DaemonUnreachable,
    PolicyRefused,
    Unsynced,
    UsageError,
)
from ckptsyncd.settings.amounts import Duration

LONGEST = "7d"
_SECONDS = Duration(0.0, 7 * 86400.0)
_ERRORS: tuple[type[CkptsyncdError], ...] = (DaemonUnreachable, Unsynced, PolicyRefused)


@click.command(
    "wait",
    cls=Command,
    short_help="Wait until a checkpoint is safe.",
    examples=("ckptsyncd wait /data/run/checkpoint-500 --timeout 10m", "ckptsyncd wait --step 500"),
)
@click.argument("path", required=False, type=click.Path())
@click.option("--step", type=click.IntRange(min=0), help="Wait for this step or a later one.")
@click.option("--timeout", metavar="DURATION", default=LONGEST, help="Wait at most so long (10m).")
@socket_options
@click.pass_context
def command(
    context: click.Context,
    /,
    path: str | None,
    step: int | None,
    timeout: str,
    socket: str | None,
    config: str | None,
) -> None:
    """Wait until what lies at PATH now, or a checkpoint of a step, is safe.

    Exit code 0: it is safe; 6: not within the timeout, or it never will be; 5: the daemon went
    away.
    """
    if (path is None) == (step is None):
        msg = "one of PATH and --step is needed"
        raise UsageError(msg, hint="see 'ckptsyncd wait --help'")
    most = seconds("--timeout", timeout)
    daemon = client(socket, config)
    if path is not None:
        answer = daemon.wait_for_checkpoint(absolute(path), most)
    else:
        answer = daemon.wait_for_step(step or 0, most)
    context.exit(conclude(answer))


def seconds(flag: str, text: str) -> float:
    """Return a flag's duration; UsageError names the flag and what is allowed."""
    try:
        return _SECONDS.parse(text)
    except ValueError as error:
        msg = f"{flag}: {text!r}: {error}"
        raise UsageError(msg, hint=f"allowed: {_SECONDS.allowed()}") from error


def conclude(answer: Mapping[str, Any]) -> int:
    """Say how a wait ended; raise the error that has its exit code where it did not end well."""
    code = answer.get("exit_code")
    reason = str(answer.get("reason", ""))
    if answer.get("outcome") == "drained" and answer.get("status_exit_code"):
        code = Unsynced.exit_code
    if code == 0:
        click.echo(printable(reason))
        return 0
    kind = next((kind for kind in _ERRORS if kind.exit_code == code), CkptsyncdError)
    msg = f"{answer.get('outcome')}: {reason}"
    raise kind(msg)
