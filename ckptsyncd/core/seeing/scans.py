"""Which directories are to be listed, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.orders import Errand, Scan
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.tree import ancestors, is_below

#: A listing of everything rests at least this many times as long as it took (guessed: under a
#: tenth of one core, however large the tree is).
_REST_SHARE = 10.0
#: After a listing that failed (guessed).
_RETRY_SECONDS = 2.0


@dataclass(slots=True)
class Scans:
    """The listings that are due, those under way, and the subtrees that send no events."""

    policy: Policy
    wanted: dict[tuple[str, bool], float] = field(default_factory=lambda: {("", True): 0.0})
    under_way: dict[Errand, tuple[int, float]] = field(default_factory=dict)
    polled: set[str] = field(default_factory=set)
    sweep_at: float = float("inf")

    def want(self, path: str, at: float, *, recursive: bool = True) -> None:
        """Have a directory listed at a time (boot seconds), or earlier if that was wanted."""
        self.wanted[path, recursive] = min(at, self.wanted.get((path, recursive), at))

    def poll(self, path: str, now: float) -> None:
        """Have a subtree listed again and again."""
        if not any(is_below(path, other) for other in self.polled):
            self.polled = {other for other in self.polled if not is_below(other, path)} | {path}
            self.want(path, now)

    def due(self, now: float) -> Iterator[Scan]:
        """Yield what is to be listed now and is not being listed, parts before the whole."""
        if self.sweep_at <= now:
            self.sweep_at = float("inf")
            self.want("", now)
        ripe = [key for key, at in self.wanted.items() if at <= now]
        whole = {path for path, recursive in ripe if recursive and path}
        ripe = [key for key in ripe if not whole.intersection(ancestors(key[0])) or key[0] == ""]
        for path, recursive in sorted(ripe, key=lambda key: (key[0] == "", self.wanted[key], key)):
            errand = Errand("scan", path=path, index=int(recursive))
            if errand not in self.under_way:
                yield Scan(errand, path, recursive)

    def ordered(self, order: Scan, seq: int, now: float) -> None:
        """Note that a listing is under way: what it finds was so after count ``seq``."""
        if order.recursive:
            below = [key for key in self.wanted if key[0] and is_below(key[0], order.path)]
            for key in below:
                if key[0] not in self.polled and self.wanted[key] <= now:
                    del self.wanted[key]
        self.wanted.pop((order.path, order.recursive), None)
        self.under_way[order.errand] = (seq, now)

    def answered(self, errand: Errand, now: float, *, failed: bool) -> int | None:
        """Note that a listing came back; return its count, ``None`` where it was not ours."""
        begun = self.under_way.pop(errand, None)
        if begun is None:
            return None
        rest = (now - begun[1]) * _REST_SHARE
        recursive = bool(errand.index)
        if failed:
            self.want(errand.path, now + max(_RETRY_SECONDS, rest), recursive=recursive)
        elif errand.path in self.polled and recursive:
            self.want(errand.path, now + max(self.policy.poll_seconds, rest))
        if errand.path == "" and recursive:
            self.sweep_at = now + max(self.policy.sweep_seconds, rest)
        return begun[0]

    def next_alarm(self, now: float) -> float:
        """Return when the next listing becomes due after ``now`` (boot seconds)."""
        times = [at for at in (*self.wanted.values(), self.sweep_at) if at > now]
        return min(times, default=float("inf"))
