"""One order in, one report out."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import FileFact, FileLook, Listing, Piece
from ckptsyncd.core.messages import (
    Failed,
    Looked,
    LookedAgain,
    Pinned,
    PointerRead,
    Report,
    Scanned,
    Unpinned,
)
from ckptsyncd.core.orders import Errand, Look, LookAgain, Pin, ReadPointer, Scan, Unpin
from ckptsyncd.core.ports import Body, Disk
from ckptsyncd.edge.scanner import POINTER_BYTES, Scanner, obey
from tests.edge.world import as_nobody, disk_at, listing, needs_root

ERRAND = Errand("test", "checkpoint-1", "save-1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with a checkpoint and a pointer."""
    root = tmp_path / "run"
    (root / "checkpoint-1").mkdir(parents=True)
    (root / "checkpoint-1/model.pt").write_bytes(b"weights")
    (root / "latest").write_text("checkpoint-1\n")
    (root / "last").symlink_to("checkpoint-1")
    return root


def test_scan_reports_everything_in_order(root: Path) -> None:
    """A scan brings back errand, path and all facts: parents first, the names of each in order."""
    disk = disk_at(root)
    scanned = obey(Scan(ERRAND, ""), disk)
    assert isinstance(scanned, Scanned)
    names = ["checkpoint-1", "last", "latest", "checkpoint-1/model.pt"]
    assert [fact.path for fact in scanned.facts] == names
    found = tuple(sorted(scanned.facts, key=lambda fact: fact.path))
    assert replace(scanned, facts=found) == Scanned(ERRAND, "", listing(disk).files)
    flat = obey(Scan(ERRAND, "", recursive=False), disk)
    assert isinstance(flat, Scanned)
    assert len(flat.facts) == 3
    assert not flat.recursive


def test_scan_of_what_is_gone_is_empty(root: Path) -> None:
    """What is gone is reported as nothing, without an error."""
    assert obey(Scan(ERRAND, "gone"), disk_at(root)) == Scanned(ERRAND, "gone", ())


def test_look_examines_what_is_named(root: Path) -> None:
    """A look lists all roots once and examines the named paths; gone ones are left out."""
    disk = disk_at(root)
    order = Look(
        ERRAND,
        ("checkpoint-1", "latest", "checkpoint-1/model.pt"),
        frozenset({"checkpoint-1/model.pt", "gone"}),
    )
    looked = obey(order, disk)
    assert isinstance(looked, Looked)
    assert [fact.path for fact in looked.facts] == [
        "checkpoint-1",
        "checkpoint-1/model.pt",
        "latest",
    ]
    assert [look.fact.path for look in looked.looks] == ["checkpoint-1/model.pt"]
    assert looked.looks[0].writer == "none"


@pytest.mark.parametrize("copy", [False, True])
def test_pin_look_again_unpin(root: Path, *, copy: bool) -> None:
    """Pins are named by the errand's save id, from the first order to the last."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1")
    assert obey(Pin(ERRAND, files, copy), disk) == Pinned(ERRAND, files)
    assert disk.held() == ("save-1",)
    assert obey(LookAgain(ERRAND, files), disk) == LookedAgain(ERRAND, "")
    body = disk.open_piece("save-1", files, "checkpoint-1/model.pt", Piece(0, 0, 7))
    assert bytes(body.read(10)) == b"weights"
    shutil.rmtree(root.parent / ".ckptsyncd")
    again = obey(LookAgain(ERRAND, files), disk)
    assert isinstance(again, LookedAgain)
    assert "the pin is gone" in again.difference
    assert obey(Unpin(ERRAND), disk) == Unpinned(ERRAND)


def test_pin_that_fails_says_why(root: Path) -> None:
    """A pin of what is gone reports no listing and the reason."""
    disk = disk_at(root)
    files = listing(disk, "checkpoint-1/model.pt")
    shutil.rmtree(root / "checkpoint-1")
    assert obey(Pin(ERRAND, files), disk) == Pinned(
        ERRAND, Listing(()), "checkpoint-1/model.pt: vanished"
    )


def test_pointers_are_read_as_text_or_target(root: Path) -> None:
    """A pointer file gives its text, a link its target, what is gone nothing."""
    disk = disk_at(root)
    (root / "long").write_bytes(b"\xff" + b"x" * 2 * POINTER_BYTES)
    text = obey(ReadPointer(ERRAND, "latest"), disk)
    assert text == PointerRead(ERRAND, "file", "checkpoint-1\n")
    link = obey(ReadPointer(ERRAND, "last"), disk)
    assert link == PointerRead(ERRAND, "symlink", "checkpoint-1")
    assert obey(ReadPointer(ERRAND, "gone"), disk) == PointerRead(ERRAND, "", None)
    directory = obey(ReadPointer(ERRAND, "checkpoint-1"), disk)
    assert directory == PointerRead(ERRAND, "directory", None)
    long = obey(ReadPointer(ERRAND, "long"), disk)
    assert isinstance(long, PointerRead)
    assert long.text is not None
    assert (len(long.text), long.text[0]) == (POINTER_BYTES, "\udcff")


@dataclass
class FailingDisk:
    """A disk that shows one file and then fails at everything."""

    fact: FileFact = FileFact("a", "file", 1, 2, 3, 4)  # noqa: RUF009 frozen

    def walk(self, path: str, *, recursive: bool) -> Iterator[FileFact]:
        """Yield one fact and fail."""
        del path, recursive
        yield self.fact
        raise OSError(5, "Input/output error")

    def look(self, path: str) -> FileLook | None:
        """Fail."""
        raise OSError(24, "Too many open files", path)

    def pin(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Fail in words."""
        return listing, pin_id

    copy = pin

    def look_again(self, pin_id: str, listing: Listing) -> str:
        """Fail in words."""
        del listing
        return pin_id

    def discard(self, listing: Listing) -> str:
        """Fail in words."""
        return f"{len(listing.files)} files stay"

    def unpin(self, pin_id: str) -> None:
        """Fail."""
        raise OSError(30, "Read-only file system", pin_id)

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> Body:
        """Fail."""
        del pin_id, listing, piece
        raise OSError(5, "Input/output error", path)

    def read_small(self, path: str, most_bytes: int) -> bytes | None:
        """Fail."""
        del most_bytes
        raise OSError(5, "Input/output error", path)


