"""Keys that end in the middle of an upload: loud while nothing helps, and on from there after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.process.conftest import Start
from tests.process.program import until
from tests.process.saving import MIB, by_rename
from tests.proxy import Proxy

SIZE, PIECE = 30 * MIB, 5 * MIB
REASON = b"<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>"
EXPIRED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(REASON), REASON)


def keys(access_key: str) -> str:
    """Return a shared credentials file."""
    secret = servers.SECRET_KEY
    return f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret}\n"


@pytest.mark.server
def test_an_upload_goes_on_with_the_keys_that_replace_expired_ones(
    root: Path, tmp_path: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """Status says refused and since when; once the file has new keys only the rest is sent."""
    file = tmp_path / "credentials"
    file.write_text(keys(servers.ACCESS_KEY))
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    daemon = program(
        root, prefix, "--s3-endpoint", proxy.endpoint, "--s3-path-style", "--piece-bytes", "5MiB",
        "--hands", "1", env={**nothing, "AWS_SHARED_CREDENTIALS_FILE": str(file)},
    ).start()  # fmt: skip
    held = proxy.rule("hold", "PUT", r"partNumber=4(&|$)")
    root.mkdir(exist_ok=True)
    by_rename(root / "big.pt", SIZE, 1)
    until(held.reached.is_set, lambda: f"three pieces are stored\n{daemon.log[-2000:]}")
    old = f"credential={servers.ACCESS_KEY}/"
    proxy.rule("answer", "*", ".", times=10**6, answer=EXPIRED, headers=old)
    held.release.set()

    def status() -> dict[str, Any]:
        return daemon.status() or {}

    until(lambda: status().get("failing_kind") == "refused", lambda: f"it is loud: {status()}")
    assert "ExpiredToken" in status()["store_failing"]
    assert status()["failing_since"] <= status()["taken_at"]
    until(lambda: "renew the credentials" in daemon.log, "the log says what to do")
    file.write_text(keys(servers.NEXT_ACCESS_KEY))
    daemon.until_safe("big.pt")
    until(lambda: status().get("failing_since") is None, "the trouble is over")
    # The piece that was held never arrived; nothing was sent twice.
    assert proxy.data_bytes(r"big\.pt\?.*partNumber") == (root / "big.pt").stat().st_size
