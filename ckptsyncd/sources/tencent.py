"""Tencent Cloud: one key with a time of Shenzhen's clock, at an address that has only a name."""

from __future__ import annotations

from collections.abc import Callable

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.deadlines import STALE_SECONDS
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources.bodies import digest, shown, text_of
from ckptsyncd.sources.dates import wall_of
from ckptsyncd.sources.wire import Answer, Silence, Wire, found_out, no_metadata, unknown

HOST = "metadata.tencentyun.com"
KEY = "/latest/meta-data/spot/termination-time"
#: The time carries no zone and is UTC+8, wherever the machine stands.
ZONE_HOURS = 8.0


class Tencent:
    """The release time of a spot instance: about two minutes ahead."""

    name = "tencent"
    interval_seconds = 5.0

    def __init__(self, resolve: Callable[[str], str], wire: Callable[[str], Wire]) -> None:
        """Find the address with ``resolve`` (raises OSError) and open the way there with ``wire``.

        The name is resolved once: there may be no DNS any more when the notice comes.
        """
        self._resolve = resolve
        self._open = wire
        self._wire: Wire | None = None

    def poll(self, now: Instant) -> Poll:
        """Ask once; 404 means "nothing"."""
        if self._wire is None:
            try:
                address = self._resolve(HOST)
            except OSError as error:
                return unknown(f"{HOST} has no address ({error.strerror or error})")
            self._wire = self._open(address)
        answer = self._wire.exchange("GET", KEY, {"Host": HOST})
        if isinstance(answer, Silence):
            return unknown(answer.text)
        return no_metadata(answer, "Tencent's metadata service") or _judged(answer, now)


def _judged(answer: Answer, now: Instant) -> Poll:
    """Return what an answer announces; a time that cannot be read is one all the same.

    A time hours ago was rather written in another zone than outlived: the default counts.
    """
    if answer.status == 404:  # noqa: PLR2004
        return found_out((), answer)
    time = text_of(answer.body)
    if not time:
        return unknown("Tencent's metadata service answers with nothing")
    wall = wall_of(time, naive_hours=ZONE_HOURS)
    if wall is not None and wall < (answer.server_wall or now.wall) - STALE_SECONDS:
        wall = None
    name = f"tencent:{shown(time) if wall is not None else digest(answer.body)}"
    text = f"Tencent will release this instance at {shown(time)} (UTC+8)"
    return found_out((Announcement(name, "binding", text, wall, deadlines.TENCENT_SPOT),), answer)
