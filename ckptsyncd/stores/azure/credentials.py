"""Who we are to Azure: found anew for every client, so that what was replaced is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import BlobServiceClient

from ckptsyncd.errors import Refused, UsageError
from ckptsyncd.stores.azure.options import AzureOptions

#: Where an account is, unless an endpoint says otherwise.
PUBLIC = "https://{account}.blob.core.windows.net"

_HINT = "see 'az storage account show-connection-string' for what a connection string looks like"


@dataclass(frozen=True, slots=True)
class Access:
    """The account's address and what to present there."""

    account_url: str
    credential: Any


def access(account: str, options: AzureOptions, environment: Mapping[str, str]) -> Access:
    """Return how to reach the account: connection string, key, SAS, then the default credential.

    Raises UsageError where what is given belongs to another account or cannot be used, and Refused
    where the file with the token cannot be read.
    """
    text = options.connection_string or environment.get("AZURE_STORAGE_CONNECTION_STRING")
    if text:
        return _from_connection_string(text, account, options)
    url = (options.endpoint_url or PUBLIC.format(account=account)).rstrip("/")
    key = options.account_key
    sas = options.sas_token or (_read(options.sas_token_file) if options.sas_token_file else None)
    if not key and not sas:
        key = _of_account(account, "AZURE_STORAGE_KEY", environment)
        sas = _of_account(account, "AZURE_STORAGE_SAS_TOKEN", environment)
    if key:
        return Access(url, AzureNamedKeyCredential(account, key))
    if sas:
        return Access(url, AzureSasCredential(sas.lstrip("?")))
    return Access(url, default_credential())


def expires_at(credential: Any) -> float | None:
    """Return when a SAS token ends (its ``se``, UTC); ``None`` for every other credential."""
    if not isinstance(credential, AzureSasCredential):
        return None
    told = dict(parse_qsl(credential.signature)).get("se", "")
    try:
        # Python 3.10 does not read the Z; a date without a time means its beginning.
        end = datetime.fromisoformat(told.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (end if end.tzinfo else end.replace(tzinfo=timezone.utc)).timestamp()


def default_credential() -> Any:
    """Return the credential of a managed identity, a workload identity or a login of this user."""
    try:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - an extra of its own
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("azure.identity"):
            raise
        msg = "no connection string, key or SAS token was found, and azure-identity is missing"
        raise UsageError(
            msg, hint="pip install 'ckptsyncd[azure-identity]', or set AZURE_STORAGE_SAS_TOKEN"
        ) from error
    return DefaultAzureCredential()


def _from_connection_string(text: str, account: str, options: AzureOptions) -> Access:
    try:
        client = BlobServiceClient.from_connection_string(text)
    except ValueError:
        msg = "the connection string cannot be read"
        raise UsageError(msg, hint=_HINT) from None
    named = client.account_name
    if named != account:
        msg = f"the connection string is for the account {named!r}, the URL names {account!r}"
        raise UsageError(msg, hint="correct the URL, or unset AZURE_STORAGE_CONNECTION_STRING")
    pairs = (part.partition("=") for part in text.split(";"))
    parts = {name.strip().upper(): value for name, _, value in pairs}
    url = options.endpoint_url or str(client.primary_endpoint).partition("?")[0]
    if parts.get("ACCOUNTKEY"):
        return Access(url.rstrip("/"), AzureNamedKeyCredential(account, parts["ACCOUNTKEY"]))
    sas = parts.get("SHAREDACCESSSIGNATURE", "").lstrip("?")
    return Access(url.rstrip("/"), AzureSasCredential(sas))


def _read(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        msg = f"the file with the SAS token cannot be read: {error}"
        raise Refused(msg, hint="write the token, and nothing else, into the file") from error
    if "sig=" not in text:
        msg = f"{path} holds no SAS token"
        raise Refused(msg, hint="write the token, and nothing else, into the file")
    return text


def _of_account(account: str, variable: str, environment: Mapping[str, str]) -> str | None:
    """Return a variable that belongs to the account named beside it, if that is ours."""
    found = environment.get(variable)
    named = environment.get("AZURE_STORAGE_ACCOUNT", account)
    if found and named != account:
        msg = f"{variable} is for the account {named!r}, the URL names {account!r}"
        raise UsageError(msg, hint="correct the URL, or AZURE_STORAGE_ACCOUNT")
    return found
