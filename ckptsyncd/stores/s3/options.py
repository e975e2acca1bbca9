"""What a user can set about an S3 destination. Credentials are the SDK's own business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach the bucket and how to store in it; ``None`` leaves it to the SDK's config.

    ``path_style`` unset means: the bucket in the path wherever ``endpoint_url`` is set (few such
    servers have a name for every bucket), in the host name otherwise. ``trust_size`` skips reading
    back what a server that checks no content has stored. ``stay_in_region`` refuses to follow where
    a server sends us to another region. Time-outs are those of one wait on the
    socket, not of a whole request.
    """

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    path_style: bool | None = None
    sse: str | None = None
    kms_key_id: str | None = None
    storage_class: str | None = None
    trust_size: bool = False
    stay_in_region: bool = False
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 60.0
