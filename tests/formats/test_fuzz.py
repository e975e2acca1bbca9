"""No content makes a check raise, need much, or call a cut file whole."""

from __future__ import annotations

import os
import resource
import struct
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ckptsyncd.formats import AMBIGUOUS, BY_NAME, check
from tests.formats.samples import WHOLE, checked

SUFFIXES = sorted({*AMBIGUOUS, *(suffix for group in BY_NAME for suffix in group)})
MAGICS = [
    b"",
    b"PK\3\4",
    b"PK\5\6",
    b"\x89HDF\r\n\x1a\n\x00",
    b"\x89HDF\r\n\x1a\n\x03",
    b"GGUF\3\0\0\0",
    struct.pack("<Q", 20) + b'{"a":{"data_offsets":',
    b'{"',
    b"[",
]


@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_file_is_never_whole(name: str) -> None:
    """Cut at any byte, a file of a format with an end mark is never called whole."""
    data = WHOLE[name]
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        for size in reversed(range(len(data))):
            file.truncate(size)
            shape, _, fault = check(file.fileno(), name, size)
            assert shape != "whole", size
            assert bool(fault) == (shape == "broken")


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_longer_than_it_says_is_never_whole(name: str) -> None:
    """Bytes behind the end are as wrong as missing ones (JSON may end in space)."""
    assert checked(name, WHOLE[name] + b"x")[0] != "whole"


@settings(max_examples=300, deadline=None)
@given(
    suffix=st.sampled_from(SUFFIXES),
    magic=st.sampled_from(MAGICS),
    rubbish=st.binary(max_size=300),
)
@example(".json", b"", b"[" * 100_000)
@example(".json", b"", b"[" * 100_000 + b"]" * 100_000)
@example(".json", b"", b'{"a":' + b"9" * 1_000_000 + b"}")
@example(".safetensors", struct.pack("<Q", 100_000), b"[" * 100_000)
@example(".safetensors", struct.pack("<Q", 9), b'{"a":{}}')
@example(".safetensors", struct.pack("<Q", 2**63), b"{}")
@example(".safetensors", struct.pack("<Q", 7), b'{"a":1}')
@example(".safetensors", struct.pack("<Q", 2), b"[]")
@example(".gguf", b"GGUF\3\0\0\0" + b"\xff" * 16, bytes(200))
@example(".gguf", b"GGUF\3\0\0\0" + bytes(8) + b"\1" + bytes(7), b"\xff" * 40)
@example(".npz", b"PK\5\6", b"PK\5\6" * 20_000)
def test_rubbish_never_raises(suffix: str, magic: bytes, rubbish: bytes) -> None:
    """Whatever a file contains, the answer is one of the three, and broken ones say why."""
    shape, has_end_mark, fault = checked("model" + suffix, magic + rubbish)
    assert shape in ("whole", "broken", "unknown")
    assert bool(fault) == (shape == "broken")
    assert has_end_mark == (shape != "unknown")


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(WHOLE)), at=st.integers(0, 3000), flip=st.integers(1, 255))
def test_a_damaged_file_never_raises(name: str, at: int, flip: int) -> None:
    """One wrong byte anywhere gives an answer (not always the right one: data is not read)."""
    data = bytearray(WHOLE[name])
    data[at % len(data)] ^= flip
    assert checked(name, bytes(data))[0] in ("whole", "broken", "unknown")


def test_huge_counts_need_no_memory_and_little_time() -> None:
    """A sparse 1 TB file whose header promises endless tables costs a bounded check."""
    with tempfile.TemporaryFile() as file:
        file.write(b"GGUF\3\0\0\0" + b"\xff" * 16)
        file.truncate(2**40)
        size = os.fstat(file.fileno()).st_size
        before = resource.getrusage(resource.RUSAGE_SELF)
        assert check(file.fileno(), "a.gguf", size) == ("unknown", False, "")
        for name in ("a.npz", "a.safetensors", "a.h5", "a.json", "a.pt"):
            assert check(file.fileno(), name, size)[0] != "whole"
        after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 5
    assert after.ru_maxrss - before.ru_maxrss < 64 * 1024
