"""Where are we: firmware and environment alone, and which sources follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ckptsyncd.errors import UsageError
from ckptsyncd.sources.detect import Surroundings, detected, small_file
from ckptsyncd.sources.open import Wanted, opened
from tests.sources.bench import Bench

DMI = "/sys/class/dmi/id/"
NOWHERE = Surroundings("", "")


def found(files: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Surroundings:
    """Return where a machine with these files and variables is."""
    return detected(environment or {}, files.get)


@pytest.mark.parametrize(
    ("path", "text", "provider"),
    [
        (DMI + "sys_vendor", "Amazon EC2\n", "aws"),
        (DMI + "product_uuid", "EC2AE145-D1DC-13B2-94ED-01234567890A\n", "aws"),
        (DMI + "product_uuid", "45e12aec-dcd1-b213-94ed-01234567890a\n", "aws"),
        ("/sys/hypervisor/uuid", "ec2f4a02-0000-0000-0000-000000000000\n", "aws"),
        (DMI + "product_name", "Google Compute Engine\n", "gcp"),
        (DMI + "product_name", "Google\n", "gcp"),
        (DMI + "product_serial", "GoogleCloud-0123456789ABCDEF\n", "gcp"),
        (DMI + "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n", "azure"),
        (DMI + "chassis_asset_tag", "OracleCloud.com\n", "oci"),
        (DMI + "product_name", "Alibaba Cloud ECS\n", "alibaba"),
        (DMI + "sys_vendor", "Tencent Cloud\n", "tencent"),
        (DMI + "sys_vendor", "Dell Inc.\n", ""),
        (DMI + "product_uuid", "12345678-0000-0000-0000-000000000000\n", ""),
    ],
)
def test_firmware(path: str, text: str, provider: str) -> None:
    """Each cloud is known by what its own tools look for; a bare machine is nowhere."""
    assert found({path: text}).provider == provider


@pytest.mark.parametrize(
    ("environment", "provider"),
    [
        ({"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}, "aws"),
        ({"GCE_METADATA_HOST": "127.0.0.1:1"}, "gcp"),
        ({"GCE_METADATA_ROOT": "127.0.0.1:1"}, "gcp"),
    ],
)
def test_an_address_in_the_environment_comes_first(
    environment: dict[str, str], provider: str
) -> None:
    """Whoever points the SDKs at a metadata service means it, whatever the firmware says."""
    azure = {DMI + "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}
    assert found(azure, environment).provider == provider


def test_google_can_be_switched_off() -> None:
    """The switch of Google's own library counts."""
    google = {DMI + "product_name": "Google Compute Engine"}
    assert found(google, {"NO_GCE_CHECK": "True"}).provider == ""


def test_layers_stand_on_top_of_a_cloud() -> None:
    """Kubernetes and Slurm do not replace the cloud below them."""
    files = {
        DMI + "sys_vendor": "Amazon EC2",
        "/var/run/secrets/kubernetes.io/serviceaccount/namespace": "training",
    }
    environment = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_END_TIME": "1750000000",
        "RUNPOD_POD_ID": "x",
    }
    place = found(files, environment)
    assert place.provider == "aws"
    assert place.layers == {"kubernetes", "slurm", "runpod"}
    assert place.job_end_wall == 1_750_000_000.0


def test_small_files(tmp_path: Path) -> None:
    """What is missing or not for us is no error."""
    (tmp_path / "name").write_text("Google\n")
    assert small_file(str(tmp_path / "name")) == "Google\n"
    assert small_file(str(tmp_path / "missing")) is None
    assert small_file(str(tmp_path)) is None


