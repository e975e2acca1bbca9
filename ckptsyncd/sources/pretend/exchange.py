"""One request and one reply, as the pretended services see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

#: How a reply goes out: whole, in chunks, followed by the end of the connection, not at all, broken
#: off in the middle, or one byte and then no more.
Manner = Literal["whole", "chunked", "close", "silence", "reset", "drip"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request; names of headers are in lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes = b""

    def asks(self, name: str) -> str:
        """Return a query parameter, empty if it is not there."""
        return next((value for key, value in self.query if key == name), "")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; Date and Content-Length are added where they are not given."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    manner: Manner = "whole"


SILENCE = Reply(0, manner="silence")


def text(value: str, **headers: str) -> Reply:
    """Return a plain 200."""
    return Reply(200, value.encode(), {"Content-Type": "text/plain", **headers})


def document(value: object, status: int = 200) -> Reply:
    """Return a JSON reply."""
    body = json.dumps(value).encode()
    return Reply(status, body, {"Content-Type": "application/json; charset=utf-8"})


def page(status: int) -> Reply:
    """Return a small XHTML page, as EC2 and proxies do."""
    title = f"{status} - {HTTPStatus(status).phrase}"
    body = (
        '<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml">\n'
        f" <head><title>{title}</title></head>\n <body><h1>{title}</h1></body>\n</html>\n"
    )
    return Reply(status, body.encode(), {"Content-Type": "text/html"})
