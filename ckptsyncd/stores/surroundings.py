"""What the environment says of the way to a store, asked once instead of for every request."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_environ_proxies, select_proxy

from ckptsyncd.stores.heads import require_whole_heads
from ckptsyncd.stores.lines import Lines, Place, connected

#: Where requests looks for a bundle of certificates, the first one first.
BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def settled(session: requests.Session, endpoint: str) -> None:
    """Let a session that speaks to one endpoint know its proxies and whom to trust from now on.

    requests would look through the environment for each request, which takes 0.2 ms of CPU time
    (measured). Credentials in a ``.netrc`` are not looked for: they would replace the SDK's.
    """
    session.proxies = get_environ_proxies(endpoint, no_proxy=None)
    session.verify = next((os.environ[name] for name in BUNDLES if os.environ.get(name)), True)
    session.trust_env = False
    for adapter in {*session.adapters.values()}:
        if isinstance(adapter, HTTPAdapter):
            pools = dict(adapter.poolmanager.pool_classes_by_scheme)
            require_whole_heads(pools)
            adapter.poolmanager.pool_classes_by_scheme = pools


def lines_beside(
    session: requests.Session, endpoint: str, connect_seconds: float, read_seconds: float
) -> Lines | None:
    """Return connections of our own to where a settled session goes, trusting whom it trusts.

    ``None`` where only the session knows the way: through a proxy, or to what is no plain address.
    """
    parts = urlsplit(endpoint)
    if parts.hostname is None or parts.query or select_proxy(endpoint, session.proxies):
        return None
    place = Place(parts.scheme == "https", parts.hostname, parts.port, parts.netloc)
    context = _trusting(session.verify) if place.is_tls else None
    return Lines(place, lambda: connected(place, context, connect_seconds, read_seconds))


def _trusting(verify: bool | str) -> ssl.SSLContext:  # noqa: FBT001 - as requests has it
    """Return what trusts a bundle, or a folder of certificates, as requests would."""
    bundle = verify if isinstance(verify, str) else DEFAULT_CA_BUNDLE_PATH
    if Path(bundle).is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)
