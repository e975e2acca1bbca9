"""The server's clock is heard from its answers; signatures follow it where the SDK lets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate, parsedate_to_datetime

import pytest

from ckptsyncd.core.ports import Timed
from ckptsyncd.edge.clock import ticks
from ckptsyncd.errors import Refused
from ckptsyncd.stores.azure.store import AzureStore
from ckptsyncd.stores.clocks import NOTICEABLE_SECONDS, ServerClock
from ckptsyncd.stores.counted import CountedStore
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from ckptsyncd.stores.memory import MemoryStore
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests.emulators import BUCKET, GcsServer
from tests.proxy import Proxy
from tests.servers import S3Server
from tests.stores import azure_bench

NOW = 1_790_000_000.0


@pytest.mark.parametrize("off", [0.0, 59.0, -59.0, 61.0, -3600.0, 86_400.0])
def test_the_date_is_corrected_by_what_was_heard(off: float) -> None:
    """By whole differences only: delay and rounding are none."""
    clock = ServerClock(lambda: NOW)
    clock.heard(formatdate(NOW - off, usegmt=True))
    assert clock.ahead_seconds == off
    assert clock.is_off is (abs(off) >= NOTICEABLE_SECONDS)
    there = NOW - (off if clock.is_off else 0.0)
    assert parsedate_to_datetime(clock.date()).timestamp() == there


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_what_is_no_date_changes_nothing(date: str | None) -> None:
    """Before the first good one nothing is known, and our own time is used."""
    clock = ServerClock(lambda: NOW)
    clock.heard(date)
    assert clock.ahead_seconds is None
    assert parsedate_to_datetime(clock.date()).timestamp() == NOW


def test_azures_signatures_follow_the_servers_clock(
    azure_opened: azure_bench.Opened, azure_proxy: Proxy
) -> None:
    """A server an hour behind refuses one request; the next is dated as it wants, and works."""
    store = azure_opened()
    store.put_small("a", b"1", None)
    now = parsedate_to_datetime(ServerClock().date()).timestamp()
    hour_ago = formatdate(now - 3600.0, usegmt=True)
    refusal = azure_bench.answer(403, "AuthenticationFailed", f"Date: {hour_ago}\r\n")
    azure_proxy.rule("answer", "PUT", "/b", answer=refusal)
    with pytest.raises(Refused):
        store.put_small("b", b"2", None)
    store.put_small("b", b"2", None)
    told = re.search(r"x-ms-date: ([^\r]*)", azure_proxy.sent("PUT", "/b")[-1].headers)
    assert told is not None
    signed = parsedate_to_datetime(told[1]).timestamp()
    assert abs(signed - parsedate_to_datetime(hour_ago).timestamp()) < 30
    assert store.get_small("b", 9)[0] == b"2"


def test_azure_is_heard(azure_opened: azure_bench.Opened) -> None:
    """Nothing is known before the first answer; then the two clocks of this machine agree."""
    _agrees(azure_opened())


def test_google_is_heard(gcp_emulator_server: GcsServer) -> None:
    """So it is with Google's emulator."""
    with closing(GcsStore(BUCKET, "clock", GcsOptions(gcp_emulator_server.endpoint))) as store:
        _agrees(store)


@pytest.fixture(params=["s3_server", "moto_server"])
def s3(request: pytest.FixtureRequest) -> Iterator[S3Store]:
    """Open a store on an S3 server."""
    server: S3Server = request.getfixturevalue(request.param)
    with closing(S3Store(server.bucket, "clock", S3Options(endpoint_url=server.endpoint))) as one:
        yield one


@pytest.mark.server
def test_s3_is_heard(s3: S3Store) -> None:
    """And with S3 servers, also through what counts the calls."""
    _agrees(s3)
    found = CountedStore(s3, ticks).clock_ahead_seconds()
    assert found == s3.clock_ahead_seconds()
    assert CountedStore(MemoryStore(), ticks).clock_ahead_seconds() is None


def _agrees(store: S3Store | GcsStore | AzureStore) -> None:
    assert isinstance(store, Timed)
    assert store.clock_ahead_seconds() is None
    assert store.limits
    ahead = store.clock_ahead_seconds()
    assert ahead is not None
    assert abs(ahead) < NOTICEABLE_SECONDS
