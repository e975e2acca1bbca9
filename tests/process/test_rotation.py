"""A trainer that keeps one checkpoint and saves twice as fast as the link can carry them."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import MIB, content, trainer_checkpoint

SAVES = 10
#: One upload takes two seconds at this rate; a save comes every second.
WEIGHTS = 2 * MIB
LINK = ("--bandwidth", "3MiB/s", "--hands", "4")
EVERY_SECONDS = 1.0


def extra_bytes(beside: Path) -> int:
    """Return the disk that pins need: what they hold that the trainer has removed."""
    total = 0
    for folder, _, names in os.walk(beside):
        for name in names:
            try:
                status = Path(folder, name).lstat()
            except FileNotFoundError:
                continue  # let go of meanwhile
            total += status.st_blocks * 512 if status.st_nlink == 1 else 0
    return total


def test_the_newest_always_reaches_safe(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Nothing is torn, a third of the saves arrives, and the last one always does.

    What was rotated away needs no more disk than one checkpoint for each hand, and one that waits.
    """
    daemon = program(root, durable, *LINK, "--pins-floor-bytes", "0").start()
    pause, begun = threading.Event(), time.monotonic()
    worst = size = 0
    for step in range(1, SAVES + 1):
        folder = trainer_checkpoint(root, step, WEIGHTS)
        if step > 1:
            shutil.rmtree(root / f"checkpoint-{step - 1}")
        size = size or sum(path.stat().st_size for path in folder.iterdir())
        while (left := begun + step * EVERY_SECONDS - time.monotonic()) > 0:
            worst = max(worst, extra_bytes(tmp_path / ".ckptsyncd"))
            pause.wait(min(left, 0.05))
    daemon.until_safe(f"checkpoint-{SAVES}")
    until(lambda: not extra_bytes(tmp_path / ".ckptsyncd"), "the pins are gone")
    assert daemon.stop() == 0
    safe = json.loads(command("list", durable, "--json").stdout)
    assert len(safe) >= SAVES // 3
    verified = command("verify", durable, "--level", "full")
    assert verified.returncode == 0, verified.stdout
    assert command("restore", durable, str(tmp_path / "back")).returncode == 0
    assert content(tmp_path / "back") == content(root)
    assert worst <= 5.1 * size
