"""Reading what a metadata service sent: by content, never by its Content-Type.

EC2 serves JSON as text/plain, proxies serve login pages with status 200, and editors put a byte
order mark in front of notice files.
"""

from __future__ import annotations

import hashlib
import json

from ckptsyncd.core.words import printable

#: How much of a foreign text is shown to people or kept in a name.
SHOWN = 80


def text_of(body: bytes) -> str:
    """Return a body as text, without a byte order mark and the space around it."""
    return body.decode("utf-8-sig", "replace").strip()


def json_of(body: bytes) -> object:
    """Return a decoded JSON body, or ``None`` if it is no JSON (and also for ``null``)."""
    try:
        return json.loads(text_of(body))
    except (ValueError, RecursionError):
        return None


def is_page(body: bytes) -> bool:
    """Tell whether this is a web page: a login page or a proxy's error, not metadata."""
    return text_of(body[:SHOWN]).startswith("<")


def shown(value: object) -> str:
    """Return a foreign value as a short text that can harm neither a terminal nor a log."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = printable(text.strip())
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def digest(body: bytes) -> str:
    """Return a name for a body that says nothing by which it could be named."""
    return hashlib.sha256(body).hexdigest()[:16]
