"""``ckptsyncd restore``: the newest whole checkpoint, or the one asked for, into a directory."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ckptsyncd.cli.bars import Bars
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.crossing import crossing
from ckptsyncd.cli.remote import opened, store_flags
from ckptsyncd.core.words import count_words, printable, size_words
from ckptsyncd.errors import NoCheckpoint, UsageError
from ckptsyncd.recover.request import WORKERS, RestoreRequest, RestoreResult
from ckptsyncd.recover.restore import restore
from ckptsyncd.settings.amounts import Duration

_TIMEOUT = Duration(0.0, 366 * 24 * 3600.0)


@click.command(
    "restore",
    cls=Command,
    short_help="Bring a checkpoint from a store into a directory.",
    examples=(
        "ckptsyncd restore s3://bucket/run /data/run --if-empty",
        "ckptsyncd restore s3://bucket/run /data/run --step 500 --force",
    ),
)
@click.argument("url")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--checkpoint", metavar="NAME[@EDITION]", help="This one and no other.")
@click.option("--series", metavar="NAME", help="The newest of this run.")
@click.option("--step", type=click.IntRange(min=0), help="The one of this training step.")
@click.option("--only", metavar="GLOB", multiple=True, help="Only these files; may be repeated.")
@click.option("--node", type=click.IntRange(min=0), help="Only what this machine wrote.")
@click.option(
    "--nodes", type=click.IntRange(min=1),
    help="With --node: of how many machines now, each of which gets whole shares.",
)  # fmt: skip
@click.option("--if-empty", is_flag=True, help="Do nothing where DIR holds a checkpoint already.")
@click.option(
    "--or-start-afresh", is_flag=True,
    help="Exit with 0 where there is no checkpoint: for scripts that go on to the trainer.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Wait until there is a checkpoint.")
@click.option("--timeout", metavar="DURATION", help="Wait at most so long (10m).")
@click.option("--force", is_flag=True, help="Set aside what has the same name in DIR.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=WORKERS, show_default=True,
    help="Reads at the same time, at most.",
)  # fmt: skip
@store_flags
def command(url: str, directory: Path, **flags: Any) -> None:
    """Bring the newest whole checkpoint from URL into DIR.

    Broken ones are passed over and told. Nothing lies under its name before all of it is there and
    checked; a restore that was killed goes on where it was. The framework's pointers (latest,
    last.ckpt) are made to name what was restored.

    Exit code 3: there is no checkpoint, a fresh start is right; 4: there are some and none is
    whole, do not start afresh; 5: the store does not answer; 7: a name is refused, or other content
    is in the way.
    """
    request = _request(flags)
    bars = Bars(sys.stderr, is_terminal=sys.stderr.isatty())
    store = opened(url, flags)
    with closing(bars):
        try:
            result = restore(store, directory, request, bars)
        except NoCheckpoint as error:
            if not flags["or_start_afresh"]:
                raise
            result = RestoreResult(None, f"nothing to restore, start afresh: {error}")
    for text in result.warnings:
        click.echo(f"warning: {printable(text)}", err=True)
    would = result.dry_run and result.entry is not None
    crossed = crossing(store, flags) if would else None
    if flags["as_json"]:
        told = None if crossed is None else asdict(crossed)
        click.echo(json.dumps({**document(result), "egress": told}, indent=2))
    else:
        rows = summary(result, directory)
        rows += [] if crossed is None else crossed.words(result.bytes_needed)
        click.echo("\n".join(printable(line) for line in rows))


def _request(flags: dict[str, Any]) -> RestoreRequest:
    if flags["timeout"] and not flags["wait"]:
        msg = "--timeout is of no use without --wait"
        raise UsageError(msg)
    node, nodes = flags["node"], flags["nodes"]
    if nodes is not None and (node is None or node >= nodes):
        msg = f"--nodes {nodes} needs a --node from 0 to {nodes - 1}"
        raise UsageError(msg)
    return RestoreRequest(
        checkpoint=flags["checkpoint"],
        series=flags["series"],
        step=flags["step"],
        only=flags["only"],
        node=flags["node"],
        nodes=flags["nodes"],
        if_empty=flags["if_empty"],
        wait=flags["wait"],
        timeout_seconds=_seconds(flags["timeout"]),
        dry_run=flags["dry_run"],
        force=flags["force"],
        workers=flags["workers"],
    )


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return _TIMEOUT.parse(text)
    except ValueError as error:
        msg = f"--timeout {text}: {error}"
        raise UsageError(msg, hint="such as 90s, 10m or 2h") from error


def document(result: RestoreResult) -> dict[str, Any]:
    """Return the result as JSON has it."""
    entry = result.entry
    return {
        "restored": entry is not None and not result.dry_run,
        "dry_run": result.dry_run,
        "reason": result.reason,
        "checkpoint": entry and entry.checkpoint,
        "edition": entry and entry.edition,
        "series": entry and entry.series,
        "step": entry and entry.step,
        "layout": entry and entry.layout,
        "committed_at": entry and entry.committed_at,
        "lineage": result.lineage,
        "files": result.files,
        "bytes": result.bytes,
        "bytes_needed": result.bytes_needed,
        "bytes_fetched": result.bytes_fetched,
        "bytes_resumed": result.bytes_resumed,
        "placed": list(result.placed),
        "kept": list(result.kept),
        "set_aside": list(result.set_aside),
        "pointers": list(result.pointers),
        "skipped": [{"checkpoint": s.title, "reason": s.reason} for s in result.skipped],
        "warnings": list(result.warnings),
    }


def summary(result: RestoreResult, directory: Path) -> list[str]:
    """Return what was done, line by line, for people."""
    entry = result.entry
    if entry is None:
        return [result.reason]
    verb = "would restore" if result.dry_run else "restored"
    if result.kept and not result.placed:
        verb = "kept, for it is whole already:"
    amount = f"{count_words(result.files, 'file')}, {size_words(result.bytes)}"
    lines = [f"{verb} {entry.title} into {directory}: {amount}"]
    lines += [f"passed over {skip.title}: {skip.reason}" for skip in result.skipped]
    lines += [f"set aside {path}" for path in result.set_aside]
    if result.pointers:
        lines.append(f"pointers: {', '.join(result.pointers)}")
    return lines
