"""Which sources this machine has, made ready to be polled."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from ckptsyncd.core.draining.notices import Source
from ckptsyncd.errors import UsageError
from ckptsyncd.sources.alibaba import Alibaba
from ckptsyncd.sources.aws import aws_keys
from ckptsyncd.sources.azure import Azure
from ckptsyncd.sources.detect import Surroundings
from ckptsyncd.sources.gcp import gcp_keys
from ckptsyncd.sources.imds import Imds
from ckptsyncd.sources.manual import Command, HardStop, NoticeFile
from ckptsyncd.sources.tencent import Tencent
from ckptsyncd.sources.wire import CONNECT_SECONDS, READ_SECONDS, Wire
from ckptsyncd.sources.written import DEFAULT_SECONDS, Reading

_ADDRESS = "http://169.254.169.254"
_ADDRESS_V6 = "http://[fd00:ec2::254]"
_ALIBABA_ADDRESS = "http://100.100.100.200"
_STRICT = (
    "GCE_METADATA_MTLS_MODE=strict demands TLS, which is not spoken here; SIGTERM still counts"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user may say about notices; the defaults are right where nothing is said.

    ``providers`` are names as in ``detect``, or ``auto`` for what was detected; none at all
    switches metadata off. ``metadata_url`` is another address of their metadata service.
    ``without`` names sources to leave out (``aws-rebalance``). ``default_seconds`` is the warning
    of a notice file or command that names no time. Scheduled events and ``hard_stop_wall``
    (seconds since the epoch) bind ``lead_seconds`` before they are due.
    """

    providers: tuple[str, ...] = ("auto",)
    metadata_url: str = ""
    without: frozenset[str] = frozenset()
    notice_file: str = ""
    command: tuple[str, ...] = ()
    command_interval_seconds: float = 5.0
    command_most_seconds: float = 10.0
    default_seconds: float = DEFAULT_SECONDS
    hard_stop_wall: float | None = None
    lead_seconds: float = 600.0
    aws_v1_fallback: bool = True
    aws_legacy: bool = False
    aws_hook_seconds: float = 0.0
    gcp_preemption_seconds: float = 0.0
    gcp_terminate_seconds: float = 60.0
    azure_acknowledges: bool = False


def opened(
    wanted: Wanted, surroundings: Surroundings, environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return the sources of this machine, not yet polled; sends nothing.

    Honours the SDKs' own variables in ``environment``. Raises UsageError for an unknown provider,
    an address that is none, or a time-out that is no number.
    """
    found: list[Source] = []
    for name in wanted.providers:
        provider = surroundings.provider if name == "auto" else name
        if provider and provider not in _PROVIDERS:
            msg = f"there is no notice provider {provider!r}"
            raise UsageError(msg, hint=f"known are auto, {', '.join(_PROVIDERS)}")
        found += _PROVIDERS.get(provider, _nothing)(wanted, surroundings, environment)
    found += _manual(wanted)
    if surroundings.job_end_wall is not None:
        lead = wanted.lead_seconds
        found.append(HardStop(surroundings.job_end_wall, lead_seconds=lead, name="slurm-end"))
    unique = {source.name: source for source in found if source.name not in wanted.without}
    return tuple(unique.values())


def _manual(wanted: Wanted) -> list[Source]:
    """Return the sources that a user set up himself."""
    reading = Reading(wanted.default_seconds, wanted.lead_seconds)
    found: list[Source] = []
    if wanted.notice_file:
        found.append(NoticeFile(wanted.notice_file, reading))
    if wanted.command:
        command = Command(
            wanted.command,
            reading,
            interval_seconds=wanted.command_interval_seconds,
            most_seconds=wanted.command_most_seconds,
        )
        found.append(command)
    if wanted.hard_stop_wall is not None:
        found.append(HardStop(wanted.hard_stop_wall, lead_seconds=wanted.lead_seconds))
    return found


def _aws(
    wanted: Wanted, _surroundings: Surroundings, environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return EC2's keys behind one door."""
    return aws_keys(
        imds_of(wanted, environment),
        lead_seconds=wanted.lead_seconds,
        hook_seconds=wanted.aws_hook_seconds,
        legacy=wanted.aws_legacy,
    )


def imds_of(wanted: Wanted, environment: Mapping[str, str]) -> Imds:
    """Return EC2's door as the SDK's variables say it is; raises UsageError for a wrong one."""
    is_v6 = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "").lower() == "ipv6"
    default = _ADDRESS_V6 if is_v6 else _ADDRESS
    url = wanted.metadata_url or environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or default
    read = _seconds(environment, "AWS_METADATA_SERVICE_TIMEOUT", READ_SECONDS)
    connect = _seconds(environment, "AWS_METADATA_SERVICE_TIMEOUT", CONNECT_SECONDS)
    return Imds(
        Wire(url, connect_seconds=connect, read_seconds=read),
        v1_fallback=wanted.aws_v1_fallback and not _on(environment, "AWS_EC2_METADATA_V1_DISABLED"),
        disabled=_on(environment, "AWS_EC2_METADATA_DISABLED"),
    )


