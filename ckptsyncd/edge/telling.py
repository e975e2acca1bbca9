"""Telling a trainer that this machine will be lost: a signal, a command, a file.

Each notice is told in a thread of its own, for a command may hang and a file system too. Nothing is
decided here; what became of it is told the mind in one line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ckptsyncd.core.messages import TrainerTold
from ckptsyncd.core.orders import RecallTrainer, TellTrainer
from ckptsyncd.core.words import printable

#: A command may take as long as the trainer has, and not less than this; so long where nobody
#: knows how long that is (guessed).
LEAST_SECONDS = 1.0
UNKNOWN_SECONDS = 60.0
#: A PID file is a number and a line's end.
_MOST_BYTES = 64
#: Numbers below are the first process and the kernel's own: nobody's trainer.
_FIRST_PID = 2


@dataclass(frozen=True, slots=True)
class Ways:
    """How a trainer is told, as the settings say; whatever is empty is not done.

    ``signal`` is a signal's name. It goes to ``pid``, to the process that ``pid_file`` names, to
    every program called ``process``, and, where none of these is named, to our own child.
    """

    signal: str = ""
    pid: int | None = None
    pid_file: str = ""
    process: str = ""
    command: tuple[str, ...] = ()
    file: str = ""

    @property
    def names_somebody(self) -> bool:
        """Whether the signal is for somebody else than our own child."""
        return bool(self.pid or self.pid_file or self.process)

    def tell_anybody(self, *, has_child: bool) -> bool:
        """Return whether there is anything to be done on a notice."""
        by_signal = bool(self.signal) and (has_child or self.names_somebody)
        return by_signal or bool(self.command) or bool(self.file)


class Teller:
    """Carries out ``TellTrainer`` and ``RecallTrainer``; both return at once."""

    def __init__(
        self,
        ways: Ways,
        post: Callable[[TrainerTold], object],
        environment: Mapping[str, str],
        child: Callable[[int], bool] | None = None,
    ) -> None:
        """Tell in these ways and ``post`` the outcome.

        ``child`` sends our own child a signal and returns whether it still ran.
        """
        self._ways = ways
        self._post = post
        self._environment = environment
        self._child = child
        self._turn = threading.Lock()

    def tell(self, order: TellTrainer) -> None:
        """Tell the trainer, in a thread that never holds up the end of the program."""
        threading.Thread(target=self._tell, args=(order,), name="telling", daemon=True).start()

    def recall(self, order: RecallTrainer) -> None:
        """Remove the file; a signal and a command cannot be taken back."""
        del order
        if self._ways.file:
            threading.Thread(target=self._recall, name="telling", daemon=True).start()

    def _tell(self, order: TellTrainer) -> None:
        with self._turn:
            told = list(self._by_signal())
            if self._ways.file:
                told.append(_written(Path(self._ways.file), order))
        if self._ways.command:
            told.append(_ran(self._ways.command, order, self._environment))
        self._post(TrainerTold("; ".join(told)))

    def _recall(self) -> None:
        with self._turn:
            try:
                Path(self._ways.file).unlink(missing_ok=True)
            except OSError as error:
                text = f"{printable(self._ways.file)} cannot be removed ({error.strerror})"
                self._post(TrainerTold(text))

    def _by_signal(self) -> Iterator[str]:
        ways = self._ways
        if not ways.signal:
            return
        number = int(signal.Signals[ways.signal])
        if not ways.names_somebody and self._child is not None:
            ran = self._child(number)
            yield f"{ways.signal} to the trainer" if ran else "the trainer has ended"
        if ways.pid is not None:
            yield _signalled(ways.pid, number)
        if ways.pid_file:
            yield _from_file(Path(ways.pid_file), number)
        if ways.process:
            found = list(named(ways.process))
            yield from (_signalled(pid, number) for pid in found)
            if not found:
                yield f"no process is called {printable(ways.process)}"


def _signalled(pid: int, number: int) -> str:
    name = signal.Signals(number).name
    try:
        os.kill(pid, number)
    except OSError as error:
        return f"{name} to process {pid} failed ({error.strerror})"
    return f"{name} to process {pid}"


def _from_file(path: Path, number: int) -> str:
    shown = printable(str(path))
    try:
        pid = pid_in(path)
    except OSError as error:
        return f"{shown} cannot be read ({error.strerror})"
    return f"{shown} names no process" if pid is None else _signalled(pid, number)


def pid_in(path: Path) -> int | None:
    """Return the process that a file names, ``None`` where it names none; OSError: no file."""
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES).decode("ascii", "replace").strip()
    is_pid = text.isascii() and text.isdecimal() and int(text) >= _FIRST_PID
    return int(text) if is_pid else None


def named(name: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yield the processes of this PID namespace that are called so; our own is left out.

    By the kernel's name, or by the last part of the program's or script's path.
    """
    for entry in sorted(proc.glob("[0-9]*")):
        pid = int(entry.name)
        if pid in (os.getpid(), 1):
            continue
        try:
            comm = (entry / "comm").read_bytes().strip()
            words = (entry / "cmdline").read_bytes().split(b"\0")[:2]
        except OSError:
            continue  # it ended while we looked
        wanted = os.fsencode(name)
        if wanted == comm or wanted in [os.path.basename(word) for word in words]:  # noqa: PTH119
            yield pid


def _written(path: Path, order: TellTrainer) -> str:
    """Write the file whole: a trainer that looks at the wrong moment sees nothing, not a half."""
    shown = printable(str(path))
    deadline = None if order.seconds is None else order.told_wall + order.seconds
    row = {
        "source": order.source,
        "text": order.text,
        "told_at": order.told_wall,
        "deadline_at": deadline,
        "seconds": order.seconds,
    }
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(row) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        return f"{shown} cannot be written ({error.strerror})"
    return f"{shown} written"


def _ran(command: tuple[str, ...], order: TellTrainer, environment: Mapping[str, str]) -> str:
    """Run the command without a shell, in a group of its own, as long as there is time."""
    shown = printable(command[0])
    left = UNKNOWN_SECONDS if order.seconds is None else max(order.seconds, LEAST_SECONDS)
    told = {
        "CKPTSYNCD_NOTICE_SOURCE": order.source,
        "CKPTSYNCD_NOTICE_TEXT": order.text,
        "CKPTSYNCD_NOTICE_SECONDS": "" if order.seconds is None else f"{order.seconds:.1f}",
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**environment, **told},
        )
    except (OSError, ValueError) as error:
        return f"{shown} cannot be run ({error})"
    try:
        status = process.wait(left)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{shown} was stopped after {left:.0f} s"
    return f"{shown} ended with status {status}"
