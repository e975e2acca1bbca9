"""A log that nobody reads holds up nobody; what it could not take is counted."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from ckptsyncd.core.facts import Instant
from ckptsyncd.report.logs import Logs
from ckptsyncd.report.outlet import MOST_LINES, outlet
from tests.process.program import until

NOW = Instant(1000.0, 1_750_000_000.0)
#: So many of these fill a pipe.
TEXT = "x" * 1000


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """Make a pipe of one page: the end to read from, and the end to write to."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        yield reading, file
    os.close(reading)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_pipe_that_nobody_reads(pipe: tuple[int, TextIO], *, is_blocking: bool) -> None:
    """Lines are written without waiting for a reader; then all come, and how many were lost."""
    reading, file = pipe
    os.set_blocking(file.fileno(), is_blocking)
    logs = Logs(outlet(file), form="json")
    for number in range(MOST_LINES + 100):
        logs.say("info", "filled", NOW, number=number, text=TEXT)
    data = b""
    while data.count(b"\n") < MOST_LINES // 2:
        data += os.read(reading, 1 << 16)
    logs.say("info", "over", NOW)
    while b'"over"' not in data or not data.endswith(b"\n"):
        data += os.read(reading, 1 << 16)
    *kept, lost, over = (json.loads(line) for line in data.splitlines())
    assert [line["number"] for line in kept] == list(range(len(kept)))
    assert (lost["event"], lost["lines"]) == ("log.lost", MOST_LINES + 100 - len(kept))
    assert over["event"] == "over"


def test_a_line_is_out_when_its_writer_goes_on(pipe: tuple[int, TextIO]) -> None:
    """Where somebody reads, a line can be read as soon as it was said: a kill loses none."""
    reading, file = pipe
    logs = Logs(outlet(file), form="json")
    os.set_blocking(reading, False)
    for number in range(20):
        logs.say("info", "said", NOW, number=number)
        assert json.loads(os.read(reading, 4096))["number"] == number


def test_a_full_disk_is_counted() -> None:
    """What the system says of a line reaches whoever said it, and the next line tells how many."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        made = outlet(full)
        made.write("line\n")
        errors: list[int | None] = []

        def is_refused() -> bool:
            try:
                made.flush()
            except OSError as error:
                errors.append(error.errno)
            return bool(errors)

        until(is_refused, "the error comes")
        assert errors == [errno.ENOSPC]
        made.flush()
