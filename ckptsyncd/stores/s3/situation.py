"""What an S3 bucket says about itself: region, lifecycle, clock, and as whom it knows us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from ckptsyncd.core.rules.bucket import BucketRule, Location
from ckptsyncd.errors import Missing, Never, Refused, StoreError
from ckptsyncd.stores.clocks import wall_of
from ckptsyncd.stores.s3.faults import status_of
from ckptsyncd.stores.s3.wire import Params, Wire

#: Hosts where names of regions are AWS's own.
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws")
#: What GetBucketLocation says instead of a region's name ("LocationConstraint" in the S3 API).
_OLD_NAMES = {"": "us-east-1", "EU": "eu-west-1"}
_REGION_HEADER = "x-amz-bucket-region"


class S3Situation:
    """Asks one bucket."""

    def __init__(self, wire: Wire) -> None:
        """Ask over ``wire``; nothing is asked yet."""
        self._wire = wire
        self._host = str(urlsplit(wire.endpoint).hostname)

    def location(self) -> Location:
        """Return the region that the server names; elsewhere than AWS it may be any word."""
        is_aws = self._host.endswith(_AWS_HOSTS)
        try:
            told = str(self._ask("get_bucket_location").get("LocationConstraint") or "")
            region = _OLD_NAMES.get(told, told) if is_aws else told
        except (Refused, Never) as error:
            region = self._from_head(error)
        regions = (region.lower(),) if region else ()
        return Location("aws" if is_aws else "", regions, region.lower() or self._host)

    def rules(self) -> tuple[BucketRule, ...]:
        """Return the enabled rules; none where there is no lifecycle or the server has none."""
        try:
            answer = self._ask("get_bucket_lifecycle_configuration")
        except Missing:
            return ()
        except Never as error:
            if status_of(error) in (404, 405, 501):
                return ()
            raise
        return tuple(
            _rule(row) for row in answer.get("Rules", ()) if row.get("Status") == "Enabled"
        )

    def server_wall(self) -> float | None:
        """Return the clock in the answer's Date header, also where the answer is a refusal."""
        try:
            answer = self._ask("head_bucket")
        except StoreError as error:
            cause = error.__cause__
            wall = _wall(cause.response) if isinstance(cause, ClientError) else None
            if wall is None:
                raise
            return wall
        return _wall(answer)

    def endpoint(self) -> str:
        """Return the address to which requests go."""
        return self._wire.endpoint

    def key_id(self) -> str:
        """Return the access key's id, which is no secret."""
        return self._wire.key_id()

    def _from_head(self, refused: StoreError) -> str:
        """Return what HeadBucket names, which needs other rights; else raise the refusal."""
        try:
            region = _headers(self._ask("head_bucket")).get(_REGION_HEADER, "")
        except (Refused, Never, Missing):
            raise refused from None
        if not region:
            raise refused
        return str(region)

    def _ask(self, verb: str) -> Params:
        return self._wire.ask(verb, self._wire.bucket)


def _headers(answer: Mapping[str, Any]) -> Mapping[str, str]:
    headers: Mapping[str, str] = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return headers


def _wall(answer: Mapping[str, Any]) -> float | None:
    return wall_of(_headers(answer).get("date"))


def _rule(row: Mapping[str, Any]) -> BucketRule:
    found = row.get("Filter") or {}
    both = found.get("And") or found
    expires = row.get("Expiration") or {}
    aborts = row.get("AbortIncompleteMultipartUpload") or {}
    has_end = "Days" in expires or "Date" in expires
    return BucketRule(
        name=str(row.get("ID", "")),
        prefix=str(row.get("Prefix") or both.get("Prefix") or ""),
        expires_days=float(expires.get("Days", 0)) if has_end else None,
        aborts_days=float(aborts["DaysAfterInitiation"]) if aborts else None,
        is_tagged=bool(both.get("Tag") or both.get("Tags")),
    )
