"""Times in every spelling, and notices as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.sources.bodies import is_page, json_of, shown, text_of
from ckptsyncd.sources.dates import wall_of
from ckptsyncd.sources.written import Written, written

AT = 1_796_086_920.0  # 2026-12-01T01:02:00Z


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01T01:02:00Z",
        "2026-12-01T01:02:00.000000Z",
        "2026-12-01T01:02Z",
        "2026-12-01 01:02:00",
        "2026-12-01T01:02:00+00:00",
        "2026-12-01T03:02:00+02:00",
        "2026-11-30T20:32:00-0430",
        "2026-12-01T01:02:00 UTC",
        "Tue, 01 Dec 2026 01:02:00 GMT",
        "Tue, 1 Dec 2026 01:02:00 GMT",
        "1 Dec 2026 01:02:00 GMT",
        "01-Dec-2026 01:02:00 UTC",
        "  1 dec 2026 01:02:00 +0000\n",
    ],
)
def test_times_that_providers_write(text: str) -> None:
    """Every spelling that was seen gives the same second."""
    assert wall_of(text) == AT


def test_times_without_a_zone_are_read_in_the_one_given() -> None:
    """Tencent's time is eight hours ahead of UTC and does not say so."""
    assert wall_of("2026-12-01 09:02:00", naive_hours=8.0) == AT


@pytest.mark.parametrize(
    "text",
    ["", "none", "2026-13-01T01:02:00Z", "32 Dec 2026 01:02:00 GMT", "1 Foo 2026 01:02:00 GMT",
     "2026-12-01", "9999-12-31T23:59:59-23:00x", "1796086920", None, 5, ["2026-12-01T01:02:00Z"]],
)  # fmt: skip
def test_what_is_no_time(text: object) -> None:
    """Anything else is no time, and no error."""
    assert wall_of(text) is None


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever stands in a body or a notice file, reading it raises nothing."""
    wall_of(text)
    written(text.encode("utf-8", "replace"))
    json_of(text.encode("utf-8", "replace"))
    assert "\n" not in shown(text)


@given(st.binary())
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Bytes that are no text are read too."""
    written(body)
    is_page(body)
    json_of(body)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", Written()),
        ("120", Written(seconds=120.0)),
        ("120s\n", Written(seconds=120.0)),
        ("deadline=90", Written(seconds=90.0)),
        ("deadline=2026-12-01T01:02:00Z", Written(at_wall=AT)),
        ("2026-12-01T01:02:00Z", Written(at_wall=AT)),
        ('{"deadline": "2026-12-01T01:02:00Z"}', Written(at_wall=AT)),
        ('{"seconds": 45, "severity": "advisory"}', Written(seconds=45.0, severity="advisory")),
        ('{"deadline": 30, "text": "moving house"}', Written(seconds=30.0, text="moving house")),
        ('{"severity": "unheard of"}', Written()),
        ('{"deadline": ["now"]}', Written()),
        ("\ufeff120", Written(seconds=120.0)),
        ("soon", Written()),
        ("-5", Written()),
        ("{", Written()),
    ],
)
def test_notices_that_people_write(text: str, said: Written) -> None:
    """Nothing, a number, a time, JSON; anything else is a notice without a time."""
    assert written(text.encode()) == said


def test_foreign_texts_are_made_harmless() -> None:
    """What is shown of a body moves no cursor and is short."""
    assert shown("\x1b[2Jgone") == "\\x1b[2Jgone"
    assert len(shown("x" * 500)) == 80
    assert text_of(b"\xef\xbb\xbf FALSE \r\n") == "FALSE"
