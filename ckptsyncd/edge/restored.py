"""What a restore noted in the watch root, where others may write too."""

from __future__ import annotations

from ckptsyncd.core.ports import Disk
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Restorations
from ckptsyncd.edge.seen import words
from ckptsyncd.errors import Never

_NOTE = ".ckptsyncd/restored.json"


def lineages(disk: Disk) -> tuple[dict[str, int], str]:
    """Return the lineage of each series that was restored into a watch root.

    The text says why the note cannot be used, whatever lies in its place; then none is known.
    """
    try:
        data = disk.read_small(_NOTE, MAX_RECORD_BYTES)
        rows = () if data is None else Restorations.decode(data).rows
    except OSError as error:
        return {}, f"{_NOTE} cannot be read: {words(error)}"
    except Never as error:
        return {}, f"{_NOTE} is damaged: {error}"
    return {row.series: row.lineage for row in rows}, ""
