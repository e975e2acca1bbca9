"""Stores of Google's behind a proxy, and what only its API says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from urllib.parse import urlsplit

from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from tests.emulators import BUCKET, GcsServer
from tests.proxy import Proxy
from tests.stores.samples import (
    Behind,
)

_numbers = count()

Opened = Callable[..., GcsStore]

CHUNK = 256 * 1024


def address(endpoint: str) -> tuple[str, int]:
    """Return host and port of a server."""
    parts = urlsplit(endpoint)
    return parts.hostname or "", parts.port or 0


@contextmanager
def opening() -> Iterator[Opened]:
    """Open stores behind a proxy, below a prefix of their own, and close them."""
    with ExitStack() as stack:

        def open_one(proxy: Proxy, prefix: str = "", **options: float | str) -> GcsStore:
            made = GcsOptions(proxy.endpoint, **options)  # type: ignore[arg-type]
            store = GcsStore(BUCKET, prefix or f"faults {next(_numbers)}", made)
            stack.callback(store.close)
            return store

        yield open_one


def behind(store: GcsStore, server: GcsServer) -> Behind:
    """Look at the store's objects with a plain client."""
    return lambda: server.objects(store._root)


def answer(status: int, reason: str = "", message: str = "told so", extra: str = "") -> bytes:
    """Return an error as the JSON API words it, and the end of the connection.

    (One idle connection is enough to keep gcp-storage-emulator from answering anybody else.)
    """
    error = {"code": status, "message": message, "errors": [{"reason": reason}]}
    body = json.dumps({"error": error})
    head = f"HTTP/1.1 {status} Something\r\nConnection: close\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
