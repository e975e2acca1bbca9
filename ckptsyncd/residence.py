"""The rules about where bytes may lie: from the settings, this machine's metadata and the store."""

from __future__ import annotations

from collections.abc import Mapping

from ckptsyncd.core.bucket import Location
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.residency import Egress, Residency
from ckptsyncd.settings import Settings
from ckptsyncd.sources.detect import detected, small_file
from ckptsyncd.sources.open import Wanted
from ckptsyncd.sources.whereabouts import located, whereabouts

_EGRESS: dict[str, Egress] = {
    "any": "any",
    "same-continent": "same-continent",
    "same-region": "same-region",
}


def residency_of(settings: Settings) -> Residency:
    """Return the user's rules."""
    egress = _EGRESS[settings.egress]
    return Residency(settings.allowed_regions, settings.country, egress)


def machine_of(settings: Settings, environment: Mapping[str, str], now: Instant) -> Location | None:
    """Return this machine's region as the settings or its metadata say; ``None`` if unknown.

    May block as long as a metadata service's time-outs; raises UsageError for a wrong address.
    """
    provider, colon, region = settings.machine_region.partition(":")
    if colon:
        return located(provider, region)
    wanted = Wanted(providers=settings.sources)
    return whereabouts(wanted, detected(environment, small_file), environment, now)
