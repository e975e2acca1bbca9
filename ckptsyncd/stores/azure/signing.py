"""Signs a body's request with an account's key, as the SDK does."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

#: The headers whose values are signed by their place, in this order; absent ones as empty.
BY_PLACE = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


@dataclass(frozen=True, slots=True)
class SharedKey:
    """An account and its key, decoded."""

    account: str
    key: bytes

    def authorization(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str], length: int
    ) -> str:
        """Return the header that shows who sends a PUT.

        ``path`` is as it is sent: encoded; ``query`` is not. ``headers`` have lower case names. No
        length is signed where there are no bytes.
        """
        told = {**headers, "content-length": str(length) if length else ""}
        rows = [told.get(name, "") for name in BY_PLACE]
        named = [f"{name}:{told[name]}" for name in sorted(told) if name.startswith("x-ms-")]
        asked = [f"{name}:{query[name]}" for name in sorted(query)]
        text = "\n".join(("PUT", *rows, *named, f"/{self.account}{path}", *asked))
        mark = b64encode(hmac.digest(self.key, text.encode(), "sha256")).decode()
        return f"SharedKey {self.account}:{mark}"
