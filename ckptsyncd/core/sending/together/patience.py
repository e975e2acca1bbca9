"""When to ask again for the others' parts: ever later, and no two nodes at the same time.

The spread is made from names, not from randomness: a turn gives the same orders again.
"""

from __future__ import annotations

import hashlib

#: The first pause and the longest (guessed: a commit is seen within half a minute, and a node that
#: waits for an hour asks some 240 times).
FIRST_SECONDS = 1.0
LAST_SECONDS = 30.0
#: The longest against a deadline (guessed).
HASTY_SECONDS = 2.0
#: Nodes that see the last part at the same moment begin to read so far apart, for each node there
#: is (guessed: a part is read in 20 ms).
TURN_SECONDS = 0.02
#: Of more nodes than these the first to say so commits: each that did would read all parts.
FEW_NODES = 16
#: So long for each node whoever commits is waited for before another one does (guessed).
COMMIT_SECONDS = 0.05
#: The hint to the latest is moved by whoever commits; the others look after it so much later, each
#: at another moment (guessed).
LATEST_SECONDS = 10.0


def spread(*names: object) -> float:
    """Return a number in [0, 1) that is the same for the same names and looks random otherwise."""
    digest = hashlib.sha256(repr(names).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def pause(asks: int, nonce: str, *, hasty: bool) -> float:
    """Return how long to wait after so many questions: doubling, from half to one and a half."""
    most = HASTY_SECONDS if hasty else LAST_SECONDS
    return min(FIRST_SECONDS * 2.0 ** min(asks, 10), most) * (0.5 + spread(nonce, asks))


def turn_delay(node: int, nodes: int, save_id: str) -> float:
    """Return how long after the last part a node begins to read: each at its place in a row."""
    place = (node + int(spread(save_id) * nodes)) % nodes
    return place * TURN_SECONDS


def commit_patience(nodes: int, nonce: str) -> float:
    """Return how long whoever commits is waited for at least, each node for another time."""
    return nodes * COMMIT_SECONDS * (1.0 + spread(nonce, nodes))


def latest_delay(node: int, nonce: str) -> float:
    """Return how long after somebody else's commit a node looks whether latest was moved."""
    return LATEST_SECONDS * (1.0 + spread(node, nonce))
