"""EC2's keys: what each of them says, as announcements.

``spot/instance-action`` is the one that counts; a rebalance recommendation is advice (of 30
machines that got one, 21 lived on); a scheduled event is armed for its time; an Auto Scaling target
is the only word that a group's scale-in gives.
"""

from __future__ import annotations

from collections.abc import Callable

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.deadlines import Allowance
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources.bodies import digest, json_of, shown, text_of
from ckptsyncd.sources.dates import wall_of
from ckptsyncd.sources.imds import Imds
from ckptsyncd.sources.wire import found_out

Reader = Callable[[bytes, Instant], tuple[Announcement, ...]]

SPOT = "/latest/meta-data/spot/instance-action"
TERMINATION = "/latest/meta-data/spot/termination-time"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"
MAINTENANCE = "/latest/meta-data/events/maintenance/scheduled"
AUTOSCALING = "/latest/meta-data/autoscaling/target-lifecycle-state"

#: A recommendation was followed by a termination within 8 h 42 min or never, in the one public
#: count; advice is dropped after this.
ADVICE_SECONDS = 12 * 3600.0

#: Targets of an Auto Scaling group that leave this machine running, or asleep with its disk.
_STAYS = frozenset(
    {"InService", "Detached", "Standby", "Warmed:Hibernated", "Warmed:Running", "Warmed:Stopped"}
)
_OVER = frozenset({"completed", "canceled", "cancelled"})


class AwsKey:
    """One key of EC2's metadata."""

    def __init__(
        self, imds: Imds, name: str, path: str, reader: Reader, interval_seconds: float
    ) -> None:
        """Poll ``path`` through ``imds`` and read its body with ``reader``."""
        self.name = name
        self.interval_seconds = interval_seconds
        self._imds = imds
        self._path = path
        self._reader = reader

    def poll(self, now: Instant) -> Poll:
        """Ask once; 404 is EC2's word for "nothing"."""
        answer = self._imds.get(self._path, now)
        if isinstance(answer, Poll):
            return answer
        found = self._reader(answer.body, now) if answer.status == 200 else ()  # noqa: PLR2004
        return found_out(found, answer)


def aws_keys(
    imds: Imds, *, lead_seconds: float, hook_seconds: float = 0.0, legacy: bool = False
) -> tuple[AwsKey, ...]:
    """Return the keys of one machine.

    ``hook_seconds`` is the time-out of the group's termination hook (without one the machine ends
    at once). ``legacy`` adds the old ``termination-time`` for services that have nothing newer.
    """
    keys = (
        AwsKey(imds, "aws-spot", SPOT, spot, 2.0),
        AwsKey(imds, "aws-rebalance", REBALANCE, rebalance, 5.0),
        AwsKey(imds, "aws-autoscaling", AUTOSCALING, autoscaling_reader(hook_seconds), 5.0),
        AwsKey(imds, "aws-maintenance", MAINTENANCE, maintenance_reader(lead_seconds), 60.0),
    )
    old = AwsKey(imds, "aws-termination-time", TERMINATION, termination_time, 5.0)
    return (*keys, old) if legacy else keys


def spot(body: bytes, _now: Instant) -> tuple[Announcement, ...]:
    """Read ``{"action": "terminate", "time": "2017-09-18T08:22:00Z"}``.

    A body that cannot be read is a notice with the usual two minutes. For ``hibernate`` the named
    time is not used: the freeze may begin with the notice.
    """
    fields = json_of(body)
    action, time = "", ""
    if isinstance(fields, dict):
        action, time = shown(fields.get("action", "")), shown(fields.get("time", ""))
    name = f"aws-spot:{action}@{time}" if action and time else f"aws-spot:{digest(body)}"
    text = f"EC2 will {action or 'interrupt'} this spot instance at {time or 'an unknown time'}"
    if action == "hibernate":
        return (Announcement(name, "binding", text, None, deadlines.AWS_HIBERNATE),)
    return (Announcement(name, "binding", text, wall_of(time), deadlines.AWS_SPOT),)


def termination_time(body: bytes, _now: Instant) -> tuple[Announcement, ...]:
    """Read a bare time; anything else under this old key means "nothing"."""
    time = text_of(body)
    wall = wall_of(time)
    if wall is None:
        return ()
    text = f"EC2 will terminate this spot instance at {time}"
    name = f"aws-termination-time:{time}"
    return (Announcement(name, "binding", text, wall, deadlines.AWS_SPOT),)


def rebalance(body: bytes, now: Instant) -> tuple[Announcement, ...]:
    """Read ``{"noticeTime": ...}``: when the advice was given, which is no deadline."""
    fields = json_of(body)
    time = shown(fields.get("noticeTime", "")) if isinstance(fields, dict) else ""
    since = wall_of(time)
    left = ADVICE_SECONDS if since is None else since + ADVICE_SECONDS - now.wall
    name = f"aws-rebalance:{time or digest(body)}"
    text = "EC2 sees an elevated risk of interruption for this spot instance"
    return (Announcement(name, "advisory", text, expires_seconds=min(left, ADVICE_SECONDS)),)


def autoscaling_reader(hook_seconds: float) -> Reader:
    """Return the reader of a group's target for this machine: one word, and no time in it."""
    allowance = Allowance(hook_seconds, deadlines.AWS_HOOK_MOST_SECONDS)

    def autoscaling(body: bytes, _now: Instant) -> tuple[Announcement, ...]:
        target = text_of(body)
        if target in _STAYS:
            return ()
        text = f"the Auto Scaling group wants this instance {shown(target)}"
        name = f"aws-autoscaling:{shown(target)}"
        return (Announcement(name, "binding", text, None, allowance),)

    return autoscaling


def maintenance_reader(lead_seconds: float) -> Reader:
    """Return the reader of scheduled events; each binds ``lead_seconds`` before its time."""

    def maintenance(body: bytes, _now: Instant) -> tuple[Announcement, ...]:
        events = json_of(body)
        if not isinstance(events, list):
            text = "EC2 lists scheduled events that cannot be read"
            name = f"aws-maintenance:{digest(body)}"
            return (Announcement(name, "binding", text, None, deadlines.AWS_MAINTENANCE),)
        return tuple(_event(event, lead_seconds) for event in events if not _is_over(event))

    return maintenance


def _is_over(event: object) -> bool:
    """Tell whether an event was cancelled or is done: by its state, or by its text's prefix."""
    if not isinstance(event, dict):
        return False
    text = str(event.get("Description", "")).lower()
    return str(event.get("State", "")).lower() in _OVER or text.startswith(
        ("[canceled]", "[completed]")
    )


def _event(event: object, lead_seconds: float) -> Announcement:
    """Read one scheduled event. EC2 uses one EventId for several times, so the time is in ours."""
    fields = event if isinstance(event, dict) else {}
    code, time = shown(fields.get("Code", "")), shown(fields.get("NotBefore", ""))
    number = shown(fields.get("EventId", "")) or digest(repr(event).encode())
    name = f"aws-maintenance:{number}@{time}"
    text = f"EC2 has scheduled {code or 'an event'} for this instance at {time or 'no time'}"
    if code == "system-maintenance":
        return Announcement(name, "pause", text)
    allowance = deadlines.AWS_MAINTENANCE
    return Announcement(name, "scheduled", text, wall_of(time), allowance, lead_seconds)
