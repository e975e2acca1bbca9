"""Are a checkpoint's objects there at all? Asked before the first byte is fetched.

A listing answers for a thousand files at a time. It is only a hint: what it lacks is asked for by
name before it is called missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.recover.patience import Pace, patiently
from ckptsyncd.recover.stream import Fault, fault_of


def absent(store: Store, checkpoint: str, files: Sequence[StoredFile], pace: Pace) -> Fault | None:
    """Return a file whose object is missing or has another size, ``None`` where there is none.

    Raises StoreError where the store does not answer after bounded retries.
    """
    wanted = {stored.key: stored for stored in files}
    for prefix in sorted(_prefixes(checkpoint, wanted)):
        for key in patiently(partial(_found, store, prefix, wanted), pace):
            wanted.pop(key, None)
        if not wanted:
            return None
    suspects = (fault_of(store, stored, pace) for stored in wanted.values())
    return next((fault for fault in suspects if fault), None)


def _found(store: Store, prefix: str, wanted: dict[str, StoredFile]) -> list[str]:
    """Return the keys below a prefix that are as wanted."""
    sizes = {key: stored.size for key, stored in wanted.items() if key.startswith(prefix)}
    found = []
    for fact in store.list(prefix):
        if sizes.get(fact.key) == fact.size:
            found.append(fact.key)
            if len(found) == len(sizes):
                break
    return found


def _prefixes(checkpoint: str, keys: Iterable[str]) -> set[str]:
    """Return as few prefixes as cover the keys without listing other checkpoints."""
    plain = names.key_of_path(checkpoint)
    return {_prefix(plain, key) for key in keys}


def _prefix(plain: str, key: str) -> str:
    if key.startswith(plain + "/"):
        return plain + "/"
    if key.startswith(names.EDITIONS):
        return "/".join(key.split("/", 3)[:3]) + "/"
    return plain if key.startswith(plain) else key
