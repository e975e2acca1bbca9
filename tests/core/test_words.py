"""Words for people: sizes, durations, and text that can neither harm nor tell secrets."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.words import count_words, duration_words, printable, redacted, size_words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (10**6, "977 KiB"),
        (1023 * 1024, "1.0 MiB"),
        (12.3 * 2**30, "12.3 GiB"),
        (931 * 2**30, "931 GiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_sizes(count: float, words: str) -> None:
    """A size has at most four digits and a binary unit."""
    assert size_words(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0.01, "0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (38, "38 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3599.7, "1 h"),
        (11400, "3 h 10 min"),
        (1e6, "11 d 13 h"),
        (float("inf"), "ages"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    """A duration has one or two units, and tenths only where they say something."""
    assert duration_words(seconds) == words


def test_counts() -> None:
    """One is not many."""
    assert (count_words(1, "file"), count_words(0, "file")) == ("1 file", "0 files")


@given(st.binary().map(os.fsdecode) | st.text())
def test_any_text_becomes_printable(text: str) -> None:
    """Whatever a name holds, what is printed is printable and can be encoded."""
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()


def test_what_harms_is_shown() -> None:
    """Escapes, line breaks, direction marks and foreign bytes are visible; letters stay."""
    assert printable("ö a\x1b[2J\n\u202e\udcff") == "ö a\\x1b[2J\\n\\u202e\\xff"


@pytest.mark.parametrize(
    "text",
    [
        "https://u:SECRET@host/b",
        "GET /b?X-Amz-Signature=SECRET&x=1",
        "X-Amz-Security-Token: SECRET",
        "Authorization: Bearer SECRET",
        "authorization: Basic SECRET",
        "AWS4-HMAC-SHA256 Credential=AK/x, Signature=SECRET",
        "aws_secret_access_key = 'SECRET'",
        '{"AccountKey": "SECRET"}',
        "https://a.blob/x?sv=1&sig=SECRET&se=2",
        "https://storage/b?upload_id=SECRET",
    ],
)
def test_secrets_are_hidden(text: str) -> None:
    """What follows a word that announces a secret is not shown, the rest is."""
    shown = redacted(text)
    assert "SECRET" not in shown
    assert "[hidden]" in shown


def test_other_text_is_left_alone() -> None:
    """Errors and paths without secrets stay as they are."""
    text = "PUT s3://bucket/llama/checkpoint-4200/model.safetensors: HTTP 503 (Slow Down), basic x"
    assert redacted(text) == text
