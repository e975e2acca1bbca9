"""Orbax's mark in a bucket: where it is added, what it is in the manifest, and what it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.messages import RecordPut
from ckptsyncd.core.orders import HandOrder, PutSmall
from ckptsyncd.core.records.manifest import decode, stored_file
from ckptsyncd.core.records.memory import Recalled
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending import answers
from ckptsyncd.core.sending.case import Case
from ckptsyncd.core.sending.compare import same_outline, same_sums
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.sending.stamps import STAMP, STAMP_CRC64NVME
from ckptsyncd.core.sending.upload import manifest_of, missing
from ckptsyncd.core.turn import Notebook
from tests.core.parts import edition, fact, scene, settled

ONE_ITEM = ("run/5/_METADATA", "run/5/d/0", "run/5/manifest.ocdbt")
ITEMS = ("run/5/_CHECKPOINT_METADATA", "run/5/default/_METADATA", "run/5/extra/metadata")
WANTED = scene(policy=Policy(orbax_stamp=True))


def looked(*paths: str, layout: str = "orbax", salt: str = "") -> Edition:
    """Return an edition of which only the manifest is missing."""
    facts = tuple(fact(path, mtime_ns=100) for path in paths)
    what = settled(*facts, checkpoint="run/5", layout=layout)
    made = edition(*facts)
    made.settled = what
    made.pinned = made.looked = True
    made.claimed = "yes"
    made.stored = {f.path: stored_file(f, salt + f.path, 7, "crc64nvme", 0) for f in facts}
    return made


def put(made: Edition, here: Scene = WANTED) -> list[str]:
    """Answer every order until the manifest is due; return which keys got a stamp."""
    stamped = []
    while (order := next(missing(made, here))).errand.purpose == "stamp":
        assert isinstance(order, PutSmall)
        assert order.data == STAMP
        stamped.append(order.key)
        answer(made, order, here)
    assert order.errand.purpose == "seal"
    return stamped


def answer(made: Edition, order: HandOrder, here: Scene) -> None:
    """Take in that an order succeeded."""
    editions = Editions(Policy(), "me", Recalled())
    case = Case(editions, made, order, here, Notebook())
    answers.hear(case, RecordPut(order.errand, "v"))


def test_the_sum_is_that_of_the_words() -> None:
    """What the manifest says of a stamp is true: the words never change."""
    assert crc64nvme(STAMP) == STAMP_CRC64NVME


def test_one_item_gets_one() -> None:
    """Where the checkpoint is one item, it gets the mark, and directories inside get none."""
    assert put(looked(*ONE_ITEM)) == ["run/5/commit_success.txt"]


def test_items_get_theirs_first() -> None:
    """Each item gets one, and the checkpoint its own last of all."""
    assert put(looked(*ITEMS)) == [
        "run/5/default/commit_success.txt",
        "run/5/extra/commit_success.txt",
        "run/5/commit_success.txt",
    ]


def test_what_is_there_is_not_written_again() -> None:
    """A checkpoint of a newer Orbax has its marks already."""
    marked = (*ONE_ITEM, "run/5/commit_success.txt")
    assert put(looked(*sorted(marked))) == []


@pytest.mark.parametrize(
    ("made", "here"),
    [
        (looked(*ONE_ITEM), scene()),
        (looked(*ONE_ITEM, layout="directory"), WANTED),
        (looked(*ONE_ITEM, salt=".ckptsyncd/editions/x/"), WANTED),
    ],
    ids=["not asked for", "not Orbax's", "not at its plain path"],
)
def test_where_none_is_due(made: Edition, here: Scene) -> None:
    """Nothing is added unasked, to others' checkpoints, or where Orbax would not look."""
    assert put(made, here) == []


def test_it_is_part_of_the_manifest_and_the_newest_file() -> None:
    """The manifest has it as a file like any other, written after all others."""
    made = looked(*ITEMS)
    put(made)
    manifest = manifest_of(made, WANTED)
    rows = {stored.path: stored for stored in manifest.files}
    last = rows["run/5/commit_success.txt"]
    assert (last.size, last.crc64nvme, last.key) == (len(STAMP), STAMP_CRC64NVME, last.path)
    assert last.mtime_ns == max(stored.mtime_ns for stored in manifest.files)
    assert len({stored.mtime_ns for stored in manifest.files}) == 4


def test_the_same_content_with_and_without() -> None:
    """The trainer's directory without it and the restored one with it are both that content."""
    made = looked(*ONE_ITEM)
    put(made)
    manifest = manifest_of(made, WANTED)
    sums = {path: stored.crc64nvme for path, stored in made.stored.items()}
    assert same_outline(made.listing, manifest)
    assert same_sums(sums, manifest)
    stamp = made.stamps["run/5/commit_success.txt"]
    row = FileFact(stamp.path, "file", 1, 99, stamp.size, stamp.mtime_ns)
    restored = Listing(tuple(sorted((*made.listing.files, row), key=lambda f: f.path)))
    assert same_outline(restored, manifest)
    assert same_sums({**sums, stamp.path: STAMP_CRC64NVME}, manifest)
    assert not same_sums({**sums, stamp.path: 1}, manifest)


def test_a_mark_of_somebody_else_counts() -> None:
    """A file of that name with other words is content: without it, it is another checkpoint."""
    made = looked(*ONE_ITEM)
    put(made)
    manifest = manifest_of(made, WANTED)
    files = tuple(
        replace(stored, crc64nvme=1) if stored.path.endswith(".txt") else stored
        for stored in manifest.files
    )
    assert not same_outline(made.listing, replace(manifest, files=files))


def test_the_manifest_is_what_is_sealed() -> None:
    """The seal carries the stamps."""
    made = looked(*ONE_ITEM)
    put(made)
    seal = next(missing(made, WANTED))
    assert isinstance(seal, PutSmall)
    assert "run/5/commit_success.txt" in {stored.path for stored in decode(seal.data).files}
