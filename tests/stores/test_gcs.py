"""Google Cloud Storage keeps every promise, as far as each emulator has the truth of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from urllib.parse import quote

import pytest
import requests

from ckptsyncd.core.facts import Piece
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Gone
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import BUCKET, GcsServer
from tests.stores.conformance import Conformance
from tests.stores.samples import (
    NONCE,
    ODD_KEYS,
    Behind,
    Mark,
    abandoned,
    piece_bytes_of,
    some_bytes,
    stored,
)

_numbers = count()


class OnGcs(Conformance):
    """The suite below a prefix of its own on ``server``."""

    #: Whether sessions are wanted where parallel parts are possible.
    resumable = False
    #: What the probe must find: parallel parts; conditions of puts; a condition of the end.
    finds = (False, False, False)
    #: Whether a session tells another process how far it is.
    resumes = True

    def test_the_probe_finds_what_the_server_does(self, store: Store) -> None:
        """The limits are what this server really does, and what is missing is said."""
        limits = store.limits
        found = (limits.pieces_in_parallel, limits.compare_and_set, limits.create_only_finish)
        assert found == self.finds
        assert ("ignores" in store.describe()) == (not all(self.finds[1:]))

    @pytest.fixture
    def store(self, server: GcsServer) -> Iterator[GcsStore]:
        """Return an empty store."""
        options = GcsOptions(endpoint_url=server.endpoint, resumable=self.resumable)
        made = GcsStore(BUCKET, f"run {next(_numbers)}", options)
        yield made
        made.close()

    @pytest.fixture
    def behind(self, store: GcsStore, server: GcsServer) -> Behind:
        """Look with a plain client."""
        return lambda: {
            key: data
            for key, data in server.objects(store._root).items()
            if not key.startswith(".ckptsyncd/uploads/")
        }

    @pytest.fixture
    def mark(self, store: GcsStore, server: GcsServer) -> Mark:
        """Ask for the metadata with a plain client."""

        def of(key: str) -> str | None:
            name = quote(store._root + key, safe="")
            url = f"{server.endpoint}/storage/v1/b/{BUCKET}/o/{name}"
            found: dict[str, str] = requests.get(url, timeout=10).json().get("metadata") or {}
            return found.get("ckptsyncd-nonce")

        return of

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_odd_names_can_be_uploaded_in_pieces(
        self, store: Store, behind: Behind, key: str
    ) -> None:
        """What grows under a name of its own ends under exactly the key."""
        stored(store, key, b"abc")
        assert behind() == {key: b"abc"}

    def test_a_begun_upload_is_found_again(self, store: Store, behind: Behind) -> None:
        """uploads() names begun parts; of a session it tells nothing: its address is a secret."""
        if store.limits.pieces_in_parallel:
            super().test_a_begun_upload_is_found_again(store, behind)
            return
        begun = store.begin("run/a", 2000, piece_bytes_of(store.limits), NONCE)
        assert list(store.uploads("run/")) == []
        store.put_piece(begun, Piece(0, 0, 2000), BytesBody(some_bytes(2000)))
        (found,) = store.uploads("run/")
        assert (found.key, found.nonce) == ("run/a", NONCE)
        assert list(store.list("run/")) == []
        assert behind() == {}
        abandoned(store, found)
        assert list(store.uploads("")) == []

    def test_an_upload_is_resumed_from_its_token(self, store: Store, behind: Behind) -> None:
        """A session is resumed where its server says it is; one server loses it when asked."""
        if self.resumes:
            super().test_an_upload_is_resumed_from_its_token(store, behind)
            return
        with pytest.raises(Gone):
            super().test_an_upload_is_resumed_from_its_token(store, behind)

    def reopened(self, store: Store) -> Store:
        """Return the store as another process would open it."""
        assert isinstance(store, GcsStore)
        return GcsStore(BUCKET, store._root, store._options)


class TestFakeGcs(OnGcs):
    """On fake-gcs-server: conditions of puts; a session that is asked how far it is ends there."""

    finds = (False, True, False)
    resumes = False

    @pytest.fixture
    def server(self, fake_gcs_server: GcsServer) -> GcsServer:
        """Use fake-gcs-server."""
        return fake_gcs_server


class TestGcpEmulator(OnGcs):
    """On gcp-storage-emulator: it compares checksums and resumes, and ignores every condition."""

    @pytest.fixture
    def server(self, gcp_emulator_server: GcsServer) -> GcsServer:
        """Use gcp-storage-emulator."""
        return gcp_emulator_server

    #: It answers any list in one page, and writes a key in 10 ms and more.
    many = 20


class TestAsDocumented(OnGcs):
    """On the front that adds what Google documents: moves and parallel parts."""

    finds = (True, True, True)
    many = TestGcpEmulator.many  # which stands behind

    @pytest.fixture
    def server(self, google_front: GcsServer) -> GcsServer:
        """Use the front."""
        return google_front


class TestAsDocumentedInOrder(TestAsDocumented):
    """On the same front, with sessions where parallel parts are not wanted."""

    finds = (False, True, True)
    resumable = True
