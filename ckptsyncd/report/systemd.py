"""The service manager's notification protocol, without a library: one datagram a message.

Nothing is sent, and nothing fails, where no service manager listens. A tap: ``turn`` says that the
program is ready, keeps the status line up to date, and feeds the watchdog while the loop turns and
uploads get on: bytes move, or calls of the store return, however badly.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status import summary

#: The status line is sent at most this often (guessed: people read it, programs do not).
_STATUS_SECONDS = 1.0
#: The manual asks for a message in half the time; a quarter forgives one late turn.
_WATCHDOG_SHARE = 4
#: Every call of a store ends in an error long before this if nothing moves (time-outs of one wait
#: are 60 s); what stands still for longer hangs somewhere where only a restart helps (guessed).
STUCK_SECONDS = 600.0
#: The manager is asked for so much more than the deadline, for the last lines (guessed).
_EXTRA_SECONDS = 5.0


class Systemd:
    """Tells the service manager how it goes.

    ``watchdog_seconds`` is the time without a sign of life after which it restarts us, or ``None``.
    """

    def __init__(self, environ: Mapping[str, str], progress: Callable[[], int] = int) -> None:
        """Take the address (NOTIFY_SOCKET) and the watchdog's time from the environment.

        ``progress`` returns a number that changes whenever uploads get on.
        """
        self._progress = progress
        self._progressed = (-1, float("-inf"))
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
            self._extend(snapshot, now.wall)
        often = self.watchdog_seconds
        if often is not None and now.boot - self._fed_at >= often / _WATCHDOG_SHARE:
            self._fed_at = now.boot
            if not self._is_stuck(snapshot, now.boot):
                self.watchdog()

    def _extend(self, snapshot: Snapshot, wall: float) -> None:
        """Ask for the time until the deadline, which the unit's own limit may not know."""
        deadline = snapshot.notice_deadline_at
        is_draining = snapshot.state in ("draining", "drained")
        if is_draining and deadline is not None and wall < deadline < float("inf"):
            self.extend_timeout(deadline - wall + _EXTRA_SECONDS)

    def _is_stuck(self, snapshot: Snapshot, boot: float) -> bool:
        """Return whether something is on its way and has not moved for too long."""
        busy = any(view.state in ("uploading", "sealing") for view in snapshot.checkpoints)
        reached, since = self._progress(), self._progressed[1]
        if not busy or reached != self._progressed[0]:
            self._progressed = (reached, boot)
            return False
        return boot - since >= STUCK_SECONDS

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
