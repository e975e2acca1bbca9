"""The kinds of settings: what they read, what they refuse, and that they show what they read."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.settings.amounts import Duration, Moment, Size, bytes_text, rate, seconds_text
from ckptsyncd.settings.kinds import Choice, Count, Kind, Many, Switch, Text, quoted

DURATION = Duration(0.1, 3600)
SIZE = Size(1024, 2**40)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DURATION, "30", 30.0),
        (DURATION, "30s", 30.0),
        (DURATION, " 2 m ", 120.0),
        (DURATION, "2min", 120.0),
        (DURATION, "1h", 3600.0),
        (DURATION, "250ms", 0.25),
        (DURATION, "1.5s", 1.5),
        (SIZE, "16MiB", 16 * 2**20),
        (SIZE, "16 MiB", 16 * 2**20),
        (SIZE, "1.5KiB", 1536),
        (SIZE, "16MB", 16_000_000),
        (SIZE, "65536", 65536),
        (rate(1, 2**40), "800Mbit/s", 100_000_000),
        (rate(1, 2**40), "100MiB", 100 * 2**20),
        (Count(1, 64), "4", 4),
        (Switch(), "Yes", True),
        (Switch(), "0", False),
        (Choice(words=("a", "b")), "b", "b"),
        (Many(Text()), "a, b,,c ", ("a", "b", "c")),
        (Moment(), "2030-01-31T12:00:00Z", 1_896_091_200.0),
        (Moment(), "2030-01-31 13:00:00+01:00", 1_896_091_200.0),
        (Moment(), "2030-01-31T12:00", 1_896_091_200.0),
        (Moment(), "1896091200", 1_896_091_200.0),
    ],
)
def test_texts_are_read(kind: Kind, text: str, value: Any) -> None:
    """What people type for a flag or a variable means what they expect."""
    assert kind.parse(text) == value


def test_dates_of_the_file_are_moments() -> None:
    """TOML has dates of its own: with a zone, or in UTC."""
    zoned = datetime(2030, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))
    for value in (zoned, datetime(2030, 1, 31, 12), 1_896_091_200):  # noqa: DTZ001
        assert Moment().take(value) == 1_896_091_200.0
    assert Moment().show(1_896_091_200.0) == '"2030-01-31T12:00:00Z"'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Moment(), "tomorrow"),
        (Moment(), "2030-02-31T12:00:00Z"),
        (DURATION, "soon"),
        (DURATION, "5 weeks"),
        (DURATION, "-5s"),
        (DURATION, "nan"),
        (DURATION, "inf"),
        (DURATION, "2h"),
        (DURATION, "1ms"),
        (SIZE, "16M"),
        (SIZE, "16mib"),
        (SIZE, "1TB1"),
        (SIZE, "10"),
        (Count(1, 64), "4.0"),
        (Count(1, 64), "0"),
        (Count(1, 64), "9" * 30),
        (Switch(), "maybe"),
        (Choice(words=("a", "b")), "A"),
        (Text("digits", "[0-9]+"), "12x"),
        (Text(), "a\nb"),
    ],
)
def test_other_texts_are_refused(kind: Kind, text: str) -> None:
    """What is ambiguous, out of range or of another kind is refused, never guessed."""
    with pytest.raises(ValueError, match=r"."):
        kind.parse(text)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (DURATION, True, "a boolean, not a duration"),
        (DURATION, [5], "a list, not a duration"),
        (DURATION, float("nan"), "out of range"),
        (SIZE, 1.5, "a number, not a size"),
        (Count(1, 64), "4", "a string, not a whole number"),
        (Count(1, 64), True, "a boolean, not a whole number"),
        (Switch(), 1, "a number, not true or false"),
        (Text(), {}, "a table, not a string"),
        (Many(Text()), "x", "a string, not a list"),
        (Many(Text()), [1], "a number, not a string"),
    ],
)
def test_wrong_types_in_a_file_are_named(kind: Kind, value: Any, reason: str) -> None:
    """A TOML value of the wrong type is refused by its type's name."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        kind.take(value)


@given(st.floats(0.1, 3600).map(lambda seconds: round(seconds, 3)))
def test_durations_show_what_they_read(seconds: float) -> None:
    """A duration shown as text reads back as the same duration, to the millisecond."""
    assert round(DURATION.parse(seconds_text(seconds)), 3) == seconds


@given(st.integers(1024, 2**40))
def test_sizes_show_what_they_read(count: int) -> None:
    """A size shown as text reads back as the same number of bytes."""
    assert SIZE.parse(bytes_text(count)) == count


def test_strings_are_quoted_for_toml() -> None:
    """Quotes, backslashes and control characters cannot end or forge a TOML string."""
    assert quoted('a"b\\c\n\x1b') == '"a\\"b\\\\c\\n\\u001B"'
