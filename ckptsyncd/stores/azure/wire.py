"""The SDK: one request at a time, no retries of its own, every error classified."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient
from requests.adapters import HTTPAdapter

from ckptsyncd.errors import Refused, UsageError
from ckptsyncd.stores.azure.credentials import PUBLIC, Access, access, expires_at
from ckptsyncd.stores.azure.express import Express
from ckptsyncd.stores.azure.faults import classify, from_answer
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.lines import Answer
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.short import ShortWay
from ckptsyncd.stores.surroundings import lines_beside, settled
from ckptsyncd.stores.verdicts import Asked

#: More connections than there will be hands.
MAX_CONNECTIONS = 128

#: Bytes that one request of a download brings: the SDK holds them in memory as a whole.
READ_BYTES = 8 * 1024 * 1024

CREATED, BAD = 201, 400

T = TypeVar("T")


class Wire:
    """Speaks to one container. Methods are called from several threads at once."""

    def __init__(self, account: str, container: str, options: AzureOptions) -> None:
        """Look for credentials, so that a wrong one is told at once; nothing is asked yet."""
        self.account = account
        self.container = container
        self._options = options
        self._client: ContainerClient | None = None
        self._session: requests.Session | None = None
        self._express: Express | None = None
        self._short = ShortWay()
        self._credential: Any = None
        self.clock = ServerClock()
        self._lock = threading.Lock()
        self._connected()

    @property
    def endpoint(self) -> str:
        """The account's address."""
        return self._options.endpoint_url or PUBLIC.format(account=self.account)

    def ask(
        self,
        asked: Asked,
        act: Callable[[ContainerClient], T],
        *,
        sent: Passing | None = None,
    ) -> T:
        """Let ``act`` make one request and return what it returns, or raise what it stands for.

        What the body itself raised passes through unchanged. Credentials that were refused are
        looked for anew with the next request: they may have been replaced meanwhile.
        """
        try:
            return act(self._connected())
        except AzureError as caught:
            if sent is not None and sent.fault is not None:
                raise sent.fault from None
            error = classify(asked, caught)
        if isinstance(error, Refused):
            self.close()
        raise error

    def send(
        self,
        asked: Asked,
        shortly: Callable[[Express], Answer | None],
        act: Callable[[ContainerClient], Mapping[str, Any]],
        sent: Passing,
    ) -> Mapping[str, Any]:
        """Let a body go the short way if it can, else as ``ask``; return the answer's headers."""
        self._connected()
        express = self._express
        try:
            answer = None if express is None else shortly(express)
        except OSError as caught:
            if sent.fault is not None:
                raise
            raise classify(asked, caught) from caught
        if answer is None:
            return self.ask(asked, act, sent=sent)
        self.clock.heard(answer.headers.get("date"))
        if answer.status == CREATED:
            return answer.headers
        error = from_answer(asked, answer)
        if isinstance(error, Refused):
            self.close()
        raise error

    @property
    def way(self) -> str:
        """How bodies leave at the moment, for people."""
        return "SDK's" if self._express is None or self._short.is_resting else "short"

    def _correct(self, request: Any) -> None:
        """Sign with the server's time where ours is off; the SDK calls this before it signs."""
        if self.clock.is_off:
            request.http_request.headers["x-ms-date"] = self.clock.date()

    def _hear(self, response: Any) -> None:
        self.clock.heard(response.http_response.headers.get("Date"))
        shown = response.http_request.headers.get("Authorization", "")
        express = self._express
        is_good = response.http_response.status_code < BAD
        if express is not None and is_good and shown.startswith("Bearer "):
            express.learn(shown)

    def credentials_expire_at(self) -> float | None:
        """Return when the SAS token ends that was found last; ``None`` without one."""
        return expires_at(self._credential)

    def credential_kind(self) -> str:
        """Return what is presented: an account's key, a SAS token, or another identity."""
        if isinstance(self._credential, AzureNamedKeyCredential):
            return "account key"
        return "SAS token" if isinstance(self._credential, AzureSasCredential) else "identity"

    def close(self) -> None:
        """Close every idle connection and forget the credentials."""
        with self._lock:
            session, self._session, self._client = self._session, None, None
            express, self._express = self._express, None
        if session is not None:
            session.close()  # not the client: another thread may be in a request of its
        if express is not None:
            express.close()

    def _connected(self) -> ContainerClient:
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client

    def _made(self) -> ContainerClient:
        options = self._options
        found = access(self.account, options, os.environ)
        self._credential = found.credential
        session = requests.Session()
        adapter = HTTPAdapter(pool_maxsize=MAX_CONNECTIONS, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        settled(session, found.account_url)
        transport: Any = RequestsTransport(
            session=session,
            session_owner=False,
            connection_verify=session.verify,
            connection_timeout=options.connect_timeout_seconds,
            read_timeout=options.read_timeout_seconds,
        )
        try:
            client = ContainerClient(
                found.account_url,
                self.container,
                credential=found.credential,
                transport=transport,
                retry_total=0,
                user_agent="ckptsyncd",
                max_single_get_size=READ_BYTES,
                max_chunk_get_size=READ_BYTES,
                raw_request_hook=self._correct,
                raw_response_hook=self._hear,
            )
        except ValueError as error:
            msg = f"no client can be made for {found.account_url}: {error}"
            raise UsageError(msg, hint="check the endpoint URL and the key") from error
        self._session = session
        self._express = self._beside(session, client, found)
        return client

    def _beside(
        self, session: requests.Session, client: ContainerClient, found: Access
    ) -> Express | None:
        """Return the short way beside a client; ``None`` where only the SDK knows one."""
        options = self._options
        lines = lines_beside(
            session,
            found.account_url,
            options.connect_timeout_seconds,
            options.read_timeout_seconds,
        )
        if lines is None:
            return None
        url = f"{found.account_url.rstrip('/')}/{quote(self.container)}"
        version = str(client.api_version)
        try:
            return Express(url, found.credential, version, lines, self._short, self.clock)
        except ValueError:  # the key is none, and the SDK says so
            return None
