"""What a container of Azure's says about itself: hardly more than the time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ckptsyncd.core.rules.bucket import BucketRule, Location
from ckptsyncd.errors import Never
from ckptsyncd.stores.azure.wire import Wire
from ckptsyncd.stores.clocks import wall_of
from ckptsyncd.stores.verdicts import Asked


class AzureSituation:
    """Asks one container."""

    def __init__(self, wire: Wire) -> None:
        """Ask over ``wire``; nothing is asked yet."""
        self._wire = wire

    def location(self) -> Location:
        """Return no region: only Azure's management service knows where an account lies."""
        return Location("azure", (), str(urlsplit(self._wire.endpoint).hostname))

    def rules(self) -> tuple[BucketRule, ...] | None:
        """Return that they are not told: only Azure's management service knows an account's."""
        return None

    def server_wall(self) -> float | None:
        """Return the clock in the Date header of an answer."""
        dates: list[str] = []

        def heard(response: Any) -> None:
            dates.append(str(response.http_response.headers.get("Date", "")))

        asked = Asked("look", self._wire.container, absent=Never)
        self._wire.ask(
            asked, lambda client: client.get_container_properties(raw_response_hook=heard)
        )
        return wall_of(dates[-1]) if dates else None

    def endpoint(self) -> str:
        """Return the address to which requests go."""
        return self._wire.endpoint

    def key_id(self) -> str:
        """Return the account and the kind of credential."""
        return f"{self._wire.account} ({self._wire.credential_kind()})"
