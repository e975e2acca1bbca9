"""A command whose help ends in examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class Command(click.Command):
    """A click command that shows ``examples``, each a line that could be typed as it stands."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        """Take the examples beside what click takes."""
        super().__init__(*args, **options)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples last."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write examples as they are: click would run them together."""
    if not examples:
        return
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for line in examples:
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")
