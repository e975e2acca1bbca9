"""``ckptsyncd demo``: the whole story in one terminal, with the real program."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from ckptsyncd.cli.bars import progress_line
from ckptsyncd.cli.command import Command
from ckptsyncd.client import Json
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.demo.screen import Screen
from ckptsyncd.demo.story import tell
from ckptsyncd.report.screen import bar
from ckptsyncd.report.status import Style, lines
from ckptsyncd.report.status_read import from_json


@click.command(
    "demo",
    cls=Command,
    short_help="Show the whole story in one terminal.",
    examples=("ckptsyncd demo", "ckptsyncd demo --keep"),
)
@click.option("--keep", is_flag=True, help="Keep the directory: store, logs, what came back.")
def command(*, keep: bool) -> None:
    """Train, upload, lose the machine, restore, compare: in half a minute, without an account.

    A small trainer and the real daemon run as processes in a temporary directory; the store is a
    directory beside them. Exit code 0: what came back is byte for byte what the trainer wrote.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    base = Path(tempfile.mkdtemp(prefix="ckptsyncd-demo-"))
    with ExitStack() as stack:
        if keep:
            stack.callback(click.echo, f"\nkept: {base}")
        else:
            stack.callback(shutil.rmtree, base)
        tell(base, _screen(base))


def _screen(base: Path) -> Screen:
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    has_colour = is_terminal and not os.environ.get("NO_COLOR")

    def picture(document: Json, width: int) -> list[str]:
        snapshot, daemon = from_json(document)
        style = Style(width=width, colour=has_colour, bars=has_colour)
        shown = lines(snapshot, daemon, now=time.time(), style=style)
        return [*shown, "", *_bars(snapshot, width)]

    return Screen(sys.stdout, base, picture, is_terminal=is_terminal, has_colour=has_colour)


def _bars(snapshot: Snapshot, width: int) -> Iterator[str]:
    """Yield a bar for every checkpoint that is on its way."""
    rate = snapshot.rate_bytes_per_second
    for view in snapshot.checkpoints:
        if view.at_risk:
            done = bar(view.bytes_stored, view.bytes)
            text = progress_line(view.bytes_stored, view.bytes, rate)
            yield f"{done} {view.checkpoint} {text}"[:width]
