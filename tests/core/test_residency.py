"""Where checkpoints may lie: every region must be known and allowed."""

from __future__ import annotations

import pytest

from ckptsyncd.core.rules.bucket import Location, Provider
from ckptsyncd.core.rules.regions import CONTINENT_OF, COUNTRY_OF, SEVERAL, continent_of, country_of
from ckptsyncd.core.rules.residency import Residency, distance, refusal

CANADA = ("ca-central-1", "ca-west-1", "northamerica-northeast1", "canadacentral")
AWS_CA = Location("aws", ("ca-central-1",), "ca-central-1")
AWS_US = Location("aws", ("us-east-1",), "us-east-1")
GCP_CA = Location("gcp", ("northamerica-northeast1",), "northamerica-northeast1")
GCP_US = Location("gcp", SEVERAL["us"], "us")
GCP_EU = Location("gcp", SEVERAL["eu"], "eu")
OWN = Location("", ("ca-central-1",), "ca-central-1")
SILENT = Location("azure", (), "account.blob.core.windows.net")
VOLUME = Location("file", (), "file")
NEW = Location("aws", ("ca-north-7",), "ca-north-7")


@pytest.mark.parametrize(
    ("rules", "bucket", "allowed"),
    [
        (Residency(), SILENT, True),
        (Residency(CANADA), AWS_CA, True),
        (Residency(CANADA), GCP_CA, True),
        (Residency(CANADA), AWS_US, False),
        (Residency(CANADA), OWN, True),
        (Residency(country="CA"), AWS_CA, True),
        (Residency(country="CA"), GCP_CA, True),
        (Residency(country="CA"), AWS_US, False),
        (Residency(country="CA"), OWN, False),
        (Residency(country="CA"), NEW, False),
        (Residency(("ca-north-7",), "CA"), NEW, True),
        (Residency(country="US"), GCP_US, True),
        (Residency(("us-east1", "us-central1")), GCP_US, False),
        (Residency(country="DE"), GCP_EU, False),
        (Residency(CANADA), SILENT, False),
        (Residency(("account.blob.core.windows.net",)), SILENT, True),
        (Residency(country="CA"), VOLUME, False),
        (Residency(("file",), "CA"), VOLUME, True),
    ],
)
def test_regions_and_countries(rules: Residency, bucket: Location, allowed: bool) -> None:  # noqa: FBT001
    """A bucket is allowed only where each of its regions is, by name or by a known country."""
    assert (refusal(rules, bucket, None) == "") == allowed


HERE = Location("aws", ("ca-central-1",), "ca-central-1")
SAME, CONTINENT = Residency(egress="same-region"), Residency(egress="same-continent")


@pytest.mark.parametrize(
    ("rules", "bucket", "machine", "allowed"),
    [
        (SAME, AWS_CA, HERE, True),
        (SAME, AWS_US, HERE, False),
        (SAME, AWS_CA, None, False),
        (SAME, OWN, HERE, False),
        (SAME, GCP_US, Location("gcp", ("us-east4",), "us-east4"), True),
        (SAME, VOLUME, None, True),
        (CONTINENT, AWS_US, HERE, True),
        (CONTINENT, GCP_CA, HERE, True),
        (CONTINENT, GCP_EU, HERE, False),
        (CONTINENT, SILENT, HERE, False),
        (CONTINENT, AWS_CA, None, False),
        (CONTINENT, NEW, HERE, False),
        (CONTINENT, VOLUME, None, True),
    ],
)
def test_egress(
    rules: Residency,
    bucket: Location,
    machine: Location | None,
    allowed: bool,  # noqa: FBT001
) -> None:
    """The bucket must be as near as the rule says; what is not known is not near."""
    assert (refusal(rules, bucket, machine) == "") == allowed


@pytest.mark.parametrize(
    ("bucket", "machine", "far"),
    [
        (VOLUME, None, "none"),
        (AWS_CA, HERE, "same region"),
        (AWS_US, HERE, "same continent"),
        (GCP_CA, HERE, "same continent"),
        (GCP_EU, HERE, "another continent"),
        (SILENT, HERE, "unknown"),
        (NEW, HERE, "unknown"),
        (AWS_CA, None, "unknown"),
    ],
)
def test_how_far_bytes_travel(bucket: Location, machine: Location | None, far: str) -> None:
    """Nothing is called near that is not known to be."""
    assert distance(bucket, machine) == far


def test_the_refusal_names_rule_and_place() -> None:
    """Whoever reads it knows what to change."""
    text = refusal(Residency(country="CA"), AWS_US, None)
    assert "'us-east-1' lies in US" in text
    assert "country = 'CA'" in text


def test_both_rules_must_hold() -> None:
    """An allowed region is refused where it is too far away."""
    rules = Residency(("us-east-1",), egress="same-region")
    assert "egress" in refusal(rules, AWS_US, HERE)


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure"])
def test_every_country_has_a_continent(provider: Provider) -> None:
    """The tables fit together: each region leads to a country, each country to a continent."""
    for region, country in COUNTRY_OF[provider].items():
        assert region == region.lower()
        assert country_of(provider, region) == country
        assert CONTINENT_OF[country] == continent_of(provider, region)


def test_places_of_several_regions_are_known_ones() -> None:
    """Whatever stands in a multi-region is a region of the table, and more than one."""
    for regions in SEVERAL.values():
        assert len(set(regions)) > 1
        assert all(country_of("gcp", region) for region in regions)
