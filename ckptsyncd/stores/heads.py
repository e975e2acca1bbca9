"""Refuse an answer whose head broke off.

Python's HTTP takes the end of a connection for the end of a head: half of one passes for an answer
without the headers that did not arrive, and an object of ours for a stranger's.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from http.client import HTTPException, HTTPResponse
from typing import Any


class _Lines:
    """A stream that knows whether the last line that was read from it was a blank one."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.ended_blank = False

    def readline(self, most: int = -1) -> bytes:
        line: bytes = self._stream.readline(most)
        self.ended_blank = line in (b"\r\n", b"\n")
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class WholeHead(HTTPResponse):
    """An answer of which nothing is told before its head is whole."""

    def begin(self) -> None:
        """Read the head; raises HTTPException, as for any answer that broke off, if it did."""
        stream = self.fp
        lines = _Lines(stream)
        self.fp = lines  # type: ignore[assignment]  # it has what reads a head, and passes the rest
        super().begin()
        self.fp = stream
        if not lines.ended_blank:
            self.close()
            msg = "the connection ended within an answer's head"
            raise HTTPException(msg)


def require_whole_heads(pools: MutableMapping[str, Any]) -> None:
    """Let every connection of urllib3's pools, by scheme, read answers so from now on."""
    for scheme, pool in list(pools.items()):
        kind = pool.ConnectionCls
        reading = type(kind.__name__, (kind,), {"response_class": WholeHead})
        pools[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": reading})
