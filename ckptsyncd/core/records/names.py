"""The remote format's names: where every object of a checkpoint lies under the prefix.

The layout is written down in ``docs/format.md``. Keys are relative to the store's prefix.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote_to_bytes

#: Everything that is not the user's own data lies below this.
OURS = ".ckptsyncd/"
MANIFESTS = OURS + "manifests/"
CLAIMS = OURS + "claims/"
TOMBSTONES = OURS + "tombstones/"
LATEST = OURS + "latest/"
POINTERS = OURS + "pointers/"
EPOCHS = OURS + "epochs/"
EDITIONS = OURS + "editions/"
COMPANIONS = OURS + "companions/"
REPORTS = OURS + "reports/"
#: What the last verification of everything found.
VERIFIED = OURS + "verified.json"
NODES = OURS + "nodes/"
STARTS = OURS + "starts/"
#: Whose turn it is where several daemons see one file system.
LEASE = OURS + "lease.json"

#: Longest quoted name that is used as it is; longer ones become a prefix and a hash (guessed: far
#: below S3's 1,024 bytes a key, and readable in a console).
MAX_QUOTED_BYTES = 200

#: What stays as it is in a data key: what every store takes and what frameworks use in names.
_SAFE_IN_KEYS = "/-_.~=+,@:()[]{} "


def quoted(name: str) -> str:
    """Return a checkpoint's or series' name as one path component, the same for everybody."""
    if name in ("", "."):
        return "%root"
    raw = name.encode("utf-8", "surrogateescape")
    text = quote(raw, safe="-_.~=+,@")
    if len(text) <= MAX_QUOTED_BYTES:
        return text
    return f"%{text[: MAX_QUOTED_BYTES - 30]}.{hashlib.sha256(raw).hexdigest()[:24]}"


def key_of_path(path: str) -> str:
    """Return the data key of a path: readable, percent-encoded where stores differ.

    That is the path's very object where nothing is encoded: of many files both are kept.
    """
    key = quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE_IN_KEYS)
    return path if key == path else key


def path_of_key(key: str) -> str:
    """Return the path that a data key was made from."""
    return unquote_to_bytes(key).decode("utf-8", "surrogateescape")


def manifest_key(checkpoint: str, edition: int) -> str:
    """Return where the commit record of one edition lies."""
    return f"{MANIFESTS}{quoted(checkpoint)}.{edition}.json"


def claim_key(checkpoint: str, edition: int) -> str:
    """Return where the claim on one edition lies."""
    return f"{CLAIMS}{quoted(checkpoint)}.{edition}.json"


def tombstone_key(checkpoint: str, edition: int) -> str:
    """Return where lies what is left of an edition that was pruned."""
    return f"{TOMBSTONES}{quoted(checkpoint)}.{edition}.json"


def latest_key(series: str) -> str:
    """Return where the hint to the newest edition of a series lies."""
    return f"{LATEST}{quoted(series)}.json"


def pointers_key(series: str) -> str:
    """Return where the framework's own pointers of a series are kept."""
    return f"{POINTERS}{quoted(series)}.json"


def epoch_key(series: str, node: int) -> str:
    """Return where the run epoch of one node of a series lies."""
    return f"{EPOCHS}{quoted(series)}.{node}.json"


def start_key(node: int) -> str:
    """Return where it is counted how often somebody started anew as this node."""
    return f"{STARTS}{node}.json"


def parts_prefix(checkpoint: str, edition: int) -> str:
    """Return below what the parts of an edition lie that several machines store."""
    return f"{NODES}{quoted(checkpoint)}.{edition}/"


def part_key(checkpoint: str, edition: int, node: int) -> str:
    """Return where one node's part of an edition lies."""
    return f"{parts_prefix(checkpoint, edition)}{node}.json"


def committer_key(checkpoint: str, edition: int) -> str:
    """Return where the first of many nodes says that it commits an edition."""
    return f"{parts_prefix(checkpoint, edition)}committer.json"


def parse_part_key(key: str, prefix: str) -> int | None:
    """Return the node whose part has this key, if it is one below the prefix."""
    text = key.removeprefix(prefix).removesuffix(".json")
    is_one = key == f"{prefix}{text}.json" and text.isascii() and text.isdecimal()
    return int(text) if is_one and len(text) < 10 else None  # noqa: PLR2004


def report_key(host: str, nonce: str, number: int) -> str:
    """Return where the report of a drain lies; it is never written twice."""
    return f"{REPORTS}{quoted(host)}.{nonce}.{number}.json"


def data_key(checkpoint: str, edition: int, path: str, salt: str = "") -> str:
    """Return where one file of an edition lies.

    Edition 1 lies at its plain path, loadable without us. Later ones, and any whose plain key is
    taken by a foreign object (``salt`` tells them apart), lie below ``.ckptsyncd/editions/``.
    """
    if edition == 1 and not salt:
        return key_of_path(path)
    suffix = f"{edition}-{salt}" if salt else str(edition)
    return f"{EDITIONS}{quoted(checkpoint)}/{suffix}/{key_of_path(path)}"


def parse_manifest_key(key: str) -> tuple[str, int] | None:
    """Return the quoted checkpoint and the edition that a manifest's key names, if it is one."""
    return _parse_numbered(key, MANIFESTS)


def parse_claim_key(key: str) -> tuple[str, int] | None:
    """Return the quoted checkpoint and the edition that a claim's key names, if it is one."""
    return _parse_numbered(key, CLAIMS)


def parse_tombstone_key(key: str) -> tuple[str, int] | None:
    """Return the quoted checkpoint and the edition that a tombstone's key names, if it is one."""
    return _parse_numbered(key, TOMBSTONES)


def _parse_numbered(key: str, below: str) -> tuple[str, int] | None:
    if not (key.startswith(below) and key.endswith(".json")):
        return None
    name, _, number = key[len(below) : -len(".json")].rpartition(".")
    if not (name and number.isascii() and number.isdecimal() and 0 < len(number) < 10):  # noqa: PLR2004
        return None
    return name, int(number)
