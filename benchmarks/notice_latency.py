"""How long from the metadata service's first answer with a notice to the first order of the drain.

``python benchmarks/notice_latency.py [ROUNDS]``. The real program, in this process, on an empty
directory; the pretended metadata service announces an end at a random moment of the poll interval.
The first order of a drain tells the trainer; who carries it out takes the time.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

from ckptsyncd.app import Program
from ckptsyncd.core.orders import RecallTrainer, TellTrainer
from ckptsyncd.settings import load
from ckptsyncd.sources.pretend.scene import Scene
from ckptsyncd.sources.pretend.server import PretendedMetadata

PATIENCE_SECONDS = 30.0
#: So long after an answer the next request hangs for certain.
HANGING_SECONDS = 3.0
NUMBER = "event"

Way = tuple[
    str, str, float, Callable[[PretendedMetadata], object], Callable[[PretendedMetadata], object]
]

#: Provider, source, interval (0: it hangs), how a notice begins there and how it is withdrawn.
WAYS: tuple[Way, ...] = (
    (
        "aws",
        "aws-spot",
        2.0,
        lambda cloud: cloud.aws.interrupt(seconds=120.0),
        lambda cloud: cloud.aws.put("spot/instance-action", None),
    ),
    (
        "azure",
        "azure",
        1.0,
        lambda cloud: cloud.azure.schedule("Preempt", 30.0, NUMBER),
        lambda cloud: cloud.azure.remove(NUMBER),
    ),
    (
        "gcp",
        "gcp-preempted",
        0.0,
        lambda cloud: cloud.gcp.preempt(),
        lambda cloud: cloud.gcp.put("instance/preempted", "FALSE"),
    ),
)


class Watched:
    """The program with one source, and a queue of the moments at which the trainer was told."""

    def __init__(self, base: Path, provider: str, url: str) -> None:
        """Start everything."""
        (base / "root").mkdir()
        flags: dict[str, str | bool | tuple[str, ...] | None] = {
            "dir": str(base / "root"),
            "url": f"file://{base}/durable",
            "state_dir": str(base / "state"),
            "socket": str(base / "s"),
            "sources": (provider,),
            "metadata_url": url,
            "tell_file": str(base / "told"),
            "log_level": "error",
        }
        (base / "state").mkdir()
        self.told: SimpleQueue[float] = SimpleQueue()
        self.recalled: SimpleQueue[bool] = SimpleQueue()
        self.program = Program(load(flags, {}).settings)
        self.program.loop.doers = {
            TellTrainer: lambda _: self.told.put(time.perf_counter()),
            RecallTrainer: lambda _: self.recalled.put(True),
        }
        self.thread = threading.Thread(target=self.program.turn, daemon=True)
        self.thread.start()
        self.program.watch()
        self.program.listen()

    def close(self) -> None:
        """End it."""
        self.program.stop(0.0)
        self.thread.join(PATIENCE_SECONDS)
        self.program.close()

    def is_heard(self, source: str) -> bool:
        """Return whether the source has answered well."""
        shown = self.program.snapshot().sources
        return any(one.source == source and not one.blind for one in shown)


def measured(way: Way, rounds: int) -> list[float]:
    """Return the latency of so many notices, in seconds."""
    provider, source, interval, begin, end = way
    pause = threading.Event()
    found = []
    with (
        tempfile.TemporaryDirectory() as base,
        closing(PretendedMetadata(Scene(time.time))) as cloud,
        closing(Watched(Path(base), provider, cloud.url)) as watched,
    ):
        while not watched.is_heard(source):
            pause.wait(0.05)
        for _ in range(rounds):
            # A request hangs again when its last answer is over; a poll may be anywhere.
            pause.wait(random.uniform(0.2, 0.2 + interval) if interval else HANGING_SECONDS)
            begun = time.perf_counter()
            begin(cloud)
            found.append(watched.told.get(timeout=PATIENCE_SECONDS) - begun)
            end(cloud)
            watched.recalled.get(timeout=PATIENCE_SECONDS)
    return found


def main() -> None:
    """Print one row for each source."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    os.environ["AWS_EC2_METADATA_DISABLED"] = "false"
    row = "{:<15} {:>9} {:>8} {:>9} {:>9} {:>9}\n"
    sys.stdout.write(row.format("source", "interval", "notices", "median", "p95", "most"))
    for way in WAYS:
        found = sorted(measured(way, rounds))
        p95 = found[min(int(0.95 * len(found)), len(found) - 1)]
        interval = f"{way[2]:.0f} s" if way[2] else "hangs"
        seconds = (f"{1000 * x:.0f} ms" for x in (statistics.median(found), p95, found[-1]))
        sys.stdout.write(row.format(way[1], interval, len(found), *seconds))


if __name__ == "__main__":
    main()
