"""What a bucket says about itself: where it lies, and what it does to objects by their age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Provider = Literal["aws", "gcp", "azure", "file", ""]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a bucket's bytes lie.

    ``provider`` is whose names ``regions`` are, empty for a server that may call its place what it
    likes. ``regions`` is the whole set, in lower case; empty where the store does not tell.
    ``name`` is what stands in for them: the host, or the bucket's own word (``eu``).
    """

    provider: Provider
    regions: tuple[str, ...]
    name: str

    @property
    def words(self) -> str:
        """The place for people."""
        if self.provider == "file":
            return "a mounted volume"
        if not self.regions:
            return f"{self.name} (it does not tell its region)"
        several = ", ".join(self.regions)
        return several if self.name in ("", *self.regions) else f"{self.name} ({several})"


@dataclass(frozen=True, slots=True)
class BucketRule:
    """One enabled rule of a bucket's lifecycle, as far as it concerns us.

    ``prefix`` is that of keys in the bucket. ``expires_days`` until current objects are removed,
    ``aborts_days`` until unfinished uploads are; ``None`` where the rule does not. ``is_tagged``:
    it holds only for objects with tags, which ours never have.
    """

    name: str
    prefix: str
    expires_days: float | None = None
    aborts_days: float | None = None
    is_tagged: bool = False
