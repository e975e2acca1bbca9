"""``ckptsyncd prune``: old checkpoints out of a store, never on hope."""

from __future__ import annotations

import json
import re
import sys
from contextlib import closing
from dataclasses import asdict
from typing import Any

import click

from ckptsyncd.cli.bars import Bars
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.remote import opened, store_flags
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.core.words import count_words, duration_words, printable
from ckptsyncd.errors import UsageError
from ckptsyncd.recover.prune import GRACE_SECONDS, PER_SECOND, Pruned, PruneRequest, prune
from ckptsyncd.settings.amounts import Duration

_DURATION = Duration(0.0, 3660 * 86400.0)
_STEPS = re.compile(r"[0-9]{1,12}")


@click.command(
    "prune",
    cls=Command,
    short_help="Remove old checkpoints from a store.",
    examples=(
        "ckptsyncd prune s3://bucket/run --keep-last 5 --dry-run",
        "ckptsyncd prune s3://bucket/run --keep-last 3 --keep-every 1000 --pin 'best*'",
        "ckptsyncd prune s3://bucket/run --keep-every 24h --newer-than 2d",
    ),
)
@click.argument("url")
@click.option("--keep-last", type=click.IntRange(min=1), help="Keep so many of each series.")
@click.option(
    "--keep-every", metavar="K", multiple=True,
    help="Keep one for so many steps (1000) or so long (24h); may be repeated.",
)  # fmt: skip
@click.option("--newer-than", metavar="DURATION", help="Keep what was saved so recently (2d).")
@click.option(
    "--pin", metavar="GLOB", multiple=True,
    help="Keep checkpoints of this name, or NAME@EDITION; may be repeated.",
)  # fmt: skip
@click.option(
    "--min-keep", type=click.IntRange(min=1), default=2, show_default=True,
    help="Whatever the rules say, so many that verify stay of each series.",
)  # fmt: skip
@click.option(
    "--grace", metavar="DURATION", default=f"{GRACE_SECONDS:.0f}s", show_default=True,
    help="Data goes so long after its checkpoint, by a later run.",
)  # fmt: skip
@click.option(
    "--level", type=click.Choice(["meta", "sample", "full"]), default="meta", show_default=True,
    help="How closely newer ones are verified before older ones go.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(min=0.1, max=1000.0), default=PER_SECOND, show_default=True,
    help="Remove at most so many objects a second.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_flags
def command(url: str, **flags: Any) -> None:
    """Remove the checkpoints of URL that no rule keeps, of each series by itself.

    What any rule keeps stays, and so do the newest, those that 'latest' or a framework's pointer
    names, and --min-keep that verify; nothing goes before these were verified. A checkpoint stops
    existing at once; its data goes after --grace, by a later run of this command or of the daemon,
    and only where no other checkpoint shares it. What dead writers left unfinished for a week goes
    too. Other objects below URL are never touched.

    Exit code 2: no rule says what to keep; 3: there is no checkpoint; 5: the store does not answer.
    """
    request = request_of(flags)
    bars = Bars(sys.stderr, is_terminal=sys.stderr.isatty())
    with closing(bars):
        done = prune(opened(url, flags), request, bars)
    if flags["as_json"]:
        click.echo(json.dumps(document(done), indent=2))
    else:
        click.echo("\n".join(printable(line) for line in summary(done, request)))


def request_of(flags: dict[str, Any]) -> PruneRequest:
    """Return what was asked for; UsageError where it makes no sense."""
    every = flags["keep_every"]
    steps = [int(text) for text in every if _STEPS.fullmatch(text)]
    times = [_seconds("--keep-every", text) for text in every if not _STEPS.fullmatch(text)]
    if len(steps) > 1 or len(times) > 1 or 0 in steps or 0.0 in times:
        msg = "--keep-every takes one number of steps and one duration, both above 0"
        raise UsageError(msg, hint="such as --keep-every 1000 --keep-every 24h")
    newer = flags["newer_than"]
    rules = Retention(
        keep_last=flags["keep_last"],
        every_steps=steps[0] if steps else None,
        every_seconds=times[0] if times else None,
        newer_seconds=None if newer is None else _seconds("--newer-than", newer),
        pinned=flags["pin"],
        min_keep=flags["min_keep"],
    )
    return PruneRequest(
        rules=rules,
        grace_seconds=_seconds("--grace", flags["grace"]),
        level=flags["level"],
        dry_run=flags["dry_run"],
        per_second=flags["rate"],
    )


def document(done: Pruned) -> dict[str, Any]:
    """Return the result as JSON has it."""
    return {
        "dry_run": done.dry_run,
        "kept": [
            {"checkpoint": f.candidate.checkpoint, "edition": f.candidate.edition, "why": f.keeps}
            for f in done.fates
            if f.keeps
        ],
        "pruned": list(done.buried),
        "cleared": asdict(done.cleared),
        "reaped": asdict(done.reaped),
    }


def summary(done: Pruned, request: PruneRequest) -> list[str]:
    """Return what was done, line by line, for people."""
    would = "would be " if done.dry_run else ""
    lines = [f"{f.candidate.title}: kept, {f.keeps}" for f in done.fates if f.keeps]
    lines += [f"{title}: {would}pruned" for title in done.buried]
    if not done.buried:
        lines.append("no checkpoint goes")
    cleared, reaped = done.cleared, done.reaped
    if cleared.objects:
        lines.append(f"{count_words(cleared.objects, 'object')} of earlier ones {would}removed")
    lines += [f"data stays: {reason}" for reason in cleared.held]
    waiting = len(cleared.waiting) + (len(done.buried) if done.dry_run else 0)
    if waiting:
        grace = duration_words(request.grace_seconds)
        what = count_words(waiting, "pruned checkpoint")
        lines.append(f"the data of {what} goes {grace} after it, by a later run")
    if reaped.claims:
        lines.append(
            f"left by writers that are gone, {would}removed: "
            f"{count_words(reaped.objects, 'object')}, "
            f"{count_words(reaped.uploads, 'unfinished upload')}"
        )
    return lines


def _seconds(flag: str, text: str) -> float:
    try:
        return _DURATION.parse(text)
    except ValueError as error:
        msg = f"{flag} {text}: {error}"
        raise UsageError(msg, hint="such as 90s, 10m, 2h or 7d") from error
