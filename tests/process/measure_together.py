"""What a commit of real daemons costs: ``python -m tests.process.measure_together FOLDER 2 8``.

The second of two saves, against SeaweedFS through a proxy that counts: requests of the whole commit
by method, for each node, and the seconds from the last node's last byte to the manifest.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from tests.process.program import Program, until
from tests.proxy import Proxy, proxied
from tests.servers import ENVIRONMENT, S3Server, command, seaweedfs

QUICK = ("--quiet-seconds", "1", "--ranks-quiet-seconds", "1", "--no-companions")


def measured(count: int, folder: Path, server: S3Server, proxy: Proxy) -> str:
    """Return what the second save of so many daemons cost, in a line."""
    url = f"s3://{server.bucket}/measure-{count}-{os.getpid()}"
    daemons = []
    for node in range(count):
        root = folder / f"root-{count}-{node}"
        root.mkdir()
        reach = ("--s3-endpoint", proxy.endpoint, "--s3-path-style")
        options = (*reach, *QUICK, "--node", str(node), "--nodes", str(count))
        daemons.append(Program(root, url, folder / f"daemon-{count}-{node}", options).start())
    _save(daemons, 10)
    for daemon in daemons:
        daemon.until_safe("checkpoint-10")
    pause = time.monotonic() + 25.0  # until everybody has looked after latest
    until(lambda: time.monotonic() > pause, "it is quiet", 60.0)
    with proxy.lock:
        proxy.requests.clear()
    _save(daemons, 20)
    begun = time.monotonic()
    until(lambda: proxy.sent("PUT", r"/manifests/.*checkpoint-20"), "the manifest is written")
    committed = time.monotonic() - begun
    for daemon in daemons:
        daemon.until_safe("checkpoint-20")
    known = time.monotonic() - begun
    calls = Counter("list" if "list-type" in r.target else r.method for r in proxy.requests)
    for daemon in daemons:
        daemon.stop()
    told = ", ".join(f"{number} {name}" for name, number in sorted(calls.items()))
    return (
        f"{count} daemons: {sum(calls.values()) / count:.1f} requests each ({told}); "
        f"manifest after {committed:.2f} s, known to all after {known:.1f} s"
    )


def _save(daemons: list[Program], step: int) -> None:
    for node, daemon in enumerate(daemons):
        folder = daemon.root / f"checkpoint-{step}"
        folder.mkdir()
        (folder / f"shard-{node}.bin").write_bytes(f"{step} {node} ".encode() * 50_000)
        (folder / "config.json").write_text(f'{{"step": {step}}}')


def main(arguments: list[str]) -> int:
    """Measure for each number of daemons."""
    weed = command("weed")
    if weed is None:
        sys.stderr.write("SeaweedFS is not installed\n")
        return 1
    os.environ.update(ENVIRONMENT)
    folder = Path(arguments[0])
    folder.mkdir(parents=True)
    with seaweedfs(weed, folder) as server:
        parts = urlsplit(server.endpoint)
        with proxied(str(parts.hostname), int(parts.port or 0)) as proxy:
            for text in arguments[1:]:
                sys.stdout.write(measured(int(text), folder, server, proxy) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
