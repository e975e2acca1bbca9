"""Cutting files into pieces: within every limit, and covering the file exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.sending.pieces import cut, piece_bytes
from ckptsyncd.errors import Never
from tests.core.parts import LIMITS

SOME_LIMITS = st.builds(
    Limits,
    min_piece_bytes=st.integers(1, 64),
    max_piece_bytes=st.integers(64, 4096),
    max_pieces=st.integers(1, 50),
    max_object_bytes=st.integers(1, 100_000),
    piece_multiple=st.sampled_from((1, 8, 64)),
)


@given(st.integers(0, 5000), st.integers(1, 600))
def test_pieces_cover_the_file_exactly(size: int, each: int) -> None:
    """No byte is left out and none is sent twice, in the order of the indices."""
    pieces = cut(size, each)
    assert [piece.index for piece in pieces] == list(range(len(pieces)))
    end = 0
    for piece in pieces:
        assert piece.offset == end
        end += piece.length
    assert end == size


@given(st.integers(1, 100_000), SOME_LIMITS, st.integers(1, 5000))
def test_a_chosen_size_fits_the_store(size: int, limits: Limits, wanted: int) -> None:
    """Whatever is wanted, the pieces keep the store's limits, or it is said that none do."""
    try:
        chosen = piece_bytes(size, limits, wanted)
    except Never:
        return
    assert chosen % limits.piece_multiple == 0
    assert limits.min_piece_bytes <= chosen <= limits.max_piece_bytes
    assert len(cut(size, chosen)) <= limits.max_pieces


@given(st.integers(0, 5 * 2**40), st.integers(1, 5 * 2**30), st.floats(0, 1e11))
@example(5 * 2**40, 1, 0.0)
@example(5 * 2**40, 16 * 2**20, 0.0)
@example(10_000 * 5 * 2**20 + 1, 5 * 2**20, 0.0)
def test_files_up_to_five_tebibytes_fit_ten_thousand_parts(
    size: int, wanted: int, per_second: float
) -> None:
    """As S3 wants them: parts of 5 MiB to 5 GiB, whatever is wanted and however fast it goes."""
    s3 = Limits(5 * 2**20, 5 * 2**30, 10_000, 5 * 2**40)
    chosen = piece_bytes(size, s3, wanted, per_second)
    assert 5 * 2**20 <= chosen <= 5 * 2**30
    assert -(-size // chosen) <= 10_000


@pytest.mark.parametrize(
    ("size", "wanted", "chosen"),
    [
        (100, 16, 16),  # as wanted
        (100, 5000, 1000),  # not over the largest
        (5000, 5, 50),  # larger, because there are 100 pieces at most
        (0, 16, 16),
    ],
)
def test_the_wanted_size_gives_way_to_the_limits(size: int, wanted: int, chosen: int) -> None:
    """The size is the wanted one wherever the store allows it."""
    assert piece_bytes(size, LIMITS, wanted) == chosen


@pytest.mark.parametrize(
    ("size", "limits"),
    [
        (10_001, LIMITS),
        (9000, replace(LIMITS, max_piece_bytes=80)),
    ],
)
def test_what_fits_no_store_is_refused(size: int, limits: Limits) -> None:
    """A file that cannot be stored is told so before anything is sent."""
    with pytest.raises(Never):
        piece_bytes(size, limits, 16)


@pytest.mark.parametrize(
    ("size", "wanted", "bytes_per_second", "chosen"),
    [
        (64 * 20, 16, 1e9, 20),  # a 64th of a large file
        (10_000, 25, 1e9, 100),  # and never more than four times as much
        (10_000, 25, 400.0, 100),  # more than the 40 that the link carries in a moment: the count
        (6_000, 40, 700.0, 70),
        (6_000, 60, 0.0, 60),  # nothing was seen of the link
    ],
)
def test_pieces_grow_with_the_file_and_the_link(
    size: int, wanted: int, bytes_per_second: float, chosen: int
) -> None:
    """Large files on fast links go in larger pieces, slow links in the wanted ones."""
    assert piece_bytes(size, LIMITS, wanted, bytes_per_second) == chosen
