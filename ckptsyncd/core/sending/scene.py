"""What an edition's next order depends on beside its own progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ckptsyncd.core.facts import Condition, IfAbsent, Instant, Limits
from ckptsyncd.core.orders import Errand
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition


@dataclass(frozen=True, slots=True)
class Scene:
    """What an edition's next order depends on beside its own progress.

    ``epoch`` is ``None`` until this daemon has taken one for the series. ``is_free`` tells what is
    neither under way nor resting: a manifest of a hundred thousand files is not encoded in vain.
    """

    limits: Limits
    policy: Policy
    host: str
    nonce: str
    version: str
    epoch: int | None
    lineage: int
    after_step: int
    least_saved_at: float
    late: bool
    now: Instant
    is_free: Callable[[Errand], bool] = lambda _: True
    #: What the link was seen to carry, 0 where nothing was seen yet.
    bytes_per_second: float = 0.0
    hasty: bool = False

    @property
    def is_joint(self) -> bool:
        """Whether several machines store one checkpoint."""
        return self.policy.is_joint


def errand(edition: Edition, purpose: str, path: str = "", index: int = -1) -> Errand:
    """Return the errand of one order for this edition."""
    return Errand(purpose, edition.checkpoint, edition.save_id, path, index)


def create_only(limits: Limits) -> Condition:
    """Return the condition of a record that must not exist yet, as far as the store has one."""
    return IfAbsent() if limits.compare_and_set else None


def salt_of(scene: Scene, salts: int) -> str:
    """Return what keeps a data key apart from foreign objects, or nothing where not needed.

    Stores that cannot refuse to overwrite get the epoch into every key; others only where the
    plain key turned out to be taken (``salts`` times).
    """
    if scene.limits.create_only_finish and not salts:
        return ""
    mark = f"{scene.policy.node}.{scene.epoch}" if scene.policy.node else str(scene.epoch)
    mark = f"n{scene.policy.node}.{scene.epoch}" if scene.is_joint else mark
    return f"{mark}.{salts}" if salts else mark
