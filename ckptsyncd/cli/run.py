"""``ckptsyncd run``: the daemon in the foreground, alone or around a trainer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ckptsyncd.cli.command import Command
from ckptsyncd.cli.lazy import loaded
from ckptsyncd.cli.options import settings_options
from ckptsyncd.errors import UsageError
from ckptsyncd.settings import Settings, load, make_private

_TRAINER = "ckptsyncd.trainer"


class TrainerCommand(Command):
    """A command whose line may end in ``-- CMD...``, which is not looked into."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the trainer's command off before flags are read."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[_TRAINER] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show that a trainer may follow."""
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


@click.command(
    "run",
    cls=TrainerCommand,
    short_help="Watch a directory and upload its checkpoints.",
    examples=(
        "ckptsyncd run /data/run s3://bucket/run",
        "ckptsyncd run /data/run s3://bucket/run --restore -- torchrun train.py",
    ),
)
@settings_options
@click.pass_context
def command(context: click.Context, /, config: str | None, **flags: Any) -> None:
    """Watch DIR and upload every finished checkpoint to URL until told to stop.

    With --restore and an empty DIR, the newest whole checkpoint of every series is brought back
    first; where URL holds none it starts all the same, where none is whole it ends with code 4.

    With CMD the trainer is started too: signals are passed on to it, its end is followed by a last
    upload, and its exit code is the program's.

    Every flag is a variable and a key of the config file as well; 'ckptsyncd config --sample'
    lists them.
    """
    trainer = context.meta.get(_TRAINER)
    if trainer == ():
        msg = "there is no command after --"
        raise UsageError(msg, hint="leave -- away to run without a trainer")

    def read_again() -> Settings:
        return load(flags, os.environ, config).settings

    settings = read_again()
    make_places(settings)
    if settings.restore:
        loaded("ckptsyncd.cli.comeback:restored_first")(settings)
    context.exit(loaded("ckptsyncd.app:run")(settings, trainer or (), read_again))


def make_places(settings: Settings) -> None:
    """Make the directories of ledger and socket, for nobody else; raises UsageError."""
    make_private(Path(settings.state_dir))
    make_private(Path(settings.socket).parent)
