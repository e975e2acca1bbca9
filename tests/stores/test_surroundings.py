"""Sessions that know the way to their store without asking for each request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from ckptsyncd.stores.surroundings import settled

URL = "https://store.example/bucket"


class Noted(HTTPAdapter):
    """Notes by which way a request would go, and answers it."""

    def __init__(self) -> None:
        """Have seen nothing."""
        super().__init__()
        self.ways: list[tuple[Any, ...]] = []

    def send(self, request: requests.PreparedRequest, *rest: Any, **how: Any) -> requests.Response:
        """Note it."""
        assert not rest
        proxy = dict(how["proxies"]).get("https")
        self.ways.append((proxy, how["verify"], request.headers.get("Authorization")))
        answer = requests.Response()
        answer.status_code = 200
        answer.raw = None
        answer.url = str(request.url)
        answer.request = request
        return answer


def way(session: requests.Session) -> tuple[Any, ...]:
    """Return by which way a session goes."""
    noted = Noted()
    session.mount("https://", noted)
    session.put(URL, data=b"", stream=True)
    return noted.ways[0]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"https_proxy": "http://proxy.example:3128"},
        {"https_proxy": "http://proxy.example:3128", "no_proxy": "store.example"},
        {"REQUESTS_CA_BUNDLE": "/etc/first.pem", "CURL_CA_BUNDLE": "/etc/second.pem"},
        {"CURL_CA_BUNDLE": "/etc/second.pem"},
    ],
)
def test_it_goes_as_it_would_have_gone(
    said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy and certificates are those that a session finds that asks for each request."""
    for name in ("https_proxy", "no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    asks, knows = requests.Session(), requests.Session()
    settled(knows, URL)
    assert way(knows) == way(asks)


def test_no_other_credentials_take_the_place_of_the_sdks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a .netrc says of the store's host is not sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine store.example login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    asks, knows = requests.Session(), requests.Session()
    settled(knows, URL)
    assert way(asks)[2] is not None
    assert way(knows)[2] is None
