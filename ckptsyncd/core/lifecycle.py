"""The states of an edition and of the daemon, and the tables of legal moves.

An *edition* is one fixed content of one checkpoint name. It starts as ``writing`` (the trainer may
still change it), is ``settled`` once its layout is satisfied and its files are pinned,
``uploading`` while pieces go out, ``sealing`` between the second look and the manifest, and
``safe`` when its manifest was seen in the store. Three ways lead aside: ``superseded`` (a newer one
goes first), ``parked`` (given up for now, with a reason and a time), ``vanished`` (the trainer
removed it before it was safe, and it could not be kept pinned).

A move that is not in the table is an error of this program, not of the world: it raises.
"""

from __future__ import annotations

from typing import Literal

State = Literal[
    "writing", "settled", "uploading", "sealing", "safe", "superseded", "parked", "vanished"
]
DaemonState = Literal["starting", "running", "draining", "drained", "stopped", "fenced"]

MEANING: dict[State, str] = {
    "writing": "the trainer may still change it",
    "settled": "whole and pinned, waiting for a turn",
    "uploading": "its pieces are on their way",
    "sealing": "all bytes are in the store; second look and manifest are under way",
    "safe": "every byte is in the store, checked there, and the manifest is committed",
    "superseded": "not uploaded: a newer checkpoint of its series went first",
    "parked": "given up for now; the reason says why and what to do",
    "vanished": "the trainer removed it before it was safe, and it could not be kept",
}

MOVES: dict[State, frozenset[State]] = {
    "writing": frozenset({"settled", "parked", "vanished", "safe"}),
    "settled": frozenset({"uploading", "superseded", "parked", "vanished", "writing", "safe"}),
    "uploading": frozenset({"sealing", "superseded", "parked", "vanished", "writing", "safe"}),
    "sealing": frozenset({"safe", "uploading", "superseded", "parked", "vanished", "writing"}),
    "safe": frozenset({"writing", "vanished"}),
    "superseded": frozenset({"writing", "settled", "vanished"}),
    "parked": frozenset({"writing", "settled", "uploading", "sealing", "vanished", "superseded"}),
    "vanished": frozenset({"writing"}),
}

DAEMON_MEANING: dict[DaemonState, str] = {
    "starting": "reading the ledger, the store's manifests and the disk",
    "running": "watching and uploading",
    "draining": "an interruption notice is in force: the newest checkpoint that fits goes first",
    "drained": "everything finished is safe after a notice; still watching",
    "stopped": "the process ends",
    "fenced": "a newer daemon took this run over; nothing more is made latest from here",
}

DAEMON_MOVES: dict[DaemonState, frozenset[DaemonState]] = {
    "starting": frozenset({"running", "draining", "stopped", "fenced"}),
    "running": frozenset({"draining", "stopped", "fenced"}),
    "draining": frozenset({"drained", "starting", "running", "stopped", "fenced"}),
    "drained": frozenset({"running", "draining", "stopped", "fenced"}),
    "fenced": frozenset({"stopped"}),
    "stopped": frozenset(),
}


def checked_move(old: State, new: State) -> State:
    """Return ``new`` if an edition may go there from ``old``; AssertionError names both if not."""
    if new != old and new not in MOVES[old]:
        msg = f"an edition cannot go from {old} to {new}"
        raise AssertionError(msg)
    return new


def checked_daemon_move(old: DaemonState, new: DaemonState) -> DaemonState:
    """Return ``new`` if the daemon may go there from ``old``; AssertionError names both if not."""
    if new != old and new not in DAEMON_MOVES[old]:
        msg = f"the daemon cannot go from {old} to {new}"
        raise AssertionError(msg)
    return new
