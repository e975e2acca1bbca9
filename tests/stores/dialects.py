"""A small S3 server that speaks whatever dialect a test asks for, its faults included.

It checks no signature. What it stores can be read behind everybody's back in ``objects``.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from ckptsyncd.checksum import crc32c, crc64nvme


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    With ``after`` the server acts first. ``status`` 0 closes the connection without an answer;
    ``cut`` sends the headers and half of the body.
    """

    status: int = 0
    code: str = ""
    after: bool = False
    cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server checks, obeys and damages. ``fault(method, path)`` is asked at every request.

    ``matches``: how If-Match must be quoted to be understood, empty where it is ignored.
    """

    checks: frozenset[str] = frozenset()
    whole_check: bool = False
    create_only_put: bool = True
    create_only_finish: bool = True
    matches: str = "as told"
    keeps_metadata: bool = True
    damage: Callable[[bytes], bytes] = bytes
    fault: Callable[[str, str], Fault | None] = lambda _method, _path: None


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; the names of its headers in lower case."""

    method: str
    path: str
    size: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stored:
    """One object."""

    data: bytes
    etag: str
    nonce: str = ""
    crc: str = ""


@dataclass(slots=True)
class Upload:
    """One begun upload."""

    key: str
    nonce: str
    parts: dict[int, tuple[bytes, str]] = field(default_factory=dict)


