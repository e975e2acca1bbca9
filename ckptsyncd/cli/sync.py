"""``ckptsyncd sync``: one pass without a daemon."""

from __future__ import annotations

import os
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.lazy import loaded
from ckptsyncd.cli.options import settings_options
from ckptsyncd.cli.run import make_places
from ckptsyncd.settings import load


@click.command(
    "sync",
    cls=Command,
    short_help="Upload what is whole in one pass, and end.",
    examples=("ckptsyncd sync /data/run s3://bucket/run",),
)
@settings_options
@click.pass_context
def command(context: click.Context, /, config: str | None, **flags: Any) -> None:
    """Upload every finished checkpoint of DIR to URL and end.

    Exit code 0: everything that is finished is safe; 5: the store does not answer; 6: something
    could not be made safe.
    """
    settings = load(flags, os.environ, config).settings
    make_places(settings)
    context.exit(loaded("ckptsyncd.app:sync")(settings))
