"""Credentials that are replaced while the program runs are found, and the upload goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.errors import Refused
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy, proxied
from tests.stores.samples import NONCE, pieces_of, read, some_bytes

PIECE = 5 * 1024**2

#: What S3 answers once the token of a role's session has ended (see its list of errors).
REASON = (
    b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
)
EXPIRED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(REASON), REASON)

Fronted = Callable[[servers.S3Server], Proxy]


@pytest.fixture
def fronted() -> Iterator[Fronted]:
    """Put proxies in front of servers."""
    with ExitStack() as stack:

        def front(server: servers.S3Server) -> Proxy:
            parts = urlsplit(server.endpoint)
            return stack.enter_context(proxied(parts.hostname or "", parts.port or 0))

        yield front


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, s3_environment: None) -> pytest.MonkeyPatch:
    """Take the credentials out of the environment."""
    del s3_environment
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    return monkeypatch


def keys(access_key: str) -> str:
    """Return a shared credentials file."""
    secret = servers.SECRET_KEY
    return f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret}\n"


def test_short_lived_keys_are_read_again_from_the_shared_file(
    fronted: Fronted, bare: pytest.MonkeyPatch, s3_server: servers.S3Server, tmp_path: Path
) -> None:
    """Keys that end in mid-upload are Refused until the file has others; then it goes on."""
    file = tmp_path / "credentials"
    bare.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text(keys(servers.ACCESS_KEY))
    proxy = fronted(s3_server)
    options = S3Options(endpoint_url=proxy.endpoint)
    data = some_bytes(PIECE + 9)
    first, second = pieces_of(data, PIECE)
    with closing(S3Store(s3_server.bucket, "rotated", options)) as store:
        begun = store.begin("a", len(data), PIECE, NONCE)
        receipts = [store.put_piece(begun, first[0], BytesBody(first[1]))]
        old = f"credential={servers.ACCESS_KEY}/"
        proxy.rule("answer", "*", ".", times=99, answer=EXPIRED, headers=old)
        for _ in range(2):  # as long as nobody has replaced them
            with pytest.raises(Refused, match="ExpiredToken") as refused:
                store.put_piece(begun, second[0], BytesBody(second[1]))
            assert "renew" in refused.value.hint
        file.write_text(keys(servers.NEXT_ACCESS_KEY))
        receipts.append(store.put_piece(begun, second[0], BytesBody(second[1])))
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
        assert read(store, "a", len(data)) == data
        assert store._wire.key_id() == servers.NEXT_ACCESS_KEY
    assert proxy.data_bytes(r"/a\?.*partNumber=1") == PIECE


def test_a_web_identity_token_is_read_again_from_its_file(
    fronted: Fronted, bare: pytest.MonkeyPatch, moto_server: servers.S3Server, tmp_path: Path
) -> None:
    """A role's session that is refused is asked for anew, with the token that its file has now."""
    token = tmp_path / "token"
    token.write_text("first")
    sts, proxy = fronted(moto_server), fronted(moto_server)
    bare.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    bare.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/trainer")
    bare.setenv("AWS_ENDPOINT_URL_STS", sts.endpoint)
    options = S3Options(endpoint_url=proxy.endpoint)
    with closing(S3Store(moto_server.bucket, "identity", options)) as store:
        store.put_small("a", b"1", None)
        key = store._wire.key_id()
        token.write_text("second token")
        expired = f"credential={key.lower()}/"
        proxy.rule("answer", "*", ".", times=99, answer=EXPIRED, headers=expired)
        with pytest.raises(Refused):
            store.put_small("b", b"2", None)
        store.put_small("b", b"2", None)
        assert store.get_small("b", 9)[0] == b"2"
        assert store._wire.key_id() != key
    asked = sts.sent("POST", ".")
    assert [one.body_bytes - asked[0].body_bytes for one in asked] == [0, len("+second token") - 6]
