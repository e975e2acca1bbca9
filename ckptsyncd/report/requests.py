"""The requests of the socket: each is read strictly, answered from the snapshot or posted on.

Answers are JSON objects: ``{"answer": {...}}``, or ``{"error", "hint", "exit_code"}``. They are
documented in ``docs/socket.md``.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ckptsyncd.core.draining.ending import DRILL
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.messages import CommitRequested, Message, Noticed, StopRequested
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.errors import CkptsyncdError, DaemonUnreachable, PathRefused, UsageError
from ckptsyncd.report.probes import NAMES, Verdict
from ckptsyncd.report.status_json import DaemonView, exit_code, to_json
from ckptsyncd.report.waiting import ForDrain, ForDrill, ForStep, Outcome, Wanted, looked_at

Json = dict[str, Any]

#: No deadline and no wait is longer: a week.
_LONGEST_SECONDS = 7 * 86400.0
_DRAIN_SECONDS = 120.0
_DRILL_SECONDS = 30.0
#: Fewer than the clients that are served at once: a script that leaves waits behind must not keep
#: anybody from asking for the status.
MAX_WAITS = 24
_DOCUMENTED = "see docs/socket.md"
_FIELDS: dict[str, frozenset[str]] = {
    "status": frozenset(),
    "drain": frozenset({"deadline_seconds", "pre_stop"}),
    "drill": frozenset({"deadline_seconds"}),
    "commit": frozenset({"path"}),
    "wait": frozenset({"checkpoint", "step", "notice_id", "deadline_boot", "timeout_seconds"}),
    "stop": frozenset({"deadline_seconds"}),
    "probe": frozenset({"name"}),
    "store": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Desk:
    """What answering needs: the newest snapshot, the inbox, the clock, and who we are.

    ``pause`` waits a moment and returns whether waiting any longer makes sense (the daemon goes
    on, the client is still there).
    """

    snapshot: Callable[[], Snapshot]
    post: Callable[[Message], None]
    now: Callable[[], Instant]
    daemon: DaemonView
    stop_seconds: float = 8.0
    probe: Callable[[str], Verdict | None] = lambda _: None
    store: Callable[[], Json] = dict
    waits: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(MAX_WAITS)
    )


def answered(line: bytes, desk: Desk, pause: Callable[[], bool]) -> Json:
    """Return the answer to one line; every error of ours becomes an answer too."""
    try:
        return {"answer": _answer(_request(line), desk, pause)}
    except CkptsyncdError as error:
        return {"error": str(error), "hint": error.hint, "exit_code": error.exit_code}


def _request(line: bytes) -> Json:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        msg = "the request is no JSON"
        raise UsageError(msg, hint=_DOCUMENTED) from error
    kind = request.get("request") if isinstance(request, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        msg = f"unknown request; known are {', '.join(_FIELDS)}"
        raise UsageError(msg, hint=_DOCUMENTED)
    unknown = sorted(set(request) - _FIELDS[kind] - {"request"})
    if unknown:
        msg = f"{kind} has no field {unknown[0]!r}"
        raise UsageError(msg, hint=_DOCUMENTED)
    return dict(request)


def _answer(request: Json, desk: Desk, pause: Callable[[], bool]) -> Json:
    kind = request["request"]
    if kind in ("drain", "drill"):
        return _drain(request, desk)
    if kind == "commit":
        path = _below_root(request.get("path"), desk)
        desk.post(CommitRequested(path))
        return {"checkpoint": path}
    if kind == "wait":
        return _wait(request, desk, pause)
    if kind == "stop":
        seconds = _seconds(request, "deadline_seconds", desk.stop_seconds)
        desk.post(StopRequested(desk.now().boot + seconds))
        return {"deadline_seconds": seconds}
    if kind in ("probe", "store"):
        return desk.store() if kind == "store" else _probe(request, desk)
    return to_json(_as_it_stands(desk), desk.daemon, desk.now().wall)


def _as_it_stands(desk: Desk) -> Snapshot:
    """Return the newest snapshot; where no newer one will come, it says so."""
    health = desk.probe("healthz")
    is_ill = health is not None and not health.is_good
    return replace(desk.snapshot(), stands=health.text) if health and is_ill else desk.snapshot()


def _probe(request: Json, desk: Desk) -> Json:
    name = request.get("name")
    verdict = desk.probe(name) if isinstance(name, str) else None
    if verdict is None:
        msg = f"unknown probe; known are {', '.join(NAMES)}"
        raise UsageError(msg, hint=_DOCUMENTED)
    return {"is_good": verdict.is_good, "text": verdict.text}


def _drain(request: Json, desk: Desk) -> Json:
    source, default, text = _asked_for(request, desk)
    seconds = _seconds(request, "deadline_seconds", default)
    now = desk.now()
    # Random, for a notice that was drained is never drained again, not even by a later daemon.
    name = f"{source}-{secrets.token_hex(6)}"
    deadline = now.boot + seconds
    desk.post(Noticed(Notice(source, name, "binding", deadline, text)))
    return {
        "notice_id": name,
        "deadline_boot": deadline,
        "deadline_at": now.wall + seconds,
        "deadline_seconds": seconds,
    }


def _asked_for(request: Json, desk: Desk) -> tuple[str, float, str]:
    """Return who asks, how long there is where nobody says it, and the notice's text."""
    if request["request"] == "drill":
        return DRILL, _DRILL_SECONDS, "pretended by 'ckptsyncd drill': nothing will end"
    pre_stop = request.get("pre_stop", False)
    if not isinstance(pre_stop, bool):
        msg = "pre_stop is neither true nor false"
        raise UsageError(msg, hint=_DOCUMENTED)
    if pre_stop:
        return "pre-stop", desk.stop_seconds, "this container is about to be stopped"
    return "drain", _DRAIN_SECONDS, "asked by 'ckptsyncd drain'"


