"""Who is seen writing, on a machine where other disks have trouble of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.edge.world import child
from tests.stores.mounts import fuse_process

HOLD = """
import sys
file = open(sys.argv[1], "wb", 0)
file.write(b"what the kernel knew of it before is old now")
print("holds", flush=True)
sys.stdin.read()
"""

LOOK = """
import os, sys
from ckptsyncd.edge.writers import Writers
fd = os.open(sys.argv[1], os.O_RDONLY)
writers = Writers()
writers._hidden[os.fstat(fd).st_dev] = True  # as where no lease can tell
print("looks", flush=True)
sys.exit(writers.of(fd) != ("unknown", ""))
"""


def test_a_disk_that_hangs_holds_up_no_look_at_another(tmp_path: Path) -> None:
    """Somebody writes on a mount that does not answer any more: our own file is looked at."""
    ours = tmp_path / "model.pt"
    ours.write_bytes(b"x")
    with fuse_process(tmp_path) as (point, mount), child(HOLD, point / "theirs"):
        os.killpg(mount.pid, signal.SIGSTOP)
        try:
            with child(LOOK, ours) as looking:
                assert looking.wait(20) == 0
        finally:
            os.killpg(mount.pid, signal.SIGCONT)
