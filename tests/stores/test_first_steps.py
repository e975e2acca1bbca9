"""What a start asks of each store: whichever request goes wrong, trying again finds all out."""

from __future__ import annotations

import re
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.emulators import BUCKET, AzureServer, GcsServer
from tests.proxy import Proxy, Rule, proxied
from tests.stores.gcs_bench import address

#: In which ways one request goes wrong.
ALL = ("503", "refuse", "swallow", "half", "reset")
WAYS = {
    "s3_server": ("503", "swallow"),
    "gcp_emulator_server": ALL,
    "google_front": ALL,
    "azurite_server": ALL,
}
BUSY = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#: As often as the daemon tries in some minutes.
TRIES = 12


@dataclass
class Misstep:
    """Lets one request go wrong, by its number; counts all."""

    wrong: int
    way: str
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self) -> Rule | None:
        """Return what happens to the next request, if anything."""
        with self.lock:
            number, self.count = self.count, self.count + 1
        if number != self.wrong:
            return None
        what = "answer" if self.way == "503" else self.way
        return Rule("*", re.compile(""), 1, what, BUSY if what == "answer" else b"")


def opened(server: Any, at: str, prefix: str) -> Any:
    """Open a store on a server, through a proxy."""
    if isinstance(server, GcsServer):
        return GcsStore(BUCKET, prefix, GcsOptions(at))
    if isinstance(server, AzureServer):
        options = AzureOptions(f"{at}/{server.account}", account_key=server.key)
        return AzureStore(server.account, server.container, prefix, options)
    return S3Store(server.bucket, prefix, S3Options(endpoint_url=at))


def tried(store: Store) -> Limits:
    """Return what was found out; only what is to be tried again is."""
    for _ in range(TRIES):
        with suppress(Again):
            return store.limits
    return store.limits


def left(server: Any, store: Any, prefix: str) -> list[str]:
    """Return what is stored or begun below a prefix."""
    if isinstance(server, GcsServer):
        begun = store._parts.list(prefix) if store.limits.pieces_in_parallel else ()
        return [*server.objects(prefix), *(name for name, _ in begun)]
    if isinstance(server, AzureServer):
        return list(server.objects(prefix))
    with closing(servers.client(server.endpoint)) as plain:
        rows = plain.list_objects_v2(Bucket=server.bucket, Prefix=prefix).get("Contents", [])
        begun = plain.list_multipart_uploads(Bucket=server.bucket, Prefix=prefix)
    return [row["Key"] for row in [*rows, *begun.get("Uploads", [])]]


def stepping(proxy: Proxy, server: Any, wrong: int, way: str) -> tuple[Limits, int, list[str]]:
    """Begin on a new prefix; return what was found out, by how many requests, and what is left."""
    step = Misstep(wrong, way)
    proxy.weather = step.choose
    prefix = f"steps/{uuid4().hex}"
    with closing(opened(server, proxy.endpoint, prefix)) as store:
        limits = tried(store)
        asked = step.count
        # What is left goes with the next calls.
        assert store.limits == store.limits == limits
        return limits, asked, left(server, store, prefix)


@pytest.mark.server
@pytest.mark.parametrize(("name", "way"), [(name, way) for name in WAYS for way in WAYS[name]])
def test_each_first_request_may_fail(request: pytest.FixtureRequest, name: str, way: str) -> None:
    """503, a cut connection, half an answer, none: the same is found out, and nothing is left."""
    server = request.getfixturevalue(name)
    with proxied(*address(server.endpoint)) as proxy:
        limits, steps, _ = stepping(proxy, server, -1, way)
        assert steps > 5
        for wrong in range(steps):
            assert stepping(proxy, server, wrong, way)[::2] == (limits, []), f"request {wrong}"


@pytest.mark.server
@pytest.mark.parametrize("name", WAYS)
def test_where_many_requests_fail(request: pytest.FixtureRequest, name: str) -> None:
    """What was found out stays: some tries are enough where none would come through as a whole."""
    server = request.getfixturevalue(name)
    with proxied(*address(server.endpoint)) as proxy:
        # S3 has steps of six requests, of which all must come through.
        share = 0.2 if name == "s3_server" else 0.33
        chance, bad = Random(4), Rule("*", re.compile(""), 1, "answer", BUSY)
        proxy.weather = lambda: bad if chance.random() < share else None
        prefix = f"steps/{uuid4().hex}"
        with closing(opened(server, proxy.endpoint, prefix)) as store:
            limits = tried(store)
        assert limits == stepping(proxy, server, -1, "503")[0]
