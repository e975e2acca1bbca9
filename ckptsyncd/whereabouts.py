"""Where a destination lies, asked from the store and the settings; for ``status --where``."""

from __future__ import annotations

from typing import Any

from ckptsyncd.core.ports import Situated, Situation, Store
from ckptsyncd.errors import StoreError
from ckptsyncd.report.usage import Prices, Usage, Whereabouts, document, usage
from ckptsyncd.settings import Settings
from ckptsyncd.stores.counted import CountedStore
from ckptsyncd.stores.open import parse_url


def whereabouts(store: Store, settings: Settings) -> Whereabouts:
    """Return where bytes go; asks the bucket once, and says what it does not tell."""
    to = parse_url(settings.url)
    situation = store.situation() if isinstance(store, Situated) else None
    classes = {
        "s3": settings.s3_storage_class,
        "gs": settings.gcs_storage_class,
        "az": settings.azure_access_tier,
    }
    own = "the bucket's own default" if to.scheme in classes else ""
    return Whereabouts(
        url=settings.url,
        bucket=to.bucket or to.path,
        region=_region(situation),
        endpoint="" if situation is None else situation.endpoint(),
        key_id="" if situation is None else situation.key_id(),
        storage_class=classes.get(to.scheme, "") or own,
        description=_described(store),
    )


def told_of_store(store: CountedStore, settings: Settings) -> dict[str, Any]:
    """Return where bytes go and what was asked of the store, as JSON; from any thread."""
    return document(whereabouts(store.inner, settings), usage_of(store, settings))


def usage_of(store: CountedStore, settings: Settings) -> Usage:
    """Return what was asked of the store, at the user's prices; from any thread."""
    prices = Prices(
        writes=settings.price_writes,
        reads=settings.price_reads,
        sent=settings.price_sent,
        received=settings.price_received,
        currency=settings.currency,
    )
    return usage(store.calls(), prices)


def _region(situation: Situation | None) -> str:
    if situation is None:
        return ""
    try:
        return situation.location().words
    except StoreError as error:
        return f"it is not told: {error}"


def _described(store: Store) -> str:
    try:
        return store.describe()
    except StoreError as error:
        return str(error)
