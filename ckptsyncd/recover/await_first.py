"""The catalog and what a request means in it, now or when the first checkpoint has come."""

from __future__ import annotations

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, CkptsyncdError
from ckptsyncd.recover.catalog import Catalog, read_catalog
from ckptsyncd.recover.choose import Choice, choose
from ckptsyncd.recover.coming import coming
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.request import Progress, RestoreRequest

#: The first look comes again after so long, the pauses double up to the last (guessed: a list
#: every half minute costs a cent a day).
_FIRST_SECONDS = 1.0
_LAST_SECONDS = 30.0


def catalog_when_ready(
    store: Store, request: RestoreRequest, progress: Progress, pace: Pace
) -> tuple[Catalog, Choice]:
    """Return what the store holds and what the request means, at once or when ``wait`` is over.

    Raises NoCheckpoint and UsageError as ``choose`` says, StoreError where the store does not
    answer; all of them only when the time is over or ``wait`` is not asked for.
    """
    deadline = _deadline(request, pace)
    looks, told = 0, ""
    while True:
        found = _look(store, request, pace)
        if not isinstance(found, CkptsyncdError):
            return found
        left = deadline - pace.clock()
        if left <= 0 or pace.stop.is_set():
            raise found
        text = _words(found, store)
        if text != told:
            # Something moves: whoever uploads is followed closely, and not by a fixed timer.
            progress.said(f"waiting: {text}")
            looks, told = 0, text
        pace.wait(min(left, pause_seconds(looks, pace.draw())))
        looks += 1


def pause_seconds(looks: int, draw: float) -> float:
    """Return the pause after so many looks: doubling, half of it by chance."""
    widest = min(_LAST_SECONDS, _FIRST_SECONDS * 2.0 ** min(looks, 10))
    return widest * (1.0 + draw) / 2.0


def _deadline(request: RestoreRequest, pace: Pace) -> float:
    if not request.wait:
        return pace.clock()
    seconds = float("inf") if request.timeout_seconds is None else request.timeout_seconds
    return pace.clock() + seconds


def _look(
    store: Store, request: RestoreRequest, pace: Pace
) -> tuple[Catalog, Choice] | CkptsyncdError:
    """Return what is there, or the error that says why it is not (yet)."""
    try:
        catalog = read_catalog(store, pace)
    except Again as error:
        return error
    choice = choose(catalog, request)
    return choice.lack or (catalog, choice)


def _words(lack: CkptsyncdError, store: Store) -> str:
    """Say what is lacking, and how far whoever uploads is."""
    return "; ".join((str(lack), *(one.words for one in coming(store))))