class DialectServer(ThreadingHTTPServer):
    """The server; ``dialect`` may be exchanged while it runs."""

    daemon_threads = True

    def __init__(self, dialect: Dialect) -> None:
        """Listen on a free port of the loopback."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.dialect = dialect
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self.requests: list[Request] = []
        self.lock = threading.RLock()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(dialect: Dialect) -> Iterator[DialectServer]:
    """Run a server for the time of a test."""
    with DialectServer(dialect) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class NoError(Exception):
    """An answer that is not 200."""

    def __init__(self, status: int, code: str) -> None:
        """Keep what is answered."""
        super().__init__(code)
        self.status = status
        self.code = code


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 20
    server: DialectServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def do_PUT(self) -> None:
        """Answer."""
        self._serve()

    do_GET = do_HEAD = do_POST = do_DELETE = do_PUT  # noqa: N815 - the base's names

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        self.key = unquote(parts.path).split("/", 2)[-1]
        self.query = parse_qs(parts.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.dialect.fault(self.command, self.path)
        with self.server.lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, len(body), headers)
            self.server.requests.append(request)
        if fault is None or fault.after or fault.cut:
            try:
                with self.server.lock:
                    answer = self._act(body)
            except NoError as error:
                fault = fault if fault and fault.after else Fault(error.status, error.code)
                answer = (b"", {})
        if fault is None:
            self._answer(200, *answer)
        elif fault.cut:
            self._answer(200, *answer, cut=True)
        elif fault.status:
            said = f"<Error><Code>{fault.code}</Code><Message>as told</Message></Error>".encode()
            self._answer(fault.status, said if fault.code else b"", fault.headers)
        else:
            self.close_connection = True

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str], *, cut: bool = False
    ) -> None:
        length = headers.get("Content-Length", str(len(body)))
        self.send_response(206 if "Content-Range" in headers else status)
        for name, value in {**headers, "Content-Length": length}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def _act(self, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        token = self.query.get("uploadId", [""])[0]
        if token and token not in self.server.uploads:
            raise NoError(404, "NoSuchUpload")
        if self.command == "PUT":
            return self._part(token, body) if token else self._put(body)
        if self.command == "POST":
            return self._complete(token, body) if token else self._begin()
        if self.command == "DELETE":
            self.server.uploads.pop(token, None)
            if not token:
                self.server.objects.pop(self.key, None)
            return b"", {}
        if token:
            return self._list_parts(token), {}
        if "uploads" in self.query:
            return self._list_uploads(), {}
        return self._list() if "list-type" in self.query else self._get()

    def _check(self, body: bytes) -> None:
        """Refuse a body that is not as declared, where this dialect looks."""
        found = {
            "crc64nvme": (self.headers.get("x-amz-checksum-crc64nvme"), crc64_text(body)),
            "crc32c": (
                self.headers.get("x-amz-checksum-crc32c"),
                base64.b64encode(crc32c(body).to_bytes(4, "big")).decode(),
            ),
            "md5": (
                self.headers.get("Content-MD5"),
                base64.b64encode(hashlib.md5(body).digest()).decode(),  # noqa: S324
            ),
            "sha256": (
                self.headers.get("x-amz-content-sha256", "").replace("UNSIGNED-PAYLOAD", ""),
                hashlib.sha256(body).hexdigest(),
            ),
        }
        for check in self.server.dialect.checks:
            declared, real = found[check]
            if declared and declared != real:
                raise NoError(400, "BadDigest")

    def _conditions(self, *, refuses: bool) -> None:
        there = self.server.objects.get(self.key)
        if refuses and there and self.headers.get("If-None-Match") == "*":
            raise NoError(412, "PreconditionFailed")
        wanted = self.headers.get("If-Match")
        form = self.server.dialect.matches
        if wanted is None or not form:
            return
        if there is None:
            raise NoError(404, "NoSuchKey")
        if wanted != (there.etag if form == "as told" else there.etag.strip('"')):
            raise NoError(412, "PreconditionFailed")

    def _put(self, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        self._check(body)
        self._conditions(refuses=self.server.dialect.create_only_put)
        crc = self.headers.get("x-amz-checksum-crc64nvme", "")
        stored = self._keep(self.key, body, self.headers.get("x-amz-meta-ckptsyncd-nonce", ""), crc)
        return b"", {"ETag": stored.etag}

    def _keep(self, key: str, body: bytes, nonce: str, crc: str) -> Stored:
        data = self.server.dialect.damage(body)
        nonce = nonce if self.server.dialect.keeps_metadata else ""
        self.server.objects[key] = Stored(data, etag_of(data), nonce, crc)
        return self.server.objects[key]

    def _begin(self) -> tuple[bytes, Mapping[str, str]]:
        token = f"u{len(self.server.requests)}"
        nonce = self.headers.get("x-amz-meta-ckptsyncd-nonce", "")
        self.server.uploads[token] = Upload(self.key, nonce)
        inside = f"<UploadId>{token}</UploadId>"
        return xml("InitiateMultipartUploadResult", inside), {}

    def _part(self, token: str, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        self._check(body)
        number = int(self.query["partNumber"][0])
        self.server.uploads[token].parts[number] = (body, etag_of(body))
        return b"", {"ETag": etag_of(body)}

    def _complete(self, token: str, body: bytes) -> tuple[bytes, Mapping[str, str]]:
        upload = self.server.uploads[token]
        self._conditions(refuses=self.server.dialect.create_only_finish)
        whole = b""
        for part in ET.fromstring(body).iter():  # noqa: S314 - our own request
            if part.tag.endswith("PartNumber"):
                whole += upload.parts[int(part.text or 0)][0]
        crc = self.headers.get("x-amz-checksum-crc64nvme", "")
        if self.server.dialect.whole_check and crc and crc != crc64_text(whole):
            raise NoError(400, "BadDigest")
        del self.server.uploads[token]
        stored = self._keep(upload.key, whole, upload.nonce, crc)
        return xml("CompleteMultipartUploadResult", f"<ETag>{escape(stored.etag)}</ETag>"), {}

    def _get(self) -> tuple[bytes, Mapping[str, str]]:
        stored = self.server.objects.get(self.key)
        if stored is None:
            raise NoError(404, "NoSuchKey")
        headers = {"ETag": stored.etag}
        if stored.nonce:
            headers["x-amz-meta-ckptsyncd-nonce"] = stored.nonce
        if stored.crc:
            headers["x-amz-checksum-crc64nvme"] = stored.crc
        asked = self.headers.get("Range")
        data = stored.data
        if asked:
            first, last = (int(text) for text in asked.removeprefix("bytes=").split("-"))
            if first >= len(data):
                raise NoError(416, "InvalidRange")
            data = data[first : last + 1]
            headers["Content-Range"] = f"bytes {first}-{first + len(data) - 1}/{len(stored.data)}"
        return data, headers | {"Content-Length": str(len(data))}

    def _list(self) -> tuple[bytes, Mapping[str, str]]:
        prefix = self.query.get("prefix", [""])[0]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(stored.data)}</Size>"
            f"<ETag>{escape(stored.etag)}</ETag></Contents>"
            for key, stored in sorted(self.server.objects.items())
            if key.startswith(prefix)
        )
        return xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{rows}"), {}

    def _list_uploads(self) -> bytes:
        prefix = self.query.get("prefix", [""])[0]
        rows = "".join(
            f"<Upload><Key>{escape(one.key)}</Key><UploadId>{token}</UploadId></Upload>"
            for token, one in self.server.uploads.items()
            if one.key.startswith(prefix)
        )
        return xml("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{rows}")

    def _list_parts(self, token: str) -> bytes:
        numbers = self.server.uploads[token].parts
        rows = "".join(f"<Part><PartNumber>{number}</PartNumber></Part>" for number in numbers)
        return xml("ListPartsResult", f"<IsTruncated>false</IsTruncated>{rows}")


def etag_of(data: bytes) -> str:
    """Return what S3 calls an object's version: the quoted MD5."""
    return f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - S3's choice


def crc64_text(data: bytes) -> str:
    """Return a CRC64-NVME as S3 writes it."""
    return base64.b64encode(crc64nvme(data).to_bytes(8, "big")).decode()


def xml(name: str, inside: str) -> bytes:
    """Return a document of S3."""
    return f'<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}</{name}>'.encode()


def failing(dialect: Dialect, verb: str, part: str, fault: Fault, times: int = 1) -> Dialect:
    """Return the dialect with a fault in the next requests of this verb whose path has ``part``."""
    left = [fault] * times

    def choose(method: str, path: str) -> Fault | None:
        return left.pop() if left and method == verb and part in path else None

    return replace(dialect, fault=choose)
