"""Real file systems for the volume's tests, mounted for one session where this user may.

What cannot be mounted is a reason, and the tests that need it skip and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import running, until

#: An image's size: the least that mkfs.xfs makes is 300 MiB; the file has holes where nothing is.
IMAGE_BYTES = 320 * 1024**2

#: What a small disk still has room for.
SMALL_BYTES = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Mounted:
    """A mounted file system: its kind as we name it, where it is, what the kernel calls it."""

    kind: str
    path: Path
    called: str


def _run(*arguments: str) -> None:
    """Run a command as root; where that does not work the test is skipped with the reason."""
    if shutil.which(arguments[0]) is None:
        pytest.skip(f"needs {arguments[0]}")
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"cannot be had here: {' '.join(arguments)}: {done.stderr.strip():.200}")


def unmount(point: Path) -> None:
    """Take a file system away, whoever uses it."""
    while os.path.ismount(point):
        subprocess.run(["umount", "-l", str(point)], check=True, timeout=20)


@contextmanager
def _mounted(point: Path, *arguments: str) -> Iterator[Path]:
    point.mkdir()
    try:
        _run("mount", *arguments, str(point))
        yield point
    finally:
        unmount(point)


def _image(folder: Path, *mkfs: str) -> Path:
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    _run(*mkfs, str(image))
    return image


@contextmanager
def ext4(folder: Path) -> Iterator[Path]:
    """Mount an ext4 of its own."""
    image = _image(folder, "mkfs.ext4", "-q", "-m", "0")
    with _mounted(folder / "mount", "-o", "loop", str(image)) as point:
        yield point


@contextmanager
def xfs(folder: Path) -> Iterator[Path]:
    """Mount an XFS that shares extents (reflink)."""
    image = _image(folder, "mkfs.xfs", "-q", "-m", "reflink=1")
    with _mounted(folder / "mount", "-o", "loop", str(image)) as point:
        yield point


@contextmanager
def tmpfs(folder: Path, size: str = "256m") -> Iterator[Path]:
    """Mount a tmpfs."""
    with _mounted(folder / "mount", "-t", "tmpfs", "-o", f"size={size}", "none") as point:
        yield point


@contextmanager
def overlay(folder: Path) -> Iterator[Path]:
    """Mount an overlay, as containers have it, over an ext4 with something in its lower layer."""
    with ext4(folder) as disk:
        lower, upper, work = (disk / name for name in ("lower", "upper", "work"))
        for layer in (lower, upper, work):
            layer.mkdir()
        (lower / "below").mkdir()
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        point = folder / "merged"
        with _mounted(point, "-t", "overlay", "-o", layers, "overlay"):
            yield point


@contextmanager
def fuse(folder: Path) -> Iterator[Path]:
    """Mount a directory through a program in user space."""
    with fuse_process(folder) as (point, _):
        yield point


@contextmanager
def fuse_process(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """Mount a directory through bindfs, and return the program too, to be ended."""
    source, point = folder / "source", folder / "mount"
    source.mkdir()
    point.mkdir()
    if shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("needs bindfs and /dev/fuse")
    log = folder / "bindfs.log"
    with running(["bindfs", "-f", str(source), str(point)], log) as process:
        try:
            until(lambda: os.path.ismount(point) or process.poll() is not None, 20)
            if not os.path.ismount(point):
                pytest.skip(f"bindfs does not run here: {log.read_text():.200}")
            yield point, process
        finally:
            unmount(point)


#: Every file system by our name, and what the kernel calls it.
KINDS: dict[str, tuple[Callable[[Path], AbstractContextManager[Path]], str]] = {
    "ext4": (ext4, "ext4"),
    "xfs": (xfs, "xfs"),
    "tmpfs": (tmpfs, "tmpfs"),
    "overlayfs": (overlay, "overlay"),
    "fuse": (fuse, "fuse"),
}


@contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Mounted]:
    """Mount one of ``KINDS`` in an empty folder; skip the test where it cannot be had."""
    mount, called = KINDS[kind]
    with mount(folder) as point:
        yield Mounted(kind, point, called)


@contextmanager
def nearly_full(kind: str, folder: Path) -> Iterator[Path]:
    """Mount one of ``KINDS`` with room for hardly more than ``SMALL_BYTES``."""
    with ExitStack() as stack:
        if kind == "tmpfs":
            yield stack.enter_context(tmpfs(folder, str(SMALL_BYTES)))
            return
        point = stack.enter_context(mounted(kind, folder)).path
        free = os.statvfs(point)
        ballast = free.f_bavail * free.f_frsize - SMALL_BYTES
        with (point / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, ballast)
        yield point
