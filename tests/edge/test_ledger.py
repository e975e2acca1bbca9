"""The ledger: what is remembered survives, and what cannot be trusted is set aside."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptsyncd.core.orders import Forget, ForgetBelow, LedgerOrder, Remember
from ckptsyncd.edge.ledger import Ledger, scope_of

SCOPE = "/data -> s3://bucket/run"


def opened(path: Path, orders: Sequence[LedgerOrder]) -> Path:
    """Return the path of a ledger that was given some orders and closed."""
    ledger = Ledger(path, SCOPE)
    ledger.apply(orders)
    ledger.close()
    return path


def rows_of(path: Path, table: str = "t") -> list[tuple[str, str]]:
    """Return what a ledger tells after it was opened anew."""
    ledger = Ledger(path, SCOPE)
    found = ledger.rows(table)
    ledger.close()
    return found


def test_rows_survive_closing(tmp_path: Path) -> None:
    """What was remembered is there after a restart, sorted by key; what was forgotten is not."""
    path = opened(
        tmp_path / "state" / "ledger",
        [
            Remember("t", "b", "2", durable=True),
            Remember("t", "a", "1"),
            Remember("t", "c", "3"),
            Forget("t", "c"),
            Forget("t", "never there"),
            Remember("other", "a", "x"),
        ],
    )
    assert rows_of(path) == [("a", "1"), ("b", "2")]


def test_forgetting_below_a_prefix(tmp_path: Path) -> None:
    """Rows of the named tables whose keys start with the prefix are gone, and no others."""
    keys = ["a", "a/", "a/1", "a/\udcff", "a0", "a%", "b/1"]
    path = opened(
        tmp_path / "ledger",
        [Remember(table, key, "v") for table in ("t", "u", "w") for key in keys]
        + [ForgetBelow(("t", "u"), "a/")],
    )
    assert {key for key, _ in rows_of(path)} == {"a", "a0", "a%", "b/1"}
    assert rows_of(path, "u") == rows_of(path)
    assert len(rows_of(path, "w")) == len(keys)


def test_rows_belong_to_their_scope(tmp_path: Path) -> None:
    """Another watch root or destination sees none of the rows, and both are listed."""
    path = opened(tmp_path / "ledger", [Remember("t", "a", "1")])
    other = Ledger(path, "elsewhere")
    assert other.rows("t") == []
    other.apply([Forget("t", "a"), Remember("t", "z", "9")])
    assert other.scopes() == [SCOPE, "elsewhere"]
    other.close()
    assert rows_of(path) == [("a", "1")]


def test_scope_is_the_same_for_every_spelling(tmp_path: Path) -> None:
    """A symlinked or unnormalised watch root and a trailing slash name the same scope."""
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    plain = scope_of(str(tmp_path / "root"), "s3://b/p")
    assert scope_of(str(tmp_path / "link" / ".." / "root"), "s3://b/p/") == plain
    assert scope_of(str(tmp_path / "link"), "s3://b/p") == plain
    assert scope_of(str(tmp_path), "s3://b/p") != plain


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_only_the_owner_can_read(tmp_path: Path, umask: int) -> None:
    """Directory, file, log and index are closed to others whatever the umask is."""
    before = os.umask(umask & 0o077)
    try:
        ledger = Ledger(tmp_path / "state" / "ledger", SCOPE)
        ledger.apply([Remember("t", "a", "1")])
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()
        }
        ledger.close()
    finally:
        os.umask(before)
    assert modes == {"ledger": 0o600, "ledger-wal": 0o600, "ledger-shm": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    """A ledger that is a symlink could overwrite a foreign file, so it is an OSError."""
    (tmp_path / "ledger").symlink_to(tmp_path / "foreign")
    with pytest.raises(OSError, match="ledger"):
        Ledger(tmp_path / "ledger", SCOPE)
    assert not (tmp_path / "foreign").exists()


@given(
    rows=st.dictionaries(
        st.binary(max_size=20).map(os.fsdecode), st.binary(max_size=40).map(os.fsdecode)
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_name_comes_back(tmp_path: Path, rows: dict[str, str]) -> None:
    """Keys and values of any bytes, also such as are no UTF-8, come back as they went in."""
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    opened(path, [Remember("t", key, value) for key, value in rows.items()])
    assert dict(rows_of(path)) == rows


@pytest.mark.parametrize(
    "content",
    [b"garbage", b"x" * 10_000, b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 4096],
    ids=["short", "long", "header only", "zeros"],
)
def test_garbage_is_set_aside(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is kept under another name, reported, and a new one begun."""
    path = tmp_path / "ledger"
    path.write_bytes(content)
    ledger = Ledger(path, SCOPE)
    assert "ledger.damaged-1" in ledger.opened
    assert (tmp_path / "ledger.damaged-1").read_bytes() == content
    ledger.apply([Remember("t", "a", "1")])
    assert ledger.rows("t") == [("a", "1")]
    ledger.close()


