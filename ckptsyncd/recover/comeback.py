"""A machine that comes and goes: the newest checkpoint of every series into an empty directory.

A marker lies in our own directory from the first series to the last, so that a kill between two of
them leaves no directory that looks complete.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.errors import NoCheckpoint, NothingVerifies
from ckptsyncd.recover import staging
from ckptsyncd.recover.catalog import read_catalog
from ckptsyncd.recover.ground import entered, told, write_durably
from ckptsyncd.recover.occupied import content_of
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.request import Progress, RestoreRequest, RestoreResult, Silence
from ckptsyncd.recover.restore import restore

MARKER = "coming-back"


def come_back(
    store: Store, target: Path, progress: Progress | None = None, pace: Pace | None = None
) -> tuple[RestoreResult, ...]:
    """Restore the newest whole checkpoint of every series; nothing where ``target`` holds one.

    What was begun before is finished, whatever lies there. Raises NoCheckpoint where nothing was
    ever committed (a fresh start is right), NothingVerifies where no checkpoint of a series is
    whole (it is not), and everything else as ``restore`` does.
    """
    progress, pace = progress or Silence(), pace or Pace()
    ours = target / names.OURS.rstrip("/")
    with told(f"look into {str(target)!r}"):
        begun = (ours / MARKER).exists() or bool(staging.remains(ours))
        if not begun and (found := content_of(target)):
            progress.said(f"{str(target)!r} holds {found!r} already: nothing is restored")
            return ()
    catalog = read_catalog(store, pace)
    if not catalog.entries:
        if catalog.unreadable:
            msg = f"no checkpoint can be read, such as {catalog.unreadable[0].title}"
            raise NothingVerifies(msg)
        msg = "there is no checkpoint in the store"
        raise NoCheckpoint(msg)
    with told(f"restore into {str(target)!r}"):
        target.mkdir(parents=True, exist_ok=True)
        with entered(target, names.OURS.rstrip("/"), make=True):
            write_durably(ours, MARKER, b"")
    requests = [RestoreRequest(series=series.name) for series in catalog.series]
    done = tuple(restore(store, target, request, progress, pace) for request in requests)
    with suppress(FileNotFoundError):
        (ours / MARKER).unlink()
    return done
