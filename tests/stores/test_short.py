"""The short way beside an SDK: connections of our own, and when they are left alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.rest import HttpRequest
from azure.storage.blob import ContentSettings, StandardBlobTier
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

from ckptsyncd.checksum import BytesBody
from ckptsyncd.stores.azure.express import Express as AzureExpress
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.gcs.express import Express as GcsExpress
from ckptsyncd.stores.lines import Answer, Lines, Place
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.short import REST_REQUESTS, ShortWay
from ckptsyncd.stores.surroundings import lines_beside, settled

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PLACE = Place(False, "store.example", None, "store.example")
KEY = "c2VjcmV0"

CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n"
)
#: What a server says, what is understood of it, and whether the connection can be used again.
HEARD = [
    (OK, (200, b"ok"), True),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"ok"), True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b""), True),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", (200, b"ok"), False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, b"ok"), False),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", (200, b"until the end"), False),
    (
        CHUNKED,
        (201, b"abc0123456789"),
        True,
    ),
    (b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (201, b""), True),
]


class Server:
    """Answers each connection with the next of its words, and hangs up; keeps what it was told."""

    def __init__(self, *words: bytes) -> None:
        """Have heard nothing."""
        self.words = list(words)
        self.heard: list[bytes] = []
        self.lines = Lines(PLACE, self.connect)

    def connect(self) -> socket.socket:
        """Return one end of a new connection; the other reads until a body's end."""
        ours, theirs = socket.socketpair()
        ours.settimeout(10)
        threading.Thread(target=self._serve, args=(theirs, self.words.pop(0)), daemon=True).start()
        return ours

    def _serve(self, theirs: socket.socket, words: bytes) -> None:
        with theirs:
            said = b""
            while not said.endswith(b"body") and (block := theirs.recv(65536)):
                said += block
            if said:
                self.heard.append(said)
                theirs.sendall(words)


def body() -> Passing:
    """Return bytes to send."""
    return Passing(BytesBody(b"body"))


@pytest.mark.parametrize(("words", "expected", "is_kept"), HEARD)
def test_answers_are_read_to_their_end(
    words: bytes, expected: tuple[int, bytes], is_kept: object
) -> None:
    """However an answer's length is told, its body is whole, and the connection kept or not."""
    server = Server(words)
    answer = ShortWay().exchange(server.lines, lambda: b"PUT / HTTP/1.1\r\n\r\n", body())
    assert answer is not None
    assert (answer.status, answer.body) == expected
    assert len(server.lines._idle) == is_kept
    server.lines.close()


@pytest.mark.parametrize(
    "words",
    [OK[:-1], OK[:-4], CHUNKED[:-2], CHUNKED[:-20], CHUNKED[:-30], CHUNKED.replace(b"A;", b"x;")],
    ids=range(6),
)
def test_half_an_answer_is_none(words: bytes) -> None:
    """What ends within its head, its body or a chunk is no answer, and the way rests."""
    way, server = ShortWay(), Server(words)
    with pytest.raises(ConnectionResetError):
        way.exchange(server.lines, lambda: b"PUT / HTTP/1.1\r\n\r\n", body())
    assert way.is_resting


@pytest.mark.parametrize(("status", "rests"), [(403, True), (429, True), (503, True), (412, False)])
def test_who_is_unwilling_is_left_to_the_sdk(status: int, rests: object) -> None:
    """After such an answer the next bodies go the SDK's way, and then this one again."""
    told = f"HTTP/1.1 {status} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
    way, server = ShortWay(), Server(told, OK)
    heads: list[bytes] = []

    def head() -> bytes:
        heads.append(b"PUT / HTTP/1.1\r\n\r\n")
        return heads[-1]

    assert way.exchange(server.lines, head, body()) == Answer(
        status, {"connection": "close", "content-length": "0"}, is_last=True
    )
    left = 0
    while way.exchange(server.lines, head, body()) is None:
        left += 1
    assert left == (REST_REQUESTS if rests else 0)
    assert len(heads) == 2
    server.lines.close()


def test_a_connection_given_back_late_is_closed() -> None:
    """One that comes back after everybody has gone ends with the place, not with the process."""
    server = Server(OK)
    line = server.lines.take()
    assert line is not None
    server.lines.close()
    server.lines.give_back(line, Answer(200))
    del server.lines
    assert line._sock.fileno() == -1


def test_a_proxy_leaves_everything_to_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a session goes through a proxy there is no short way; for a host without one there is.

    An address with a query is the SDK's too: it may be a signature.
    """
    for name in ("https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def beside(url: str) -> Lines | None:
        session = requests.Session()
        settled(session, url)
        return lines_beside(session, url, 1.0, 1.0)

    found = beside("https://store.example:444/account")
    assert found is not None
    assert found.place == Place(True, "store.example", 444, "store.example:444")
    assert beside("https://store.example/account?sv=1") is None
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert beside("https://store.example") is None
    monkeypatch.setenv("no_proxy", "store.example")
    assert beside("https://store.example") is not None


class Token:
    """Credentials of Google's with a token."""

    valid = True

    def apply(self, headers: dict[str, str]) -> None:
        """Show it."""
        headers["authorization"] = "Bearer of Google's"


def google(server: Server, credentials: Any) -> GcsExpress:
    """Return the short way beside a session with these credentials."""
    session: Any = SimpleNamespace(credentials=credentials, headers={"User-Agent": "ckptsyncd"})
    return GcsExpress(session, server.lines, ShortWay())


