"""What a bucket of Google's says about itself: location, lifecycle, clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from requests.models import Response

from ckptsyncd.core.rules.bucket import BucketRule, Location, Provider
from ckptsyncd.core.rules.regions import SEVERAL
from ckptsyncd.errors import Never, Refused
from ckptsyncd.stores.clocks import wall_of
from ckptsyncd.stores.gcs.wire import Wire
from ckptsyncd.stores.verdicts import Asked

_HOSTS = (".googleapis.com", ".p.googleapis.com")
_FIELDS = "location,locationType,customPlacementConfig"


class GcsSituation:
    """Asks one bucket."""

    def __init__(self, wire: Wire) -> None:
        """Ask over ``wire``; nothing is asked yet."""
        self._wire = wire
        self._host = str(urlsplit(wire.endpoint).hostname)

    def location(self) -> Location:
        """Return every region of the bucket; a pair that was chosen for it is told by name."""
        told = self._told()
        name = str(told.get("location", "")).lower()
        pair = (told.get("customPlacementConfig") or {}).get("dataLocations") or ()
        regions = tuple(str(region).lower() for region in pair) or SEVERAL.get(name)
        if regions is None:
            regions = (name,) if name else ()
        provider: Provider = "gcp" if self._host.endswith(_HOSTS) else ""
        return Location(provider, regions, name or self._host)

    def rules(self) -> tuple[BucketRule, ...]:
        """Return the rules; each prefix of a rule is a row of its own."""
        answer = self._ask("lifecycle", self._url(), fields="lifecycle").json()
        rows = (answer.get("lifecycle") or {}).get("rule") or ()
        return tuple(rule for number, row in enumerate(rows) for rule in _rules(number, row))

    def server_wall(self) -> float | None:
        """Return the clock in the Date header of an answer."""
        answer = self._ask("list", self._wire.list_url(), maxResults="1", fields="kind")
        return wall_of(answer.headers.get("Date"))

    def endpoint(self) -> str:
        """Return the address to which requests go."""
        return self._wire.endpoint

    def key_id(self) -> str:
        """Return the account's address, where the credentials tell one."""
        return self._wire.account()

    def _told(self) -> Mapping[str, Any]:
        """Ask the bucket, or for its layout, which needs no more rights than a list."""
        try:
            told: Mapping[str, Any] = self._ask("bucket", self._url(), fields=_FIELDS).json()
        except Refused as refused:
            try:
                told = self._ask("layout", f"{self._url()}/storageLayout").json()
            except Never:
                raise refused from None
        return told

    def _url(self) -> str:
        return self._wire.list_url().removesuffix("/o")

    def _ask(self, verb: str, url: str, **parameters: str) -> Response:
        asked = Asked(verb, self._wire.bucket, absent=Never)
        return self._wire.ask(asked, "GET", url, params=parameters)


def _rules(number: int, row: Mapping[str, Any]) -> Iterator[BucketRule]:
    action = str((row.get("action") or {}).get("type", ""))
    condition = row.get("condition") or {}
    days = float(condition.get("age", 0))
    # Conditions about older versions never hold for what is current.
    concerns_current = condition.get("isLive") is not False and not (
        condition.get("numNewerVersions") or condition.get("daysSinceNoncurrentTime")
    )
    for prefix in condition.get("matchesPrefix") or ("",):
        yield BucketRule(
            name=f"rule {number + 1}",
            prefix=str(prefix),
            expires_days=days if action == "Delete" and concerns_current else None,
            aborts_days=days if action == "AbortIncompleteMultipartUpload" else None,
        )