def names(
    wanted: Wanted, place: Surroundings = NOWHERE, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Return the names of the sources that are opened."""
    return [source.name for source in opened(wanted, place, environment or {})]


def test_nowhere_has_no_sources() -> None:
    """Without a cloud nothing is asked of any network."""
    assert names(Wanted()) == []
    assert names(Wanted(), Surroundings("oci", "tag")) == []


@pytest.mark.parametrize(
    ("place", "sources"),
    [
        (
            Surroundings("aws", ""),
            ["aws-spot", "aws-rebalance", "aws-autoscaling", "aws-maintenance"],
        ),
        (
            Surroundings("gcp", ""),
            ["gcp-preempted", "gcp-maintenance-event", "gcp-upcoming-maintenance", "gcp-stop"],
        ),
        (Surroundings("azure", ""), ["azure"]),
        (Surroundings("alibaba", ""), ["alibaba"]),
        (Surroundings("tencent", ""), ["tencent"]),
        (Surroundings("", "", frozenset({"slurm"}), 1.75e9), ["slurm-end"]),
    ],
)
def test_what_was_detected_is_opened(place: Surroundings, sources: list[str]) -> None:
    """Every cloud has its keys, each a source of its own."""
    assert names(Wanted(), place) == sources
    assert names(Wanted(providers=())) == []


def test_what_is_named_is_opened() -> None:
    """Providers can be named, and single sources left out."""
    wanted = Wanted(providers=("auto", "aws", "azure"), without=frozenset({"aws-rebalance"}))
    assert names(wanted, Surroundings("azure", "")) == [
        "azure", "aws-spot", "aws-autoscaling", "aws-maintenance",
    ]  # fmt: skip


def test_what_a_user_sets_up() -> None:
    """A file, a command and a known end are sources wherever we are."""
    wanted = Wanted(notice_file="/run/notice", command=("true",), hard_stop_wall=1.75e9)
    assert names(wanted) == ["notice-file", "command", "hard-stop"]


def test_a_provider_that_nobody_knows() -> None:
    """A misspelt provider is the user's error and names those that exist."""
    with pytest.raises(UsageError, match="no notice provider 'asw'") as caught:
        opened(Wanted(providers=("asw",)), NOWHERE, {})
    assert "aws" in caught.value.hint


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "0", "1e9"])
def test_a_time_out_that_is_none(text: str) -> None:
    """A variable of an SDK that cannot be used is said, not ignored."""
    with pytest.raises(UsageError, match="AWS_METADATA_SERVICE_TIMEOUT"):
        opened(Wanted(providers=("aws",)), NOWHERE, {"AWS_METADATA_SERVICE_TIMEOUT": text})


def first_reason(bench: Bench, wanted: Wanted, environment: Mapping[str, str]) -> str:
    """Return why the first source that is opened so is blind, empty if it is not."""
    return bench.listen(opened(wanted, NOWHERE, environment)[0]).blind()


def test_the_sdks_own_addresses_lead_to_the_service(bench: Bench) -> None:
    """AWS's and Google's variables, and our own setting, reach the pretended service."""
    url = bench.cloud.url
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_METADATA_SERVICE_TIMEOUT": "10"}
    assert first_reason(bench, Wanted(providers=("aws",)), environment) == ""
    environment = {"GCE_METADATA_HOST": url.removeprefix("http://"), "GCE_METADATA_TIMEOUT": "10"}
    assert first_reason(bench, Wanted(providers=("gcp",)), environment) == ""
    for provider in ("azure", "alibaba", "tencent"):
        address = bench.cloud.alibaba_url if provider == "alibaba" else url
        assert first_reason(bench, Wanted(providers=(provider,), metadata_url=address), {}) == ""


def test_the_sdks_own_switches(bench: Bench) -> None:
    """Disabled metadata, forbidden requests without tokens, and demanded TLS are honoured."""
    aws = Wanted(providers=("aws",), metadata_url=bench.cloud.url)
    assert "DISABLED" in first_reason(bench, aws, {"AWS_EC2_METADATA_DISABLED": "true"})
    bench.cloud.aws.tokens = "absent"
    assert "not allowed" in first_reason(bench, aws, {"AWS_EC2_METADATA_V1_DISABLED": "true"})
    gcp = Wanted(providers=("gcp",), metadata_url=bench.cloud.url)
    assert "TLS" in first_reason(bench, gcp, {"GCE_METADATA_MTLS_MODE": "strict"})


def test_pods_of_one_machine_share_azures_rate() -> None:
    """Alone once a second, in a pod every other second."""
    wanted = Wanted(providers=("azure",))
    assert opened(wanted, NOWHERE, {})[0].interval_seconds == 1.0
    pod = Surroundings("", "", frozenset({"kubernetes"}))
    assert opened(wanted, pod, {})[0].interval_seconds == 2.0
