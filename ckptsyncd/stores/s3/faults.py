"""What an S3 error means, as two tables: by code, else by status.

Codes and statuses are those of the S3 API's error list; dialects that answer otherwise are named
beside the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import ParseError

from botocore import exceptions as sdk
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.s3.identity import Expired
from ckptsyncd.stores.verdicts import DAMAGED, SLOW, Asked, Verdict, seconds_of

#: Requests after whose lost answer the store may look different.
WRITES = frozenset(
    {
        "put_object",
        "create_multipart_upload",
        "upload_part",
        "complete_multipart_upload",
        "abort_multipart_upload",
        "delete_object",
    }
)

#: Requests about a begun upload: a bare 404 means the upload there, not an object.
ABOUT_UPLOADS = frozenset(
    {"upload_part", "complete_multipart_upload", "abort_multipart_upload", "list_parts"}
)

#: Requests about an object that may be missing; elsewhere a 404 is about the bucket or endpoint.
ABOUT_OBJECTS = frozenset({"head_object", "get_object", "delete_object"})


#: Statuses of servers that do not have what was asked for.
CANNOT = frozenset({405, 501})

_CLOCK = "set this machine's clock; a request must arrive within 15 minutes of its signature"
_RENEW = "renew the credentials; a role's are renewed by the SDK, fixed ones are not"
_REGION = "name the bucket's region with --region or AWS_REGION"
_BUCKET = "make the bucket, or correct the URL; buckets are never made by ckptsyncd"
_ADDRESS = "check the endpoint and the bucket: nothing that speaks S3 answers there"

BY_CODE: Mapping[str, Verdict] = {
    "NoSuchKey": Verdict(Missing),
    "NoSuchUpload": Verdict(Gone),
    "NoSuchBucket": Verdict(Never, _BUCKET),
    "InvalidBucketName": Verdict(Never, _BUCKET),
    "NoSuchVersion": Verdict(Missing),
    "PreconditionFailed": Verdict(Lost),
    "ConditionalRequestConflict": Verdict(Again),
    "OperationAborted": Verdict(Again),
    "InvalidPart": Verdict(Gone),
    "BadDigest": DAMAGED,
    "InvalidDigest": DAMAGED,
    "XAmzContentSHA256Mismatch": DAMAGED,
    "XAmzContentChecksumMismatch": DAMAGED,
    "IncompleteBody": Verdict(Again),
    "RequestTimeout": Verdict(Again, acted=True),
    "SlowDown": SLOW,
    "SlowDownRead": SLOW,
    "SlowDownWrite": SLOW,
    "ServiceUnavailable": SLOW,
    "TooManyRequests": SLOW,
    "RequestLimitExceeded": SLOW,
    "ThrottlingException": SLOW,
    "InternalError": Verdict(Again, acted=True),
    "RequestTimeTooSkewed": Verdict(Again, _CLOCK),
    "RequestExpired": Verdict(Again, _CLOCK),
    "ExpiredToken": Verdict(Refused, _RENEW),
    "ExpiredTokenException": Verdict(Refused, _RENEW),
    "TokenRefreshRequired": Verdict(Refused, _RENEW),
    "PermanentRedirect": Verdict(Refused, _REGION),
    "AuthorizationHeaderMalformed": Verdict(Refused, _REGION),
    "IllegalLocationConstraintException": Verdict(Refused, _REGION),
    "InvalidObjectState": Verdict(Never, "the object is archived; restore it from its class first"),
    "EntityTooLarge": Verdict(Never),
    "EntityTooSmall": Verdict(Never),
    "InvalidArgument": Verdict(Never),
    "InvalidPartOrder": Verdict(Never),
    "InvalidRange": Verdict(Never, "the object is smaller than its manifest says"),
    "InvalidRequest": Verdict(Never),
    "InvalidStorageClass": Verdict(Never, "choose a storage class that this store has"),
    "KeyTooLongError": Verdict(Never, "shorten the names of the checkpoints or the prefix"),
    "MalformedXML": Verdict(Never),
    "MissingContentLength": Verdict(Never),
    "NotImplemented": Verdict(Never, "this server cannot do what was asked"),
    "QuotaExceeded": Verdict(Again, "make room in the bucket"),
    "XMinioStorageFull": Verdict(Again, "make room in the store"),
}

BY_STATUS: Mapping[int, Verdict] = {
    301: Verdict(Refused, _REGION),
    307: Verdict(Again),
    400: Verdict(Refused),
    401: Verdict(Refused),
    403: Verdict(Refused),
    404: Verdict(Missing),
    405: Verdict(Never),
    408: Verdict(Again, acted=True),
    409: Verdict(Again),
    411: Verdict(Never),
    412: Verdict(Lost),
    413: Verdict(Never),
    416: BY_CODE["InvalidRange"],
    429: SLOW,
    501: BY_CODE["NotImplemented"],
    503: SLOW,
    507: BY_CODE["XMinioStorageFull"],
}

_CREDENTIALS = "give credentials as the AWS SDK finds them: environment, profile or role"
_REACH = Verdict(Again, "check the endpoint's name, the network and any proxy")
_TLS_HINT = "check the server's certificate and AWS_CA_BUNDLE, and that the endpoint speaks TLS"
_TLS = Verdict(Again, _TLS_HINT, acted=True)
#: A portal or another service behind the name: it may have taken what it was sent.
_STRANGE = Verdict(Again, _ADDRESS, acted=True)

#: What comes of the SDK and is no error of its own kind: answers that it cannot read, and ours.
OTHERS = (ResponseParserError, ParseError, Expired)

#: What the SDK raises without an answer; the first row that fits counts. A connection that was
#: never made cannot have acted, everything later may have.
BY_CLASS: tuple[tuple[type[Exception], Verdict], ...] = (
    (sdk.NoCredentialsError, Verdict(Refused, _CREDENTIALS)),
    (sdk.PartialCredentialsError, Verdict(Refused, _CREDENTIALS)),
    (Expired, Verdict(Refused, _RENEW)),
    (sdk.UnauthorizedSSOTokenError, Verdict(Refused, _RENEW)),
    (sdk.SSOTokenLoadError, Verdict(Refused, _RENEW)),
    (sdk.CredentialRetrievalError, Verdict(Again, _CREDENTIALS)),
    (sdk.MetadataRetrievalError, Verdict(Again, _CREDENTIALS)),
    (sdk.EndpointConnectionError, _REACH),
    (sdk.ConnectTimeoutError, _REACH),
    (sdk.ProxyConnectionError, _REACH),
    (sdk.SSLError, _TLS),
    (ResponseParserError, _STRANGE),
    (ParseError, _STRANGE),
    (sdk.ParamValidationError, Verdict(Never)),
    (sdk.NoRegionError, Verdict(Never, _REGION)),
    (Exception, Verdict(Again, acted=True)),
)


def classify(error: Exception, verb: str, key: str) -> StoreError:
    """Return the store error that an error of the SDK in the request ``verb`` stands for."""
    if isinstance(error, ClientError):
        return _classify_answer(error.response, verb, key)
    verdict = next(verdict for kind, verdict in BY_CLASS if isinstance(error, kind))
    return _raised(verdict, f"{type(error).__name__}: {error}", verb, key)


def status_of(error: StoreError) -> int | None:
    """Return the HTTP status that a classified error came from, None where there was no answer."""
    cause = error.__cause__
    return _status(cause.response) if isinstance(cause, ClientError) else None


def _classify_answer(response: Any, verb: str, key: str) -> StoreError:
    code = str(response.get("Error", {}).get("Code", ""))
    said = str(response.get("Error", {}).get("Message", ""))
    status = _status(response)
    verdict = BY_CODE.get(code) or BY_STATUS.get(status)
    if verdict is None:
        verdict = Verdict(Again, acted=True) if status >= 500 or not status else Verdict(Never)  # noqa: PLR2004
    verdict = _in_context(verdict, verb, code)
    text = f"{code or status} ({status}): {said}" if said else f"{code or status} ({status})"
    return _raised(verdict, text, verb, key, _wait_seconds(response))


def _in_context(verdict: Verdict, verb: str, code: str) -> Verdict:
    """Adjust what an answer means by what was asked."""
    if verdict.kind is Missing and verb in ABOUT_UPLOADS:
        return Verdict(Gone)
    if verdict.kind is Missing and verb == "put_object" and code == "NoSuchKey":
        return Verdict(Lost)  # If-Match on a key that is gone
    if verdict.kind is Missing and verb not in ABOUT_OBJECTS:
        return Verdict(Never, _ADDRESS)
    if verdict is DAMAGED and verb == "complete_multipart_upload":
        return Verdict(Gone)  # the same pieces would be refused again
    return verdict


def _raised(
    verdict: Verdict, text: str, verb: str, key: str, wait_seconds: float | None = None
) -> StoreError:
    return Asked(verb, key, is_write=verb in WRITES).error(verdict, text, wait_seconds)


def _status(response: Any) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _wait_seconds(response: Any) -> float | None:
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return seconds_of(headers.get("retry-after"), headers.get("date"))
