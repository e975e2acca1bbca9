"""What Google documents and no emulator has, added in front of two that have the rest.

Conditions on puts and moves, the move itself, and the XML API's multipart uploads: parts are kept
by a real S3 server (moto), everything else by one of the emulators. This is how we read the
documentation; it cannot show that Google does the same.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree as ET

import requests

from ckptsyncd.checksum import crc32c
from tests.emulators import BUCKET, GcsServer
from tests.servers import S3Server

_MOVE = re.compile(r"(/storage/v1/b/[^/]+)/o/([^/]+)/moveTo/o/([^/?]+)")
_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "date", "server"})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way back."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Front:
    """The two servers behind, and which multipart uploads are known with which metadata."""

    gcs: str
    s3: str
    uploads: dict[str, dict[str, str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one request, mostly by passing it on."""
        query = parse_qs(urlsplit(path).query, keep_blank_values=True)
        moving = _MOVE.match(path)
        if moving:
            with self.lock:
                return self._move(moving, query)
        if {"uploads", "uploadId"} & query.keys():
            return self._multipart(method, path, query, headers, body)
        wanted = query.get("ifGenerationMatch")
        if method == "POST" and wanted and "name" in query:
            return self._put(path, query["name"][0], wanted[0], headers, body)
        return passed_on(self.gcs, method, path, headers, body)

    def _put(
        self, path: str, name: str, wanted: str, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        where = f"{self.gcs}/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}"
        with self.lock:
            there = requests.get(where, timeout=10)
            if wanted != (str(there.json()["generation"]) if there.ok else "0"):
                return _refused(412, "conditionNotMet", "At least one condition did not hold.")
            return passed_on(self.gcs, "POST", path, headers, body)

    def _move(self, moving: re.Match[str], query: Mapping[str, list[str]]) -> Reply:
        bucket, source, to = (self.gcs + moving[1], moving[2], moving[3])
        there = requests.get(f"{bucket}/o/{to}", timeout=10)
        if query.get("ifGenerationMatch") == ["0"] and there.ok:
            return _refused(412, "conditionNotMet", "At least one condition did not hold.")
        found = requests.get(f"{bucket}/o/{source}", timeout=10)
        if not found.ok:
            return _refused(404, "notFound", "No such object")
        kept = {name: found.json()[name] for name in ("metadata", "contentType")}
        place = f"{moving[1].removeprefix('/storage/v1/')}/o/{to}"
        moved = requests.post(f"{bucket}/o/{source}/rewriteTo/{place}", json=kept, timeout=10)
        requests.delete(f"{bucket}/o/{source}", timeout=10)
        return Reply(moved.status_code, json.dumps(moved.json()["resource"]).encode())

    def _multipart(
        self,
        method: str,
        path: str,
        query: Mapping[str, list[str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        upload_id = query.get("uploadId", [""])[0]
        if upload_id and upload_id not in self.uploads:
            return Reply(404, b"<Error><Code>NoSuchUpload</Code><Message>none</Message></Error>")
        reply = passed_on(self.s3, method, path, headers, body)
        if reply.status >= 300:
            return reply
        if method == "POST" and "uploads" in query:
            begun = ET.fromstring(reply.body).findtext("{*}UploadId", "")  # noqa: S314 - our moto
            mark = "x-goog-meta-"
            told = {k[len(mark) :]: v for k, v in headers.items() if k.lower().startswith(mark)}
            self.uploads[begun] = told
        elif method == "PUT":
            digest = base64.b64encode(crc32c(body).to_bytes(4, "big")).decode()
            return replace(reply, headers={**reply.headers, "x-goog-hash": f"crc32c={digest}"})
        elif method == "POST":
            self._completed(path, self.uploads.pop(upload_id))
        elif method == "DELETE":
            del self.uploads[upload_id]
        return reply

    def _completed(self, path: str, metadata: dict[str, str]) -> None:
        """Hand the object that the parts became over to the server that has all others."""
        where = self.s3 + urlsplit(path).path
        data = requests.get(where, timeout=30).content
        requests.delete(where, timeout=10)
        name = unquote(urlsplit(path).path).removeprefix(f"/{BUCKET}/")
        resource = {"name": name, "metadata": metadata, "contentType": "application/octet-stream"}
        mark = "gate"
        head = f"--{mark}\r\nContent-Type: application/json\r\n\r\n{json.dumps(resource)}\r\n"
        head += f"--{mark}\r\nContent-Type: application/octet-stream\r\n\r\n"
        requests.post(
            f"{self.gcs}/upload/storage/v1/b/{BUCKET}/o",
            params={"uploadType": "multipart"},
            data=head.encode() + data + f"\r\n--{mark}--\r\n".encode(),
            headers={"Content-Type": f"multipart/related; boundary={mark}"},
            timeout=30,
        ).raise_for_status()


def passed_on(
    server: str, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Reply:
    """Ask a server behind and return its answer as it came."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _HOP}
    answer = requests.request(
        method, server + path, headers=kept, data=body, timeout=30, allow_redirects=False
    )
    told = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
    return Reply(answer.status_code, answer.content, told)


def _refused(status: int, reason: str, message: str) -> Reply:
    rows = [{"reason": reason, "message": message}]
    told = {"error": {"code": status, "message": message, "errors": rows}}
    return Reply(status, json.dumps(told).encode())


class _Handler(BaseHTTPRequestHandler):
    front: ClassVar[Front]
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client gave up half-way
            self.close_connection = True
            return
        reply = self.front.answer(self.command, self.path, dict(self.headers.items()), body)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names of the class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def google(gcs: GcsServer, s3: S3Server) -> Iterator[GcsServer]:
    """Run the front on a loopback port."""
    front = Front(gcs.endpoint, s3.endpoint)
    handler = type("Handler", (_Handler,), {"front": front})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield replace(gcs, name="as documented", endpoint=endpoint)
        server.shutdown()
        thread.join()
