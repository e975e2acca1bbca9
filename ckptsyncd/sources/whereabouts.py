"""In which region this machine is, from its cloud's metadata, asked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.rules.bucket import Location
from ckptsyncd.sources import azure, gcp
from ckptsyncd.sources.bodies import json_of, text_of
from ckptsyncd.sources.detect import Surroundings
from ckptsyncd.sources.open import Wanted, azure_wire, google_wire, imds_of
from ckptsyncd.sources.wire import Answer, Wire

_AWS_REGION = "/latest/meta-data/placement/region"
_GCP_ZONE = gcp.ROOT + "zone"
_OK = 200


def whereabouts(
    wanted: Wanted, surroundings: Surroundings, environment: Mapping[str, str], now: Instant
) -> Location | None:
    """Return this machine's region; ``None`` where no cloud is known or it does not tell.

    Blocks as long as the metadata service's time-outs. Raises UsageError for a wrong address.
    """
    ask = _ASKERS.get(surroundings.provider)
    region = "" if ask is None else ask(wanted, environment, now)
    return located(surroundings.provider, region)


def located(provider: str, region: str) -> Location | None:
    """Return the place of a region; ``None`` where it is empty or the cloud is none of ours."""
    if not region or provider not in ("aws", "gcp", "azure"):
        return None
    name = region.lower()
    if provider == "aws":
        return Location("aws", (name,), name)
    return Location("gcp" if provider == "gcp" else "azure", (name,), name)


def _aws(wanted: Wanted, environment: Mapping[str, str], now: Instant) -> str:
    answer = imds_of(wanted, environment).get(_AWS_REGION, now)
    good = isinstance(answer, Answer) and answer.status == _OK
    return text_of(answer.body) if isinstance(answer, Answer) and good else ""


def _gcp(wanted: Wanted, environment: Mapping[str, str], _now: Instant) -> str:
    """Return the region of ``projects/7/zones/europe-west3-a``: the zone without its last part."""
    body = _got(google_wire(wanted, environment), _GCP_ZONE, gcp.HEADERS)
    return text_of(body).rpartition("/")[2].rpartition("-")[0]


def _azure(wanted: Wanted, _environment: Mapping[str, str], _now: Instant) -> str:
    told = json_of(_got(azure_wire(wanted), azure.COMPUTE, azure.HEADERS))
    return str(told.get("location", "")) if isinstance(told, dict) else ""


def _got(wire: Wire, path: str, headers: Mapping[str, str]) -> bytes:
    answer = wire.exchange("GET", path, headers)
    return answer.body if isinstance(answer, Answer) and answer.status == _OK else b""


_ASKERS: dict[str, Callable[[Wanted, Mapping[str, str], Instant], str]] = {
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
}
