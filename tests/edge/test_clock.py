"""The clocks."""

from __future__ import annotations

import time
import uuid

from ckptsyncd.edge.clock import BootClock, Clock, FakeClock, boot_id, ticks


def test_boot_clock_reads_both_clocks() -> None:
    """The boot reading lies between two of the kernel's own, the wall reading is the wall's."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = BootClock().now()
    assert before <= now.boot <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert abs(now.wall - time.time()) < 5


def test_fake_clock_moves_only_when_told() -> None:
    """A fake clock stands still, runs when told, and its wall can jump without its boot."""
    clock: Clock = FakeClock(boot=10.0, wall=100.0)
    assert clock.now() == clock.now()
    assert isinstance(clock, FakeClock)
    assert clock.advance(2.5).boot == 12.5
    assert clock.jump_wall(-50.0).wall == 52.5
    assert clock.now().boot == 12.5


def test_boot_id_is_one_of_the_kernels() -> None:
    """The boot id is a UUID and the same as long as the machine runs."""
    assert uuid.UUID(boot_id())
    assert boot_id() == boot_id()


def test_ticks_never_go_back() -> None:
    """Durations measured by ticks are never negative."""
    first = ticks()
    assert ticks() >= first
