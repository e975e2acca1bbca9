"""Azure's emulator behind a proxy, stores on it, and what only the Blob service says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from itertools import count

from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from tests.emulators import AzureServer
from tests.proxy import Proxy

_numbers = count()

Opened = Callable[..., AzureStore]


@contextmanager
def opening(proxy: Proxy, server: AzureServer) -> Iterator[Opened]:
    """Open stores behind the proxy, below a prefix of their own, and close them."""
    with ExitStack() as stack:

        def open_one(prefix: str = "", container: str = "", **options: object) -> AzureStore:
            if "sas_token" not in options and "sas_token_file" not in options:
                options.setdefault("account_key", server.key)
            store = AzureStore(
                server.account,
                container or server.container,
                prefix or f"faults {next(_numbers)}",
                AzureOptions(f"{proxy.endpoint}/{server.account}", **options),  # type: ignore[arg-type]
            )
            stack.callback(store.close)
            return store

        yield open_one


def answer(status: int, code: str = "", extra: str = "") -> bytes:
    """Return an error as the Blob service words it, and the end of the connection."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told so</Message></Error>"
    named = f"x-ms-error-code: {code}\r\n" if code else ""
    head = f"HTTP/1.1 {status} Something\r\nContent-Type: application/xml\r\n{named}{extra}"
    return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def token(server: AzureServer, minutes: float, permission: str = "racwdl") -> str:
    """Return a SAS token of the container that lives so long."""
    return generate_container_sas(
        server.account,
        server.container,
        account_key=server.key,
        permission=ContainerSasPermissions.from_string(permission),
        expiry=datetime.now(timezone.utc) + timedelta(minutes=minutes),
    )
