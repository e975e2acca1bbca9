"""The short way of bodies on Azure: a request like the SDK's, without its policies.

No parameter that is not listed here. What is sent elsewhere, and whoever is not known any more,
is the SDK's: it follows, and renews.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from ckptsyncd.stores.azure.signing import SharedKey
from ckptsyncd.stores.clocks import ServerClock
from ckptsyncd.stores.lines import Answer, Lines, Sent, head_of
from ckptsyncd.stores.short import ELSEWHERE, ShortWay

#: A token that the SDK has just shown is good for at least five minutes: it renews it before.
TOKEN_SECONDS = 240.0

#: Who shows these is known by them or not at all: there is nothing to renew.
NAMED = (AzureNamedKeyCredential, AzureSasCredential)

Pairs = dict[str, str]

#: What the SDK's parameters become as headers.
WRITTEN: Mapping[str, Callable[[Any], Pairs]] = {
    "content_settings": lambda one: {"x-ms-blob-content-type": one.content_type},
    "encryption_scope": lambda scope: {"x-ms-encryption-scope": scope},
    "etag": lambda etag: {"if-match": etag},
    "match_condition": lambda one: (
        {"if-none-match": "*"} if one is MatchConditions.IfMissing else {}
    ),
    "metadata": lambda told: {f"x-ms-meta-{name}": told[name] for name in told or ()},
    "standard_blob_tier": lambda tier: {"x-ms-access-tier": tier.value},
    "transactional_content_crc64": lambda raw: {"x-ms-content-crc64": b64encode(raw).decode()},
    "transactional_content_md5": lambda raw: {"content-md5": b64encode(raw).decode()},
}


class Express:
    """Sends bodies into the container at ``url``, to the place that ``lines`` connect to.

    ``version`` is that of the API which the SDK speaks. ValueError where the key is none.
    """

    def __init__(
        self,
        url: str,
        credential: Any,
        version: str,
        lines: Lines,
        way: ShortWay,
        clock: ServerClock,
    ) -> None:
        """Know who asks; nothing is connected yet."""
        self._path = urlsplit(url).path
        self._credential = credential
        self._key: SharedKey | None = None
        self._for_the_sdk = ELSEWHERE if isinstance(credential, NAMED) else ELSEWHERE | {401}
        if isinstance(credential, AzureNamedKeyCredential):
            account, key = credential.named_key
            self._key = SharedKey(account, b64decode(key))
        self._always = {
            "host": lines.place.netloc,
            "user-agent": "ckptsyncd",
            "accept": "application/xml",
            "content-type": "application/octet-stream",
            "x-ms-version": version,
        }
        self._lines = lines
        self._way = way
        self._clock = clock
        self._shown, self._good_until = "", 0.0

    def learn(self, authorization: str) -> None:
        """Take in the token that the SDK showed in a request that was answered well."""
        self._shown, self._good_until = authorization, time.monotonic() + TOKEN_SECONDS

    def put(self, name: str, parameters: Mapping[str, Any], sent: Sent) -> Answer | None:
        """Send a whole blob and return the answer; ``None`` leaves it to the SDK.

        Raises OSError where the connection broke or the body failed.
        """
        return self._send(name, {}, {"x-ms-blob-type": "BlockBlob"}, parameters, sent)

    def stage(
        self, name: str, block: str, parameters: Mapping[str, Any], sent: Sent
    ) -> Answer | None:
        """Send a block of a blob; else as ``put``."""
        query = {"comp": "block", "blockid": b64encode(block.encode()).decode()}
        return self._send(name, query, {}, parameters, sent)

    def close(self) -> None:
        """Close every idle connection."""
        self._lines.close()

    def _send(
        self, name: str, query: Pairs, own: Pairs, parameters: Mapping[str, Any], sent: Sent
    ) -> Answer | None:
        if not parameters.keys() <= WRITTEN.keys():
            return None
        headers = {**self._always, "x-ms-date": self._clock.date(), **own}
        for parameter, value in parameters.items():
            headers |= WRITTEN[parameter](value)
        path = f"{self._path}/{quote(name, safe='~/')}"
        target = self._shows(path, query, headers, len(sent))
        if target is None:
            return None
        answer = self._way.exchange(
            self._lines, lambda: head_of("PUT", target, headers, len(sent)), sent
        )
        return None if answer is None or answer.status in self._for_the_sdk else answer

    def _shows(self, path: str, query: Pairs, headers: Pairs, length: int) -> str | None:
        """Show who we are, in the headers or in the target, which is returned."""
        asked = urlencode(query)
        if self._key is not None:
            headers["authorization"] = self._key.authorization(path, query, headers, length)
        elif isinstance(self._credential, AzureSasCredential):
            asked = "&".join(filter(None, (asked, self._credential.signature.lstrip("?"))))
        elif time.monotonic() < self._good_until:
            headers["authorization"] = self._shown
        else:
            return None
        return f"{path}?{asked}" if asked else path
