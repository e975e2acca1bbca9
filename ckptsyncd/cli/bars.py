"""Progress of long commands on stderr: a bar with rate and rest on a terminal, else plain lines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from shutil import get_terminal_size
from time import monotonic
from typing import TextIO

from ckptsyncd.core.words import duration_words, printable, size_words
from ckptsyncd.recover.request import Step
from ckptsyncd.report.screen import bar

#: A bar is drawn again, and a line written, at most this often (guessed: what an eye can follow,
#: and what a log can bear).
_DRAW_SECONDS = 0.1
_LINE_SECONDS = 10.0


class Bars:
    """Tells a person how far a command is. Every method may be called from several threads."""

    def __init__(
        self, out: TextIO, *, is_terminal: bool, clock: Callable[[], float] = monotonic
    ) -> None:
        """Write to ``out``."""
        self._out = out
        self._is_terminal = is_terminal
        self._clock = clock
        self._lock = threading.Lock()
        self._total = self._there = self._moved = 0
        self._began_at = self._told_at = clock()
        self._is_drawn = False

    def said(self, text: str) -> None:
        """Write a line, whatever control characters are in it."""
        with self._lock:
            self._write_line(printable(text))

    def began(self, files: int, total_bytes: int, there_bytes: int) -> None:
        """Start to count; say so where an earlier attempt left something."""
        with self._lock:
            self._total, self._there, self._moved = total_bytes, there_bytes, 0
            self._began_at = self._told_at = self._clock()
            if there_bytes:
                self._write_line(f"{size_words(there_bytes)} were fetched before and are whole")
            if not self._is_terminal and files:
                self._write_line(f"reading {size_words(total_bytes - there_bytes)}")

    def moved(self, arrived_bytes: int) -> None:
        """Count, and draw now and then."""
        with self._lock:
            self._moved += arrived_bytes
            now = self._clock()
            every = _DRAW_SECONDS if self._is_terminal else _LINE_SECONDS
            if now - self._told_at >= every:
                self._told_at = now
                self._tell(now)

    def reached(self, step: Step) -> None:
        """Take the bar away once its bytes are there."""
        with self._lock:
            if step == "fetched":
                self._clear()

    def close(self) -> None:
        """Leave a clean line."""
        with self._lock:
            self._clear()

    def _tell(self, now: float) -> None:
        text = progress_line(
            self._there + self._moved, self._total, self._moved / max(now - self._began_at, 1e-9)
        )
        if not self._is_terminal:
            self._write_line(text)
            return
        width = (get_terminal_size().columns or 80) - 1  # 0: Python 3.10, where nobody knows
        self._out.write(
            f"\r\x1b[K{bar(self._there + self._moved, self._total)} {text}"[: width + 4]
        )
        self._out.flush()
        self._is_drawn = True

    def _write_line(self, text: str) -> None:
        self._clear()
        self._out.write(text + "\n")
        self._out.flush()

    def _clear(self) -> None:
        if self._is_drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._is_drawn = False


def progress_line(done: int, total: int, bytes_per_second: float) -> str:
    """Return how much is done, how fast, and how long the rest takes at that rate."""
    percent = 100 if total <= 0 else min(100, 100 * done // total)
    text = f"{percent:3d} %  {size_words(done)} of {size_words(total)}"
    if bytes_per_second <= 0:
        return text
    rest = duration_words(max(total - done, 0) / bytes_per_second)
    return f"{text}  {size_words(bytes_per_second)}/s  {rest} left"
