"""How an adapter says what an answer means: the pieces that the tables of errors are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ckptsyncd.errors import Again, Missing, StoreError
from ckptsyncd.stores.clocks import wall_of

#: What is as good as a key to the store, inside an address that an error may quote: the name of a
#: session, a signature.
_SECRET = re.compile(r"\b(upload_id|uploadId|X-Goog-Signature|sig)=[^&\s)'\"]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind of error, with a better hint where there is one.

    ``acted``: a write may have taken effect although this was the answer. ``throttles``: the store
    wants fewer requests.
    """

    kind: type[StoreError]
    hint: str | None = None
    acted: bool = False
    throttles: bool = False


#: What every store means by a request too many.
SLOW = Verdict(
    Again, "the store asks for fewer requests; they are slowed down by themselves", throttles=True
)
#: What every store means by bytes that are not what was declared.
DAMAGED = Verdict(Again, "the bytes were damaged on their way, or changed while they were sent")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as it decides what its answer means.

    ``key`` is for people. ``absent`` is what a 404 without a better reason stands for: the object,
    the begun upload, or (for a write to a free key) the bucket.
    """

    verb: str
    key: str
    is_write: bool = False
    absent: type[StoreError] = Missing

    def error(self, verdict: Verdict, text: str, wait_seconds: float | None = None) -> StoreError:
        """Return the store error of a verdict; secrets are cut out of the text."""
        said = _SECRET.sub(r"\1=...", f"{self.verb} {self.key}: {text}")
        return verdict.kind(
            f"{said:.400}",
            hint=verdict.hint,
            wait_seconds=wait_seconds,
            ambiguous=verdict.acted and self.is_write,
            throttled=verdict.throttles,
        )


def seconds_of(retry_after: str | None, date: str | None = None) -> float | None:
    """Return what a Retry-After header asks for in seconds, ``None`` where it says nothing.

    A moment is told from the answer's own ``date``: our clock may be another.
    """
    text = retry_after or ""
    if text.isascii() and text.isdecimal():
        return float(text)
    until, now = wall_of(text), wall_of(date)
    return None if until is None or now is None else max(until - now, 0.0)
