"""The story: train, upload, a notice, a drain, a machine that is gone, a restore, a comparison.

Nothing here knows how ckptsyncd works: it starts the real program, asks its socket, types its
commands, and believes only the checksums that the trainer wrote down.
"""

from __future__ import annotations

import shlex
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ckptsyncd.client import Json
from ckptsyncd.core.words import count_words, duration_words, size_words
from ckptsyncd.demo.machine import BANDWIDTH, Machine, Places, environment, module
from ckptsyncd.demo.record import Record, compared, read_record
from ckptsyncd.demo.screen import Screen
from ckptsyncd.errors import CkptsyncdError

#: What the notice says; GCP and Azure give about 30 s.
NOTICE_SECONDS = 10
#: The daemon is asked this often: more than an eye can follow, and nothing against an upload.
ASK_SECONDS = 0.05
#: Nothing of this takes so long unless something is wrong (guessed: a busy machine).
PATIENCE_SECONDS = 45.0
#: This step is safe before the notice comes: the third checkpoint.
SAFE_STEP = 60
#: The notice comes when at least this part of a checkpoint is still to be sent.
_MUCH = 0.3

Enough = Callable[[Json], bool]


def tell(base: Path, screen: Screen) -> None:
    """Tell the story in an empty directory; every process that it starts has ended afterwards.

    Raises CkptsyncdError where what comes back is not what the trainer wrote, or a step fails.
    """
    places = Places(base)
    with ExitStack() as stack:
        machine = Machine(places)
        stack.callback(machine.close)
        train(machine, screen)
        safe_step = drain(machine, screen)
        vanish(machine, screen)
    restore(places, screen)
    compare(places, screen, safe_step)


def train(machine: Machine, screen: Screen) -> None:
    """Start daemon and trainer, and watch until a notice would hurt."""
    screen.title("1. A trainer saves, ckptsyncd uploads")
    screen.say("A trainer saves eight files every 20 steps and keeps the newest two saves.")
    screen.say(f"$ D={shlex.quote(str(machine.places.base))}", "typed")
    screen.typed(*machine.run_command())
    machine.start_daemon()
    machine.start_trainer()
    _watch(machine, screen, _would_hurt)


def drain(machine: Machine, screen: Screen) -> int:
    """Give a notice and watch until nothing that is finished is at risk; return the safe step."""
    screen.title(f"2. A notice: this machine is gone in {NOTICE_SECONDS} seconds")
    before = machine.answers()
    screen.typed("echo", str(NOTICE_SECONDS), ">", str(machine.places.notice))
    machine.places.notice.write_text(f"{NOTICE_SECONDS}\n")
    for line in _plan(before or {}):
        screen.say(line)
    began = screen.seconds
    document = _watch(machine, screen, lambda document: document["daemon"]["state"] == "drained")
    took = duration_words(screen.seconds - began)
    screen.say(f"Everything that was finished is safe, {took} after the notice.", "good")
    return _safe_step(document)


def vanish(machine: Machine, screen: Screen) -> None:
    """End the machine."""
    screen.title("3. The machine is gone")
    machine.vanish()
    screen.say("Trainer and daemon were killed with SIGKILL. Their disk is removed:", "bad")
    screen.say("checkpoints, the daemon's own records, everything below $D/machine.", "bad")


def restore(places: Places, screen: Screen) -> None:
    """Type the commands that a user types on a new machine."""
    screen.title("4. A new machine")
    _type(screen, "ckptsyncd", "list", places.url)
    _type(screen, "ckptsyncd", "restore", places.url, str(places.second_root))


def compare(places: Places, screen: Screen, safe_step: int) -> None:
    """Hold what came back against the trainer's own checksums; CkptsyncdError where they differ."""
    screen.title("5. Is it what the trainer wrote?")
    record = read_record(places.trainer_log)
    folders = sorted(places.second_root.glob("checkpoint-*"))
    if len(folders) != 1:
        msg = f"{count_words(len(folders), 'checkpoint')} came back, not one"
        raise CkptsyncdError(msg)
    step = int(folders[0].name.rpartition("-")[2])
    found = compared(folders[0], record.files.get(step, {}))
    faults = list(found.faults)
    if step < safe_step:
        faults.append(f"step {safe_step} was called safe, step {step} came back")
    if faults:
        msg = f"{folders[0].name} is not what the trainer wrote: {'; '.join(faults)}"
        raise CkptsyncdError(msg)
    wanted = count_words(found.same, "file")
    screen.say(f"Saved: checkpoint-{step}; all {wanted} have the trainer's SHA-256.", "good")
    screen.say(f"Lost:  {_lost(record, step)}")
    screen.say(f"The whole story took {duration_words(screen.seconds)}.", "dim")


def _watch(machine: Machine, screen: Screen, enough: Enough) -> Json:
    """Show the daemon's status until it is enough; CkptsyncdError where that never comes."""
    pause = threading.Event()
    end = screen.seconds + PATIENCE_SECONDS
    while True:
        document = machine.answers()
        if document is not None:
            screen.show(document)
            if enough(document):
                return document
        if screen.seconds > end:
            msg = f"nothing came of it within {duration_words(PATIENCE_SECONDS)}"
            raise CkptsyncdError(msg, hint="is this machine very busy? --keep keeps the log")
        pause.wait(ASK_SECONDS)


def _would_hurt(document: Json) -> bool:
    """Return whether much of a finished checkpoint is still to be sent, and others are safe."""
    rows = document["checkpoints"]
    left = sum(row["bytes"] - row["bytes_stored"] for row in rows if row["at_risk"])
    size = max((row["bytes"] for row in rows), default=0)
    return _safe_step(document) >= SAFE_STEP and left > _MUCH * size


def _safe_step(document: Json) -> int:
    """Return the step of the recovery point, 0 where there is none."""
    return max((point["step"] for point in document["recovery_points"]), default=0)


def _plan(document: Json) -> list[str]:
    """Say what is to be finished, newest first."""
    left = [
        f"{row['checkpoint']} ({size_words(row['bytes'] - row['bytes_stored'])} to send)"
        for row in document.get("checkpoints", [])
        if row["at_risk"]
    ]
    return [
        f"Finished and not safe, newest first: {', '.join(left) or 'nothing'}.",
        f"The bandwidth cap of {BANDWIDTH} is lifted for the drain.",
    ]


def _type(screen: Screen, *command: str) -> None:
    """Run a command of ours on the same terminal; CkptsyncdError where it fails."""
    screen.typed(*command)
    code = subprocess.run(module(command), env=environment(), check=False).returncode
    if code:
        msg = f"'ckptsyncd {command[1]}' ended with exit code {code}"
        raise CkptsyncdError(msg)


def _lost(record: Record, step: int) -> str:
    """Say what the trainer did after the checkpoint that came back."""
    steps = record.last_step - step
    half = [f"checkpoint-{n}" for n in record.unfinished() if n > step]
    told = f"{count_words(steps, 'step')} of training after it"
    return told + (f", and {', '.join(half)}, which was being written." if half else ".")
