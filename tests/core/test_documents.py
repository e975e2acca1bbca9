"""The small records: exact both ways, and rubbish refused."""

from __future__ import annotations

import json

import pytest

from ckptsyncd.core.records.documents import (
    Claim,
    Epoch,
    Latest,
    Pointer,
    Pointers,
    Restorations,
    Restored,
)
from ckptsyncd.errors import Never, PathRefused

Record = Claim | Latest | Epoch | Pointers | Restorations

CLAIM = Claim("run/a", 2, "run", "abc", "me", 3, 0, "", 5.0)
LATEST = Latest("run", "run/a", 2, (0, 100, 5.0, 2), ((0, 3), (1, 9)), "me", 6.0, 100, 10, 4.0)
EPOCH = Epoch("run", 0, 3, "me", "host", 5.0)
POINTERS = Pointers("run", "run/a", 2, (Pointer("run/latest", "file", "a"),))
RESTORED = Restored("run/a", 2, "run", 1, None, "abc", partial=True)

RECORDS: list[Record] = [CLAIM, LATEST, EPOCH, POINTERS, Restorations((RESTORED,))]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_read_back(record: Record) -> None:
    """Decoding is the exact inverse of encoding."""
    assert type(record).decode(record.encode()) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"7", b"\xff", b"[" * 100_000])
def test_rubbish_is_refused(record: Record, data: bytes) -> None:
    """A damaged or hostile record raises what its readers expect."""
    with pytest.raises((Never, PathRefused)):
        type(record).decode(data)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_field_that_is_not_known_is_ignored(record: Record) -> None:
    """A newer program may say more."""
    document = json.loads(record.encode()) | {"colour": "blue"}
    assert type(record).decode(json.dumps(document).encode()) == record


def test_an_old_hint_without_the_newer_fields_is_understood() -> None:
    """Readers accept what an older program wrote."""
    document = json.loads(LATEST.encode())
    for name in ("step", "total_bytes", "committed_at"):
        del document[name]
    seen = Latest.decode(json.dumps(document).encode())
    assert (seen.rank, seen.step, seen.total_bytes) == (LATEST.rank, None, 0)


@pytest.mark.parametrize(("node", "epoch"), [(0, 3), (1, 9), (2, 0)])
def test_the_hint_knows_the_epoch_of_each_node(node: int, epoch: int) -> None:
    """A node that never wrote has epoch 0."""
    assert LATEST.epoch_of(node) == epoch


def test_a_restore_replaces_only_its_own_series() -> None:
    """The last restore of each series is kept."""
    other = Restored("other/b", 1, "other", 0, 7, "def")
    newer = Restored("run/c", 1, "run", 2, 300, "ghi")
    rows = Restorations().with_row(RESTORED).with_row(other).with_row(newer)
    assert (rows.of("run"), rows.of("other"), rows.of("none")) == (newer, other, None)
