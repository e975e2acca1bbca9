"""What a user can set about an Azure Blob destination."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AzureOptions:
    """How to reach the container and how to store in it.

    Credentials that are not given here are looked for in the SDK's own environment variables:
    ``AZURE_STORAGE_CONNECTION_STRING``, ``AZURE_STORAGE_KEY``, ``AZURE_STORAGE_SAS_TOKEN`` (with
    ``AZURE_STORAGE_ACCOUNT``), and last by ``DefaultAzureCredential``. ``sas_token_file`` is read
    again whenever the store refused what was read before: that is how a token is replaced.
    ``endpoint_url`` is the address of the account where it is not Azure's own (an emulator's
    includes the account). ``encryption_scope`` is that of everything, ``access_tier`` that of
    data: Hot, Cool or Cold. Time-outs are those of one wait on the socket, not of a whole request.
    """

    endpoint_url: str | None = None
    connection_string: str | None = field(default=None, repr=False)
    account_key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    sas_token_file: str | None = None
    encryption_scope: str | None = None
    access_tier: str | None = None
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 60.0
