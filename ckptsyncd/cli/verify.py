"""``ckptsyncd verify``: compares what a store holds with its manifests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from time import time
from typing import Any

import click

from ckptsyncd.cli.bars import Bars
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.remote import opened, store_flags
from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.ports import Store
from ckptsyncd.core.words import count_words, printable, size_words
from ckptsyncd.errors import NoCheckpoint, StoreError
from ckptsyncd.recover.request import WORKERS
from ckptsyncd.recover.unnamed import Unnamed
from ckptsyncd.recover.verify import (
    NOTHING,
    Verification,
    Verified,
    VerifyRequest,
    record,
    verify,
    words,
)

#: So many of a kind are told by name (guessed: a screen; --json tells all).
_MOST_NAMES = 10


@click.command(
    "verify",
    cls=Command,
    short_help="Compare a store with its manifests.",
    examples=("ckptsyncd verify s3://bucket/run", "ckptsyncd verify s3://bucket/run --level full"),
)
@click.argument("url")
@click.argument("checkpoint", metavar="[NAME[@EDITION]]", required=False)
@click.option(
    "--level", type=click.Choice(["meta", "sample", "full"]), default="meta", show_default=True,
    help="meta: existence, size and the store's checksum; sample: read some; full: read all.",
)  # fmt: skip
@click.option(
    "--percent", type=click.FloatRange(0, 100, min_open=True), default=5.0, show_default=True,
    help="How much of each checkpoint is read at level sample.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Which pieces a sample takes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=WORKERS, show_default=True,
    help="Requests at the same time.",
)  # fmt: skip
@click.option(
    "--record/--no-record", default=True, show_default=True,
    help="Leave in the store when everything was verified.",
)  # fmt: skip
@store_flags
@click.pass_context
def command(context: click.Context, /, url: str, checkpoint: str | None, **flags: Any) -> None:
    """Compare what URL holds with its manifests; all checkpoints, or NAME.

    Of everything it also names what no checkpoint needs: objects, and begun uploads. When that was
    is recorded in the store, for the daemon's status; whoever may only read says --no-record.

    Exit code 0: all are whole; 1: some are not; 3: there is none; 4: none is whole; 5: the store
    does not answer.
    """
    request = VerifyRequest(
        checkpoint, flags["level"], flags["percent"], flags["seed"], flags["workers"]
    )
    bars = Bars(sys.stderr, is_terminal=sys.stderr.isatty())
    store = opened(url, flags)
    with closing(bars):
        found = verify(store, request, bars)
        if checkpoint is None and found.results and flags["record"]:
            _record(store, found, bars)
    if flags["as_json"]:
        click.echo(json.dumps(document(found), indent=2))
    else:
        rows = (*(_line(result) for result in found.results), *_left(found.unnamed))
        for row in rows:
            click.echo(printable(row))
    if not found.results:
        raise NoCheckpoint(NOTHING)
    context.exit(found.exit_code)


def _record(store: Store, found: Verification, bars: Bars) -> None:
    try:
        record(store, found, time())
    except StoreError as error:
        bars.said(f"that it was verified could not be recorded for the daemon: {error}")


def document(found: Verification) -> dict[str, Any]:
    """Return the verdicts as JSON has them."""
    return {
        "level": found.level,
        "exit_code": found.exit_code,
        "checkpoints": [
            {
                "checkpoint": result.checkpoint,
                "edition": result.edition,
                "whole": not result.faults,
                "files": result.files,
                "bytes": result.bytes,
                "bytes_read": result.bytes_read,
                "faults": [{"path": f.path, "reason": f.reason} for f in result.faults],
            }
            for result in found.results
        ],
        "unnamed": None if found.unnamed is None else _unnamed(found.unnamed),
    }


def _unnamed(found: Unnamed) -> dict[str, Any]:
    kinds = ("objects", "claimed", "waiting")
    rows = {
        kind: [{"key": fact.key, "bytes": fact.size} for fact in getattr(found, kind)]
        for kind in kinds
    }
    return {**rows, "uploads": [{"key": u.key, "token": u.token} for u in found.uploads]}


def _left(found: Unnamed | None) -> Iterator[str]:
    """Say what nobody names: some by name, all in sum."""
    if found is None:
        return
    yield from _some("named by no checkpoint", found.objects, "it may be removed")
    why = "an upload is under way, or its writer is gone; prune removes the latter after a week"
    yield from _some("of editions that are not committed", found.claimed, why)
    yield from _some("of pruned checkpoints", found.waiting, "a later prune removes them")
    for begun in found.uploads[:_MOST_NAMES]:
        yield f"unfinished upload: {begun.key} ({begun.token})"
    if len(found.uploads) > _MOST_NAMES:
        yield f"and {count_words(len(found.uploads) - _MOST_NAMES, 'more unfinished upload')}"


def _some(what: str, facts: Sequence[ObjectFact], why: str) -> Iterator[str]:
    if not facts:
        return
    size = size_words(sum(fact.size for fact in facts))
    yield f"{count_words(len(facts), 'object')} {what}, {size}: {why}"
    for fact in facts[:_MOST_NAMES]:
        yield f"  {fact.key} ({size_words(fact.size)})"
    if len(facts) > _MOST_NAMES:
        yield f"  and {len(facts) - _MOST_NAMES} more"


def _line(result: Verified) -> str:
    amount = f"{count_words(result.files, 'file')}, {size_words(result.bytes)}"
    read = f", {size_words(result.bytes_read)} read" if result.bytes_read else ""
    return f"{result.title}: {words(result)} ({amount}{read})"
