"""What an answer changes in an edition's progress: one row for every answer and every level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import ObjectFact, StoreErrorKind
from ckptsyncd.core.messages import Failed, ObjectSeen, ObjectStored, PieceStored
from ckptsyncd.core.orders import Errand
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.manifest import Manifest, encode
from ckptsyncd.core.records.memory import EditionRow
from ckptsyncd.core.sending.edition import Certainty, Edition, FileProgress
from ckptsyncd.core.sending.progress import (
    begin,
    claim_read,
    equals_rival,
    file_failed,
    is_summed,
    manifest_read,
    object_seen,
    object_stored,
    piece_stored,
    plan_files,
    rival_read,
)
from tests.core.parts import begun, edition, fact, manifest, receipt, scene, settled, stored

LARGE = fact(size=40)


def one_file(size: int = 40) -> tuple[Edition, FileProgress]:
    """Return an edition with one file whose upload is begun."""
    progress = FileProgress(fact(size=size), "run/a.ckpt")
    begin(progress, begun(size=size))
    return edition(fact(size=size), files={"run/a.ckpt": progress}), progress


def row(**other: object) -> EditionRow:
    """Return what the ledger knows of an edition whose large file was on its way."""
    found = EditionRow(settled(LARGE), 1)
    for name, value in other.items():
        setattr(found, name, value)
    return found


# Laying out files -------------------------------------------------------------------------------


def test_every_file_is_laid_out_once() -> None:
    """A file is on its way or stored; what an older edition has unchanged is shared."""
    facts = (fact("run/a"), fact("run/b"), replace(fact("run/c"), kind="directory", size=0))
    one = edition(*facts)
    plan_files(one, scene(), {"run/b": stored("run/b", key="old")}, None)
    assert list(one.files) == ["run/a"]
    assert (one.stored["run/b"].key, one.stored["run/c"].key) == ("old", "")


def test_a_former_daemons_pieces_count() -> None:
    """An upload that was begun is gone on with, at the key that it was begun for."""
    one = edition(LARGE)
    before = row(
        intents={"run/a.ckpt": ("key", "me.1")},
        uploads={"run/a.ckpt": begun("key")},
        pieces={"run/a.ckpt": {1: ("me.1", receipt(1)), 2: ("other", receipt(2, 8))}},
    )
    plan_files(one, scene(), {}, before)
    progress = one.files["run/a.ckpt"]
    assert (progress.key, progress.begun, sorted(progress.todo)) == ("key", begun("key"), [0, 2])
    assert not progress.has_stray


@pytest.mark.parametrize(
    ("before", "todo", "has_stray", "doubt"),
    [
        (row(), 0, False, False),
        (row(intents={"run/a.ckpt": ("key", "me.1")}), 0, True, False),
        (row(uploads={"run/a.ckpt": begun(size=99)}), 0, False, False),
        (
            row(
                uploads={"run/a.ckpt": begun()},
                pieces={"run/a.ckpt": {i: ("me.1", receipt(i, n)) for i, n in ((0, 16), (1, 16))}},
            ),
            1,
            False,
            False,
        ),
        (
            row(
                uploads={"run/a.ckpt": begun()},
                pieces={
                    "run/a.ckpt": {
                        i: ("me.1", receipt(i, n)) for i, n in ((0, 16), (1, 16), (2, 8))
                    }
                },
            ),
            0,
            False,
            True,
        ),
    ],
    ids=["nothing", "intent alone", "other size", "one piece left", "all pieces stored"],
)
def test_what_a_former_daemon_left_is_judged(
    before: EditionRow, todo: int, *, has_stray: bool, doubt: bool
) -> None:
    """An intent without an upload may have a stray; all pieces stored may be finished already."""
    one = edition(LARGE)
    plan_files(one, scene(), {}, before)
    progress = one.files["run/a.ckpt"]
    assert (len(progress.todo), progress.has_stray, progress.doubt) == (todo, has_stray, doubt)


def test_a_stored_file_of_a_former_daemon_counts() -> None:
    """A file that the ledger calls stored is not sent again."""
    one = edition(LARGE)
    plan_files(one, scene(), {}, row(objects={"run/a.ckpt": stored(size=40)}))
    assert (one.files, one.stored) == ({}, {"run/a.ckpt": stored(size=40)})


# Pieces and objects -----------------------------------------------------------------------------


def test_a_piece_counts_once() -> None:
    """The second answer about a piece changes nothing."""
    _, progress = one_file()
    message = PieceStored(Errand("piece"), receipt(1), 0.1)
    assert piece_stored(progress, message)
    assert not piece_stored(progress, message)
    assert (sorted(progress.todo), progress.bytes_stored) == ([0, 2], 16)


@pytest.mark.parametrize(
    ("size", "told", "wrong"),
    [
        (40, 7, ""),
        (40, None, ""),
        (39, 7, "the store has 39 bytes of 40"),
        (40, 8, "the store's checksum differs from what was sent"),
    ],
)
def test_a_finished_object_is_what_was_sent(size: int, told: int | None, wrong: str) -> None:
    """A file counts as stored only if size and checksum are those of what was sent."""
    one, progress = one_file()
    message = ObjectStored(Errand("finish"), ObjectFact("run/a.ckpt", size, "v1", told), 7, 0.1)
    assert object_stored(one, progress, message, 0) == wrong
    assert ("run/a.ckpt" in one.stored) == (not wrong)


@pytest.mark.parametrize(
    ("pieces", "sums"), [((0, 1, 2), (1000, 1001, 1002)), ((0, 2), ()), ((), ())]
)
def test_the_checksum_of_every_piece_is_kept_or_none(
    pieces: tuple[int, ...], sums: tuple[int, ...]
) -> None:
    """The manifest tells what each piece was, unless an answer about one never came."""
    one, progress = one_file()
    for index in pieces:
        progress.receipts[index] = receipt(index, 8 if index == 2 else 16)
    message = ObjectStored(Errand("finish"), ObjectFact("run/a.ckpt", 40, "v", 7), 7, 0.0)
    assert object_stored(one, progress, message, 0) == ""
    kept = one.stored["run/a.ckpt"]
    assert (kept.piece_sums, kept.piece_bytes) == (sums, 16 if sums else 0)


FAILURES: list[tuple[str, StoreErrorKind, bool, tuple[bool, bool, bool]]] = [
    # purpose, kind, ambiguous -> doubt, gone, still begun
    ("finish", "again", False, (False, False, True)),
    ("finish", "again", True, (True, False, True)),
    ("finish", "lost", False, (True, False, True)),
    ("finish", "gone", False, (True, True, True)),
    ("whole", "again", True, (True, False, True)),
    ("piece", "again", True, (False, False, True)),
    ("piece", "gone", False, (False, False, False)),
    ("stat", "again", True, (False, False, True)),
]


@pytest.mark.parametrize(("purpose", "kind", "ambiguous", "level"), FAILURES)
def test_a_failure_leaves_what_is_certain(
    purpose: str, kind: StoreErrorKind, *, ambiguous: bool, level: tuple[bool, bool, bool]
) -> None:
    """A finish that may have happened is asked for, and only a lost upload is begun anew."""
    _, progress = one_file()
    file_failed(progress, Failed(Errand(purpose), kind, "text", ambiguous=ambiguous))
    assert (progress.doubt, progress.gone, progress.begun is not None) == level


@pytest.mark.parametrize("ambiguous", [False, True])
def test_a_begin_that_may_have_happened_leaves_a_stray(*, ambiguous: bool) -> None:
    """Only where the store may have acted is there something to look for."""
    progress = FileProgress(LARGE, "run/a.ckpt")
    file_failed(progress, Failed(Errand("begin"), "again", "text", ambiguous=ambiguous))
    assert progress.has_stray == ambiguous


SEEN: list[tuple[str, ObjectFact | None, int | None, bool]] = [
    ("our content", ObjectFact("k", 40, "v", 7, None), 7, True),
    ("our content under our name", ObjectFact("k", 40, "v", 7, "me.1"), 7, True),
    ("our name, no checksum told", ObjectFact("k", 40, "v", None, "me.1"), 7, True),
    ("our name, other content", ObjectFact("k", 40, "v", 8, "me.1"), 7, False),
    ("another name, no checksum", ObjectFact("k", 40, "v", None, "x"), 7, False),
    ("other content", ObjectFact("k", 40, "v", 8, None), 7, False),
    ("another size", ObjectFact("k", 39, "v", 7, "me.1"), 7, False),
    ("our own sum is not known", ObjectFact("k", 40, "v", 7, "me.1"), None, False),
]


@pytest.mark.parametrize(("what", "found", "ours", "is_ours"), SEEN, ids=[row[0] for row in SEEN])
def test_what_lies_at_the_key_is_judged(
    what: str, found: ObjectFact, ours: int | None, *, is_ours: bool
) -> None:
    """Only the very content is taken for ours; anything else is left alone for another key."""
    del what
    one, progress = one_file()
    assert object_seen(one, progress, ObjectSeen(Errand("stat"), found, ours), scene()) == is_ours
    if is_ours:
        assert one.stored["run/a.ckpt"].crc64nvme == 7
    else:
        assert (progress.begun, progress.salts) == (None, 1)
        assert progress.key == ".ckptsyncd/editions/run%2Fa.ckpt/1-3.1/run/a.ckpt"


@pytest.mark.parametrize("gone", [False, True])
def test_nothing_at_the_key_ends_the_doubt(*, gone: bool) -> None:
    """The finish is tried again, or the upload begun anew if the store knows it no more."""
    one, progress = one_file()
    progress.doubt, progress.gone = True, gone
    assert not object_seen(one, progress, ObjectSeen(Errand("stat"), None), scene())
    assert (progress.doubt, progress.begun is None) == (False, gone)


# Records ----------------------------------------------------------------------------------------


def claim(save_id: str) -> bytes:
    """Return a claim by this save."""
    return Claim("run/a.ckpt", 1, "run", save_id, "x", 1, 0, "", 5.0).encode()


@pytest.mark.parametrize(
    ("data", "taken", "claimed"),
    [
        (None, False, "no"),
        (claim(edition().save_id), False, "yes"),
        (claim("other"), True, "no"),
        (b"rubbish", True, "no"),
    ],
)
def test_a_claim_is_joined_by_its_own_save_alone(
    data: bytes | None, *, taken: bool, claimed: Certainty
) -> None:
    """The same save joins, any other takes the next number, rubbish belongs to somebody."""
    one = edition(claimed="doubt")
    assert (claim_read(one, data), one.claimed) == (taken, claimed)


FOREIGN = replace(manifest().writer, nonce="x")


@pytest.mark.parametrize(
    ("found", "is_ours"),
    [
        (manifest(), True),
        (manifest(writer=FOREIGN), True),
        (manifest(stored(crc64nvme=98), writer=FOREIGN), False),
        (manifest(stored(size=11), writer=FOREIGN), False),
        (manifest(stored(), stored("run/b"), writer=FOREIGN), False),
        (manifest(save_id="other", writer=FOREIGN), True),
    ],
    ids=["ours", "same content", "other sums", "other size", "more files", "other times"],
)
def test_a_commit_is_ours_by_writer_or_by_content(found: Manifest, *, is_ours: bool) -> None:
    """A manifest that commits other content under our number is not called ours."""
    one = edition(sealed="doubt", stored={"run/a.ckpt": stored()})
    assert (manifest_read(one, encode(found), "me") == found) == is_ours
    assert one.sealed == ("yes" if is_ours else "no")


@pytest.mark.parametrize("data", [None, b"rubbish"])
def test_no_readable_commit_is_no_commit(data: bytes | None) -> None:
    """The seal is tried again."""
    one = edition(sealed="doubt")
    assert (manifest_read(one, data, "me"), one.sealed) == (None, "no")


def test_a_rival_is_compared_by_sizes_and_then_by_checksums() -> None:
    """A committed edition is this content only if every checksum says so."""
    one = edition(rivals=(3, 2, 1))
    rival_read(one, None)
    rival_read(one, encode(manifest(stored(size=11))))
    rival_read(one, encode(manifest(edition=1)))
    assert (one.rivals, one.rival) == ((1,), manifest(edition=1))
    assert not is_summed(one)
    one.sums["run/a.ckpt"] = 98
    assert is_summed(one)
    assert not equals_rival(one)
    assert (one.rivals, one.rival) == ((), None)


def test_the_same_checksums_make_the_rival_equal() -> None:
    """What is in the store already is not sent again."""
    one = edition(rivals=(1,), rival=manifest(), sums={"run/a.ckpt": 99})
    assert equals_rival(one)
