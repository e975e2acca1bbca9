"""Where are we? From the machine's own firmware tables and the environment, without the network.

Never by asking: 169.254.169.254 speaks different protocols on different clouds, and where there is
no cloud at all a request to it can hang for minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Provider = Literal["aws", "gcp", "azure", "alibaba", "tencent", "oci", ""]

_DMI = "/sys/class/dmi/id/"
#: A cloud, a field of the firmware's table, and how it starts there. Tencent's is general
#: knowledge, the others come from the vendors' own tools.
_FIRMWARE: tuple[tuple[Provider, str, str], ...] = (
    ("azure", "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"),
    ("oci", "chassis_asset_tag", "OracleCloud.com"),
    ("gcp", "product_name", "Google"),
    ("gcp", "product_serial", "GoogleCloud-"),
    ("alibaba", "product_name", "Alibaba Cloud ECS"),
    ("aws", "sys_vendor", "Amazon EC2"),
    ("tencent", "sys_vendor", "Tencent Cloud"),
)
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

#: Variables with which the SDKs are pointed at another metadata service.
_OVERRIDES: tuple[tuple[str, Provider], ...] = (
    ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "aws"),
    ("GCE_METADATA_HOST", "gcp"),
    ("GCE_METADATA_ROOT", "gcp"),
    ("GCE_METADATA_IP", "gcp"),
)
#: Variables that say what runs this process on top of a cloud.
_LAYERS = (
    ("SLURM_JOB_ID", "slurm"),
    ("RUNPOD_POD_ID", "runpod"),
    ("VAST_CONTAINERLABEL", "vast"),
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The cloud (empty if none is known) and by what it was recognised; what runs on top of it.

    ``layers`` are of ``kubernetes``, ``slurm``, ``runpod``, ``vast``. ``job_end_wall`` is the end
    of a Slurm job's time limit, which a preemption does not move.
    """

    provider: Provider
    evidence: str
    layers: frozenset[str] = frozenset()
    job_end_wall: float | None = None


def detected(environment: Mapping[str, str], read: Callable[[str], str | None]) -> Surroundings:
    """Return where this process runs.

    ``read`` returns a small file's text, ``None`` where it is missing or not for us.
    """
    provider, evidence = _overridden(environment) or _by_firmware(environment, read) or ("", "")
    end = environment.get("SLURM_JOB_END_TIME", "")
    job_end = float(end) if end.isascii() and end.isdecimal() else None
    return Surroundings(provider, evidence, _layers(environment, read), job_end)


def _overridden(environment: Mapping[str, str]) -> tuple[Provider, str] | None:
    """Return the cloud whose metadata service somebody named."""
    found = ((provider, name) for name, provider in _OVERRIDES if environment.get(name))
    return next(found, None)


def _by_firmware(
    environment: Mapping[str, str], read: Callable[[str], str | None]
) -> tuple[Provider, str] | None:
    """Return the cloud that the firmware's tables name."""
    for provider, name, text in _FIRMWARE:
        if (read(_DMI + name) or "").strip().startswith(text):
            asleep = provider == "gcp" and environment.get("NO_GCE_CHECK", "").lower() == "true"
            return None if asleep else (provider, name)
    for path in ("/sys/hypervisor/uuid", _DMI + "product_uuid"):
        if _is_ec2_number(read(path)):
            return "aws", path
    return None


def _is_ec2_number(text: str | None) -> bool:
    """Tell whether a system's uuid starts with ``ec2``, in either order of its bytes."""
    number = (text or "").strip().lower()
    swapped = number[6:8] + number[4:6] + number[2:4] + number[0:2]
    return number.startswith("ec2") or swapped.startswith("ec2")


def _layers(environment: Mapping[str, str], read: Callable[[str], str | None]) -> frozenset[str]:
    """Return what runs this process on top of a cloud."""
    layers = {layer for name, layer in _LAYERS if environment.get(name)}
    if environment.get("KUBERNETES_SERVICE_HOST") and read(_SERVICE_ACCOUNT) is not None:
        layers.add("kubernetes")
    return frozenset(layers)


def small_file(path: str) -> str | None:
    """Return a small file's text, ``None`` where it is missing or not for us."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a plain path
            return file.read(4096)
    except OSError:
        return None
