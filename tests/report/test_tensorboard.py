"""TensorBoard's event files: their framing, byte for byte, and what a full disk does to them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ckptsyncd.report.grumble import Grumble
from ckptsyncd.report.readings import Reading
from ckptsyncd.report.tensorboard import TensorBoard, framed, scalars
from ckptsyncd.report.tracking import Tracked
from tests.report.examples import NOW

ONE = Reading("llama", NOW, 300, 200, 7, 1.5, 0)


def test_a_record_as_tensorflow_writes_it() -> None:
    """The first record of every event file, recorded from TensorBoard's own writer."""
    record = bytes.fromhex("09000020b2ff13da411a0d627261696e2e4576656e743a32")
    assert framed(record).hex() == (
        "1800000000000000a37f4b22" + record.hex() + framed(record)[-4:].hex()
    )


def test_a_number_has_tag_step_and_time() -> None:
    """One value of a known event, by the field numbers of event.proto and summary.proto."""
    event = scalars(1.0, 300, {"x": 0.5})
    value = b"\x0a\x0bckptsyncd/x" + b"\x15" + struct.pack("<f", 0.5)
    summary = b"\x0a" + bytes([len(value)]) + value
    assert (
        event
        == (b"\x09" + struct.pack("<d", 1.0) + b"\x10\xac\x02" + b"\x2a" + bytes([len(summary)]))
        + summary
    )


def test_each_series_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Readings of one series are appended to one file, below the series' name."""
    board = TensorBoard(tmp_path)
    for series in ("llama", "llama", "a/b", "."):
        board.write(Reading(series, NOW, 1, 1, 1, None, 0))
    found = sorted(path.parent.relative_to(tmp_path) for path in tmp_path.rglob("*tfevents*"))
    assert [str(path) for path in found] == ["ckptsyncd", "ckptsyncd/a/b", "ckptsyncd/llama"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_torn_file_is_left_behind(tmp_path: Path) -> None:
    """After a write that failed the next reading begins a new file: nothing follows torn bytes."""
    board = TensorBoard(tmp_path)
    board.write(ONE)
    (first,) = tmp_path.rglob("*tfevents*")
    first.unlink()
    first.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space"):
        board.write(ONE)
    board.write(ONE)
    assert len(list(tmp_path.rglob("*tfevents*"))) == 2


def test_a_directory_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    """A tracker that fails again and again is one line; the daemon goes on."""
    (tmp_path / "file").write_bytes(b"")
    written: list[str] = []
    grumble = Grumble("tensorboard", lambda _, event, __: written.append(event))
    tracked = Tracked("tensorboard", TensorBoard(tmp_path / "file"), grumble)
    for _ in range(3):
        tracked.put(ONE)
    assert tracked.close(20.0)
    assert written == ["tensorboard.failed"]
