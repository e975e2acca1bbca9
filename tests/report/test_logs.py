"""The log: one line a move, in words or JSON, without floods, forgeries and secrets."""

from __future__ import annotations

import errno
import io
import json
import logging
import re
from collections.abc import Sequence
from typing import Any

import pytest

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Complained, DaemonMoved, Move, Moved, Recovered, Said
from ckptsyncd.report.log_lines import adopt_libraries, logger, secrets_of
from ckptsyncd.report.logs import Logs
from tests.report.examples import CALM


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Full(io.StringIO):
    """A file on a disk that is full for a while."""

    is_full = True

    def write(self, text: str) -> int:
        """Refuse, or write."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def at(seconds: float) -> Instant:
    """Return a moment so many seconds after the first."""
    return Instant(1000.0 + seconds, 1_750_000_000.123 + seconds)


def logged(*turns: tuple[float, Sequence[Move]], **options: Any) -> list[dict[str, Any]]:
    """Return the JSON lines that some turns gave."""
    file = io.StringIO()
    logs = Logs(file, **options)
    for seconds, moves in turns:
        logs.turn(moves, at(seconds), CALM)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def moved(new: Any, **changes: Any) -> Moved:
    """Return a move of one checkpoint."""
    fields: dict[str, Any] = {
        "checkpoint": "llama/checkpoint-1",
        "series": "llama",
        "edition": 1,
        "old": "settled",
        "new": new,
        "reason": "",
        "bytes": 5 * 2**30,
        "step": 1,
    }
    return Moved(**{**fields, **changes})


BROKEN = Complained("HTTP 503", "it is tried again", "store")


def test_a_move_is_one_line_named_after_it() -> None:
    """Event, time, and what moved: checkpoint, edition, step, bytes, reason, time in the state."""
    first, second = logged((0, [moved("uploading")]), (2.5, [moved("safe", old="uploading")]))
    assert first == {
        "timestamp": "2025-06-15T15:06:40.123Z",
        "level": "info",
        "event": "checkpoint.uploading",
        "checkpoint": "llama/checkpoint-1",
        "edition": 1,
        "step": 1,
        "bytes": 5 * 2**30,
        "was": "settled",
    }
    assert (second["event"], second["seconds"]) == ("checkpoint.safe", 2.5)


@pytest.mark.parametrize(
    ("move", "event", "level"),
    [
        (moved("parked", reason="truncated"), "checkpoint.parked", "warning"),
        (moved("vanished"), "checkpoint.vanished", "warning"),
        (DaemonMoved("running", "draining", "spot"), "daemon.draining", "warning"),
        (DaemonMoved("running", "fenced", "newer"), "daemon.fenced", "error"),
        (DaemonMoved("starting", "running", ""), "daemon.running", "info"),
        (Said("drain.planned", (("fits", True), ("seconds", 3.5))), "drain.planned", "warning"),
        (Said("drain.nothing_fits", ()), "drain.nothing_fits", "error"),
        (BROKEN, "trouble.began", "warning"),
    ],
)
def test_events_and_levels(move: Move, event: str, level: str) -> None:
    """Each kind of move has its name and its level."""
    (line,) = logged((0, [move]))
    assert (line["event"], line["level"]) == (event, level)


def test_the_level_is_a_threshold() -> None:
    """Below the level nothing is written."""
    moves = [moved("sealing"), moved("safe"), moved("parked")]
    assert [line["event"] for line in logged((0, moves), level="warning")] == ["checkpoint.parked"]
    assert len(logged((0, moves), level="debug")) == 3


def test_failures_do_not_flood() -> None:
    """Told at once, then at most once a minute with the count, then once that it is over."""
    turns: list[tuple[float, Sequence[Move]]] = [(n / 10, [BROKEN]) for n in range(1250)]
    lines = logged(*turns, (126, [Recovered("store", 1250)]), (127, [BROKEN]))
    told = [(line["event"], line.get("failures")) for line in lines]
    assert told == [
        ("trouble.began", None),
        ("trouble.continues", 600),
        ("trouble.continues", 600),
        ("trouble.ended", 1250),
        ("trouble.began", None),
    ]
    assert lines[0]["hint"] == "it is tried again"


def test_subjects_are_counted_apart() -> None:
    """A second subject is told at once, although the first is silent for a minute."""
    other = Complained("disk full", "free space", "ledger")
    assert [line["subject"] for line in logged((0, [BROKEN, BROKEN, other]))] == ["store", "ledger"]


def test_a_terminal_gets_words_and_colours() -> None:
    """On a terminal lines are for people, sizes and durations in words."""
    file = Terminal()
    logs = Logs(file)
    logs.turn([moved("uploading")], at(0), CALM)
    logs.turn([moved("safe")], at(125), CALM)
    text = file.getvalue()
    assert "\x1b[" in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert re.search(r"checkpoint\.safe +checkpoint=llama/checkpoint-1 ", plain[1])
    assert "bytes=5.0 GiB seconds=2 min 5 s" in plain[1].replace("'", "")


def test_the_form_can_be_chosen() -> None:
    """``human`` without a terminal has no colours; ``json`` on a terminal is JSON."""
    file = io.StringIO()
    Logs(file, form="human").turn([moved("safe")], at(0), CALM)
    assert "\x1b" not in file.getvalue()
    assert not file.getvalue().startswith("{")
    screen = Terminal()
    Logs(screen, form="json").turn([moved("safe")], at(0), CALM)
    assert json.loads(screen.getvalue())["event"] == "checkpoint.safe"


@pytest.mark.parametrize("form", ["human", "json"])
def test_a_name_cannot_forge_a_line(form: str) -> None:
    """A line break, an escape or a foreign byte in a name stays inside its line, visibly."""
    file = io.StringIO()
    evil = 'a\n{"event": "checkpoint.safe"}\x1b[2J\udcff'
    Logs(file, form=form).turn([moved("parked", checkpoint=evil, reason=evil)], at(0), CALM)
    text = file.getvalue()
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    assert "\\xff" in text
    text.encode()


def test_secrets_are_hidden() -> None:
    """Signatures in texts, and the very values of known secrets, are not written."""
    text = "PUT https://b/x?X-Amz-Signature=abc123 with hunter2"
    (line,) = logged((0, [Complained(text, "", "store")]), secrets=("hunter2", ""))
    assert line["text"] == "PUT https://b/x?X-Amz-Signature=[hidden] with [hidden]"


def test_a_full_disk_does_not_stop_the_daemon() -> None:
    """Lines that cannot be written are counted and told once there is room again."""
    file = Full()
    logs = Logs(file)
    logs.turn([moved("safe"), moved("parked")], at(0), CALM)
    file.is_full = False
    logs.turn([moved("safe")], at(1), CALM)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["log.lost", "checkpoint.safe"]
    assert lines[0]["lines"] == 2


def test_libraries_speak_through_us() -> None:
    """What a library warns of is an event of ours, with its secrets hidden."""
    file = io.StringIO()
    handler = adopt_libraries(logger(file, "json", "info"))
    try:
        logging.getLogger("urllib3").warning("retry %s", "https://u:pw@h/")
        logging.getLogger("urllib3").info("not told")
    finally:
        logging.getLogger().removeHandler(handler)
    (line,) = [json.loads(text) for text in file.getvalue().splitlines()]
    assert (line["event"], line["library"]) == ("library.warned", "urllib3")
    assert line["text"] == "retry https://[hidden]@h/"


def test_the_environments_secrets_are_known_by_their_names() -> None:
    """Keys, tokens, passwords and what stands in connection strings; never paths or flags."""
    environ = {
        "AWS_SECRET_ACCESS_KEY": "s3cr3ts3cr3t",
        "AWS_SESSION_TOKEN": "/starts/like/a/path",
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=bG9uZ2tleQ==;x=1",
        "DB_PASSWORD": "short",
        "HOME": "/home/of-somebody",
    }
    assert set(secrets_of(environ)) == {
        "s3cr3ts3cr3t",
        "AccountName=a;AccountKey=bG9uZ2tleQ==;x=1",
        "bG9uZ2tleQ==",
    }


def test_the_level_may_change() -> None:
    """After a reload lines of the new level are written, and those below it are not."""
    file = io.StringIO()
    logs = Logs(file, form="json", level="error")
    logs.say("info", "one", at(0))
    logs.set_level("info")
    logs.say("info", "two", at(0))
    assert [json.loads(line)["event"] for line in file.getvalue().splitlines()] == ["two"]
