"""A watcher that hears made-up bytes in the kernel's stead."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from hypothesis import strategies as st
from inotify_simple import INotify, flags

from ckptsyncd.core.messages import Polled, Touched
from ckptsyncd.edge.watcher import Hint, Watcher


class Fed(INotify):  # type: ignore[misc]  # it has no types
    """An inotify instance that says what it is fed, once, before what the kernel says."""

    fed = b""

    def _readall(self) -> bytes:
        fed, self.fed = self.fed, b""
        return fed + bytes(super()._readall())


class Hearing(Watcher):
    """Lets go by one turn at a time, as its thread would."""

    def _instance(self) -> INotify:
        return Fed()

    def hears(self, data: bytes = b"") -> None:
        """Take these bytes for events."""
        if isinstance(self._inotify, Fed):
            self._inotify.fed = data
        os.write(self._end, b".")  # there is nothing to wait for
        self._turn_or_go_blind()
        os.read(self._ended, 1)

    def watched(self) -> list[str]:
        """Return the directories that are watched."""
        return list(self._watches._paths.values())


def hear(data: bytes, place: Path) -> None:
    """Take it for events; the watcher stays in its root, and hears what happens afterwards."""
    root = place.parent / "watched"
    (root / "sub").mkdir(parents=True, exist_ok=True)
    (place.parent / "beside").mkdir(exist_ok=True)
    told: list[Hint] = []
    watcher = Hearing(root, told.append)
    try:
        watcher.hears()
        watcher.hears(data)
        for path in [one.path for one in told if isinstance(one, Touched | Polled)]:
            assert is_inside(path), path
        assert all(is_inside(path) and (root / path).is_dir() for path in watcher.watched())
        # A root that seemed to have ended is sought, and watched again.
        watcher.hears()
        (root / "after").write_bytes(b"")
        watcher.hears()
        (root / "after").unlink()
        assert Touched("after") in told or watcher.polled == ("",)
    finally:
        watcher.stop()


def is_inside(path: str) -> bool:
    """Return whether a path is one below the root, or the root itself."""
    return not path or not any(part in ("", ".", "..") for part in path.split("/"))


def event(
    number: int, mask: int, cookie: int, name: bytes, told_length: int | None = None
) -> bytes:
    """Return an event as the kernel writes it, or (``told_length``) as it never would."""
    length = len(name) if told_length is None else told_length
    return struct.pack("iIII", number, mask, cookie, length) + name


NAMES = st.sampled_from(
    [
        *(b"", b"a.pt\0\0\0", b"sub\0", b"..\0", b"../beside\0", b"/etc\0", b".\0", b"a/../../b"),
        *(b"\xff\xfe\x80\0", b"\x1b[31m\r\n\0", b"\xe2\x80\xae\0", b"x" * 255, b".ckptsyncd\0"),
    ]
) | st.binary(max_size=20)
EVENTS = st.builds(
    event,
    st.sampled_from([-1, 0, 1, 2, 3, 2**31 - 1, -(2**31)]),
    st.lists(st.sampled_from(list(flags)), max_size=3).map(
        lambda some: sum({int(f) for f in some})
    ),
    st.sampled_from([0, 1, 2**32 - 1]),
    NAMES,
    st.none() | st.sampled_from([0, 1, 17, 2**16, 2**31, 2**32 - 1]),
)
#: Some events, perhaps cut off.
BYTES = st.builds(
    lambda events, cut: b"".join(events)[: -cut or None],
    st.lists(EVENTS, min_size=1, max_size=6),
    st.integers(0, 20),
)
