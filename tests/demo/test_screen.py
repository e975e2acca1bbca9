"""The demo's screen: pictures drawn over each other on a terminal, changes in words elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ckptsyncd.client import Json
from ckptsyncd.demo.screen import Screen


def document(**states: str) -> Json:
    """Return as much of a status document as the screen reads."""
    rows: list[dict[str, Any]] = [
        {"checkpoint": name, "edition": 1, "state": state} for name, state in states.items()
    ]
    return {"daemon": {"state": "running"}, "checkpoints": rows}


def picture(shown: Json, width: int) -> list[str]:
    """Draw one line for each checkpoint."""
    del width
    return [f"{row['checkpoint']} {row['state']}" for row in shown["checkpoints"]]


def screen(*, is_terminal: bool) -> tuple[Screen, io.StringIO]:
    """Return a screen whose clock stands still, and what it writes to."""
    out = io.StringIO()
    made = Screen(
        out, Path("/demo"), picture, is_terminal=is_terminal, has_colour=is_terminal,
        clock=lambda: 5.0,
    )  # fmt: skip
    return made, out


def test_plain_lines_tell_changes_once() -> None:
    """Without a terminal each new state is a line with its time, oldest first, without escapes."""
    made, out = screen(is_terminal=False)
    made.show(document(b="writing", a="safe"))
    made.show(document(b="writing", a="safe"))
    made.show(document(b="settled\x1b[2J", a="safe"))
    assert out.getvalue().splitlines() == [
        "    0.0 s  the daemon is running",
        "    0.0 s  a@1 is safe",
        "    0.0 s  b@1 is writing",
        "    0.0 s  b@1 is settled\\x1b[2J",
    ]


def test_a_picture_is_drawn_over_the_last_one() -> None:
    """A terminal shows the newest picture in the place of the one before, until text follows."""
    made, out = screen(is_terminal=True)
    made.show(document(a="writing", b="writing"))
    first = out.tell()
    made.show(document(a="safe"))
    second = out.tell()
    made.title("2. Next")
    made.show(document(a="safe"))
    text = out.getvalue()
    assert text[:first] == "  a writing\x1b[K\n  b writing\x1b[K\n\x1b[J"
    assert text[first:second] == "\x1b[2F  a safe\x1b[K\n\x1b[J"
    assert text[second:] == "\n\x1b[1;36m2. Next\x1b[0m\n  a safe\x1b[K\n\x1b[J"


def test_a_picture_is_no_higher_than_the_terminal() -> None:
    """Lines that would scroll away could not be drawn over: they are left out."""
    made, _ = screen(is_terminal=True)
    made.show(document(**{f"c{n}": "safe" for n in range(500)}))
    assert 0 < made.drawn < 500


def test_commands_can_be_typed() -> None:
    """A command is shown with the story's directory as a variable, and its options one a line."""
    made, out = screen(is_terminal=False)
    made.typed("ckptsyncd", "run", "/demo/w", "file:///demo/s", "--socket", "/demo/m/s")
    assert out.getvalue() == (
        '  $ ckptsyncd run "$D/w" "file://$D/s" \\\n      --socket "$D/m/s"\n'
    )
