"""Stores on a volume as a daemon does, and says after each answer what is durable from then on."""

import os
import sys
from pathlib import Path

from ckptsyncd.core.facts import IfAbsent, IfMatches, Piece
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.volume.store import VolumeStore

top = Path(sys.argv[1])
store = VolumeStore(str(top / "durable"))


def said(key: str) -> None:
    """Tell that an answer about a key was given."""
    os.write(1, key.encode())


store.put_whole("ckpt-1/a.bin", BytesBody(b"a" * 5000), "nonce", create_only=True)
said("ckpt-1/a.bin")
# A directory that another hand has just made, or a former process that was killed right then.
(top / "durable" / "ckpt-2").mkdir()
store.put_whole("ckpt-2/b.bin", BytesBody(b"b" * 300), "nonce", create_only=True)
said("ckpt-2/b.bin")
data = bytes(range(256)) * 40
begun = store.begin("ckpt-2/deep/c.bin", len(data), 4096, "nonce")
receipts = []
for index in range(3):
    part = data[index * 4096 : index * 4096 + 4096]
    receipts.append(store.put_piece(begun, Piece(index, index * 4096, len(part)), BytesBody(part)))
whole = BytesBody(data)
store.finish(begun, receipts, whole.crc64nvme(), create_only=True)
said("ckpt-2/deep/c.bin")
store.put_small(".ckptsyncd/manifests/m.json", b'{"the": "manifest"}', IfAbsent())
said(".ckptsyncd/manifests/m.json")
version = store.put_small(".ckptsyncd/latest/l.json", b"one", IfAbsent())
said(".ckptsyncd/latest/l.json")
store.put_small(".ckptsyncd/latest/l.json", b"another", IfMatches(version))
said("another")