def _wait(request: Json, desk: Desk, pause: Callable[[], bool]) -> Json:
    wanted = _wanted(request, desk)
    timeout = _seconds(request, "timeout_seconds", _LONGEST_SECONDS)
    if not desk.waits.acquire(blocking=False):
        msg = f"{MAX_WAITS} clients wait already"
        raise DaemonUnreachable(msg, hint="end some of them, or ask for the status instead")
    try:
        found = _outcome(wanted, timeout, desk, pause)
    finally:
        desk.waits.release()
    return {**asdict(found), "status_exit_code": exit_code(desk.snapshot())}


def _outcome(wanted: Wanted, timeout: float, desk: Desk, pause: Callable[[], bool]) -> Outcome:
    began = desk.now().boot
    waited, goes_on = 0.0, True
    while (found := wanted.seen(desk.snapshot(), waited)) is None:
        if not goes_on:
            return Outcome("stopping", 5, "the daemon stops: " + wanted.reason(desk.snapshot()))
        if waited >= timeout:
            return Outcome("timeout", 6, wanted.reason(desk.snapshot()))
        goes_on = pause()
        waited = desk.now().boot - began
    return found


def _wanted(request: Json, desk: Desk) -> Wanted:
    named = [key for key in ("checkpoint", "step", "notice_id") if key in request]
    if len(named) != 1:
        msg = "wait needs one of checkpoint, step and notice_id"
        raise UsageError(msg, hint=_DOCUMENTED)
    if named == ["checkpoint"]:
        path = _below_root(request["checkpoint"], desk, must_exist=False)
        return looked_at(Path(desk.daemon.watch_root), path)
    if named == ["step"]:
        step = request["step"]
        if isinstance(step, int) and not isinstance(step, bool) and step >= 0:
            return ForStep(step)
        msg = "step is no whole number"
        raise UsageError(msg, hint=_DOCUMENTED)
    name = str(request["notice_id"])
    if name.startswith(f"{DRILL}-"):
        return ForDrill(name)
    return ForDrain(name, _number(request.get("deadline_boot", 0.0)))


def _below_root(value: Any, desk: Desk, *, must_exist: bool = True) -> str:
    """Return a path relative to the watch root; PathRefused where it leads out of it."""
    root = Path(desk.daemon.watch_root)
    if not isinstance(value, str) or not value or "\0" in value:
        msg = "a path is needed"
        raise UsageError(msg, hint="name a file or directory below the watch root")
    # The name's own last part stays as it is: a pointer that is a symlink is not followed.
    given = root / value
    real_root = Path(os.path.realpath(root))
    found = Path(os.path.realpath(given.parent)) / given.name
    if given.name == ".." or real_root not in found.parents:
        msg = f"{value} does not lie below the watch root {root}"
        raise PathRefused(msg, hint="name a file or directory below the watch root")
    if must_exist and not os.path.lexists(found):
        msg = f"nothing lies at {found}"
        raise UsageError(msg, hint="name a file or directory below the watch root")
    return found.relative_to(real_root).as_posix()


def _seconds(request: Json, key: str, default: float) -> float:
    seconds = _number(request.get(key, default))
    if not 0.0 <= seconds <= _LONGEST_SECONDS:
        msg = f"{key} is not between 0 and {_LONGEST_SECONDS:.0f}"
        raise UsageError(msg, hint=_DOCUMENTED)
    return seconds


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        msg = "a number of seconds is needed"
        raise UsageError(msg, hint=_DOCUMENTED)
    return float(value)
