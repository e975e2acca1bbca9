"""The store in memory keeps every promise."""

from __future__ import annotations

import pytest

from ckptsyncd.stores.memory import MemoryStore
from tests.stores.conformance import Conformance
from tests.stores.samples import Behind


class TestMemory(Conformance):
    """The suite on a store in memory."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return an empty store."""
        return MemoryStore()

    @pytest.fixture
    def behind(self, store: MemoryStore) -> Behind:
        """Look at its dictionary."""
        return store.objects
