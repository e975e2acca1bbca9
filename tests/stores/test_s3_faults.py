"""Every answer of S3 means one thing: the table, on botocore's own errors."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as sdk
from botocore.exceptions import ClientError

from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.s3.faults import BY_CODE, BY_STATUS, classify, status_of


def answer(status: int, code: str = "", headers: dict[str, str] | None = None) -> ClientError:
    """Return what botocore raises for an answer; without a body the code is the status."""
    response: Any = {
        "Error": {"Code": code or str(status), "Message": "as told"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers or {}},
    }
    return ClientError(response, "Operation")


@pytest.mark.parametrize(
    ("verb", "status", "code", "kind", "ambiguous"),
    [
        ("put_object", 400, "ExpiredToken", Refused, False),
        ("put_object", 400, "InvalidToken", Refused, False),
        ("put_object", 400, "BadDigest", Again, False),
        ("upload_part", 400, "BadDigest", Again, False),
        ("complete_multipart_upload", 400, "BadDigest", Gone, False),
        ("complete_multipart_upload", 400, "InvalidPart", Gone, False),
        ("complete_multipart_upload", 400, "EntityTooSmall", Never, False),
        ("put_object", 400, "RequestTimeout", Again, True),
        ("head_object", 400, "", Refused, False),
        ("put_object", 401, "", Refused, False),
        ("put_object", 403, "AccessDenied", Refused, False),
        ("put_object", 403, "SignatureDoesNotMatch", Refused, False),
        ("put_object", 403, "RequestTimeTooSkewed", Again, False),
        ("head_object", 403, "", Refused, False),
        ("head_object", 404, "", Missing, False),
        ("get_object", 404, "NoSuchKey", Missing, False),
        ("get_object", 404, "NoSuchBucket", Never, False),
        ("put_object", 404, "NoSuchBucket", Never, False),
        ("put_object", 404, "NoSuchKey", Lost, False),
        ("put_object", 404, "", Never, False),
        ("create_multipart_upload", 404, "", Never, False),
        ("list_objects_v2", 404, "", Never, False),
        ("upload_part", 404, "NoSuchUpload", Gone, False),
        ("upload_part", 404, "", Gone, False),
        ("complete_multipart_upload", 404, "NoSuchKey", Gone, False),
        ("abort_multipart_upload", 404, "NoSuchUpload", Gone, False),
        ("get_object", 405, "MethodNotAllowed", Never, False),
        ("put_object", 408, "", Again, True),
        ("put_object", 409, "ConditionalRequestConflict", Again, False),
        ("put_object", 409, "OperationAborted", Again, False),
        ("put_object", 411, "MissingContentLength", Never, False),
        ("put_object", 412, "PreconditionFailed", Lost, False),
        ("get_object", 416, "InvalidRange", Never, False),
        ("put_object", 429, "", Again, False),
        ("put_object", 429, "TooManyRequests", Again, False),
        ("put_object", 500, "InternalError", Again, True),
        ("get_object", 500, "InternalError", Again, False),
        ("complete_multipart_upload", 200, "InternalError", Again, True),
        ("put_object", 501, "NotImplemented", Never, False),
        ("put_object", 502, "", Again, True),
        ("put_object", 503, "SlowDown", Again, False),
        ("put_object", 503, "", Again, False),
        ("put_object", 504, "", Again, True),
        ("put_object", 507, "XMinioStorageFull", Again, False),
        ("put_object", 301, "PermanentRedirect", Refused, False),
        ("put_object", 400, "AuthorizationHeaderMalformed", Refused, False),
        ("put_object", 418, "Teapot", Never, False),
    ],
)
def test_an_answer_means_one_thing(
    verb: str,
    status: int,
    code: str,
    kind: type[StoreError],
    ambiguous: bool,  # noqa: FBT001
) -> None:
    """Verb, status and code decide the kind, and whether a write may have happened."""
    error = answer(status, code)
    found = classify(error, verb, "a/key")
    assert type(found) is kind
    assert found.ambiguous is ambiguous
    assert f"{verb} a/key" in str(found)
    found.__cause__ = error
    assert status_of(found) == status


def test_what_the_store_asks_to_wait_is_kept() -> None:
    """Retry-After in seconds is passed on; as a date it is left to the brain's own patience."""
    for text, seconds in (("120", 120.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)):
        found = classify(answer(503, "SlowDown", {"retry-after": text}), "put_object", "key")
        assert found.wait_seconds == seconds


@pytest.mark.parametrize(
    ("error", "kind", "ambiguous"),
    [
        (sdk.NoCredentialsError(), Refused, False),
        (sdk.PartialCredentialsError(provider="env", cred_var="x"), Refused, False),
        (sdk.CredentialRetrievalError(provider="role", error_msg="busy"), Again, False),
        (sdk.EndpointConnectionError(endpoint_url="http://x"), Again, False),
        (sdk.ConnectTimeoutError(endpoint_url="http://x"), Again, False),
        (sdk.ProxyConnectionError(proxy_url="http://x"), Again, False),
        (sdk.ReadTimeoutError(endpoint_url="http://x"), Again, True),
        (sdk.ConnectionClosedError(endpoint_url="http://x"), Again, True),
        (sdk.SSLError(endpoint_url="https://x", error="certificate"), Again, True),
        (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), Again, True),
        (sdk.ParamValidationError(report="a key"), Never, False),
        (ConnectionResetError(104, "reset"), Again, True),
    ],
)
def test_no_answer_means_one_thing_too(
    error: Exception,
    kind: type[StoreError],
    ambiguous: bool,  # noqa: FBT001
) -> None:
    """A connection that was never made cannot have acted; a time-out or a reset may have."""
    found = classify(error, "put_object", "key")
    assert type(found) is kind
    assert found.ambiguous is ambiguous
    assert not classify(error, "get_object", "key").ambiguous
    assert status_of(found) is None


def test_every_row_has_a_hint_to_act_on() -> None:
    """Whatever the table yields, a user is told what to do next, and no hint is empty."""
    for verdict in (*BY_CODE.values(), *BY_STATUS.values()):
        assert verdict.hint or verdict.kind.hint


def test_a_long_message_is_cut() -> None:
    """A server cannot flood our log with its message."""
    error = answer(500, "InternalError")
    error.response["Error"]["Message"] = "x" * 100_000
    assert len(str(classify(error, "put_object", "key"))) < 600
