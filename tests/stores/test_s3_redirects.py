"""Where a server sends us to another region, nothing follows that the rules keep at home."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from ckptsyncd.core.facts import IfAbsent
from ckptsyncd.errors import Refused
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy, Rule, proxied


@pytest.fixture
def proxy(moto_server: servers.S3Server) -> Iterator[Proxy]:
    """Run a proxy that sends every write to another region."""
    parts = urlsplit(moto_server.endpoint)
    body = b"<Error><Code>PermanentRedirect</Code><Message>go there</Message></Error>"
    head = (
        "HTTP/1.1 301 Moved Permanently\r\nx-amz-bucket-region: eu-west-9\r\n"
        f"Location: {moto_server.endpoint}/other/\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with proxied(parts.hostname or "", parts.port or 0) as one:
        one.rules.append(Rule("PUT", re.compile("."), 99, "answer", head.encode() + body))
        yield one


def test_a_redirect_is_refused(moto_server: servers.S3Server, proxy: Proxy) -> None:
    """The request that would have followed is never signed, and the server behind got no byte."""
    endpoint = f"http://127.0.0.1:{proxy.server.server_address[1]}"
    options = S3Options(endpoint_url=endpoint, region="us-east-1", stay_in_region=True)
    with (
        closing(S3Store(moto_server.bucket, "redirected", options)) as store,
        pytest.raises(Refused, match="sends us to region eu-west-9"),
    ):
        store.put_small("key", b"data", IfAbsent())
    assert not [one for one in proxy.requests if one.method == "PUT"]
    s3 = servers.client(moto_server.endpoint)
    assert not s3.list_objects_v2(Bucket=moto_server.bucket, Prefix="redirected").get("Contents")