def test_each_damaged_file_is_kept(tmp_path: Path) -> None:
    """A second damaged file does not overwrite the first one set aside."""
    for _ in range(2):
        (tmp_path / "ledger").write_bytes(b"garbage")
        Ledger(tmp_path / "ledger", SCOPE).close()
    assert (tmp_path / "ledger.damaged-2").exists()


def test_a_newer_schema_is_set_aside(tmp_path: Path) -> None:
    """A ledger of a later program is not touched: it is kept for when that program returns."""
    path = opened(tmp_path / "ledger", [Remember("t", "a", "1")])
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    ledger = Ledger(path, SCOPE)
    assert "schema is 99" in ledger.opened
    assert ledger.rows("t") == []
    ledger.close()


def test_a_foreign_database_is_set_aside(tmp_path: Path) -> None:
    """Another program's database is not written into."""
    path = tmp_path / "ledger"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (a)")
    db.close()
    ledger = Ledger(path, SCOPE)
    assert "not a database of ckptsyncd" in ledger.opened
    ledger.close()


def test_any_truncation_or_flipped_byte_is_survived(tmp_path: Path) -> None:
    """Whatever happens to the file, opening it gives a ledger that works."""
    rows: list[LedgerOrder] = [Remember("t", f"key {n}", "value " * 20) for n in range(200)]
    whole = opened(tmp_path / "whole", rows).read_bytes()
    chance = random.Random(7)
    path = tmp_path / "ledger"
    for number in range(60):
        torn = bytearray(whole)
        if number % 2:
            torn = torn[: chance.randrange(len(torn))]
        else:
            torn[chance.choice([chance.randrange(120), chance.randrange(len(torn))])] ^= 0xFF
        path.write_bytes(torn)
        ledger = Ledger(path, SCOPE)
        assert {value for _, value in ledger.rows("t")} <= {"value " * 20}
        ledger.apply([Remember("t", "new", "1", durable=True)])
        assert ("new", "1") in ledger.rows("t")
        ledger.close()


def test_a_full_disk_is_an_oserror_and_changes_nothing(tmp_path: Path) -> None:
    """ENOSPC is raised, the rows of before stand, and the same orders work once there is room."""
    ledger = Ledger(tmp_path / "ledger", SCOPE)
    ledger.apply([Remember("t", "a", "1")])
    (pages,) = ledger._db.execute("PRAGMA page_count").fetchone()
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")
    orders: list[LedgerOrder] = [Forget("t", "a"), Remember("t", "big", "x" * 100_000)]
    with pytest.raises(OSError, match="full") as caught:
        ledger.apply(orders)
    assert caught.value.errno == errno.ENOSPC
    assert ledger.rows("t") == [("a", "1")]
    ledger._db.execute("PRAGMA max_page_count = 100000")
    ledger.apply(orders)
    assert [key for key, _ in ledger.rows("t")] == ["big"]
    ledger.close()


def test_durable_rows_are_synced(tmp_path: Path) -> None:
    """A durable row is written with synchronous=FULL, any other with NORMAL."""
    ledger = Ledger(tmp_path / "ledger", SCOPE)
    seen = []
    for durable in (False, True, False):
        ledger.apply([Remember("t", "a", "1"), Remember("t", "b", "1", durable=durable)])
        seen.append(ledger._db.execute("PRAGMA synchronous").fetchone()[0])
    ledger.close()
    assert seen == [1, 2, 1]


