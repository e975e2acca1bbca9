"""The SDK's credentials and connections: one request at a time, no retries, errors classified.

The SDK's own uploads are not used: they hold a chunk in memory, cannot be resumed by another
process, and retry by themselves. Its session sends the requests of the documented JSON and XML
APIs instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import google.auth
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Client
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException
from requests.models import Response

from ckptsyncd.errors import Refused, UsageError
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.gcs.express import Express
from ckptsyncd.stores.gcs.faults import from_answer, from_exception
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.lines import Sent
from ckptsyncd.stores.short import UNWILLING, ShortWay
from ckptsyncd.stores.surroundings import lines_beside, settled
from ckptsyncd.stores.verdicts import Asked

#: More connections than there will be hands.
MAX_CONNECTIONS = 128

#: Bytes of one read from an answer.
READ_BYTES = 1024 * 1024

#: Answers that are no errors; 308 is how a session says that it wants more.
GOOD = frozenset({200, 201, 204, 206, 308})


#: What a request is made of, beside its method and address, as the SDK's session has it.
Extra = Any


@dataclass(frozen=True, slots=True)
class Ways:
    """The SDK's session, and the short way beside it where there is one."""

    session: AuthorizedSession
    express: Express | None

    def close(self) -> None:
        """Close what is idle."""
        self.session.close()
        if self.express is not None:
            self.express.close()


class Wire:
    """Speaks to one bucket. Methods are called from several threads at once."""

    def __init__(self, bucket: str, options: GcsOptions) -> None:
        """Find out the endpoint; nothing is asked of it, and no credentials are looked for yet."""
        self.bucket = bucket
        self._options = options
        self._ways: Ways | None = None
        self._short = ShortWay(UNWILLING - {308})  # a session says so that it wants more
        self.clock = ServerClock()
        self._lock = threading.Lock()
        chosen = {"api_endpoint": options.endpoint_url} if options.endpoint_url else None
        client = Client(project=None, credentials=AnonymousCredentials(), client_options=chosen)
        self.endpoint = str(client.api_endpoint).rstrip("/")
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            msg = f"the endpoint {self.endpoint!r} is no http or https URL"
            raise UsageError(msg, hint="write https://host, or unset STORAGE_EMULATOR_HOST")

    def object_url(self, name: str, *, upload: bool = False) -> str:
        """Return an object's address in the JSON API, or, for ``upload``, where one is sent to."""
        if upload:
            return f"{self.endpoint}/upload/storage/v1/b/{self.bucket}/o"
        return f"{self.endpoint}/storage/v1/b/{self.bucket}/o/{self.quoted(name)}"

    def quoted(self, name: str) -> str:
        """Return an object's name as one component of an address."""
        return quote(name, safe="")

    def list_url(self) -> str:
        """Return where the JSON API lists objects."""
        return f"{self.endpoint}/storage/v1/b/{self.bucket}/o"

    def xml_url(self, name: str = "") -> str:
        """Return the address of an object, or of the bucket, in the XML API."""
        return f"{self.endpoint}/{self.bucket}/{quote(name, safe='/~')}".rstrip("/")

    def ask(
        self, asked: Asked, method: str, url: str, *, sent: Sent | None = None, **extra: Extra
    ) -> Response:
        """Make one request and return its good answer, or raise what a bad one stands for.

        What the body itself raised passes through unchanged. Credentials that were refused are
        looked for anew with the next request: they may have been replaced meanwhile.
        """
        try:
            answer = self._asked(method, url, sent, extra)
            self.clock.heard(answer.headers.get("Date"))
            if answer.status_code in GOOD:
                return answer
            error = from_answer(asked, answer)
        except (RequestException, GoogleAuthError) as caught:
            if sent is not None and sent.fault is not None:
                raise sent.fault from None
            error = from_exception(asked, caught)
        if isinstance(error, Refused):
            self.close()
        raise error

    def _asked(self, method: str, url: str, sent: Sent | None, extra: Extra) -> Response:
        """Return the answer to a request; a body goes the short way if it can."""
        ways = self._authorized()
        if sent is not None:
            if ways.express is not None:
                told = ways.express.send(method, url, sent, **extra)
                if told is not None:
                    return told
            extra = {**extra, "data": sent if len(sent) else b""}
        options = self._options
        answer: Response = ways.session.request(
            method,
            url,
            timeout=(options.connect_timeout_seconds, options.read_timeout_seconds),
            allow_redirects=False,
            **extra,
        )
        return answer

    @property
    def way(self) -> str:
        """How bodies leave at the moment, for people."""
        is_short = self._ways is not None and self._ways.express is not None
        return "short" if is_short and not self._short.is_resting else "SDK's"

    def blocks(self, asked: Asked, answer: Response) -> Iterator[bytes]:
        """Yield an answer's body; a connection that breaks half-way is classified like any."""
        with closing(answer):
            try:
                yield from answer.iter_content(READ_BYTES)
            except RequestException as error:
                raise from_exception(asked, error) from None

    def account(self) -> str:
        """Return the address of the account in use, ``anonymous``, or empty where it is not told.

        Credentials are looked for where that was not done yet; GoogleAuthError becomes Refused.
        """
        try:
            credentials: Any = self._authorized().session.credentials
        except GoogleAuthError as error:
            raise from_exception(Asked("look for credentials", self.bucket), error) from None
        if isinstance(credentials, AnonymousCredentials):
            return "anonymous"
        return str(getattr(credentials, "service_account_email", "") or "")

    def close(self) -> None:
        """Close every idle connection and forget the credentials."""
        with self._lock:
            ways, self._ways = self._ways, None
        if ways is not None:
            ways.close()

    def _authorized(self) -> Ways:
        with self._lock:
            if self._ways is None:
                self._ways = self._made()
            return self._ways

    def _made(self) -> Ways:
        if self._options.anonymous or urlsplit(self.endpoint).scheme == "http":
            credentials: Any = AnonymousCredentials()
        else:
            credentials, _ = google.auth.default(scopes=Client.SCOPE)
        session = AuthorizedSession(
            credentials, refresh_timeout=int(self._options.read_timeout_seconds)
        )
        adapter = HTTPAdapter(pool_maxsize=MAX_CONNECTIONS, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        settled(session, self.endpoint)
        session.headers["User-Agent"] = "ckptsyncd"
        session.headers["Accept-Encoding"] = "identity"  # bytes as they are stored
        if self._options.user_project:
            session.headers["x-goog-user-project"] = self._options.user_project
        options = self._options
        lines = lines_beside(
            session, self.endpoint, options.connect_timeout_seconds, options.read_timeout_seconds
        )
        return Ways(session, None if lines is None else Express(session, lines, self._short))
