"""Azure Blob Storage keeps every promise on Azurite, which has all of it but CRC64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Piece
from ckptsyncd.core.ports import Expiring, Store
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import AzureServer
from tests.stores.conformance import Conformance
from tests.stores.samples import NONCE, ODD_KEYS, Behind, Mark, some_bytes, stored, upload

_numbers = count()


class TestAzurite(Conformance):
    """The suite below a prefix of its own."""

    @pytest.fixture
    def store(self, azurite_server: AzureServer) -> Iterator[AzureStore]:
        """Return an empty store."""
        made = AzureStore(
            azurite_server.account,
            azurite_server.container,
            f"run {next(_numbers)}",
            AzureOptions(azurite_server.endpoint, account_key=azurite_server.key),
        )
        yield made
        made.close()

    @pytest.fixture
    def behind(self, store: AzureStore, azurite_server: AzureServer) -> Behind:
        """Look with a plain client."""
        return lambda: azurite_server.objects(store._root)

    @pytest.fixture
    def mark(self, store: AzureStore, azurite_server: AzureServer) -> Mark:
        """Ask for the metadata with a plain client."""

        def of(key: str) -> str | None:
            with azurite_server.client() as client:
                found = client.get_blob_client(store._root + key).get_blob_properties().metadata
            return found.get("ckptsyncd_nonce")

        return of

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_odd_names_can_be_uploaded_in_pieces(
        self, store: Store, behind: Behind, key: str
    ) -> None:
        """Blocks and their commit go to exactly the key."""
        stored(store, key, b"abc")
        assert behind() == {key: b"abc"}

    def test_a_begun_upload_is_found_again(self, store: Store, behind: Behind) -> None:
        """A begun upload is a nonce and nothing else: there is nothing to find, nothing visible."""
        begun = store.begin("run/a", 2000, 1000, NONCE)
        assert begun.token == NONCE
        store.put_piece(begun, Piece(0, 0, 1000), BytesBody(some_bytes(1000)))
        assert list(store.uploads("")) == []
        assert list(store.list("")) == []
        assert behind() == {}

    def test_abandoning_leaves_blocks_that_nobody_sees(self, store: Store, behind: Behind) -> None:
        """Abandoning changes nothing, as the limits say; a new upload of the key just works."""
        assert not store.limits.can_abandon
        begun = store.begin("dropped", 2000, 1000, NONCE)
        store.put_piece(begun, Piece(0, 0, 1000), BytesBody(some_bytes(1000)))
        store.abandon(begun)
        assert behind() == {}
        data = some_bytes(1500, seed=3)
        again = store.begin("dropped", len(data), 1000, "other")
        store.finish(again, upload(store, again, data), crc64nvme(data), create_only=True)
        assert behind() == {"dropped": data}

    def reopened(self, store: Store) -> Store:
        """Return the store as another process would open it."""
        assert isinstance(store, AzureStore)
        wire = store._wire
        return AzureStore(wire.account, wire.container, store._root, store._options)


@pytest.mark.parametrize(
    ("token", "end"),
    [
        ("sv=2022-11-02&se=2030-01-02T03%3A04%3A05Z&sig=x", 1893553445.0),
        ("se=2030-01-02&sig=x", 1893542400.0),
        ("se=whenever&sig=x", None),
        ("sig=x", None),
    ],
)
def test_a_sas_token_tells_when_it_ends(token: str, end: float | None) -> None:
    """The end of a SAS token is read from it, without asking anybody."""
    store = AzureStore("account", "container", options=AzureOptions(sas_token=token))
    assert isinstance(store, Expiring)
    assert store.credentials_expire_at() == end
    store.close()
