"""Commands that are imported only when they run: ``status`` must not wait for a cloud's library."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from ckptsyncd.cli.command import write_examples


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is (``module:attribute``), and its line in the list of commands."""

    target: str
    short_help: str


def loaded(target: str) -> Any:
    """Return the attribute that ``module:attribute`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run or complete it."""

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, Entry],
        examples: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Take the commands in the order in which they are to be listed, and examples."""
        super().__init__(*args, **options)
        self._entries = dict(entries)
        self._examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every name."""
        del ctx
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or return ``None`` where there is none of this name."""
        del ctx
        entry = self._entries.get(cmd_name)
        return None if entry is None else cast("click.Command", loaded(entry.target))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        rows = [(name, entry.short_help) for name, entry in self._entries.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples last."""
        super().format_epilog(ctx, formatter)
        write_examples(self._examples, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any."""
        found = [
            CompletionItem(name, help=entry.short_help)
            for name, entry in self._entries.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)