def _gcp(
    wanted: Wanted, _surroundings: Surroundings, environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return Google's keys."""
    strict = environment.get("GCE_METADATA_MTLS_MODE", "").lower() == "strict"
    return gcp_keys(
        google_wire(wanted, environment),
        preemption_seconds=wanted.gcp_preemption_seconds,
        terminate_seconds=wanted.gcp_terminate_seconds,
        lead_seconds=wanted.lead_seconds,
        blocked=_STRICT if strict else "",
    )


def google_wire(wanted: Wanted, environment: Mapping[str, str]) -> Wire:
    """Return the way to Google's metadata; the address is a number, so that no DNS is needed."""
    names = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP")
    named = next((environment[name] for name in names if environment.get(name)), _ADDRESS)
    read = _seconds(environment, "GCE_METADATA_TIMEOUT", READ_SECONDS)
    return Wire(wanted.metadata_url or named, read_seconds=read)


def azure_wire(wanted: Wanted) -> Wire:
    """Return the way to Azure's metadata."""
    return Wire(wanted.metadata_url or _ADDRESS)


def _azure(
    wanted: Wanted, surroundings: Surroundings, _environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return Azure's events; several pods of one machine share its five requests a second."""
    source = Azure(
        azure_wire(wanted),
        interval_seconds=2.0 if "kubernetes" in surroundings.layers else 1.0,
        lead_seconds=wanted.lead_seconds,
        acknowledges=wanted.azure_acknowledges,
    )
    return (source,)


def _alibaba(
    wanted: Wanted, _surroundings: Surroundings, _environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return Alibaba's key."""
    return (Alibaba(Wire(wanted.metadata_url or _ALIBABA_ADDRESS)),)


def _tencent(
    wanted: Wanted, _surroundings: Surroundings, _environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return Tencent's key."""
    if url := wanted.metadata_url:
        return (Tencent(lambda _host: url, Wire),)
    return (Tencent(socket.gethostbyname, Wire),)


def _nothing(
    _wanted: Wanted, _surroundings: Surroundings, _environment: Mapping[str, str]
) -> tuple[Source, ...]:
    """Return no source: Oracle tells nothing inside the machine but its shutdown."""
    return ()


_PROVIDERS = {
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
    "alibaba": _alibaba,
    "tencent": _tencent,
    "oci": _nothing,
}


def _on(environment: Mapping[str, str], name: str) -> bool:
    """Tell whether a variable of an SDK is switched on."""
    return environment.get(name, "").strip().lower() == "true"


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    """Return a time-out that an SDK's variable names; UsageError where it is no number above 0."""
    text = environment.get(name)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= 60.0:  # noqa: PLR2004 - also refuses NaN
        msg = f"{name}={text} is no number of seconds between 0 and 60"
        raise UsageError(msg)
    return seconds
