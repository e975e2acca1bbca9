"""The power goes at any moment: what was confirmed is there, and nothing is torn."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ckptsyncd.edge.ledger import Ledger
from tests.attacks import power

HERE = Path(__file__).parent
#: Rows that the writer forgets at some time: they may be gone before it says so.
FORGOTTEN = {"1.0", "4.0"}
needs_strace = pytest.mark.skipif(power.strace() is None, reason="needs strace")

#: Every object that the writer of the volume stores, and every content that it may have.
CONTENTS = {
    "ckpt-1/a.bin": [b"a" * 5000],
    "ckpt-2/b.bin": [b"b" * 300],
    "ckpt-2/deep/c.bin": [bytes(range(256)) * 40],
    ".ckptsyncd/manifests/m.json": [b'{"the": "manifest"}'],
    ".ckptsyncd/latest/l.json": [b"one", b"another"],
}


@needs_strace
def test_the_ledger_keeps_what_it_confirmed(tmp_path: Path) -> None:
    """Whatever a cut leaves, the next start finds every durable row, each transaction whole."""
    top = tmp_path / "top"
    top.mkdir()
    calls = power.record(HERE / "ledger_writer.py", str(top), log=tmp_path / "log")
    states = 0
    for told, what in power.cuts(calls, top, tmp_path / "after", Random(1)):
        (tmp_path / "after" / "state").mkdir(exist_ok=True)
        ledger = Ledger(tmp_path / "after" / "state" / "ledger.sqlite", "scope")
        found = {key for key, _ in ledger.rows("editions")}
        ledger.close()
        gone = {f"{word[1:]}.0" for word in told if word.startswith("-")}
        kept = {f"{w[1:]}.{part}" for w in told if w.startswith("+") for part in range(3)} - gone
        assert kept - FORGOTTEN <= found, what
        assert not gone & found, what
        assert not ledger.opened or not kept, f"{what}: {ledger.opened}"
        states += 1
    assert states > 100


@needs_strace
def test_a_volume_keeps_what_it_confirmed_and_tears_nothing(tmp_path: Path) -> None:
    """After a cut each name is absent or whole, and present if the store had said so."""
    top = tmp_path / "top"
    top.mkdir()
    calls = power.record(HERE / "volume_writer.py", str(top), log=tmp_path / "log")
    states = 0
    for told, what in power.cuts(calls, top, tmp_path / "after", Random(2)):
        for key, contents in CONTENTS.items():
            path = tmp_path / "after" / "durable" / key
            if path.exists():
                assert path.read_bytes() in contents, f"{what}: {key} is torn"
            assert path.exists() or key not in told, f"{what}: {key} is gone"
        if "another" in told:
            latest = tmp_path / "after" / "durable" / ".ckptsyncd/latest/l.json"
            assert latest.read_bytes() == b"another", what
        states += 1
    assert states > 50
