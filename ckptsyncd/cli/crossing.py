"""From where to where the bytes of a restore would travel: what a cloud bills as egress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ckptsyncd.cli.remote import settings_of
from ckptsyncd.core.ports import Situated, Store
from ckptsyncd.core.rules.residency import Distance, distance
from ckptsyncd.core.words import size_words
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.errors import StoreError
from ckptsyncd.residence import machine_of

_WORDS: dict[Distance, str] = {
    "none": "none, for it is a mounted volume",
    "same region": "none, for both are in the same region",
    "same continent": "between regions of a continent",
    "another continent": "to another continent",
    "unknown": "not known, for one of the two regions is not",
}


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the bucket and this machine are, in words, and how far apart."""

    source: str
    here: str
    distance: Distance

    def words(self, needed_bytes: int) -> list[str]:
        """Return it for people."""
        egress = _WORDS[self.distance]
        amount = f"{size_words(needed_bytes)}, " if self.distance != "none" else ""
        return [f"from: {self.source}", f"to: {self.here}", f"egress: {amount}{egress}"]


def crossing(store: Store, flags: Mapping[str, Any]) -> Crossing:
    """Ask the bucket and this machine's metadata where they are; unknown is no error."""
    machine = machine_of(settings_of(flags), os.environ, BootClock().now())
    here = "not known where this machine is" if machine is None else machine.words
    if not isinstance(store, Situated):
        return Crossing("not known", here, "unknown")
    try:
        bucket = store.situation().location()
    except StoreError as error:
        return Crossing(f"not told: {error}", here, "unknown")
    return Crossing(bucket.words, here, distance(bucket, machine))
