"""Files that look whole while somebody can still write them: none of them settles too early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import MIB, safetensors_bytes

#: Writes what comes in as a file in one of the ways, holds it with half of the content, and writes
#: the rest when it is told.
WRITER = """
import mmap, os, sys
way, path, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = sys.stdin.buffer.read(size)
half = size // 2

def wait():
    print("held", flush=True)
    sys.stdin.buffer.read(1)

def rest(fd):
    os.pwrite(fd, data[half:], half)
    os.close(fd)

fd = os.open(path, os.O_RDWR | os.O_CREAT)
if way == "preallocated":
    os.posix_fallocate(fd, 0, size)
    os.pwrite(fd, data[:half], 0)
    wait()
    rest(fd)
elif way == "mapped":
    os.ftruncate(fd, size)
    mapped = mmap.mmap(fd, size)
    os.close(fd)
    mapped[:half] = data[:half]
    wait()
    mapped[half:] = data[half:]
    mapped.close()
elif way == "appended in bursts":
    for start in range(0, half, half // 4):
        os.pwrite(fd, data[start:start + half // 4], start)
        os.close(fd)
        fd = os.open(path, os.O_RDWR)
    wait()
    rest(fd)
elif way == "opened and closed several times":
    os.pwrite(fd, data, 0)
    for _ in range(5):
        os.close(fd)
        fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, bytes(size - half), half)
    wait()
    rest(fd)
elif way == "inherited by a child":
    os.ftruncate(fd, size)
    os.pwrite(fd, data[:half], 0)
    child = os.fork()
    if child:
        os.close(fd)
        os.waitpid(child, 0)
    else:
        wait()
        rest(fd)
"""
WAYS = (
    "preallocated",
    "mapped",
    "appended in bursts",
    "opened and closed several times",
    "inherited by a child",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_can_still_be_written(
    way: str, root: Path, durable: str, program: Start
) -> None:
    """While anybody can write it, it is not settled and status says by whom; then all of it is."""
    root.mkdir()
    daemon = program(root, durable, "--linger-seconds", "100ms").start()
    path, data = root / "model.safetensors", safetensors_bytes(MIB, 3)

    def reason() -> str:
        rows = (daemon.status() or {"checkpoints": []})["checkpoints"]
        return str([(row["state"], row["reason"]) for row in rows])

    write = [sys.executable, "-c", WRITER, way, str(path), str(len(data))]
    with subprocess.Popen(write, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write(data)
        writer.stdin.flush()
        assert writer.stdout.readline() == b"held\n"
        until(lambda: "held open for writing" in reason(), reason)
        assert daemon.states() == {("model.safetensors", 1): "writing"}
        writer.stdin.close()
        assert writer.wait() == 0
    daemon.until_safe("model.safetensors")
    assert daemon.stop() == 0
    back = root.parent / "back"
    assert command("restore", durable, str(back)).returncode == 0
    assert (back / "model.safetensors").read_bytes() == data
