"""Who we are to S3: found as the SDK finds it, and found anew after the store refused it.

The SDK reads fixed keys of environment and files once in a process's life. Short-lived ones that
somebody replaces in the shared credentials file would stay the expired ones for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import NoCredentialsError
from botocore.session import Session


class Expired(Exception):
    """What gives the credentials gives expired ones."""


class Identity:
    """Credentials as the SDK's signers use them; they may be replaced while clients live.

    Stands in the place of the SDK's resolver and of the credentials that it resolves to.
    """

    def __init__(self, resolved: Callable[[], Any]) -> None:
        """Ask ``resolved`` for the SDK's own credentials, at the first use and when forgotten."""
        self._resolved = resolved
        self._found: Any = None
        self._lock = threading.Lock()

    def load_credentials(self) -> Identity:
        """Return the credentials of the session: these."""
        return self

    def current(self) -> Any:
        """Return the SDK's credentials, ``None`` where it finds none; they renew themselves."""
        with self._lock:
            if self._found is None:
                self._found = self._resolved()
            return self._found

    def forget(self) -> None:
        """Have files, environment and services read again at the next use."""
        with self._lock:
            self._found = None

    def get_frozen_credentials(self) -> Any:
        """Return keys that belong together; NoCredentialsError where there are none.

        Expired where there are new ones that have ended too: the SDK says that by a RuntimeError.
        """
        found = self.current()
        if found is None:
            raise NoCredentialsError
        try:
            return found.get_frozen_credentials()
        except RuntimeError as error:
            raise Expired(str(error)) from error

    def __getattr__(self, name: str) -> Any:
        """Return what the SDK's credentials say of themselves: id, method, account."""
        return getattr(self.current(), name, None)

    def get_deferred_property(self, name: str) -> Callable[[], Any]:
        """Return what reads a property once it is needed, as the SDK does for endpoints."""
        return lambda: getattr(self, name)


def identity_of(core: Session, profile: str | None) -> Identity:
    """Return the identity of a session, and put it where the session's clients look for it.

    It is resolved in a session of its own each time: sessions remember what they have read.
    """
    identity = Identity(lambda: Session(profile=profile).get_credentials())
    core.register_component("credential_provider", identity)
    return identity
