"""The program ``ckptsyncd``: its commands, and the one place that turns errors into exit codes."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from ckptsyncd import __version__
from ckptsyncd.cli.lazy import Entry, LazyGroup
from ckptsyncd.core.words import printable, redacted
from ckptsyncd.errors import CkptsyncdError

#: Every command, in the order of ``--help``. The words are those of the command's own file.
COMMANDS: dict[str, Entry] = {
    "run": Entry("ckptsyncd.cli.run:command", "Watch a directory and upload its checkpoints."),
    "sync": Entry("ckptsyncd.cli.sync:command", "Upload what is whole in one pass, and end."),
    "status": Entry("ckptsyncd.cli.status:command", "Show what is safe and what is at risk."),
    "drain": Entry("ckptsyncd.cli.drain:command", "Make everything safe by a deadline."),
    "drill": Entry(
        "ckptsyncd.cli.drill:command", "Drain on a pretended notice, and say what would be lost."
    ),
    "commit": Entry("ckptsyncd.cli.commit:command", "Say that a checkpoint is whole."),
    "wait": Entry("ckptsyncd.cli.wait:command", "Wait until a checkpoint is safe."),
    "list": Entry("ckptsyncd.cli.list:command", "Show the safe checkpoints in a store."),
    "restore": Entry(
        "ckptsyncd.cli.restore:command", "Bring a checkpoint from a store into a directory."
    ),
    "verify": Entry("ckptsyncd.cli.verify:command", "Compare a store with its manifests."),
    "prune": Entry("ckptsyncd.cli.prune:command", "Remove old checkpoints from a store."),
    "check": Entry(
        "ckptsyncd.cli.check:command", "Say what would keep checkpoints from being safe."
    ),
    "config": Entry("ckptsyncd.cli.config:command", "Print a sample config, or what holds now."),
    "demo": Entry("ckptsyncd.cli.demo:command", "Show the whole story in one terminal."),
}
_INTERRUPTED = 130
#: Commands that end in good order when they are asked to.
_DAEMONS = ("run", "sync")

group = LazyGroup(
    "ckptsyncd",
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
    help="Gets training checkpoints off a machine before the machine is gone.",
    examples=(
        "ckptsyncd run /data/run s3://bucket/run",
        "ckptsyncd status",
        "ckptsyncd restore s3://bucket/run /data/run",
    ),
)
group = click.version_option(__version__, prog_name="ckptsyncd", message="%(prog)s %(version)s")(
    group
)


@click.pass_context
def _without_command(context: click.Context) -> None:
    """Print the help where no command is named: that is a usage error."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(2)


group.callback = _without_command


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end with its exit code.

    Errors of ours and of the environment become two lines on stderr: what is wrong, and what to do
    next. Any other exception is a bug: Python prints where, and the exit code is 1.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in _DAEMONS:
        from ckptsyncd.signals import hold_stops  # noqa: PLC0415 - no other command has any use

        hold_stops()
    try:
        code = group.main(arguments, prog_name="ckptsyncd", standalone_mode=False)
    except CkptsyncdError as error:
        code = told(str(error), error.hint, error.exit_code)
    except click.exceptions.Abort:
        code = _INTERRUPTED
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "ckptsyncd"
        code = told(error.format_message(), f"see '{path} --help'", error.exit_code)
    except click.ClickException as error:
        code = told(error.format_message(), "see 'ckptsyncd --help'", error.exit_code)
    except OSError as error:
        code = told(str(error), "that is the machine's answer, not the store's", 1)
    code = code if isinstance(code, int) else 0
    if arguments is None and words[:1] == ["run"]:
        _end_at_once(code)
    sys.exit(code)


def _end_at_once(code: int) -> NoReturn:
    """End the process without taking the interpreter apart: a deadline may be a second away.

    With the libraries of a cloud in it that was seen to take from 0.5 to 1.3 s on a busy machine.
    Everything of ours is closed by then; what a hand still waits for is left to the system.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def told(text: str, hint: str, code: int) -> int:
    """Write an error and its hint to stderr, one line each, and return the exit code."""
    colour = False if os.environ.get("NO_COLOR") else None
    for word, tone, line in (("error", "red", text), ("hint", "cyan", hint)):
        shown = printable(redacted(" ".join(line.split())))
        click.echo(click.style(f"{word}:", fg=tone) + f" {shown}", err=True, color=colour)
    return code
