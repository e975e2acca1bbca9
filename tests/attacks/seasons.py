"""Seasons of trouble between the program and a store, one after the other, each of one kind."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.attacks.certificates import DAY, Authority, authority
from tests.attacks.storm import Storm
from tests.proxy import Proxy

#: The store's name, known to nobody but those who read our list of hosts.
HOST = "store.test"

#: Runs a command that sees a list of hosts of ours in the system's stead, and no name server.
NAMES = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is that can be told to vanish: its name, its certificates, its proxy."""

    proxy: Proxy
    folder: Path
    authority: Authority

    @property
    def endpoint(self) -> str:
        """The store's URL."""
        return f"https://{HOST}:{self.proxy.server.server_address[1]}"

    @property
    def hosts(self) -> Path:
        """The list of hosts, whose inode stays: it is bound over the system's."""
        return self.folder / "hosts"

    @property
    def under(self) -> tuple[str, ...]:
        """The command that the program runs under."""
        alone = ("unshare", "--mount", "--propagation=private", "sh", "-c", NAMES, "sh")
        return (*alone, str(self.hosts), str(self.folder / "resolv.conf"))

    def named(self, *, is_there: bool) -> None:
        """Let the store's name be found, or not."""
        self.hosts.write_text(f"127.0.0.1 localhost {HOST if is_there else ''}\n")

    def certified(self, ends: dt.timedelta) -> None:
        """Let the store's certificate end so long from now."""
        self.proxy.tls = self.authority.context(HOST, ends)


def place(proxy: Proxy, folder: Path) -> Place:
    """Make the place; it is there, and its certificate holds."""
    folder.mkdir()
    made = Place(proxy, folder, authority(folder))
    # No name server listens there: a name that is not in the list cannot be found out.
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    made.named(is_there=True)
    made.certified(DAY)
    return made


Ways = Mapping[str, int]


@contextmanager
def of_requests(here: Place, storm: Storm, share: float, ways: Ways) -> Iterator[None]:
    """Let a share of all requests go wrong in these ways."""
    del here
    before = storm.share, storm.ways
    storm.share, storm.ways = share, ways
    try:
        yield
    finally:
        storm.share, storm.ways = before


@contextmanager
def throttled(here: Place, storm: Storm) -> Iterator[None]:
    """Let the link be slow, and the store ask for patience."""
    here.proxy.speed = 2e6
    try:
        with of_requests(here, storm, 0.6, {"503": 2, "429": 1}):
            yield
    finally:
        here.proxy.speed = None


@contextmanager
def in_finish(here: Place, storm: Storm) -> Iterator[None]:
    """Let every request that finishes an upload, or writes a manifest, end in a reset."""
    del storm
    targets = ("POST", r"uploadId="), ("PUT", r"/manifests/")
    rules = [here.proxy.rule("reset", *one, times=10**6) for one in targets]
    try:
        yield
    finally:
        for rule in rules:
            rule.times = 0


@contextmanager
def nameless(here: Place, storm: Storm) -> Iterator[None]:
    """Let the store's name be unknown."""
    del storm
    here.named(is_there=False)
    here.proxy.cut()
    try:
        yield
    finally:
        here.named(is_there=True)


@contextmanager
def expired(here: Place, storm: Storm) -> Iterator[None]:
    """Let the certificate's time be over."""
    del storm
    here.certified(-DAY)
    here.proxy.cut()
    try:
        yield
    finally:
        here.certified(DAY)


Season = Callable[[Place, Storm], AbstractContextManager[None]]


def _kind(share: float, *ways: str) -> Season:
    return lambda here, storm: of_requests(here, storm, share, dict.fromkeys(ways, 1))


SEASONS: dict[str, Season] = {
    "drops": _kind(0.5, "refuse", "reset"),
    "delays": _kind(0.3, "delay"),
    "half answers": _kind(0.5, "half"),
    "refusals": _kind(1.0, "500", "503"),
    "lost answers": _kind(0.5, "swallow"),
    "revoked": _kind(1.0, "403"),
    "throttled": throttled,
    "in finish": in_finish,
    "nameless": nameless,
    "expired": expired,
}


def in_turn(random: Random) -> list[str]:
    """Return all seasons in some order."""
    return random.sample(list(SEASONS), len(SEASONS))
