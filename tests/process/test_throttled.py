"""A store that throttles is left in peace, and everything is safe once that is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import until
from tests.proxy import Proxy

HANDS = 4
FILES = 30
REASON = b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"
SLOW_DOWN = b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n%s" % (len(REASON), REASON)

#: Four hands, two, one; after that each request waits: at least half of 0.5 s, doubled each time.
AT_ONCE = 4 + 2 + 1
PAUSES = (0.25, 0.5)


@pytest.mark.server
def test_requests_under_a_throttling_server_stay_below_the_bound(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """Many small files wait: the hands are halved twice, then one request in a growing pause."""
    options = ("--s3-endpoint", proxy.endpoint, "--s3-path-style", "--quiet-seconds", "0.3")
    daemon = program(root, prefix, *options, "--hands", str(HANDS)).start()
    until(lambda: (daemon.status() or {}).get("daemon", {}).get("state") == "running", "it runs")
    throttled = proxy.rule("answer", "PUT", r"/epoch-1/\d", times=10**9, answer=SLOW_DOWN)
    folder = root / "epoch-1"
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"{number:03}.bin").write_bytes(b"x" * 1024)
    count = AT_ONCE + len(PAUSES)
    until(
        lambda: len(throttled.taken_at) >= count,
        lambda: f"{len(throttled.taken_at)} of {count} requests\n{daemon.log[-3000:]}",
        20,
    )
    assert throttled.taken_at[count - 1] - throttled.taken_at[0] >= sum(PAUSES)
    status = daemon.status() or {}
    assert status["slowed_to"] == 1
    assert status["throttled"] >= count - HANDS
    throttled.times = 0
    daemon.until_safe("epoch-1")