def test_rows_survive_a_kill(tmp_path: Path) -> None:
    """Rows applied before a kill -9 are there afterwards, although nothing was closed."""
    code = (
        "import sys, os, signal; from pathlib import Path\n"
        "from ckptsyncd.edge.ledger import Ledger\n"
        "from ckptsyncd.core.orders import Remember\n"
        "ledger = Ledger(Path(sys.argv[1]), sys.argv[2])\n"
        "ledger.apply([Remember('t', str(n), 'v') for n in range(50)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "ledger"
    ended = subprocess.run([sys.executable, "-c", code, str(path), SCOPE], check=False)
    assert ended.returncode == -signal.SIGKILL
    reader = Ledger(path, SCOPE, read_only=True)
    assert len(reader.rows("t")) == 50
    reader.close()
    assert len(rows_of(path)) == 50


def test_reading_beside_a_running_daemon(tmp_path: Path) -> None:
    """A reader sees what was applied, cannot write, and does not hold up the writer."""
    ledger = Ledger(tmp_path / "ledger", SCOPE)
    ledger.apply([Remember("t", "a", "1")])
    reader = Ledger(tmp_path / "ledger", SCOPE, read_only=True)
    assert reader.rows("t") == [("a", "1")]
    ledger.apply([Remember("t", "a", "2")])
    assert reader.rows("t") == [("a", "2")]
    with pytest.raises(OSError, match="readonly"):
        reader.apply([Remember("t", "a", "3")])
    reader.close()
    ledger.close()


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    """A reader creates nothing: a missing or damaged ledger is an OSError."""
    with pytest.raises(OSError, match="ledger"):
        Ledger(tmp_path / "ledger", SCOPE, read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ledger").write_bytes(b"garbage" * 100)
    with pytest.raises(OSError, match="not a database"):
        Ledger(tmp_path / "ledger", SCOPE, read_only=True)


def test_nothing_to_do_writes_nothing(tmp_path: Path) -> None:
    """An empty list of orders begins no transaction."""
    path = opened(tmp_path / "ledger", [])
    before = path.stat().st_mtime_ns
    opened(path, [])
    ledger = Ledger(path, SCOPE, read_only=True)
    assert ledger.scopes() == []
    ledger.close()
    assert path.stat().st_mtime_ns >= before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a file system of 256 KiB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_start_on_a_full_disk(small_disk: Path) -> None:
    """A daemon whose state disk is full runs with rows in memory, and says so."""
    with contextlib.suppress(OSError):
        (small_disk / "filler").write_bytes(b"x" * 262144)
    ledger = Ledger(small_disk / "ledger", SCOPE)
    assert "kept in memory" in ledger.opened
    ledger.apply([Remember("t", "a", "1", durable=True)])
    assert ledger.rows("t") == [("a", "1")]
    ledger.close()


def test_a_disk_that_fills_and_empties(small_disk: Path) -> None:
    """On a really full disk ``apply`` raises ENOSPC; with room again the same orders work."""
    ledger = Ledger(small_disk / "ledger", SCOPE)
    ledger.apply([Remember("t", "a", "1")])
    filler = small_disk / "filler"
    with contextlib.suppress(OSError):
        filler.write_bytes(b"x" * 262144)
    orders = [Remember("t", str(n), "x" * 4000, durable=True) for n in range(5)]
    with pytest.raises(OSError, match="ledger") as caught:
        ledger.apply(orders)
    assert caught.value.errno == errno.ENOSPC
    filler.unlink()
    ledger.apply(orders)
    assert len(ledger.rows("t")) == 6
    ledger.close()


def test_threads_take_turns(tmp_path: Path) -> None:
    """Two threads that write at the same time do not get into each other's transaction."""
    ledger = Ledger(tmp_path / "ledger", SCOPE)

    def write(name: str) -> None:
        for n in range(100):
            ledger.apply([Remember("t", f"{name} {n}", "1"), Remember("t", name, str(n))])

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.rows("t")) == 202
    ledger.close()


@pytest.mark.parametrize("removed", ["file", "directory", "replaced"])
def test_a_file_that_is_removed_is_written_anew(removed: str, tmp_path: Path) -> None:
    """Whoever removes the ledger of a running daemon costs one failed write, and no row."""
    path = tmp_path / "state" / "ledger.sqlite"
    ledger = Ledger(path, "scope")
    ledger.apply([Remember("t", "before", "1", durable=True)])
    if removed == "replaced":
        for one in path.parent.iterdir():
            one.unlink()
        other = Ledger(path, "scope")
        other.apply([Remember("t", "foreign", "0")])
        other.close()
    elif removed == "directory":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
    with pytest.raises(OSError, match="removed"):
        ledger.apply([Remember("t", "after", "2", durable=True)])
    ledger.apply([Remember("t", "after", "2", durable=True)])
    ledger.close()
    again = Ledger(path, "scope")
    assert {("before", "1"), ("after", "2")} <= set(again.rows("t"))
    again.close()
