"""Azure Blob Storage keeps every promise on Azurite, which has all of it but CRC64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from tests.emulators import AzureServer
from tests.stores.conformance import Behind, Conformance

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
