"""The short way of bodies on S3: a request like the SDK's, signed and sent without most of it.

The first requests go the SDK's way and show where the bucket is and how they are signed. No proxy,
no other signature, no parameter that is not listed here; what is sent elsewhere (a redirect,
another region) the SDK sends again, and while a server is unwilling (it throttles, refuses or
fails) the next requests go its way too.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.utils import get_environ_proxies

from ckptsyncd.stores.lines import Answer, Lines, Place, head_of
from ckptsyncd.stores.s3.sending import SentBody
from ckptsyncd.stores.s3.signing import signed
from ckptsyncd.stores.short import ELSEWHERE, ShortWay

#: The SDK's parameters that become headers as they are.
HEADERS: Mapping[str, str] = {
    "ChecksumCRC64NVME": "x-amz-checksum-crc64nvme",
    "ChecksumCRC32C": "x-amz-checksum-crc32c",
    "ContentMD5": "content-md5",
    "IfMatch": "if-match",
    "IfNoneMatch": "if-none-match",
    "ServerSideEncryption": "x-amz-server-side-encryption",
    "SSEKMSKeyId": "x-amz-server-side-encryption-aws-kms-key-id",
    "StorageClass": "x-amz-storage-class",
}
#: Those that say where, and those that are taken apart.
OTHERS = frozenset({"Key", "Metadata", "UploadId", "PartNumber"})
VERBS = {"put_object": "PutObject", "upload_part": "UploadPart"}

#: Codes that the SDK understands better: it signs anew, for another region.
CODES_ELSEWHERE = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "IncorrectEndpoint"}
)
_SCOPE = re.compile(r"^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+)/s3/aws4_request,")
_CODE = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]*)</Message>")


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests for one bucket go, and the region that they are signed for."""

    place: Place
    base: str
    region: str


class Express:
    """Sends bodies on kept-alive connections of its own, once it was shown the way."""

    def __init__(self, credentials: Callable[[], Any], lines: Callable[[Place], Lines]) -> None:
        """Know no route yet; ``lines`` makes the connections to a place."""
        self._credentials = credentials
        self._make_lines = lines
        self._lock = threading.Lock()
        self._way = ShortWay()
        self._route: Route | None = None
        self._lines: Lines | None = None

    @property
    def is_open(self) -> bool:
        """Whether bodies go the short way at the moment."""
        return self._route is not None and not self._way.is_resting

    def learn(self, url: str, authorization: str, full_key: str) -> None:
        """Take the route from a request as the SDK is about to send it."""
        route = route_of(url, authorization, full_key)
        with self._lock:
            if route is None or self._route is None or route.place != self._route.place:
                self._close()
                self._lines = None if route is None else self._make_lines(route.place)
            self._route = route

    def send(self, verb: str, parameters: Mapping[str, Any], sent: SentBody) -> Answer | None:
        """Send a body and return the good answer; ``None`` leaves the request to the SDK.

        Raises what the SDK would raise, and what the body raised.
        """
        with self._lock:
            route, lines = self._route, self._lines
        if route is None or lines is None or not parameters.keys() <= HEADERS.keys() | OTHERS:
            return None
        try:
            answer = self._way.exchange(lines, lambda: self._head(route, parameters, sent), sent)
        except OSError as error:
            if sent.fault is None:
                raise as_sdk(error, route) from error
            raise
        if answer is None or answer.status == 200:  # noqa: PLR2004
            return answer
        if not is_for_the_sdk(answer):
            raise as_told(answer, VERBS[verb])
        return None

    def close(self) -> None:
        """Close every connection; the route stays known."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def _head(self, route: Route, parameters: Mapping[str, Any], sent: SentBody) -> bytes:
        path = f"{route.base}/{quote(parameters['Key'], safe='/~')}"
        if "UploadId" in parameters:
            upload = quote(parameters["UploadId"], safe="-_.~")
            path += f"?partNumber={parameters['PartNumber']}&uploadId={upload}"
        wanted = {"host": route.place.netloc, **_headers(parameters)}
        headers = signed(path, wanted, self._credentials(), route.region, time.time())
        return head_of("PUT", path, headers | {"User-Agent": "ckptsyncd"}, len(sent))


def route_of(url: str, authorization: str, full_key: str) -> Route | None:
    """Return the route of a signed request; ``None`` where only the SDK knows its way."""
    scope = _SCOPE.match(authorization)
    parts = urlsplit(url)
    tail = "/" + quote(full_key, safe="/~")
    if scope is None or not parts.path.endswith(tail) or parts.hostname is None:
        return None
    if parts.scheme in get_environ_proxies(url):
        return None
    place = Place(parts.scheme == "https", parts.hostname, parts.port, parts.netloc)
    return Route(place, parts.path[: -len(tail)], scope[1])


def _headers(parameters: Mapping[str, Any]) -> dict[str, str]:
    made = {HEADERS[name]: str(value) for name, value in parameters.items() if name in HEADERS}
    metadata = parameters.get("Metadata", {})
    return made | {f"x-amz-meta-{name}": value for name, value in metadata.items()}


def is_for_the_sdk(answer: Answer) -> bool:
    """Return whether the SDK understands an answer better: it follows it, or signs anew."""
    return answer.status in ELSEWHERE or _found(_CODE, answer.body) in CODES_ELSEWHERE


def as_told(answer: Answer, verb: str) -> ClientError:
    """Return the error that the SDK would have made of an answer."""
    told = {
        "Error": {
            "Code": _found(_CODE, answer.body) or str(answer.status),
            "Message": _found(_MESSAGE, answer.body),
        },
        "ResponseMetadata": {"HTTPStatusCode": answer.status, "HTTPHeaders": answer.headers},
    }
    return ClientError(told, verb)


def _found(pattern: re.Pattern[bytes], body: bytes) -> str:
    match = pattern.search(body)
    return match[1].decode(errors="replace") if match else ""


def as_sdk(error: OSError, route: Route) -> BotoCoreError:
    """Return what the SDK would have raised for a connection that broke or stood still."""
    url = f"{'https' if route.place.is_tls else 'http'}://{route.place.netloc}"
    broken: BotoCoreError = ConnectionClosedError(endpoint_url=url, error=error, request=None)
    if isinstance(error, TimeoutError):
        broken = ReadTimeoutError(endpoint_url=url, error=error)
    return broken
