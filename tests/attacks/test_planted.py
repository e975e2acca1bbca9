"""Another user may write into the watch root: no file outside of it is ever read or changed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ckptsyncd.core.facts import FileFact, Listing, Piece
from ckptsyncd.edge import places
from ckptsyncd.edge.disk import RealDisk
from tests.process.conftest import Start
from tests.process.program import until
from tests.process.saving import by_rename

HASTY = ("--quiet-seconds", "1s", "--sweep-seconds", "1s", "--linger-seconds", "0s")
SECRET = b"the secret of another user\n" * 40


def nothing(fd: int, path: str, size: int) -> tuple[str, bool, str]:
    """Judge no format."""
    del fd, path, size
    return "unknown", False, ""


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    """Return a watch root with a checkpoint, and a directory elsewhere with the same names."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, data in ((root / "run" / "ckpt-1", b"mine"), (outside / "ckpt-1", SECRET)):
        folder.mkdir(parents=True)
        (folder / "weights.bin").write_bytes(data)
    return root, outside


def disk_at(root: Path) -> RealDisk:
    """Return the disk of a watch root."""
    return RealDisk(root, nothing)  # type: ignore[arg-type]


def listed(disk: RealDisk, path: str) -> Listing:
    """Return what lies below a path."""
    files = (fact for fact in disk.walk(path, recursive=True) if fact.kind == "file")
    return Listing(tuple(sorted(files, key=lambda fact: fact.path)))


def swap(root: Path, outside: Path) -> None:
    """Put a symlink to the directory elsewhere where the run's directory was."""
    (root / "run").rename(root / "real")
    (root / "run").symlink_to(outside, target_is_directory=True)


