"""What an error of Google Cloud Storage means, as three tables: by reason, by status, by class.

Reasons are those of the JSON API's error list, codes those of the XML API's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

from google.auth import exceptions as auth
from requests import exceptions as http
from requests.models import Response

from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.verdicts import DAMAGED, SLOW, Asked, Verdict, seconds_of

_BUCKET = "make the bucket, or correct the URL; buckets are never made by ckptsyncd"
_CREDENTIALS = (
    "give application default credentials: a service account, GOOGLE_APPLICATION_CREDENTIALS, "
    "or 'gcloud auth application-default login'"
)
_RENEW = "renew the credentials; they are read again by themselves"
_ROLE = "give the account the role Storage Object User on the bucket"
_TOKENS = "the server that hands out tokens does not answer"
_ACTED = Verdict(Again, acted=True)
_KEPT = Verdict(Refused, "a retention policy or a hold protects the object; see the bucket's rules")

BY_REASON: Mapping[str, Verdict] = {
    "conditionNotMet": Verdict(Lost),
    "PreconditionFailed": Verdict(Lost),
    "rateLimitExceeded": SLOW,
    "userRateLimitExceeded": SLOW,
    "SlowDown": SLOW,
    "TooManyRequests": SLOW,
    "quotaExceeded": Verdict(Again, "raise the project's quota"),
    "backendError": _ACTED,
    "internalError": _ACTED,
    "InternalError": _ACTED,
    "RequestTimeout": _ACTED,
    "retentionPolicyNotMet": _KEPT,
    "objectUnderActiveHold": _KEPT,
    "userProjectMissing": Verdict(Refused, "name the project that pays for the requests"),
    "accountDisabled": Verdict(Refused, "the project's billing is off"),
    "NoSuchBucket": Verdict(Never, _BUCKET),
    "NoSuchKey": Verdict(Missing),
    "NoSuchUpload": Verdict(Gone),
    "InvalidPart": Verdict(Gone),
    "InvalidPartOrder": Verdict(Never),
    "EntityTooSmall": Verdict(Never),
    "EntityTooLarge": Verdict(Never),
    "BadDigest": DAMAGED,
    "InvalidDigest": DAMAGED,
}

BY_STATUS: Mapping[int, Verdict] = {
    401: Verdict(Refused, _RENEW),
    403: Verdict(Refused, _ROLE),
    404: Verdict(Missing),
    408: _ACTED,
    409: Verdict(Again),
    410: Verdict(Gone),
    412: Verdict(Lost),
    416: Verdict(Never, "the object is smaller than its manifest says"),
    429: SLOW,
    499: Verdict(Gone),
    501: Verdict(Never, "this server cannot do what was asked"),
    503: replace(SLOW, acted=True),
}

_REACH = Verdict(Again, "check the endpoint's name, the network and any proxy")
_TLS = Verdict(Again, "check the server's certificate and REQUESTS_CA_BUNDLE")

#: What came instead of an answer; the first row that fits counts. A connection that was never made
#: cannot have acted, everything later may have.
BY_CLASS: tuple[tuple[type[Exception], Verdict], ...] = (
    (auth.DefaultCredentialsError, Verdict(Refused, _CREDENTIALS)),
    (auth.RefreshError, Verdict(Refused, _RENEW)),
    (auth.TransportError, Verdict(Again, _TOKENS)),
    (auth.GoogleAuthError, Verdict(Refused, _CREDENTIALS)),
    (http.ConnectTimeout, _REACH),
    (http.ProxyError, _REACH),
    (http.SSLError, _TLS),
    (Exception, _ACTED),
)

#: How the JSON API says that the bytes are not what their checksum says.
_MISMATCH = re.compile(r"match(es)? (the )?(calculated|computed)", re.IGNORECASE)
_NO_BUCKET = re.compile(r"bucket does not exist", re.IGNORECASE)
_NEVER_MADE = re.compile(r"NewConnectionError|NameResolutionError|Failed to (establish|resolve)")


def from_answer(asked: Asked, answer: Response) -> StoreError:
    """Return the store error that a bad answer stands for."""
    reason, said = _told(answer)
    verdict = _verdict(answer.status_code, reason, said)
    if verdict.kind is Missing:
        verdict = Verdict(asked.absent, _BUCKET if asked.absent is Never else None)
    text = f"{reason or 'HTTP'} ({answer.status_code}): {said}"
    wait_seconds = seconds_of(answer.headers.get("Retry-After"), answer.headers.get("Date"))
    return asked.error(verdict, text, wait_seconds)


def from_exception(asked: Asked, error: Exception) -> StoreError:
    """Return the store error that a request without an answer stands for."""
    verdict = next(verdict for kind, verdict in BY_CLASS if isinstance(error, kind))
    if verdict is _ACTED and _NEVER_MADE.search(repr(error)):
        verdict = _REACH
    elif isinstance(error, auth.RefreshError) and error.retryable:
        verdict = Verdict(Again, _TOKENS)
    return asked.error(verdict, f"{type(error).__name__}: {error}")


def _verdict(status: int, reason: str, said: str) -> Verdict:
    if _NO_BUCKET.search(said):
        return BY_REASON["NoSuchBucket"]
    if _MISMATCH.search(said):
        return DAMAGED
    found = BY_REASON.get(reason) or BY_STATUS.get(status)
    if found is None:
        found = _ACTED if status >= 500 else Verdict(Never)  # noqa: PLR2004
    return found


def _told(answer: Response) -> tuple[str, str]:
    """Return the reason and the message of an error, in JSON or in XML, empty where not told."""
    text = answer.text.strip()
    if text.startswith("<"):
        return _told_in_xml(text)
    try:
        error: Any = answer.json()["error"]
        rows = error.get("errors") or [{}]
        return str(rows[0].get("reason", "")), str(error.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", text


def _told_in_xml(text: str) -> tuple[str, str]:
    try:
        root = ET.fromstring(text)  # noqa: S314 - from the store that we write to; expat bounds it
    except ET.ParseError:
        return "", text
    return root.findtext("Code", ""), root.findtext("Message", "")
