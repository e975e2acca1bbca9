"""In which country each region of the large clouds lies, and on which continent each country.

Written down in 2026 from the providers' own lists: "AWS Regions" (and the names in botocore's
``partitions.json``), "Bucket locations" of Google Cloud Storage, "Azure regions list". A region
that is not here is unknown, which is never taken for allowed: name it in ``allowed_regions``.
Countries are ISO 3166-1 codes.
"""

from __future__ import annotations

from ckptsyncd.core.rules.bucket import Provider

_AWS = {
    "US": "us-east-1 us-east-2 us-west-1 us-west-2 us-gov-east-1 us-gov-west-1",
    "CA": "ca-central-1 ca-west-1",
    "MX": "mx-central-1",
    "BR": "sa-east-1",
    "CL": "sa-west-1",
    "IE": "eu-west-1",
    "GB": "eu-west-2",
    "FR": "eu-west-3",
    "DE": "eu-central-1 eusc-de-east-1",
    "CH": "eu-central-2",
    "SE": "eu-north-1",
    "IT": "eu-south-1",
    "ES": "eu-south-2",
    "IL": "il-central-1",
    "AE": "me-central-1",
    "BH": "me-south-1",
    "SA": "me-west-1",
    "ZA": "af-south-1",
    "HK": "ap-east-1",
    "TW": "ap-east-2",
    "JP": "ap-northeast-1 ap-northeast-3",
    "KR": "ap-northeast-2",
    "IN": "ap-south-1 ap-south-2",
    "SG": "ap-southeast-1",
    "AU": "ap-southeast-2 ap-southeast-4",
    "ID": "ap-southeast-3",
    "MY": "ap-southeast-5",
    "NZ": "ap-southeast-6",
    "TH": "ap-southeast-7",
    "CN": "cn-north-1 cn-northwest-1",
}
_GCP = {
    "US": "us-central1 us-east1 us-east4 us-east5 us-south1 us-west1 us-west2 us-west3 us-west4",
    "CA": "northamerica-northeast1 northamerica-northeast2",
    "MX": "northamerica-south1",
    "BR": "southamerica-east1",
    "CL": "southamerica-west1",
    "BE": "europe-west1",
    "GB": "europe-west2",
    "DE": "europe-west3 europe-west10",
    "NL": "europe-west4",
    "CH": "europe-west6",
    "IT": "europe-west8 europe-west12",
    "FR": "europe-west9",
    "ES": "europe-southwest1",
    "PL": "europe-central2",
    "FI": "europe-north1",
    "SE": "europe-north2",
    "IL": "me-west1",
    "QA": "me-central1",
    "SA": "me-central2",
    "ZA": "africa-south1",
    "TW": "asia-east1",
    "HK": "asia-east2",
    "JP": "asia-northeast1 asia-northeast2",
    "KR": "asia-northeast3",
    "IN": "asia-south1 asia-south2",
    "SG": "asia-southeast1",
    "ID": "asia-southeast2",
    "AU": "australia-southeast1 australia-southeast2",
}
_AZURE = {
    "US": "eastus eastus2 centralus northcentralus southcentralus westcentralus westus westus2"
    " westus3 usgovvirginia usgovarizona usgovtexas usdodeast usdodcentral",
    "CA": "canadacentral canadaeast",
    "MX": "mexicocentral",
    "BR": "brazilsouth brazilsoutheast",
    "CL": "chilecentral",
    "IE": "northeurope",
    "NL": "westeurope",
    "GB": "uksouth ukwest",
    "FR": "francecentral francesouth",
    "DE": "germanywestcentral germanynorth",
    "CH": "switzerlandnorth switzerlandwest",
    "NO": "norwayeast norwaywest",
    "SE": "swedencentral swedensouth",
    "PL": "polandcentral",
    "IT": "italynorth",
    "ES": "spaincentral",
    "AT": "austriaeast",
    "BE": "belgiumcentral",
    "IL": "israelcentral",
    "AE": "uaenorth uaecentral",
    "QA": "qatarcentral",
    "ZA": "southafricanorth southafricawest",
    "HK": "eastasia",
    "SG": "southeastasia",
    "JP": "japaneast japanwest",
    "KR": "koreacentral koreasouth",
    "IN": "centralindia southindia westindia jioindiawest jioindiacentral",
    "AU": "australiaeast australiasoutheast australiacentral australiacentral2",
    "NZ": "newzealandnorth",
    "ID": "indonesiacentral",
    "MY": "malaysiawest",
    "CN": "chinaeast chinaeast2 chinaeast3 chinanorth chinanorth2 chinanorth3",
}
_CONTINENTS = {
    "North America": "US CA MX",
    "South America": "BR CL",
    "Europe": "IE GB FR DE CH SE IT ES NL BE PL FI NO AT",
    "Asia": "IL AE BH SA QA HK TW JP KR IN SG ID MY TH CN",
    "Oceania": "AU NZ",
    "Africa": "ZA",
}


def _turned(table: dict[str, str]) -> dict[str, str]:
    return {name: key for key, several in table.items() for name in several.split()}


COUNTRY_OF: dict[Provider, dict[str, str]] = {
    "aws": _turned(_AWS),
    "gcp": _turned(_GCP),
    "azure": _turned(_AZURE),
}
CONTINENT_OF: dict[str, str] = _turned(_CONTINENTS)

#: Google's places that are several regions. ``us``, ``eu`` and ``asia`` may use any of theirs;
#: Google keeps ``eu`` within the European Union, so without London and Zurich.
_EU = ["BE", "DE", "NL", "IT", "FR", "ES", "PL", "FI", "SE"]
_ASIA = ["TW", "HK", "JP", "KR", "IN", "SG", "ID"]
SEVERAL: dict[str, tuple[str, ...]] = {
    "us": tuple(_GCP["US"].split()),
    "eu": tuple(region for country in _EU for region in _GCP[country].split()),
    "asia": tuple(region for country in _ASIA for region in _GCP[country].split()),
    "nam4": ("us-central1", "us-east1"),
    "eur4": ("europe-north1", "europe-west4"),
    "eur5": ("europe-west1", "europe-west2"),
    "eur7": ("europe-west2", "europe-west3"),
    "eur8": ("europe-west3", "europe-west6"),
    "asia1": ("asia-northeast1", "asia-northeast2"),
}


def country_of(provider: Provider, region: str) -> str:
    """Return the country in which a provider's region lies, empty where the table does not know."""
    return COUNTRY_OF.get(provider, {}).get(region, "")


def continent_of(provider: Provider, region: str) -> str:
    """Return the continent on which a provider's region lies, empty where it is not known."""
    return CONTINENT_OF.get(country_of(provider, region), "")
