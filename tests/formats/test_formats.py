"""What the format checks say of whole, cut and foreign files, word by word."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import pytest

from ckptsyncd.formats import check
from tests.formats.samples import (
    WHOLE,
    checked,
    gguf,
    hdf5,
    safetensors,
    safetensors_head,
    zipped,
    zipped_64,
)

TEN = len(safetensors(10))


@pytest.mark.parametrize("name", WHOLE)
def test_whole_files_are_whole(name: str) -> None:
    """A file that ends where its own records say is whole, and its format has an end mark."""
    assert checked(name, WHOLE[name]) == ("whole", True, "")


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("a.npz", zipped()[:-1], "zip end record missing"),
        ("optimizer.bin", zipped()[:-30], "zip end record missing"),
        ("a.keras", b"PK\3\4" + bytes(40), "zip end record missing"),
        (
            "a.safetensors",
            safetensors(1000)[:600],
            f"safetensors header says {len(safetensors(1000))} bytes, the file has 600",
        ),
        (
            "longer.safetensors",
            safetensors(10) + b"x",
            f"safetensors header says {TEN} bytes, the file has {TEN + 1}",
        ),
        (
            "zeros.safetensors",
            bytes(100),
            "safetensors header missing, its length would be 0",
        ),
        (
            "head.safetensors",
            struct.pack("<Q", 500) + b"{",
            "safetensors header ends at byte 508, the file has 9",
        ),
        (
            "text.safetensors",
            struct.pack("<Q", 4) + b"none",
            "safetensors header is no valid JSON of tensors",
        ),
        (
            "killed.weights.h5",
            hdf5(0, size=2048) + bytes(5000),
            "HDF5 superblock says 2048 bytes, the file has 7048",
        ),
        ("zeros.h5", bytes(5000), "HDF5 signature missing"),
        (
            "swmr.h5",
            hdf5(3, flags=1),
            "HDF5 superblock says that its writer did not close the file",
        ),
        ("short.h5", hdf5(2)[:47], "HDF5 superblock is cut off"),
        ("a.gguf", b"GGML" + bytes(50), "GGUF magic missing"),
        ("a.gguf", gguf()[:100], "GGUF header is cut off, the file has 100"),
        ("a.json", b'{"a": [1, 2', "JSON text is cut off: Expecting ',' delimiter"),
        ("zeros.json", b'{"a": 1}' + bytes(9), "JSON text has zero bytes instead of text"),
        ("a.pt", b"", "empty"),
        ("a.safetensors", b"", "empty"),
        ("a.npz", b"", "empty"),
        ("optimizer.bin", b"", "empty"),
        ("random_states_0.pkl", b"", "empty"),
    ],
)
def test_faults_say_what_is_wrong(name: str, data: bytes, fault: str) -> None:
    """A file that cannot be whole is broken, with the number that shows it."""
    assert checked(name, data) == ("broken", True, fault)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("__0_0.distcp", zipped() + zipped()[:-9]),
        ("__1_0.distcp", b""),
        ("commit_success.txt", b""),
        ("empty.json", b""),
        ("legacy.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
        ("random_states_0.pkl", b"\x80\x04\x95..."),
        ("model.bin", b"\x00\x01\x02\x03"),
        ("lines.json", b'{"a": 1}\n{"a": 2}\n'),
        ("comment.json", b'{ // for people\n "a": 1, "b": "ccccccccccccccccccc"}'),
        ("latin.json", b'{"a": "\xe4\xf6"}'),
        ("number.json", b"12"),
        ("future.gguf", b"GGUF" + struct.pack("<I2Q", 9, 0, 0)),
        ("type.gguf", gguf(kind=200)),
        ("future.h5", hdf5(0)[:8] + b"\x09" + bytes(100)),
    ],
)
def test_nothing_is_said_where_nothing_can_be_told(name: str, data: bytes) -> None:
    """Formats without an end mark, unknown versions and text that is no JSON stay unknown."""
    assert checked(name, data) == ("unknown", False, "")


def test_archive_inside_an_archive_is_no_end() -> None:
    """A file cut right behind a whole archive stored inside it is broken."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner.npz", zipped())
        archive.writestr("more", bytes(1000))
    data = buffer.getvalue()
    end = data.index(zipped()) + len(zipped())
    shape, _, fault = checked("a.pt", data[:end])
    assert shape == "broken"
    assert fault.startswith("zip directory ends at byte ")


def test_directory_must_lie_where_the_end_record_says() -> None:
    """An end record behind zeros (a file that was allocated, and never filled) is not enough."""
    whole = zipped()
    offset = int.from_bytes(whole[-6:-2], "little")
    holes = bytes(offset) + bytes(len(whole) - 22 - offset) + whole[-22:]
    assert checked("a.npz", holes)[2] == f"zip directory missing at byte {offset}"
    headless = bytes(4) + whole[4:]
    assert checked("a.npz", headless)[2] == "zip header missing at byte 0"


def test_zip64_record_must_be_there() -> None:
    """A zip64 locator that points at something else is broken."""
    data = bytearray(zipped_64())
    at = data.index(b"PK\6\6")
    data[at : at + 4] = bytes(4)
    assert checked("a.pt", bytes(data))[2] == f"zip64 end record missing at byte {at}"


def test_long_json_is_judged_by_its_end(tmp_path: Path) -> None:
    """A text too long to parse is unknown where its last bracket fits, else cut off."""
    path = tmp_path / "trainer_state.json"
    path.write_bytes(b'{"log_history": [' + b"1.25, " * 1_000_000 + b"1]}\n")
    size = path.stat().st_size
    with path.open("rb") as file:
        assert check(file.fileno(), path.name, size) == ("unknown", False, "")
        assert check(file.fileno(), path.name, size - 3)[2] == "JSON text is cut off"


def test_size_of_the_killed_save_is_named() -> None:
    """Of a 320 MB save killed after 1 MiB, the fault names both sizes."""
    head = safetensors_head(335_544_320)
    shape, _, fault = checked("model.safetensors", head.ljust(1_048_576, b"\0"))
    assert shape == "broken"
    said = len(head) + 335_544_320
    assert fault == f"safetensors header says {said} bytes, the file has 1048576"


def test_position_of_the_descriptor_stays(tmp_path: Path) -> None:
    """A check does not move the descriptor that it was given."""
    path = tmp_path / "a.npz"
    path.write_bytes(zipped())
    fd = os.open(path, os.O_RDONLY)
    check(fd, "a.npz", len(zipped()))
    assert os.lseek(fd, 0, os.SEEK_CUR) == 0
    os.close(fd)
