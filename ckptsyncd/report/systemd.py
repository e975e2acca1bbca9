"""The service manager's notification protocol, without a library: one datagram a message.

Nothing is sent, and nothing fails, where no service manager listens. A tap: ``turn`` says that the
program is ready, keeps the status line up to date, and feeds the watchdog while the loop turns.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status import summary

#: The status line is sent at most this often (guessed: people read it, programs do not).
_STATUS_SECONDS = 1.0
#: The manual asks for a message in half the time; a quarter forgives one late turn.
_WATCHDOG_SHARE = 4


class Systemd:
    """Tells the service manager how it goes.

    ``watchdog_seconds`` is the time without a sign of life after which it restarts us, or ``None``.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the address (NOTIFY_SOCKET) and the watchdog's time from the environment."""
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self.watchdog_seconds = _watchdog_seconds(environ)
        self._told_ready = False
        self._status = ""
        self._status_at = self._fed_at = float("-inf")

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Send what this turn of the loop makes due."""
        del moves
        if not self._address:
            return
        if not self._told_ready:
            self._told_ready = self.ready()
        if now.boot - self._status_at >= _STATUS_SECONDS:
            self._tell_status(summary(snapshot, now.wall), now.boot)
        often = self.watchdog_seconds
        if often is not None and now.boot - self._fed_at >= often / _WATCHDOG_SHARE:
            self._fed_at = now.boot
            self.watchdog()

    def ready(self) -> bool:
        """Say that the program has started; every method returns whether anybody was told."""
        return self._send("READY=1")

    def status(self, text: str) -> bool:
        """Say in one line how it goes."""
        return self._send(f"STATUS={' '.join(text.split())}")

    def stopping(self) -> bool:
        """Say that the program is about to end."""
        return self._send("STOPPING=1")

    def reloading(self, monotonic_seconds: float) -> bool:
        """Say that the settings are read again; ``ready`` says that this is over."""
        return self._send(f"RELOADING=1\nMONOTONIC_USEC={int(monotonic_seconds * 1e6)}")

    def extend_timeout(self, seconds: float) -> bool:
        """Ask not to be killed for so many seconds from now, while starting or stopping."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def watchdog(self) -> bool:
        """Say that the loop still turns."""
        return self._send("WATCHDOG=1")

    def _tell_status(self, text: str, boot: float) -> None:
        self._status_at = boot
        if text != self._status and self.status(text):
            self._status = text

    def _send(self, message: str) -> bool:
        """Send a datagram without ever waiting: a full queue is no reason to stop the loop."""
        if not self._address:
            return False
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with socket.socket(socket.AF_UNIX, kind) as sender:
            try:
                sender.sendto(message.encode("utf-8", "replace"), self._address)
            except OSError:
                return False
        return True


def _address(text: str) -> bytes:
    """Return the socket's address; ``@`` stands for the zero byte of an abstract one."""
    return os.fsencode("\0" + text[1:] if text.startswith("@") else text)


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return the watchdog's time if it is meant for this process."""
    text, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not (text.isascii() and text.isdecimal()) or pid not in ("", str(os.getpid())):
        return None
    return int(text) / 1e6 or None
