"""What every store checks before it touches anything, so that all of them refuse alike."""

from __future__ import annotations

from collections.abc import Sequence

from ckptsyncd.checksum import combined
from ckptsyncd.core.facts import Begun, Limits, Piece, Receipt
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone, Never


def check_key(key: str, limits: Limits) -> None:
    """Raise Never where the key is too long, or could be taken for another one or for a way out.

    Empty components are refused because SeaweedFS folds ``a//b`` into ``a/b``, dots because a
    volume would leave its directory.
    """
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        msg = f"a key that is no UTF-8 text is refused: {key!r:.200}"
        raise Never(msg) from None
    if length > limits.max_key_bytes:
        msg = f"a key of {length} bytes is over the store's {limits.max_key_bytes}: {key!r:.80}..."
        raise Never(msg, hint="shorten the names of the checkpoints or the prefix of the URL")
    if "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
        msg = f"a key with an empty, '.' or '..' component is refused: {key!r:.200}"
        raise Never(msg)


def check_plan(limits: Limits, key: str, size: int, piece_bytes: int) -> None:
    """Raise Never where an upload of this size in such pieces is not possible with these limits."""
    check_key(key, limits)
    count = -(-size // piece_bytes) if piece_bytes > 0 else 0
    fault = ""
    if size > limits.max_object_bytes:
        fault = f"{size} bytes are over the store's {limits.max_object_bytes} for one object"
    elif not 0 < piece_bytes <= limits.max_piece_bytes:
        fault = f"pieces of {piece_bytes} bytes are not between 1 and {limits.max_piece_bytes}"
    elif count > 1 and (
        piece_bytes < limits.min_piece_bytes or piece_bytes % limits.piece_multiple
    ):
        fault = (
            f"pieces of {piece_bytes} bytes are under {limits.min_piece_bytes} "
            f"or no multiple of {limits.piece_multiple}"
        )
    elif count > limits.max_pieces:
        fault = f"{count} pieces are over the store's {limits.max_pieces}"
    if fault:
        msg = f"{key}: {fault}"
        raise Never(msg)


def check_piece(begun: Begun, piece: Piece, body: Body) -> None:
    """Raise Never where the piece does not lie where its number says, or its body is not its."""
    offset = piece.index * begun.piece_bytes
    length = min(begun.piece_bytes, begun.size - offset)
    if (piece.offset, piece.length, body.length) != (offset, length, length):
        msg = (
            f"{begun.key}: piece {piece.index} is {piece.length} bytes at {piece.offset} with a "
            f"body of {body.length}, not {length} at {offset}"
        )
        raise Never(msg)


def check_sent(key: str, sent: int, body: Body) -> int:
    """Return the checksum of the bytes that were sent, if the body says the same; else raise Again.

    They differ where the file changed between two readings, or memory failed.
    """
    claimed = body.crc64nvme()
    if claimed != sent:
        msg = f"{key}: the bytes sent have the checksum {sent:016x}, the body {claimed:016x}"
        raise Again(msg)
    return sent


def in_order(begun: Begun, receipts: Sequence[Receipt]) -> tuple[Receipt, ...]:
    """Return the receipts in the order of their pieces; Never where they are not all of them."""
    ordered = tuple(sorted(receipts, key=lambda receipt: receipt.index))
    indices = [receipt.index for receipt in ordered]
    total = sum(receipt.length for receipt in ordered)
    if indices != list(range(len(ordered))) or total != begun.size:
        msg = f"{begun.key}: {len(ordered)} pieces with {total} bytes are not all of {begun.size}"
        raise Never(msg)
    return ordered


def adds_up(ordered: Sequence[Receipt], crc64nvme: int) -> bool:
    """Tell whether the checksums of the pieces combine to that of the whole."""
    return combined((receipt.crc64nvme, receipt.length) for receipt in ordered) == crc64nvme


def not_adding_up(key: str) -> Gone:
    """Return the error for an upload that was dropped because its pieces were not the file.

    Sending the same pieces again cannot help and beginning anew can, which is what Gone stands for.
    """
    msg = f"{key}: the pieces do not add up to the checksum of the whole; the upload is dropped"
    return Gone(msg)
