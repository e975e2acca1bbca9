"""May checkpoints lie there? Regions and countries that are allowed, and how far bytes may travel.

Whatever is not known is not allowed: a rule that lets the unknown pass protects nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ckptsyncd.core.rules.bucket import Location
from ckptsyncd.core.rules.regions import continent_of, country_of

Egress = Literal["any", "same-continent", "same-region"]
Distance = Literal["none", "same region", "same continent", "another continent", "unknown"]


@dataclass(frozen=True, slots=True)
class Residency:
    """The user's rules; empty ones and ``any`` allow everything.

    ``allowed_regions`` are names of regions, or of a place that tells none (a host, ``file``).
    ``country`` is an ISO code. A region must be allowed by name or lie in the country; ``egress``
    must hold as well. A mounted volume is no egress.
    """

    allowed_regions: tuple[str, ...] = ()
    country: str = ""
    egress: Egress = "any"

    @property
    def has_rules(self) -> bool:
        """Whether anything could be refused."""
        return bool(self.allowed_regions or self.country) or self.egress != "any"

    @property
    def asks_the_machine(self) -> bool:
        """Whether the machine's own region matters."""
        return self.egress != "any"


def refusal(rules: Residency, bucket: Location, machine: Location | None) -> str:
    """Return why checkpoints may not lie there, naming the rule, or ``""`` where they may.

    Every region of a bucket must be allowed: nobody knows in which of them the bytes are.
    ``machine`` is ``None`` where its region is not known.
    """
    outside = _outside(rules, bucket)
    if outside or bucket.provider == "file":
        return outside
    if rules.egress == "same-region":
        return _other_region(bucket, machine)
    if rules.egress == "same-continent":
        return _other_continent(bucket, machine)
    return ""


def _outside(rules: Residency, bucket: Location) -> str:
    if not (rules.allowed_regions or rules.country):
        return ""
    if not bucket.regions:
        if bucket.name in rules.allowed_regions:
            return ""
        return f"{bucket.words}; allowed_regions does not name {bucket.name!r}"
    for region in bucket.regions:
        if region in rules.allowed_regions:
            continue
        if not rules.country:
            allowed = ", ".join(rules.allowed_regions)
            return (
                f"it lies in {bucket.words}, and {region!r} is not of allowed_regions ({allowed})"
            )
        country = country_of(bucket.provider, region)
        if country != rules.country:
            where = f"{region!r} lies in {country}" if country else f"{region!r} is not known"
            return f"it lies in {bucket.words}; {where}, not in country = {rules.country!r}"
    return ""


def _other_region(bucket: Location, machine: Location | None) -> str:
    if machine is None or not machine.regions:
        return "egress = 'same-region', and this machine's region is not known"
    here = machine.regions[0]
    if bucket.provider == machine.provider and here in bucket.regions:
        return ""
    return f"egress = 'same-region': it lies in {bucket.words}, this machine in {here}"


def _other_continent(bucket: Location, machine: Location | None) -> str:
    here = continent_of(machine.provider, machine.regions[0]) if machine and machine.regions else ""
    if not here:
        return "egress = 'same-continent', and this machine's continent is not known"
    there = {continent_of(bucket.provider, region) for region in bucket.regions} or {""}
    if there == {here}:
        return ""
    named = ", ".join(sorted(there - {""})) or "a place that is not known"
    return f"egress = 'same-continent': it lies in {bucket.words}, {named}; this machine in {here}"


def distance(bucket: Location, machine: Location | None) -> Distance:
    """Return how far bytes travel between a bucket and this machine; of several places, the worst.

    ``none``: a mounted volume. Another cloud is never the same region.
    """
    if bucket.provider == "file":
        return "none"
    if machine is None or not machine.regions or not bucket.regions:
        return "unknown"
    here = machine.regions[0]
    if machine.provider == bucket.provider and set(bucket.regions) == {here}:
        return "same region"
    home = continent_of(machine.provider, here)
    there = {continent_of(bucket.provider, region) for region in bucket.regions}
    if not home or "" in there:
        return "unknown"
    return "same continent" if there == {home} else "another continent"
