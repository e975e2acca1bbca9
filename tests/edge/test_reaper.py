"""Orphans are buried, and nobody's own children are."""

from __future__ import annotations

import subprocess
import sys

#: Becomes the one to whom orphans fall, as the first process of a container is.
SCRIPT = """
import ctypes, os, subprocess, threading
from ckptsyncd.edge.reaper import Reaper

PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
reaper = Reaper()
assert reaper.look() == 0

subprocess.run(["sh", "-c", "true & true & true &"], check=True)
pause, buried, looks = threading.Event(), 0, 0
while buried < 3 and looks < 500:
    pause.wait(0.02)
    buried, looks = buried + reaper.look(), looks + 1
assert buried == 3, buried

mine = subprocess.Popen(["sh", "-c", "exit 7"])
codes = []
waiting = threading.Thread(target=lambda: codes.append(mine.wait()))
waiting.start()
for _ in range(20):
    reaper.look()
    pause.wait(0.01)
waiting.join()
assert codes == [7], codes
print("done")
"""


def test_orphans_are_buried_and_children_are_not() -> None:
    """Three orphans go; a child that is waited for keeps its exit code for whoever waits."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
