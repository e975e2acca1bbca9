"""Which keys somebody still needs: those that a manifest names."""

from __future__ import annotations

from collections.abc import Callable

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Missing
from ckptsyncd.recover.catalog import Catalog, read_manifest
from ckptsyncd.recover.patience import Pace


def living(
    store: Store, catalog: Catalog, concerns: Callable[[str], bool], pace: Pace
) -> frozenset[str]:
    """Return the keys that any manifest of the catalog names, of those that ``concerns`` is asked.

    A manifest that was pruned meanwhile names nothing. Raises StoreError, and Never or PathRefused
    where one cannot be read: then nobody knows what it names.
    """
    found: set[str] = set()
    for entry in catalog.entries:
        try:
            manifest = read_manifest(store, entry.key, pace)
        except Missing:
            continue
        found.update(stored.key for stored in manifest.files if stored.key and concerns(stored.key))
    return frozenset(found)
