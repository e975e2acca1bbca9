"""``ckptsyncd config``: a sample config file, or the settings that would hold."""

from __future__ import annotations

import os
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.options import settings_options
from ckptsyncd.errors import UsageError
from ckptsyncd.settings import load
from ckptsyncd.settings.sample import sample, shown


@click.command(
    "config",
    cls=Command,
    short_help="Print a sample config, or what holds now.",
    examples=(
        "ckptsyncd config --sample > ckptsyncd.toml",
        "ckptsyncd config --show --config ckptsyncd.toml /data/run s3://bucket/run",
    ),
)
@click.option("--sample", "is_sample", is_flag=True, help="Print a config file that explains all.")
@click.option("--show", "is_show", is_flag=True, help="Print what 'run' would use, and why.")
@settings_options
def command(config: str | None, *, is_sample: bool, is_show: bool, **flags: Any) -> None:
    """Print a sample config file, or the settings that hold with flags, variables and file."""
    if is_sample == is_show:
        msg = "one of --sample and --show is needed"
        raise UsageError(msg, hint="see 'ckptsyncd config --help'")
    click.echo(sample() if is_sample else shown(load(flags, os.environ, config)), nl=False)
