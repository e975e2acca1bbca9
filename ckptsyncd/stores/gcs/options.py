"""What a user can set about a Google Cloud Storage destination."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GcsOptions:
    """How to reach the bucket and how to store in it.

    Credentials are Google's application default credentials. None are sent where ``anonymous`` is
    set, nor to an endpoint without TLS, such as an emulator's (``endpoint_url``, or the SDK's own
    ``STORAGE_EMULATOR_HOST``). ``kms_key_name`` is the full resource name of a customer-managed
    key, unset: the bucket's own. ``storage_class`` is that of data; records stay in the bucket's.
    ``user_project`` pays for the requests, where it is not the bucket's. ``resumable`` takes
    sessions even where parallel uploads are possible. Time-outs are those of one wait on the
    socket, not of a whole request.
    """

    endpoint_url: str | None = None
    anonymous: bool = False
    kms_key_name: str | None = None
    storage_class: str | None = None
    user_project: str | None = None
    resumable: bool = False
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 60.0
