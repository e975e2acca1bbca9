"""The same restores from a mounted volume and from real S3 servers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import NoCheckpoint, NothingVerifies, Refused
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.recover.verify import VerifyRequest, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from ckptsyncd.stores.volume.store import VolumeStore
from tests import servers
from tests.recover import bench

PREFIXES = itertools.count()


@pytest.fixture(
    params=[
        "volume",
        pytest.param("s3_server", marks=pytest.mark.server),
        pytest.param("moto_server", marks=pytest.mark.server),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return an empty store."""
    if request.param == "volume":
        yield VolumeStore(str(tmp_path / "volume"))
        return
    server: servers.S3Server = request.getfixturevalue(request.param)
    options = S3Options(endpoint_url=server.endpoint)
    prefix = f"recover/{next(PREFIXES)}"
    with closing(S3Store(server.bucket, prefix, options, page_keys=2)) as s3:
        yield s3


def odd(root: Path) -> str:
    """Write a checkpoint with names that stores treat differently; return its name."""
    name = bench.save(root, 20, run="run 1")
    for inner in ("a+b=c", "\u00fcml\u00e4ut", "per%41cent", "q?u#e&ry", "\udcff", "x" * 150):
        bench.write(root, f"{name}/{inner}", inner.encode("utf-8", "surrogateescape"))
    bench.write(root, f"{name}/empty", b"")
    return name


def test_what_was_stored_comes_back(store: Store, tmp_path: Path) -> None:
    """Bytes, names, modes and mtimes, read in pieces by several threads; verify agrees."""
    there, here = tmp_path / "there", tmp_path / "here"
    bench.commit(store, there, bench.save(there, 10, run="run 1"))
    name = odd(there)
    manifest = bench.commit(store, there, name)
    result = restore(store, here, RestoreRequest(piece_bytes=30_000), pace=bench.pace())
    assert result.placed == (name,)
    assert result.bytes_fetched == manifest.bytes
    assert bench.tree(here, name) == bench.tree(there, name)
    found = verify(store, VerifyRequest(level="full"), pace=bench.pace())
    assert found.exit_code == 0
    assert found.results[0].bytes_read == manifest.bytes


def test_nothing_is_stored(store: Store, tmp_path: Path) -> None:
    """A store that nobody has written to holds no checkpoint."""
    with pytest.raises(NoCheckpoint):
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())


def _short(data: bytes) -> bytes:
    return data[:-1]


def _changed(data: bytes) -> bytes:
    return data[:-1] + b"!"


@pytest.mark.parametrize("change", [None, _short, _changed], ids=["missing", "short", "changed"])
def test_a_broken_newest_is_passed_over(
    store: Store, tmp_path: Path, change: Callable[[bytes], bytes] | None
) -> None:
    """A missing, shorter or different object is found out, and the older one restored."""
    there, here = tmp_path / "there", tmp_path / "here"
    older, newer = bench.save(there, 10), bench.save(there, 20)
    bench.commit(store, there, older)
    bench.commit(store, there, newer)
    key = f"{newer}/model.safetensors"
    data = (there / key).read_bytes()
    store.delete(key)
    if change:
        store.put_whole(key, BytesBody(change(data)), "other", create_only=True)
    result = restore(store, here, RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert bench.tree(here, older) == bench.tree(there, older)
    assert [skip.title for skip in result.skipped] == [f"{newer}@1"]
    assert verify(store, VerifyRequest(level="full"), pace=bench.pace()).exit_code == 1
    with pytest.raises(NothingVerifies):
        restore(store, here, RestoreRequest(checkpoint=newer), pace=bench.pace())


def test_an_interrupted_restore_goes_on(store: Store, tmp_path: Path) -> None:
    """What arrived before is not fetched again."""
    there, here = tmp_path / "there", tmp_path / "here"
    name = bench.save(there, 10)
    manifest = bench.commit(store, there, name)
    reads = itertools.count()

    def weather(verb: str, _key: str) -> Fault | None:
        stop = verb == "read_range" and next(reads) >= 5
        return Fault(Refused("expired")) if stop else None

    request = RestoreRequest(piece_bytes=20_000, workers=1)
    with pytest.raises(Refused):
        restore(FaultyStore(store, weather), here, request, pace=bench.pace())
    result = restore(store, here, request, pace=bench.pace())
    assert result.bytes_resumed >= 4 * 20_000 - 10_000
    assert result.bytes_resumed + result.bytes_fetched == manifest.bytes
    assert bench.tree(here, name) == bench.tree(there, name)
