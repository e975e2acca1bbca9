"""Where the story is told: live pictures and colours on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import get_terminal_size
from time import monotonic
from typing import TextIO

from ckptsyncd.client import Json
from ckptsyncd.core.words import printable

#: Draws a status document as lines of at most so many columns, coloured.
Picture = Callable[[Json, int], Sequence[str]]

_TONES = {"title": "1;36", "typed": "1", "good": "32", "bad": "31;1", "dim": "2"}
#: What a terminal counts as that does not know its size (Python 3.10 then says 0).
_WIDTH, _HEIGHT = 80, 24
#: Options of a command that is shown begin on a new line.
_INDENT = "      "


@dataclass(slots=True)
class Screen:
    """Writes the story; ``base`` is shown as ``$D``. Times are seconds since it began."""

    out: TextIO
    base: Path
    picture: Picture
    is_terminal: bool
    has_colour: bool
    clock: Callable[[], float] = monotonic
    began_at: float = field(init=False)
    drawn: int = 0
    told: dict[str, str] = field(default_factory=dict)
    daemon: str = ""

    def __post_init__(self) -> None:
        """Start the clock."""
        self.began_at = self.clock()

    @property
    def seconds(self) -> float:
        """How long the story has been going on."""
        return self.clock() - self.began_at

    def title(self, text: str) -> None:
        """Begin an act."""
        self._write(f"\n{self._toned('title', text)}")

    def say(self, text: str, tone: str = "") -> None:
        """Write a line."""
        self._write("  " + self._toned(tone, printable(text)))

    def typed(self, *command: str) -> None:
        """Show a command as a user would type it, a line for each of its options."""
        shown = "$"
        for word in command:
            shown += f" \\\n{_INDENT}" if word.startswith("--") else " "
            shown += self._quoted(word)
        self._write("  " + self._toned("typed", shown))

    def show(self, document: Json) -> None:
        """Show how things stand: the picture anew on a terminal, elsewhere only what changed."""
        if self.is_terminal:
            self._draw(document)
        else:
            for line in self._changes(document):
                self._write(f"  {self.seconds:5.1f} s  {printable(line)}")

    def leave(self) -> None:
        """Leave the picture as it is; what follows is written below."""
        self.drawn = 0

    def _draw(self, document: Json) -> None:
        """Draw over the last picture in one write, so that it does not flicker."""
        size = get_terminal_size()
        width, height = size.columns or _WIDTH, size.lines or _HEIGHT
        lines = list(self.picture(document, width - 3))[: max(height - 2, 1)]
        up = f"\x1b[{self.drawn}F" if self.drawn else ""
        self.drawn = len(lines)
        self.out.write(up + "".join(f"  {line}\x1b[K\n" for line in lines) + "\x1b[J")
        self.out.flush()

    def _changes(self, document: Json) -> list[str]:
        """Return what moved since the last document, in words."""
        found = []
        state = document["daemon"]["state"]
        if state != self.daemon:
            found.append(f"the daemon is {state}")
            self.daemon = state
        for row in reversed(document["checkpoints"]):
            name = f"{row['checkpoint']}@{row['edition']}"
            if self.told.get(name) != row["state"]:
                self.told[name] = row["state"]
                found.append(f"{name} is {row['state']}")
        return found

    def _quoted(self, word: str) -> str:
        base = str(self.base)
        return f'"{word.replace(base, "$D")}"' if base in word else word

    def _toned(self, tone: str, text: str) -> str:
        return f"\x1b[{_TONES[tone]}m{text}\x1b[0m" if tone and self.has_colour else text

    def _write(self, text: str) -> None:
        self.leave()
        self.out.write(text + "\n")
        self.out.flush()
