"""``ckptsyncd status``: what is safe, what is at risk, and whether the daemon lives."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from shutil import get_terminal_size

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.dead import remains
from ckptsyncd.cli.find import asked, client, meant
from ckptsyncd.cli.options import socket_options
from ckptsyncd.client import Json
from ckptsyncd.core.words import printable, redacted
from ckptsyncd.errors import DaemonUnreachable
from ckptsyncd.report import usage
from ckptsyncd.report.probes import NAMES
from ckptsyncd.report.status import Style, lines
from ckptsyncd.report.status_json import FAILING, exit_code, to_json
from ckptsyncd.report.status_read import from_json

_WATCH_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J"
_WIDE = 200


@dataclass(frozen=True, slots=True)
class Look:
    """One look: the document, the exit code, and why the daemon counts as dead (or nothing)."""

    document: Json
    code: int
    dead: str = ""


@click.command(
    "status",
    cls=Command,
    short_help="Show what is safe and what is at risk.",
    examples=("ckptsyncd status", "ckptsyncd status --json | jq .unsynced_bytes"),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (see docs/status-json.md).")
@click.option("--watch", is_flag=True, help="Show it again every second, until interrupted.")
@click.option(
    "--probe",
    type=click.Choice(NAMES),
    help="Ask one question of the daemon, for the health checks of containers.",
)
@click.option(
    "--where", is_flag=True,
    help="Say where bytes go (bucket, region, endpoint, key id, storage class) and what it costs.",
)  # fmt: skip
@socket_options
@click.pass_context
def command(
    context: click.Context,
    /,
    socket: str | None,
    config: str | None,
    *,
    as_json: bool,
    watch: bool,
    probe: str | None,
    where: bool,
) -> None:
    """Show what is safe, what is at risk, how fast it goes, and what is wrong.

    Where the daemon is dead this is said first; the rest is then what it last knew.

    Exit code 0: everything that is finished is safe; 6: finished checkpoints are at risk; 5: the
    daemon is dead or the store fails.

    With --probe: 0 where the answer is good (healthz: the loop turns; readyz: the store can be
    written; synced: no finished work waits for longer than the setting synced_seconds), else 5.
    """
    if probe is not None:
        context.exit(probed(probe, socket, config))
    if where:
        told = client(socket, config).store()
        rows = [printable(redacted(row)) for row in usage.lines(told)]
        click.echo(json.dumps(told) if as_json else "\n".join(rows))
        return
    pause = threading.Event()
    while True:
        look = looked(socket, config)
        text = json.dumps(document_of(look)) if as_json else screen(look)
        if watch and not as_json and sys.stdout.isatty():
            text = _CLEAR + fitting(text, get_terminal_size().lines)
        click.echo(text)
        if not watch:
            context.exit(look.code)
        pause.wait(_WATCH_SECONDS)


def probed(name: str, socket: str | None, config: str | None) -> int:
    """Print the daemon's answer to a probe and return the exit code."""
    answer = client(socket, config).probe(name)
    click.echo(answer.get("text", ""))
    return 0 if answer.get("is_good") is True else FAILING


def looked(socket: str | None, config: str | None) -> Look:
    """Ask the daemon that is meant, or read what it left; DaemonUnreachable if it left nothing."""
    found = meant(socket, config)
    try:
        document = asked(found)
    except DaemonUnreachable as error:
        left = remains(found)
        if left is None:
            raise
        return Look(left.document, FAILING, f"{error}; {left.reason}")
    return Look(document, exit_code(from_json(document)[0]))


def screen(look: Look) -> str:
    """Return the screen for people, as wide and as coloured as stdout takes it."""
    snapshot, daemon = from_json(look.document)
    is_terminal = sys.stdout.isatty()
    style = Style(
        width=get_terminal_size().columns if is_terminal else _WIDE,
        colour=is_terminal and not os.environ.get("NO_COLOR"),
        bars=is_terminal,
    )
    return "\n".join(lines(snapshot, daemon, now=time.time(), style=style, dead=look.dead))


def fitting(text: str, rows: int) -> str:
    """Return as much of a screen as a terminal shows, and how many lines there are beyond."""
    shown = text.split("\n")
    room = max(rows - 2, 1)  # one for the cursor, one to say what is missing
    if len(shown) <= room + 1:
        return text
    return "\n".join([*shown[:room], f"({len(shown) - room} more lines: ckptsyncd status | less)"])


def document_of(look: Look) -> Json:
    """Return the document; that of a dead daemon says so, and its ages are those of now."""
    if not look.dead:
        return look.document
    snapshot, daemon = from_json(look.document)
    document = to_json(snapshot, daemon, time.time())
    last = {"last_state": snapshot.state, "last_reason": snapshot.reason}
    dead = {**document["daemon"], **last, "state": "dead", "reason": look.dead}
    return {**document, "daemon": dead, "exit_code": look.code}