def test_google_is_shown_the_sdks_token() -> None:
    """A body has the session's headers, its token and its own; its query is encoded."""
    server = Server(OK)
    answer = google(server, Token()).send(
        "POST", "http://store.example/o", body(), params={"name": "a b/ü"}, headers={"X": "y"}
    )
    assert answer is not None
    assert (answer.status_code, answer.text) == (200, "ok")
    (said,) = server.heard
    assert said.decode().split("\r\n") == [
        "POST /o?name=a+b%2F%C3%BC HTTP/1.1",
        "Host: store.example",
        "User-Agent: ckptsyncd",
        "X: y",
        "authorization: Bearer of Google's",
        "Content-Length: 4",
        "",
        "body",
    ]
    server.lines.close()


def test_google_renews_by_the_sdk() -> None:
    """A token that is not valid is not sent, and one that is refused is left to the session."""
    stale = Token()
    stale.valid = False
    url = "http://store.example/o?upload_id=1"
    assert google(Server(), stale).send("PUT", url, body()) is None
    refused = Server(b"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    assert google(refused, Token()).send("PUT", url, body()) is None
    assert len(refused.heard) == 1
    elsewhere = "https://store.example/o"
    assert google(Server(), Token()).send("PUT", elsewhere, body()) is None


def azure(server: Server, credential: Any) -> AzureExpress:
    """Return the short way into a container."""
    url = "http://store.example/acct/box"
    return AzureExpress(url, credential, "2026-01-01", server.lines, ShortWay(), ServerClock())


@pytest.fixture
def created() -> Iterator[Server]:
    """Run a server that takes two bodies."""
    told = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    server = Server(told, told)
    yield server
    server.lines.close()


def as_heard(said: bytes) -> tuple[str, dict[str, str]]:
    """Return target and headers of a request."""
    head = said.partition(b"\r\n\r\n")[0].decode()
    first, *rows = head.split("\r\n")
    return first.split(" ")[1], dict(row.split(": ", 1) for row in rows)


def test_azure_is_shown_what_the_sdk_would_sign(created: Server) -> None:
    """Every parameter of ours is a header, and the signature is the one that the SDK makes."""
    express = azure(created, AzureNamedKeyCredential("acct", KEY))
    parameters = {
        "metadata": {
            "ckptsyncd_nonce": "n",
            "ckptsyncd_crc64nvme": "0",
            "ckptsyncd_checked": "md5",
        },
        "content_settings": ContentSettings(content_type="application/octet-stream"),
        "standard_blob_tier": StandardBlobTier.COOL,
        "encryption_scope": "scope",
        "transactional_content_md5": bytearray(b"0123456789abcdef"),
        "match_condition": MatchConditions.IfMissing,
    }
    assert express.put("a b/ü", parameters, body()) is not None
    over = {
        "match_condition": MatchConditions.IfNotModified,
        "etag": '"0x1"',
        "transactional_content_crc64": bytearray(b"01234567"),
    }
    assert express.stage("a", "block-1", over, body()) is not None
    put, stage = map(as_heard, created.heard)
    assert put[0] == "/acct/box/a%20b/%C3%BC"
    assert stage[0] == "/acct/box/a?comp=block&blockid=YmxvY2stMQ%3D%3D"
    assert (
        put[1].items()
        >= {
            "if-none-match": "*",
            "content-md5": "MDEyMzQ1Njc4OWFiY2RlZg==",
            "x-ms-access-tier": "Cool",
            "x-ms-blob-content-type": "application/octet-stream",
            "x-ms-blob-type": "BlockBlob",
            "x-ms-encryption-scope": "scope",
            "x-ms-meta-ckptsyncd_nonce": "n",
            "x-ms-version": "2026-01-01",
        }.items()
    )
    assert stage[1].items() >= {"if-match": '"0x1"', "x-ms-content-crc64": "MDEyMzQ1Njc="}.items()
    for target, headers in (put, stage):
        shown = headers.pop("authorization")
        assert shown == by_the_sdk(target, headers)


def by_the_sdk(target: str, headers: dict[str, str]) -> str:
    """Return how the SDK would show who sends a request."""
    request = HttpRequest("PUT", f"http://store.example{target}", headers=headers)
    query = urlsplit(target).query
    made: Any = SimpleNamespace(
        method="PUT",
        url=request.url,
        headers=request.headers,
        query=dict(pair.split("=", 1) for pair in query.split("&") if pair),
    )
    asked: Any = SimpleNamespace(http_request=made, context=SimpleNamespace(transport=None))
    policy: Any = SharedKeyCredentialPolicy
    policy("acct", KEY).on_request(asked)
    return str(made.headers["Authorization"])


def test_azure_is_shown_the_token_that_the_sdk_showed(created: Server) -> None:
    """An identity goes the SDK's way until a token was seen there, and again when that is old."""
    express = azure(created, object())
    assert express.put("a", {}, body()) is None
    express.learn("Bearer of Azure's")
    assert express.put("a", {}, body()) is not None
    assert as_heard(created.heard[0])[1]["authorization"] == "Bearer of Azure's"
    express._good_until = 0.0
    assert express.put("a", {}, body()) is None


def test_what_is_not_known_is_the_sdks(created: Server) -> None:
    """A parameter that nobody has listed, and an answer that sends us elsewhere, are the SDK's."""
    key = AzureNamedKeyCredential("acct", KEY)
    assert azure(created, key).put("a", {"cpk": "key"}, body()) is None
    assert created.heard == []
    moved = Server(b"HTTP/1.1 307 There\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    assert azure(moved, key).put("a", {}, body()) is None
    assert len(moved.heard) == 1
