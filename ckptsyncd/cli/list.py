"""``ckptsyncd list``: the safe checkpoints in a store, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.remote import opened, said_url, store_flags
from ckptsyncd.core.words import printable, size_words
from ckptsyncd.errors import NoCheckpoint, NothingVerifies
from ckptsyncd.recover.catalog import Catalog, Entry, read_catalog
from ckptsyncd.recover.patience import Pace

_HEAD = ("CHECKPOINT", "STEP", "SIZE", "FILES", "COMMITTED (UTC)", "LAYOUT")
#: Which columns are numbers, which stand at the right.
_RIGHT = {1, 2, 3}


@click.command(
    "list",
    cls=Command,
    short_help="Show the safe checkpoints in a store.",
    examples=("ckptsyncd list s3://bucket/run", "ckptsyncd list file:///mnt/run --json"),
)
@click.argument("url", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_flags
def command(url: str | None, *, as_json: bool, **flags: Any) -> None:
    """Show what can be restored from URL, newest first.

    Only committed checkpoints are shown. Exit code 3: there is none, a fresh start is right;
    4: there are some and none can be read.
    """
    catalog = read_catalog(opened(said_url(url), flags), Pace())
    for broken in catalog.unreadable:
        click.echo(printable(f"{broken.title}: {broken.reason}"), err=True)
    if as_json:
        click.echo(json.dumps([row(entry) for entry in catalog.entries], indent=2))
    elif catalog.entries:
        click.echo("\n".join(table(catalog.entries)))
    _check(catalog)


def row(entry: Entry) -> dict[str, Any]:
    """Return one checkpoint as JSON has it; ``committed_at`` is seconds since the epoch."""
    return {
        "checkpoint": entry.checkpoint,
        "series": entry.series,
        "edition": entry.edition,
        "step": entry.step,
        "layout": entry.layout,
        "bytes": entry.bytes,
        "files": entry.files,
        "committed_at": entry.committed_at,
    }


def table(entries: Iterable[Entry]) -> list[str]:
    """Return the lines of the table for people."""
    rows = [_HEAD, *(_cells(entry) for entry in entries)]
    widths = [max(len(cells[n]) for cells in rows) for n in range(len(_HEAD))]
    return ["  ".join(_padded(cells, widths)).rstrip() for cells in rows]


def _cells(entry: Entry) -> tuple[str, ...]:
    name = entry.checkpoint if entry.edition == 1 else entry.title
    step = "" if entry.step is None else str(entry.step)
    return (
        printable(name),
        step,
        size_words(entry.bytes),
        str(entry.files),
        _when(entry.committed_at),
        printable(entry.layout),
    )


def _when(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "?"


def _padded(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.rjust(width) if n in _RIGHT else cell.ljust(width)
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]


def _check(catalog: Catalog) -> None:
    if not catalog.entries and not catalog.broken:
        msg = "there is no checkpoint in the store"
        raise NoCheckpoint(msg)
    if not catalog.entries:
        msg = "there are checkpoints in the store and none can be read"
        raise NothingVerifies(msg)
