"""Stores on servers of a dialect of S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests.stores.dialects import Dialect, DialectServer, serving

#: Checks everything, as S3 itself does.
FULL = Dialect(checks=frozenset({"crc64nvme", "crc32c", "sha256", "md5"}), whole_check=True)
NOTHING = Dialect()
SHA256 = Dialect(checks=frozenset({"sha256", "md5"}), matches="bare", create_only_finish=False)
MD5 = Dialect(
    checks=frozenset({"md5"}), create_only_put=False, create_only_finish=False, matches=""
)


def opened(server: DialectServer, *, trust_size: bool = False) -> S3Store:
    """Open a store on a server, with time-outs as short as a test likes."""
    options = S3Options(
        endpoint_url=server.endpoint,
        trust_size=trust_size,
        connect_timeout_seconds=2.0,
        read_timeout_seconds=2.0,
    )
    return S3Store("bucket", "pre/fix", options)


@contextmanager
def speaking(dialect: Dialect) -> Iterator[tuple[S3Store, DialectServer]]:
    """Run a server and a store on it that has tried it out already."""
    with serving(dialect) as server, closing(opened(server)) as store:
        assert store.limits
        yield store, server
