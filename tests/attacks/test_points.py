"""Killed before each kind of order, after each kind of answer, around each write of the ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.records.manifest import decode
from tests.attacks.dying import left_begun
from tests.docs.blocks import ROOT

#: What a pass over this root is known to go through; a point that is no more is noticed.
LEAST_POINTS = 35


@pytest.mark.slow
def test_killed_at_every_kind_of_point(tmp_path: Path) -> None:
    """The next pass makes all of it safe, once, and leaves neither an upload nor a pin behind."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.dying", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    tried = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(tried) >= LEAST_POINTS
    for one in tried:
        assert (one["killed"], one["last"]) == (-9, 0), f"{one}\n{done.stderr}"
        whole(Path(one["base"]), one["point"])


def whole(base: Path, point: str) -> None:
    """Judge what lies in the store after the second pass, without the program."""
    durable = base / "durable"
    records = sorted((durable / ".ckptsyncd" / "manifests").iterdir())
    manifests = [decode(record.read_bytes()) for record in records]
    assert [(m.checkpoint, m.edition) for m in manifests] == [
        ("big.pt", 1),
        ("checkpoint-10", 1),
    ], point
    for manifest in manifests:
        for file in manifest.files:
            if file.kind == "file":
                data = (durable / file.key).read_bytes()
                assert data == (base / "root" / file.path).read_bytes(), point
                assert file.crc64nvme == crc64nvme(data), point
    assert left_begun(base) == [], point
    pins = [path for path in base.glob(".ckptsyncd/pins/*/*") if any(path.iterdir())]
    assert pins == [], point
    assert (durable / ".ckptsyncd" / "companions" / "train.log").exists(), point
