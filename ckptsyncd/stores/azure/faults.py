"""What an error of Azure Blob Storage means, as three tables: by code, by status, by class.

Codes are those of the Blob service's error list; what only an emulator says is named beside its
row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from azure.core import exceptions as sdk

from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.lines import Answer
from ckptsyncd.stores.verdicts import DAMAGED, SLOW, Asked, Verdict, seconds_of

_CONTAINER = "make the container, or correct the URL; containers are never made by ckptsyncd"
_CREDENTIALS = (
    "set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or give "
    "this machine an identity"
)
_ROLE = "give the identity the role Storage Blob Data Contributor, or the SAS token racwdl"
_RENEW = "renew the key or the SAS token, and check this machine's clock"
_SLOW = replace(SLOW, acted=True)
_ACTED = Verdict(Again, acted=True)
_ARCHIVED = Verdict(Never, "the blob is archived; rehydrate it first")
_KEPT = Verdict(Refused, "an immutability policy or a legal hold protects the blob")
_CANNOT = Verdict(Never, "this server cannot do what was asked")

BY_CODE: Mapping[str, Verdict] = {
    "BlobNotFound": Verdict(Missing),
    "ContainerNotFound": Verdict(Never, _CONTAINER),
    "ContainerBeingDeleted": Verdict(Again, _CONTAINER),
    "ContainerDisabled": Verdict(Refused),
    "BlobAlreadyExists": Verdict(Lost),
    "ConditionNotMet": Verdict(Lost),
    "TargetConditionNotMet": Verdict(Lost),
    "InvalidBlockList": Verdict(Gone),
    "InvalidBlobOrBlock": Verdict(
        Never, "somebody else's unfinished upload holds this name; it ends by itself in a week"
    ),
    "BlockCountExceedsLimit": Verdict(Never),
    "BlockListTooLong": Verdict(Never),
    "RequestBodyTooLarge": Verdict(Never),
    "Md5Mismatch": DAMAGED,
    "Crc64Mismatch": DAMAGED,
    "InvalidMd5": DAMAGED,
    "InvalidCrc64": DAMAGED,
    "InvalidRange": Verdict(Never, "the blob is smaller than its manifest says"),
    "ServerBusy": _SLOW,
    "OperationTimedOut": _ACTED,
    "InternalError": _ACTED,
    "FeatureNotSupported": _CANNOT,  # Azurite, with status 500
    "APINotImplemented": _CANNOT,  # Azurite
    "AuthenticationFailed": Verdict(Refused, _RENEW),
    "InvalidAuthenticationInfo": Verdict(Refused, _RENEW),
    "AuthorizationPermissionMismatch": Verdict(Refused, _ROLE),
    "AuthorizationFailure": Verdict(
        Refused, "the account's firewall or network rules say no, or the key or token is wrong"
    ),
    "PublicAccessNotPermitted": Verdict(Refused, _CREDENTIALS),
    "NoAuthenticationInformation": Verdict(Refused, _CREDENTIALS),
    "KeyBasedAuthenticationNotPermitted": Verdict(
        Refused, "the account takes no keys; give this machine an identity"
    ),
    "AccountIsDisabled": Verdict(Refused, "the account is disabled"),
    "BlobImmutableDueToPolicy": _KEPT,
    "BlobArchived": _ARCHIVED,
    "BlobBeingRehydrated": Verdict(Again),
    "LeaseIdMissing": Verdict(Again, "somebody holds a lease on the blob or the container"),
    "SnapshotsPresent": Verdict(Never),
}

BY_STATUS: Mapping[int, Verdict] = {
    401: Verdict(Refused, _CREDENTIALS),
    403: Verdict(Refused, _ROLE),
    404: Verdict(Missing),
    408: _ACTED,
    409: Verdict(Again),
    412: Verdict(Lost),
    416: BY_CODE["InvalidRange"],
    429: _SLOW,
    501: _CANNOT,
    503: _SLOW,
}

_REACH = Verdict(Again, "check the endpoint's name, the network, the certificate and any proxy")

#: What came instead of an answer; the first row that fits counts. A connection that was never made
#: cannot have acted, everything later may have.
BY_CLASS: tuple[tuple[type[Exception], Verdict], ...] = (
    (sdk.ClientAuthenticationError, Verdict(Refused, _CREDENTIALS)),
    (sdk.ServiceRequestError, _REACH),
    (Exception, _ACTED),
)

#: How Azurite says Md5Mismatch: as an InvalidOperation with this text.
_MISMATCH = re.compile(r"contentMD5 doesn't match")
_CODE = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]*)</Message>")


def classify(asked: Asked, error: Exception) -> StoreError:
    """Return the store error that an error of the SDK stands for."""
    answer = getattr(error, "response", None)
    if answer is None:
        verdict = next(verdict for kind, verdict in BY_CLASS if isinstance(error, kind))
        return asked.error(verdict, f"{type(error).__name__}: {_first_line(error)}")
    wait_seconds = seconds_of(answer.headers.get("Retry-After"), answer.headers.get("Date"))
    return _told(asked, int(answer.status_code), code_of(error), str(error), wait_seconds)


def from_answer(asked: Asked, answer: Answer) -> StoreError:
    """Return the store error that a bad answer stands for which came past the SDK."""
    code = answer.headers.get("x-ms-error-code") or _found(_CODE, answer.body)
    wait_seconds = seconds_of(answer.headers.get("retry-after"), answer.headers.get("date"))
    return _told(asked, answer.status, code, _found(_MESSAGE, answer.body), wait_seconds)


def says_damaged(error: StoreError) -> bool:
    """Tell whether the store refused bytes because they were not what was declared."""
    return error.hint == DAMAGED.hint


def code_of(error: Exception) -> str:
    """Return Azure's code of an error, empty where there is none."""
    code = getattr(error, "error_code", None)
    if code is None:
        code = error.response.headers.get("x-ms-error-code", "")  # type: ignore[attr-defined]
    return str(getattr(code, "value", code))


def _told(
    asked: Asked, status: int, code: str, said: str, wait_seconds: float | None
) -> StoreError:
    verdict = BY_CODE.get(code) or BY_STATUS.get(status) or _by_range(status)
    if _MISMATCH.search(said):
        verdict = DAMAGED
    if verdict.kind is Missing:
        verdict = Verdict(asked.absent)
    return asked.error(verdict, f"{code or 'HTTP'} ({status}): {_first_line(said)}", wait_seconds)


def _found(pattern: re.Pattern[bytes], body: bytes) -> str:
    match = pattern.search(body)
    return match[1].decode(errors="replace") if match else ""


def _by_range(status: int) -> Verdict:
    return _ACTED if status >= 500 or status < 400 else Verdict(Never)  # noqa: PLR2004


def _first_line(said: object) -> str:
    return str(said).strip().partition("\n")[0]