def test_errors_of_the_disk_become_words() -> None:
    """An OSError is told in the report, beside everything that was seen before it."""
    disk: Disk = FailingDisk()
    fact = FailingDisk().fact
    error = "Input/output error"
    assert obey(Scan(ERRAND, ""), disk) == Scanned(ERRAND, "", (fact,), error=error)
    assert obey(Look(ERRAND, ("a",), frozenset()), disk) == Failed(ERRAND, "local", error)
    text = "Read-only file system: save-1"
    assert obey(Unpin(ERRAND), disk) == Unpinned(ERRAND, text)
    pointer = obey(ReadPointer(ERRAND, "a"), disk)
    assert pointer == PointerRead(ERRAND, "", None, "Input/output error: a")


@needs_root
def test_unreadable_directory_is_no_part_of_a_scan_and_fails_a_look() -> None:
    """A part that may not be read stops no scan; a checkpoint that has one is never looked at.

    The ``lost+found`` of a volume is no part of anything.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "lost+found").mkdir(mode=0o700)
        (root / "run/checkpoint-1/secret").mkdir(parents=True, mode=0o755)
        (root / "run/checkpoint-1/secret").chmod(0o700)
        (root / "run/model.pt").write_bytes(b"x")
        with as_nobody():
            disk = disk_at(root)
            scanned = obey(Scan(ERRAND, ""), disk)
            looked = obey(Look(ERRAND, ("run/checkpoint-1",), frozenset()), disk)
            alone = obey(Scan(ERRAND, "run/checkpoint-1/secret"), disk)
            volume = obey(Look(ERRAND, ("lost+found",), frozenset()), disk)
            fine = obey(Look(ERRAND, ("run/model.pt",), frozenset({"run/model.pt"})), disk)
    assert isinstance(scanned, Scanned)
    assert scanned.error == ""
    assert [fact.path for fact in scanned.facts] == [
        "lost+found",
        "run",
        "run/checkpoint-1",
        "run/model.pt",
        "run/checkpoint-1/secret",
    ]
    assert isinstance(alone, Scanned)
    wanted = f"Permission denied: {root}/run/checkpoint-1/secret"
    assert alone.error == wanted
    assert isinstance(volume, Looked)
    assert looked == Failed(ERRAND, "local", wanted)
    assert isinstance(fine, Looked)


def test_scanner_obeys_in_order_and_ends(root: Path) -> None:
    """Reports come in the order of the orders, and a stop lets those in line be done."""
    reports: list[Report | Failed] = []
    scanner = Scanner(disk_at(root), reports.append)
    for number in range(20):
        scanner.submit(Scan(Errand(str(number)), "latest"))
    scanner.start()
    scanner.stop()
    assert [report.errand.purpose for report in reports] == [str(n) for n in range(20)]
