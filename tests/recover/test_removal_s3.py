"""Removing from real S3 servers: what the rules let go, and what dead writers left, parts too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptsyncd.core.facts import Piece
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Epoch
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.recover.catalog import Entry
from ckptsyncd.recover.gait import Gait
from ckptsyncd.recover.prune import PruneRequest, prune, tidy
from ckptsyncd.recover.reap import DEAD_SECONDS, Reaped, reap
from ckptsyncd.recover.verify import VerifyRequest, verify
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.recover import bench

pytestmark = pytest.mark.server

NOW = 1_700_000_000.0
OLD = NOW - DEAD_SECONDS - 1.0
CLAIM = Claim("run/checkpoint-5", 1, "run", "save", "dead", 1, 0, "", OLD)
PART = bytes(5 << 20)
PREFIXES = itertools.count()


class Place:
    """An empty prefix on a server, and a plain client that looks behind the store."""

    def __init__(self, server: servers.S3Server, store: S3Store, prefix: str) -> None:
        """Look at one prefix."""
        self.store = store
        self._client = servers.client(server.endpoint)
        self._bucket, self._prefix = server.bucket, prefix

    def uploads(self) -> list[str]:
        """Return the keys of the multipart uploads that are begun, without the prefix."""
        answer = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=self._prefix)
        rows: list[dict[str, Any]] = answer.get("Uploads", [])
        return sorted(row["Key"][len(self._prefix) + 1 :] for row in rows)

    def begun(self, key: str, nonce: str) -> None:
        """Begin an upload and send two parts of it."""
        begun = self.store.begin(key, 2 * len(PART), len(PART), nonce)
        for index in (0, 1):
            piece = Piece(index, index * len(PART), len(PART))
            self.store.put_piece(begun, piece, BytesBody(PART))

    def close(self) -> None:
        """Close the client."""
        self._client.close()


@pytest.fixture(params=["s3_server", "moto_server"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Return an empty place."""
    server: servers.S3Server = request.getfixturevalue(request.param)
    prefix = f"removal/{next(PREFIXES)}"
    options = S3Options(endpoint_url=server.endpoint)
    with (
        closing(S3Store(server.bucket, prefix, options, page_keys=3)) as store,
        closing(Place(server, store, prefix)) as made,
    ):
        yield made


def test_pruning(place: Place, tmp_path: Path) -> None:
    """Manifests go first and data later; what stays is whole, and nothing is left of the rest."""
    for step in (1, 2, 3):
        bench.commit(place.store, tmp_path, bench.save(tmp_path, step))
    request = PruneRequest(Retention(keep_last=1, min_keep=1), 60.0, per_second=1e9)
    first = prune(place.store, request, pace=bench.pace(), wall=lambda: NOW)
    assert first.buried == ("run/checkpoint-1@1", "run/checkpoint-2@1")
    assert len(list(place.store.list("run/"))) == 9
    late = prune(place.store, request, pace=bench.pace(), wall=lambda: NOW + 60.0)
    assert late.cleared.objects == 6
    assert {fact.key.split("/")[1] for fact in place.store.list("run/")} == {"checkpoint-3"}
    found = verify(place.store, VerifyRequest(level="full"), pace=bench.pace())
    assert [one.faults for one in found.results] == [()]
    assert found.unnamed is not None
    assert found.unnamed.is_empty


def test_the_daemon_reaps_where_nothing_is_committed(place: Place) -> None:
    """A run that never came to its first commit leaves nothing behind either."""
    key = names.claim_key(CLAIM.checkpoint, CLAIM.edition)
    place.store.put_small(key, CLAIM.encode(), None)
    epoch = Epoch("run", 0, 2, "alive", "host", NOW)
    place.store.put_small(names.epoch_key("run", 0), epoch.encode(), None)
    place.begun("run/checkpoint-5/model.pt", "dead.1")
    request = PruneRequest(Retention(keep_last=1), per_second=1e9)
    posted: list[Entry] = []
    pace, wall = bench.pace(), lambda: NOW
    done = tidy(place.store, request, pace=pace, buried=posted.append, wall=wall)
    assert done.reaped == Reaped(0, 1, 1)
    assert place.uploads() == []
    assert posted == []


def test_half_uploads_of_dead_writers_are_aborted(place: Place) -> None:
    """Those at a dead claim's keys go with their parts; whoever lives keeps his."""
    alive = replace(CLAIM, checkpoint="run/checkpoint-6", nonce="alive", epoch=2)
    for claim in (CLAIM, alive):
        key = names.claim_key(claim.checkpoint, claim.edition)
        place.store.put_small(key, claim.encode(), None)
    epoch = Epoch("run", 0, 2, "alive", "host", NOW)
    place.store.put_small(names.epoch_key("run", 0), epoch.encode(), None)
    place.begun("run/checkpoint-5/optimizer.pt", "dead.1")
    place.begun("run/checkpoint-5/model.pt", "dead.2")
    place.begun("run/checkpoint-6/model.pt", "alive.1")
    place.begun("run/checkpoint-50/mine.bin", "")
    data = BytesBody(b"data")
    place.store.put_whole("run/checkpoint-5/config.json", data, "dead.3", create_only=True)
    assert len(place.uploads()) == 4
    assert reap(place.store, NOW, Gait(bench.pace(), 1e9)) == Reaped(1, 2, 1)
    assert place.uploads() == ["run/checkpoint-50/mine.bin", "run/checkpoint-6/model.pt"]
    assert not list(place.store.list("run/"))
    assert reap(place.store, NOW, Gait(bench.pace(), 1e9)) == Reaped()
