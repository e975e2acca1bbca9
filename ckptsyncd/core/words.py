"""How numbers and names are put before people: sizes, durations, and text that cannot harm.

The same words in logs, status, errors and the service manager's line.
"""

from __future__ import annotations

import re

#: What stands before a secret in URLs, headers and messages of SDKs; the secret follows.
_SECRET = re.compile(
    r"""(?ix)
    ( (?: x-amz-(?:signature|security-token|credential) | x-goog-(?:signature|credential)
        | x-ms-authorization | aws_?secret_?access_?key | aws_?session_?token | awsaccesskeyid
        | account_?key | client_?secret | access_?token | refresh_?token | password | passwd
        | signature | sig | upload_id )
      ["']? \s* [=:] \s* ["']? )
    [^\s&"',;}]+
    """
)
_HEADER = re.compile(
    r"(?i)\b(bearer|authorization[\"']?\s*[:=]\s*[\"']?basic|aws4-hmac-sha256)\s+[^\s\"',]+"
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@")
_HIDDEN = "[hidden]"

#: Python carries a byte that is no UTF-8 as this plus the byte.
_SURROGATE = 0xDC00
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_KIB = 1024.0
#: A rate near zero makes estimates that say nothing (guessed: three years).
_AGES = 1e8
_SECONDS = (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))
#: From here on a tenth more or less says nothing.
_TENTHS_END = 99.95
_TENTHS_OF_SECONDS_END = 9.95
#: Four digits are hard to read: the next unit begins here.
_NEXT_UNIT = 999.5


def printable(text: str) -> str:
    r"""Return ``text`` with everything escaped that could move a cursor, forge a line or hide.

    That is what Unicode calls not printable: control characters, marks that reverse the direction
    of writing, invisible ones. A byte that is no UTF-8 (a lone surrogate in ``text``) is shown as
    ``\xNN``.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    code = ord(mark)
    if _SURROGATE <= code <= _SURROGATE + 0xFF:
        code -= _SURROGATE
    short = f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004
    return _NAMED.get(mark, short)


def redacted(text: str) -> str:
    """Return ``text`` without signatures, tokens, keys and passwords in URLs and headers."""
    text = _HEADER.sub(rf"\1 {_HIDDEN}", text)
    text = _SECRET.sub(rf"\1{_HIDDEN}", text)
    return _USERINFO.sub(rf"\1{_HIDDEN}@", text)


def size_words(count: float) -> str:
    """Return a number of bytes as people say it: ``812 B``, ``1.5 MiB``, ``12.3 GiB``."""
    amount = max(float(count), 0.0)
    if amount < _KIB:
        return f"{amount:.0f} B"
    units = iter(("KiB", "MiB", "GiB", "TiB"))
    unit, amount = next(units), amount / _KIB
    while amount >= _NEXT_UNIT and (larger := next(units, "")):
        unit, amount = larger, amount / _KIB
    return f"{amount:.1f} {unit}" if amount < _TENTHS_END else f"{amount:.0f} {unit}"


def duration_words(seconds: float) -> str:
    """Return a duration as people say it: ``0.4 s``, ``38 s``, ``2 min 5 s``, ``3 h 10 min``."""
    if seconds < _TENTHS_OF_SECONDS_END:
        return f"{seconds:.1f} s".replace("0.0 s", "0 s") if seconds > 0 else "0 s"
    if seconds > _AGES:
        return "ages"
    whole = round(seconds)
    for unit, size, smaller, small in _SECONDS:
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def count_words(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 file``, ``3 files``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