#: What the daemon does with a path that it listed a moment ago; each must find nothing.
WAYS: dict[str, Callable[[RealDisk, FileFact], object]] = {
    "walk": lambda disk, fact: list(disk.walk(fact.path, recursive=True)),
    "walk its directory": lambda disk, _: list(disk.walk("run/ckpt-1", recursive=True)),
    "look": lambda disk, fact: disk.look(fact.path),
    "read as a companion": lambda disk, fact: disk.read_small(fact.path, 1 << 20),
    "pin": lambda disk, fact: disk.pin("pin", Listing((fact,)))[0].files,
    "copy": lambda disk, fact: disk.copy("pin", Listing((fact,)))[0].files,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_directory_that_becomes_a_link_leads_nowhere(
    way: str, planted: tuple[Path, Path]
) -> None:
    """Between the listing and the next step a symlink takes the place of a directory."""
    root, outside = planted
    disk = disk_at(root)
    listed(disk, "run")
    swap(root, outside)
    status = (outside / "ckpt-1" / "weights.bin").stat()
    # Even a fact that describes the file elsewhere exactly gets nobody there.
    fact = FileFact(
        "run/ckpt-1/weights.bin",
        "file",
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
    )
    assert not WAYS[way](disk, fact)
    assert (outside / "ckpt-1" / "weights.bin").stat().st_nlink == 1


def test_a_pins_place_that_becomes_a_link_leads_nowhere(planted: tuple[Path, Path]) -> None:
    """Whoever puts a symlink where pins lie makes nobody read through it."""
    root, outside = planted
    place = root / ".ckptsyncd" / "pins"
    disk, later = (RealDisk(root, nothing, pins=place) for _ in range(2))  # type: ignore[arg-type]
    held, error = disk.pin("a", listed(disk, "run"))
    assert not error
    piece = ("a", held, "run/ckpt-1/weights.bin", Piece(0, 0, 4))
    (outside / "a").mkdir()
    (outside / "a" / "0").write_bytes(SECRET)
    place.rename(root / "theirs")
    place.symlink_to(outside, target_is_directory=True)
    with pytest.raises(OSError, match="pin is gone"):
        later.open_piece(*piece)
    assert later.look_again("a", held)
    # Who made the pin holds its directory open, wherever it was moved: what is there is its own.
    assert bytes(disk.open_piece(*piece).read(100)) == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can give files away")
def test_no_directory_elsewhere_is_given_away(tmp_path: Path) -> None:
    """Where root makes directories for a user, a symlink in their place is left alone."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir(mode=0o700)
    os.chown(root, 1234, 1234)
    with trading(root / ".ckptsyncd", outside):
        for _ in range(300):
            error = refusal(root)
            assert error.errno in (errno.ENOTDIR, errno.ENOENT, errno.EPERM, errno.ELOOP)
    status = outside.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (os.geteuid(), 0o700)
    assert list(outside.iterdir()) == []


def refusal(root: Path) -> OSError:
    """Make the place for pins again and again, until that is refused; return why."""
    while True:
        try:
            places.make(f"{root}/.ckptsyncd/pins/a", str(root))
        except OSError as error:  # noqa: PERF203 - what the loop is for
            return error


@contextmanager
def trading(place: Path, outside: Path) -> Iterator[None]:
    """Put a link to a directory elsewhere at a place, and take it away, again and again."""
    stop = threading.Event()
    number = 0

    def trade() -> None:
        nonlocal number
        while not stop.is_set():
            number += 1
            link = place.with_name(f"link{number}")
            link.symlink_to(outside, target_is_directory=True)
            with suppress(OSError):
                place.rename(place.with_name(f"real{number}"))
            try:
                link.rename(place)
                place.unlink()
            except OSError:
                link.unlink(missing_ok=True)

    thread = threading.Thread(target=trade, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_race_is_never_won(planted: tuple[Path, Path]) -> None:
    """While a directory and a link elsewhere change places, what is read is always ours."""
    root, outside = planted
    disk = disk_at(root)
    seen: set[bytes] = set()
    with flipping(root / "run", outside):
        for number in range(1500):
            listing = listed(disk, "run/ckpt-1")
            look = disk.look("run/ckpt-1/weights.bin")
            assert look is None or look.fact.size == 4
            seen.add(disk.read_small("run/ckpt-1/weights.bin", 1 << 20) or b"")
            held, _ = disk.pin(str(number % 7), listing)
            for fact in held.files:
                body = disk.open_piece(str(number % 7), held, fact.path, Piece(0, 0, fact.size))
                seen.add(bytes(body.read(1 << 20)))
            disk.unpin(str(number % 7))
    assert seen == {b"", b"mine"}


@contextmanager
def flipping(place: Path, outside: Path) -> Iterator[None]:
    """Let a directory and a symlink to one elsewhere change places again and again."""
    stop = threading.Event()
    real, link = place.with_name("real"), place.with_name("link")
    link.symlink_to(outside, target_is_directory=True)

    def flip() -> None:
        while not stop.is_set():
            place.rename(real)
            link.rename(place)
            place.rename(link)
            real.rename(place)

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_daemon_stores_nothing_from_elsewhere(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Companions, checkpoints and pointers that turn into links while it works: no byte leaks."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("weights.pt", "notes.txt", "latest"):
        (outside / name).write_bytes(SECRET)
    (root / "run").mkdir(parents=True)
    for number, name in enumerate(("weights.pt", "notes.txt", "latest")):
        by_rename(root / "run" / name, 3000, number)
    daemon = program(root, durable, *HASTY).start()
    with flipping(root / "run", outside):
        for number in range(6):
            by_rename(root / f"model-{number}.pt", 3000, number)
            daemon.until_safe(f"model-{number}.pt")
    by_rename(root / "last.pt", 3000, 99)
    daemon.until_safe("last.pt")
    assert daemon.stop() == 0
    stored = [path for path in (tmp_path / "durable").rglob("*") if path.is_file()]
    assert stored
    assert [path for path in stored if b"secret of another" in path.read_bytes()] == []


@pytest.mark.parametrize("kind", ["fifo", "garbage", "huge", "link", "directory"])
def test_what_lies_where_a_restore_leaves_its_note(
    kind: str, tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """A planted ``restored.json`` neither hangs nor ends the daemon."""
    note = root / ".ckptsyncd" / "restored.json"
    note.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(note)
    elif kind == "garbage":
        note.write_bytes(b'{"restored": [{"lineage": -1}]')
    elif kind == "huge":
        with note.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "link":
        note.symlink_to("/dev/zero")
    else:
        note.mkdir()
    daemon = program(root, durable, "--linger-seconds", "0s").start()
    by_rename(root / "a.pt", 3000, 1)
    daemon.until_safe("a.pt")
    until(lambda: daemon.stop() == 0, "it stops")
    del tmp_path
