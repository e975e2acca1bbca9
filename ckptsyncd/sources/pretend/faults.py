"""Everything that can go wrong between a question and its answer, on request."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ckptsyncd.sources.pretend.exchange import SILENCE, Reply, page

FOREVER = 10**9
BIG_BYTES = 10 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Fault:
    """One fault for the next ``count`` requests whose path matches ``route`` (``*`` is any)."""

    kind: str
    route: str
    count: int
    argument: str


class Faults:
    """The faults in force; the first that matches a request takes it."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def inject(
        self, kind: str, route: str = "*", *, count: int = FOREVER, argument: str = ""
    ) -> None:
        """Let requests go wrong in a way that ``KINDS`` lists; ``argument`` as told there."""
        if kind not in KINDS:
            msg = f"no fault is called {kind}"
            raise ValueError(msg)
        with self._lock:
            self._faults.append(Fault(kind, route, count, argument))

    def clear(self) -> None:
        """Let everything go well again."""
        with self._lock:
            self._faults.clear()

    def applied(self, path: str, make: Callable[[], Reply]) -> Reply:
        """Return the reply that ``make`` makes, or what the fault makes of it or in its place."""
        fault = self._taken(path)
        if fault is None:
            return make()
        return KINDS[fault.kind](make, fault.argument)

    def _taken(self, path: str) -> Fault | None:
        with self._lock:
            matching = (f for f in self._faults if f.count > 0 and fnmatchcase(path, f.route))
            fault = next(matching, None)
            if fault is not None:
                fault.count -= 1
            return fault


Make = Callable[[], Reply]


def _with(reply: Reply, body: bytes | None = None, **headers: str) -> Reply:
    added = {name.replace("_", "-"): value for name, value in headers.items()}
    body = reply.body if body is None else body
    return replace(reply, body=body, headers={**reply.headers, **added})


def _status(_make: Make, argument: str) -> Reply:
    return page(int(argument))


def _throttled(_make: Make, argument: str) -> Reply:
    return replace(page(429), headers={"Retry-After": argument} if argument else {})


def _portal(make: Make, _argument: str) -> Reply:
    return replace(page(200), headers=make().headers)


def _truncated(make: Make, _argument: str) -> Reply:
    reply = make()
    return _with(reply, reply.body[: len(reply.body) * 2 // 3])


def _zipped(make: Make, _argument: str) -> Reply:
    reply = make()
    return _with(reply, gzip.compress(reply.body), Content_Encoding="gzip")


def _doubled(make: Make, _argument: str) -> Reply:
    """Write every field of an object twice, a wrong value first."""
    reply = make()
    fields: Mapping[str, object] = json.loads(reply.body)
    pairs = [f"{json.dumps(k)}:null,{json.dumps(k)}:{json.dumps(v)}" for k, v in fields.items()]
    return _with(reply, ("{" + ",".join(pairs) + "}").encode())


def _extra(make: Make, _argument: str) -> Reply:
    reply = make()
    fields = {"Unheard": {"of": [1]}, **json.loads(reply.body)}
    return _with(reply, json.dumps(fields).encode())


def _headless(make: Make, argument: str) -> Reply:
    reply = make()
    known = {k: v for k, v in reply.headers.items() if k.lower() != argument.lower()}
    return replace(reply, headers=known)


#: How each fault makes a reply; what ``argument`` means is behind it.
KINDS: Mapping[str, Callable[[Make, str], Reply]] = {
    "silence": lambda _make, _: SILENCE,
    "reset": lambda make, _: replace(make(), manner="reset"),
    "drip": lambda make, _: replace(make(), manner="drip"),
    "chunked": lambda make, _: replace(make(), manner="chunked"),
    "close": lambda make, _: replace(make(), manner="close"),
    "status": _status,  # the status
    "throttled": _throttled,  # Retry-After, empty for none
    "portal": _portal,
    "truncated": _truncated,
    "bom": lambda make, _: _with(reply := make(), BOM + reply.body),
    "type": lambda make, argument: _with(make(), Content_Type=argument),  # the content type
    "empty": lambda make, _: _with(make(), b""),
    "big": lambda make, _: _with(make(), b" " * BIG_BYTES),
    "gzip": _zipped,
    "redirect": lambda _make, argument: Reply(302, headers={"Location": argument}),  # the URL
    "doubled": _doubled,
    "extra": _extra,
    "date": lambda make, argument: _with(make(), Date=argument),  # the header
    "etag": lambda make, argument: _with(make(), ETag=argument),  # the tag
    "headless": _headless,  # the header that is missing
    "body": lambda make, argument: _with(make(), argument.encode()),  # the body
}
