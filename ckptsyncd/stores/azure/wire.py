"""The SDK: one request at a time, no retries of its own, every error classified."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient
from requests.adapters import HTTPAdapter

from ckptsyncd.errors import Refused, UsageError
from ckptsyncd.stores.azure.credentials import PUBLIC, access, expires_at
from ckptsyncd.stores.azure.faults import classify
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.surroundings import settled
from ckptsyncd.stores.verdicts import Asked

#: More connections than there will be hands.
MAX_CONNECTIONS = 128

#: Bytes that one request of a download brings: the SDK holds them in memory as a whole.
READ_BYTES = 8 * 1024 * 1024

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

    def _correct(self, request: Any) -> None:
        """Sign with the server's time where ours is off; the SDK calls this before it signs."""
        if self.clock.is_off:
            request.http_request.headers["x-ms-date"] = self.clock.date()

    def _hear(self, response: Any) -> None:
        self.clock.heard(response.http_response.headers.get("Date"))

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
        if session is not None:
            session.close()  # not the client: another thread may be in a request of its

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
        return client
