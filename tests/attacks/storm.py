"""Mixed trouble between the program and a real store: some requests go wrong, each in its way."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tests.proxy import Proxy, Rule


def answer(status: str, code: str = "", *headers: str) -> bytes:
    """Return an answer as S3 servers give it."""
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>" if code else ""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", body]).encode()


ANSWERS = {
    "500": answer("500 Internal Server Error", "InternalError"),
    "502": answer("502 Bad Gateway"),
    "503": answer("503 Slow Down", "SlowDown", "Retry-After: 1"),
    "429": answer("429 Too Many Requests", "TooManyRequests"),
    "403": answer("403 Forbidden", "ExpiredToken"),
}
#: What goes wrong, and how often among what goes wrong.
WAYS = dict(
    zip(
        ("refuse", "swallow", "half", "delay", "500", "502", "503", "429", "403"),
        (3, 3, 3, 4, 2, 1, 3, 1, 1),
        strict=True,
    )
)


@dataclass
class Storm:
    """Spoils a share of all requests while it is ``on``; counts what it did."""

    random: Random
    share: float
    most_delay_seconds: float = 2.0
    ways: Mapping[str, int] = field(default_factory=lambda: WAYS)
    on: bool = True
    did: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self) -> Rule | None:
        """Return what happens to the next request, if anything."""
        with self.lock:
            if not self.on or self.random.random() >= self.share:
                return None
            (way,) = self.random.choices(list(self.ways), list(self.ways.values()))
            delay = self.random.random() * self.most_delay_seconds
            self.did[way] = self.did.get(way, 0) + 1
        if way == "delay":
            threading.Event().wait(delay)
            return None
        what = "answer" if way in ANSWERS else way
        return Rule("*", re.compile(""), 1, what, ANSWERS.get(way, b""))


@contextmanager
def storming(proxy: Proxy, storm: Storm) -> Iterator[Storm]:
    """Let a storm blow in front of a store."""
    proxy.weather = storm.choose
    try:
        yield storm
    finally:
        storm.on = False
