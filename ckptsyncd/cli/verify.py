"""``ckptsyncd verify``: compares what a store holds with its manifests."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

import click

from ckptsyncd.cli.bars import Bars
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.remote import opened, store_flags
from ckptsyncd.core.words import count_words, printable, size_words
from ckptsyncd.recover.request import WORKERS
from ckptsyncd.recover.verify import Verification, Verified, VerifyRequest, verify, words


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
@click.option("--seed", type=int, default=0, show_default=True, help="Which files a sample takes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=WORKERS, show_default=True,
    help="Requests at the same time.",
)  # fmt: skip
@store_flags
@click.pass_context
def command(context: click.Context, /, url: str, checkpoint: str | None, **flags: Any) -> None:
    """Compare what URL holds with its manifests; all checkpoints, or NAME.

    Exit code 0: all are whole; 1: some are not; 3: there is none; 4: none is whole; 5: the store
    does not answer.
    """
    request = VerifyRequest(
        checkpoint, flags["level"], flags["percent"], flags["seed"], flags["workers"]
    )
    bars = Bars(sys.stderr, is_terminal=sys.stderr.isatty())
    with closing(bars):
        found = verify(opened(url, flags), request, bars)
    if flags["as_json"]:
        click.echo(json.dumps(document(found), indent=2))
    else:
        click.echo("\n".join(_line(result) for result in found.results))
    context.exit(found.exit_code)


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
    }


def _line(result: Verified) -> str:
    amount = f"{count_words(result.files, 'file')}, {size_words(result.bytes)}"
    read = f", {size_words(result.bytes_read)} read" if result.bytes_read else ""
    return printable(f"{result.title}: {words(result)} ({amount}{read})")
