"""Signatures of the short way: exactly the SDK's."""

from __future__ import annotations

import calendar
import time

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from ckptsyncd.stores.s3.signing import EMPTY, signed

PLACES = ("bucket.s3.eu-west-3.amazonaws.com", "127.0.0.1:9000", "[::1]:9000")
TARGETS = (
    "/bucket/run/.ckptsyncd/data/a%20key/with%20%C3%BC%2B%25.bin~",
    "/weights.bin?partNumber=12&uploadId=a-b_c.d~e%2Ff%3D%3D",
)
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"x-amz-checksum-crc64nvme": "AAAA=", "x-amz-meta-nonce": "a  b ", "if-match": '"e"'},
)
KEYS = (Credentials("ID", "secret/+key"), Credentials("OTHER", "key", "token=="))


@pytest.mark.parametrize("credentials", KEYS, ids=("key", "token"))
@pytest.mark.parametrize("headers", HEADERS, ids=("bare", "headers"))
@pytest.mark.parametrize("target", TARGETS, ids=("whole", "piece"))
@pytest.mark.parametrize("place", PLACES)
def test_the_sdk_would_sign_the_same(
    place: str, target: str, headers: dict[str, str], credentials: Credentials
) -> None:
    """Every header that we sign with has the value that the SDK's own signer gives it."""
    asked = AWSRequest("PUT", f"https://{place}{target}", dict(headers))
    asked.context["client_config"] = Config(s3={"payload_signing_enabled": False})
    S3SigV4Auth(credentials, "s3", "eu-west-3").add_auth(asked)
    theirs = {name.lower(): value for name, value in asked.headers.items()}
    at = calendar.timegm(time.strptime(theirs["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    ours = signed(target, {"host": place, **headers}, credentials, "eu-west-3", at)
    assert ours == {**theirs, "host": place}


@pytest.mark.parametrize("credentials", KEYS, ids=("key", "token"))
@pytest.mark.parametrize("headers", [{}, {"range": "bytes=5-9"}], ids=("whole", "range"))
def test_the_sdk_would_ask_the_same(headers: dict[str, str], credentials: Credentials) -> None:
    """A request without a body carries the hash of nothing, and the SDK's signature."""
    place, target = PLACES[1], TARGETS[0]
    asked = AWSRequest("GET", f"http://{place}{target}", dict(headers))
    asked.context["client_config"] = Config(s3={"payload_signing_enabled": True})
    S3SigV4Auth(credentials, "s3", "eu-west-3").add_auth(asked)
    theirs = {name.lower(): value for name, value in asked.headers.items()}
    at = calendar.timegm(time.strptime(theirs["x-amz-date"], "%Y%m%dT%H%M%SZ"))
    wanted = {"host": place, **headers}
    ours = signed(target, wanted, credentials, "eu-west-3", at, method="GET", payload=EMPTY)
    assert ours == {**theirs, "host": place}
