"""Every store says when it wants fewer requests, in whichever words, and never otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from ckptsyncd.errors import StoreError
from ckptsyncd.stores.azure import faults as azure
from ckptsyncd.stores.gcs import faults as gcs
from ckptsyncd.stores.s3 import faults as s3
from ckptsyncd.stores.verdicts import Asked, seconds_of

ASKED = Asked("put piece", "key", is_write=True)


def of_s3(status: int, code: str) -> StoreError:
    """Return what an answer of S3 stands for."""
    told: Any = {
        "Error": {"Code": code or str(status), "Message": "as told"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "7"}},
    }
    return s3.classify(ClientError(told, "UploadPart"), "upload_part", "key")


def answered(status: int, body: str) -> requests.Response:
    """Return an answer."""
    made = requests.Response()
    made.status_code = status
    made._content = body.encode()
    made.headers["Retry-After"] = "7"
    return made


def of_google(status: int, reason: str) -> StoreError:
    """Return what an answer of Google's JSON API stands for."""
    told = {"message": "as told", "errors": [{"reason": reason}]}
    return gcs.from_answer(ASKED, answered(status, json.dumps({"error": told})))


def of_azure(status: int, code: str) -> StoreError:
    """Return what an answer of the Blob service stands for."""
    error: Any = HttpResponseError(message="as told")
    error.response, error.error_code = answered(status, ""), code
    return azure.classify(ASKED, error)


SLOW: tuple[tuple[StoreError, bool], ...] = (
    (of_s3(503, "SlowDown"), True),
    (of_s3(503, ""), True),
    (of_s3(429, "TooManyRequests"), True),
    (of_s3(400, "RequestLimitExceeded"), True),
    (of_s3(500, "InternalError"), False),
    (of_s3(409, "OperationAborted"), False),
    (of_s3(403, "AccessDenied"), False),
    (of_google(429, "rateLimitExceeded"), True),
    (of_google(403, "userRateLimitExceeded"), True),
    (of_google(503, "backendUnavailable"), True),
    (of_google(500, "backendError"), False),
    (of_azure(503, "ServerBusy"), True),
    (of_azure(429, ""), True),
    (of_azure(500, "InternalError"), False),
    (of_azure(409, "LeaseIdMissing"), False),
)


@pytest.mark.parametrize(
    ("asked", "date", "seconds"),
    [
        ("120", None, 120.0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", None, None),
        ("soon", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-1", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (None, None, None),
    ],
)
def test_a_moment_is_told_by_the_servers_own_clock(
    asked: str | None, date: str | None, seconds: float | None
) -> None:
    """Retry-After counts seconds, or names a moment beside the answer's Date."""
    assert seconds_of(asked, date) == seconds


@pytest.mark.parametrize(("error", "throttled"), SLOW, ids=[str(error)[:60] for error, _ in SLOW])
def test_a_wish_for_fewer_requests_is_passed_on(
    error: StoreError,
    throttled: bool,  # noqa: FBT001
) -> None:
    """It is Again, with the time that the store asked for; nothing else slows everything down."""
    assert error.throttled is throttled
    assert error.wait_seconds == 7.0
    if throttled:
        assert error.kind == "again"
        assert "fewer requests" in error.hint
