"""The trainer as a child: started, told signals, waited for. It never waits for us."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence

from ckptsyncd.errors import UsageError

#: Added to a signal's number where a process was ended by it, as shells do.
ENDED_BY_SIGNAL = 128


class Trainer:
    """A running child process in our own process group, so that Ctrl-C reaches it too."""

    def __init__(self, command: Sequence[str], ended: Callable[[int], object]) -> None:
        """Start the command; ``ended`` is called once, in another thread, with its exit code.

        Raises UsageError where it cannot be started.
        """
        try:
            self._process = subprocess.Popen(list(command))
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            msg = f"the command {command[0]!r} cannot be started: {reason}"
            raise UsageError(msg, hint="what follows -- is the trainer's command") from None
        self._ended = ended
        threading.Thread(target=self._wait, name="trainer", daemon=True).start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def tell(self, number: int) -> bool:
        """Send the child a signal and return whether it still ran; else nothing happens."""
        if self._process.poll() is not None:
            return False
        self._process.send_signal(signal.Signals(number))
        return True

    def _wait(self) -> None:
        code = self._process.wait()
        self._ended(code if code >= 0 else ENDED_BY_SIGNAL - code)
