"""What a volume says about itself: nothing but that it is mounted here."""

from __future__ import annotations

from ckptsyncd.core.rules.bucket import BucketRule, Location


class VolumeSituation:
    """Answers for one directory without looking at it."""

    def location(self) -> Location:
        """Return no region: whoever mounted it knows where it lies; allow it by ``file``."""
        return Location("file", (), "file")

    def rules(self) -> tuple[BucketRule, ...]:
        """Return nothing: directories have no lifecycle."""
        return ()

    def server_wall(self) -> float | None:
        """Return nothing: what the volume dates is not looked at."""
        return None

    def endpoint(self) -> str:
        """Return nothing: no request leaves this machine by us."""
        return ""

    def key_id(self) -> str:
        """Return nothing: the system knows us by our user id."""
        return ""
