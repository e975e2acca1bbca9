"""The harness works: it measures nothing here, and proves that it could."""

from __future__ import annotations

import http.client
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import botocore.session
import pytest

from benchmarks.__main__ import main
from benchmarks.results import US, Results, load, summary
from benchmarks.server import NotBuiltError, Target, build, sink
from ckptsyncd.checksum import combined, crc64nvme
from ckptsyncd.core.facts import IfAbsent, IfMatches, Piece
from ckptsyncd.errors import Again, Gone, Lost
from ckptsyncd.stores.lines import Place
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from ckptsyncd.stores.s3.wire import lines_to

pytestmark = pytest.mark.server

DATA = bytes(range(256)) * 30_000


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a sink that was built in it."""
    folder = tmp_path_factory.mktemp("bench")
    try:
        build(folder)
    except NotBuiltError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture
def target(work: Path) -> Iterator[Target]:
    """Run a sink that keeps no more than small objects."""
    with sink(work, name="test", options=("-s", "100000")) as one:
        yield one


@pytest.fixture
def store(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    """Return our own store on it."""
    for name, value in target.environment.items():
        monkeypatch.setenv(name, value)
    options = S3Options(endpoint_url=target.endpoint, region="us-east-1")
    with closing(S3Store("bucket", "prefix", options)) as one:
        yield one


def test_quick_run(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command measures the daemon beside a peer and writes a table that can be read again."""
    assert main(["--quick", "--work", str(work), "--to", str(tmp_path)]) == 0
    made = Path(capsys.readouterr().out.strip())
    results = load(made.with_suffix(".json"))
    ours = [row for row in results.rows if row.who == US]
    assert {row.case for row in ours} == {"1 x 24 MiB", "20 x 64 KiB", "8 files of a trainer"}
    assert all(row.wall > 0 and row.cpu > 0 for row in ours)
    assert [row.who for row in results.rows if row.who != US]
    assert results.figures
    assert made.read_text() == results.markdown()
    assert len(summary(results)) == 2 + len(ours)


def test_the_sink_is_no_store_that_takes_everything(store: S3Store) -> None:
    """The probe finds every check and condition on it, and a wrong whole is refused."""
    assert store.limits.checksum == "crc64nvme"
    found = store._keeper.found()
    assert (found.create_only_put, found.create_only_finish, found.matches) == (
        True,
        True,
        "as told",
    )
    begun = store.begin("large", len(DATA), 6_000_000, "nonce")
    pieces = (Piece(0, 0, 6_000_000), Piece(1, 6_000_000, len(DATA) - 6_000_000))
    bodies = [BytesBody(DATA[piece.offset : piece.offset + piece.length]) for piece in pieces]
    receipts = [store.put_piece(begun, *pair) for pair in zip(pieces, bodies, strict=True)]
    total = combined((one.crc64nvme, one.length) for one in receipts)
    assert total == crc64nvme(DATA)
    fact = store.finish(begun, receipts, total, create_only=True)
    assert fact.checked == "crc64nvme"
    assert store.stat("large").crc64nvme == total
    with pytest.raises((Gone, Again)):
        store.finish(begun, receipts, total, create_only=True)
    version = store.put_small("record", b"one", IfAbsent())
    with pytest.raises(Lost):
        store.put_small("record", b"two", IfAbsent())
    store.put_small("record", b"two", IfMatches(version))
    assert store.get_small("record", 100)[0] == b"two"
    assert {one.key for one in store.list("")} == {"large", "record"}


def test_the_sink_drops_what_is_large(store: S3Store, target: Target) -> None:
    """A large body is checked and counted, and not to be had back."""
    before = target.counts()
    store.put_whole("whole", BytesBody(DATA), "nonce", create_only=True)
    after = target.counts()
    assert after["bytes"] - before["bytes"] >= len(DATA)
    assert after["checked"] > before["checked"]
    connection = http.client.HTTPConnection(*target.address)
    connection.request("GET", "/bucket/prefix/whole")
    assert connection.getresponse().status == http.client.GONE
    connection.close()


def test_the_short_way_trusts_whom_the_sdk_trusts(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS bodies go the short way with the CA bundle that the SDK uses, and not without it."""
    with sink(work, name="tls", tls=True) as target:
        for name, value in target.environment.items():
            monkeypatch.setenv(name, value)
        options = S3Options(endpoint_url=target.endpoint, region="us-east-1")
        with closing(S3Store("bucket", "tls", options)) as store:
            for turn in range(3):
                store.put_whole(f"key-{turn}", BytesBody(DATA), "n", create_only=True)
            assert store._wire.way == "short"
            express = store._wire._express
            assert express._lines is not None
            assert len(express._lines._idle) == 1
            monkeypatch.delenv("AWS_CA_BUNDLE")
            core = botocore.session.Session()
            place = Place(True, "127.0.0.1", target.address[1], "127.0.0.1")
            assert lines_to(place, core, options).take() is None
            monkeypatch.setenv("AWS_CA_BUNDLE", target.cert)
            line = lines_to(place, botocore.session.Session(), options).take()
            assert line is not None
            line.close()


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sink cannot be built there is a sentence and not a trace."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("cc") is None
    with pytest.raises(NotBuiltError, match="no C compiler"):
        build(tmp_path)


def test_results_of_nothing() -> None:
    """An empty run is a page all the same."""
    assert Results("2026-12-01", {"cores": "2"}, {}).markdown().startswith("# Measured 2026-12-01")
