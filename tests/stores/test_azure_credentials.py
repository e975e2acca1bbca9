"""Azure Blob's credentials: found in the SDK's order, replaced, refused, missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent
from ckptsyncd.errors import Missing, Refused, UsageError
from ckptsyncd.stores.azure.credentials import access
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import AzureServer
from tests.stores.azure_bench import Opened, token
from tests.stores.samples import NONCE, pieces_of, read, some_bytes, stored

NOBODY = "DefaultEndpointsProtocol=https;AccountName=other;AccountKey=Zm9v;EndpointSuffix=core.test"


def test_a_sas_token_is_enough(azure_opened: Opened, azurite_server: AzureServer) -> None:
    """Everything that the store does is allowed by read, add, create, write, delete and list."""
    store = azure_opened(sas_token=token(azurite_server, 5))
    data = some_bytes(3000)
    stored(store, "a", data)
    store.put_small("b", b"x", IfAbsent())
    assert [fact.key for fact in store.list("")] == ["a", "b"]
    assert read(store, "a", len(data)) == data
    store.delete("a")
    assert "sig=" not in store.describe()


def test_a_sas_token_that_is_replaced_in_its_file_is_seen(
    azure_opened: Opened, azurite_server: AzureServer, tmp_path: Path
) -> None:
    """An expired token is Refused; once the file has a new one the upload goes on where it was."""
    file = tmp_path / "sas"
    file.write_text(token(azurite_server, 5) + "\n")
    store = azure_opened(sas_token_file=str(file))
    data = some_bytes(2000)
    begun = store.begin("rotated", len(data), 1000, NONCE)
    (first, left), (second, right) = pieces_of(data, 1000)
    receipts = [store.put_piece(begun, first, BytesBody(left))]
    file.write_text(token(azurite_server, -5))
    store.close()  # as a refusal does
    with pytest.raises(Refused) as refused:
        store.put_piece(begun, second, BytesBody(right))
    assert "sig=" not in str(refused.value).replace("sig=...", "")
    file.write_text("not a token")
    with pytest.raises(Refused, match="no SAS token"):
        store.put_piece(begun, second, BytesBody(right))
    file.write_text(token(azurite_server, 5))
    receipts.append(store.put_piece(begun, second, BytesBody(right)))
    store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert read(store, "rotated", len(data)) == data


def test_a_token_without_a_permission_is_refused(
    azure_opened: Opened, azurite_server: AzureServer
) -> None:
    """A token that may only read does not write, and the hint says what is needed."""
    store = azure_opened(sas_token=token(azurite_server, 5, "rl"))
    with pytest.raises(Refused) as refused:
        store.put_small("a", b"x", None)
    assert refused.value.hint
    with pytest.raises(Missing):
        store.stat("a")


def test_a_wrong_key_is_refused_and_stays_secret(azure_opened: Opened) -> None:
    """A key that is not the account's is Refused; no part of it is told."""
    wrong = "c2VjcmV0IHRoYXQgaXMgbm90IHRoZSBhY2NvdW50J3M="
    store = azure_opened(account_key=wrong)
    with pytest.raises(Refused) as refused:
        store.put_small("a", b"x", None)
    assert wrong not in str(refused.value)
    assert wrong not in repr(store._options)


def test_credentials_are_looked_for_in_the_sdks_own_order(tmp_path: Path) -> None:
    """Connection string, then key, then SAS, from the options before the environment."""
    key, sas = "a2V5", "sv=1&sig=abc"
    text = (
        "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=Zm9v;EndpointSuffix=core.test"
    )
    file = tmp_path / "sas"
    file.write_text(f"?{sas}\n")
    found = access("acct", AzureOptions(), {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert found.account_url == "https://acct.blob.core.test"
    assert found.credential.named_key.key == "Zm9v"
    both = {"AZURE_STORAGE_KEY": key, "AZURE_STORAGE_SAS_TOKEN": sas}
    found = access("acct", AzureOptions(), both)
    assert found.account_url == "https://acct.blob.core.windows.net"
    assert found.credential.named_key.key == key
    assert access("acct", AzureOptions(sas_token_file=str(file)), both).credential.signature == sas
    assert access("acct", AzureOptions(account_key="b3Ro"), both).credential.named_key.key == "b3Ro"


def test_credentials_of_another_account_are_no_accident() -> None:
    """A connection string or a key that names another account is told, not presented."""
    for environment in (
        {"AZURE_STORAGE_CONNECTION_STRING": NOBODY},
        {"AZURE_STORAGE_ACCOUNT": "other", "AZURE_STORAGE_KEY": "a2V5"},
        {"AZURE_STORAGE_CONNECTION_STRING": "nonsense"},
    ):
        with pytest.raises(UsageError):
            access("acct", AzureOptions(), environment)


def test_a_missing_extra_is_told_with_the_command_that_brings_it() -> None:
    """Without azure-identity, and without a key, the error names the pip command."""
    program = (
        "import sys; sys.modules['azure.identity'] = None\n"
        "from ckptsyncd.errors import UsageError\n"
        "from ckptsyncd.stores.open import open_store\n"
        "try: open_store('az://account/container')\n"
        "except UsageError as error: print(error.hint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, text=True, check=True
    )
    assert "pip install 'ckptsyncd[azure-identity]'" in told.stdout


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("az://account/container", "azure.storage.blob", "azure"),
        ("gs://bucket", "google.cloud.storage", "gcs"),
    ],
)
def test_a_missing_sdk_is_told_with_the_command_that_brings_it(
    url: str, module: str, extra: str
) -> None:
    """Where an SDK is not installed the error names its extra, and no other URL needs it."""
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from ckptsyncd.errors import UsageError\n"
        "from ckptsyncd.stores.open import open_store\n"
        "open_store('file:///tmp/somewhere')\n"
        f"try: open_store({url!r})\n"
        "except UsageError as error: print(error.hint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, text=True, check=True
    )
    assert f"pip install 'ckptsyncd[{extra}]'" in told.stdout
