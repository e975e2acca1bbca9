"""The rules about where bytes may lie: from the settings, this machine's metadata and the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.ports import Store
from ckptsyncd.core.rules.bucket import Location
from ckptsyncd.core.rules.residency import Egress, Residency, refusal
from ckptsyncd.errors import PolicyRefused, StoreError
from ckptsyncd.settings import Settings
from ckptsyncd.stores.guarded import GuardedStore

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
    # Only a rule or a question needs them; they are a fifth of what a restore would import.
    from ckptsyncd.sources.detect import detected, small_file  # noqa: PLC0415
    from ckptsyncd.sources.open import Wanted  # noqa: PLC0415
    from ckptsyncd.sources.whereabouts import located, whereabouts  # noqa: PLC0415

    provider, colon, region = settings.machine_region.partition(":")
    if colon:
        return located(provider, region)
    wanted = Wanted(providers=settings.sources)
    return whereabouts(wanted, detected(environment, small_file), environment, now)


def guarded(
    store: Store,
    settings: Settings,
    environment: Mapping[str, str],
    now: Callable[[], Instant],
    refused: Callable[[PolicyRefused], object],
) -> Store:
    """Return a store that lets nothing through before its place was asked for and is allowed.

    The store itself where the settings have no rule. ``refused`` is told of a place that is not.
    The machine's own region is asked once, and only where a rule needs it.
    """
    rules = residency_of(settings)
    if not rules.has_rules:
        return store

    @lru_cache(maxsize=1)
    def machine() -> Location | None:
        return machine_of(settings, environment, now()) if rules.asks_the_machine else None

    return GuardedStore(store, lambda bucket: refusal(rules, bucket, machine()), refused)


def admitted(
    store: Store,
    settings: Settings,
    environment: Mapping[str, str],
    now: Callable[[], Instant],
    refused: Callable[[PolicyRefused], object],
) -> Store:
    """Return a guarded store that was asked for its place; PolicyRefused where it may not be there.

    One that does not answer now is asked again before the first byte goes there.
    """
    made = guarded(store, settings, environment, now, refused)
    if isinstance(made, GuardedStore):
        with suppress(StoreError):
            made.ask()
    return made
