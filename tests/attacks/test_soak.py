"""A week in little time: frameworks, restarts, notices, new keys, bad weather; nothing grows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.attacks.storm import ANSWERS, Storm, storming
from tests.attacks.test_weather import options, resident_mib
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import by_rename, in_place, trainer_checkpoint
from tests.process.test_keys import keys
from tests.process.test_kill import begun_uploads
from tests.proxy import Proxy, Rule
from tests.servers import ACCESS_KEY, NEXT_ACCESS_KEY, S3Server

#: By hand for longer: CKPTSYNCD_TEST_SOAK_DAYS=100.
DAYS = int(os.environ.get("CKPTSYNCD_TEST_SOAK_DAYS", "7"))
SAVES_A_DAY = 3
PATIENCE_SECONDS = 120.0
#: What may come and go. SQLite's journal grows to a thousand pages before it begins anew.
SLACK = {
    "resident_mib": 24.0,
    "ledger_bytes": 128e3,
    "journal_bytes": 5e6,
    "log_bytes": 60e3,
    "descriptors": 40.0,  # an idle connection for each hand, which the next trouble ends
}


@dataclass(frozen=True)
class Evening:
    """What the daemon has at the end of a day, when everything is safe."""

    descriptors: int
    threads: int
    resident_mib: float
    ledger_bytes: int
    journal_bytes: int
    log_bytes: int


def evening(daemon: Program, logged_before: int) -> Evening:
    """Look at a daemon that rests."""
    assert daemon.process is not None
    proc, state = Path(f"/proc/{daemon.process.pid}"), daemon.base / "state"
    return Evening(
        descriptors=len(list((proc / "fd").iterdir())),
        threads=len(list((proc / "task").iterdir())),
        resident_mib=resident_mib(daemon),
        ledger_bytes=(state / "ledger.sqlite").stat().st_size,
        journal_bytes=(state / "ledger.sqlite-wal").stat().st_size,
        log_bytes=len(daemon.log) - logged_before,
    )


def save(root: Path, number: int) -> str:
    """Save as three kinds of trainers do, and rotate; return the name of what must become safe."""
    trainer_checkpoint(root, number, weights=20_000)
    for path in sorted(root.glob("checkpoint-*"), key=lambda path: path.stat().st_mtime)[:-2]:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    in_place(root / "single" / "model.pt", 30_000, number)
    name = f"renamed/epoch={number}.ckpt"
    by_rename(root / name, 30_000, number)
    (root / "renamed" / f"epoch={number - 2}.ckpt").unlink(missing_ok=True)
    with (root / "train.log").open("a") as log:
        log.write(f"step {number}\n")
    return name


def is_seen(daemon: Program, name: str) -> bool:
    """Return whether status has a save."""
    return (name, 1) in daemon.states()


def calm(daemon: Program, name: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a save and everything else is safe."""
    until(
        lambda: daemon.states().get((name, 1)) == "safe",
        lambda: f"{name} is safe: {daemon.states()}\n{daemon.log[-2000:]}",
        seconds,
    )
    until(
        lambda: (daemon.status() or {}).get("unsynced_bytes") == 0,
        lambda: f"all is safe: {daemon.states()}",
        seconds,
    )


@dataclass
class Week:
    """What the days of a week have in common."""

    root: Path
    daemon: Program
    notice: Path
    storm: Storm
    proxy: Proxy
    credentials: Path
    refused: Rule | None = None

    def day(self, number: int) -> Evening:
        """Let a day go by: a restart, bad weather, and on some days a notice or other keys."""
        if number:
            self.begin_again(is_killed=number % 2 == 1)
        logged, name = len(self.daemon.log), ""
        self.storm.on = number % 3 != 0
        for one in range(SAVES_A_DAY):
            if number % 3 == 2 and one == 1:
                self.rotate(ACCESS_KEY if number % 2 else NEXT_ACCESS_KEY)
            name = save(self.root, number * SAVES_A_DAY + one + 1)
            until(partial(is_seen, self.daemon, name), f"{name} is seen", PATIENCE_SECONDS)
        if number % 3 == 1:
            self.notice.write_text("20\n")
            until(lambda: "daemon.drain" in self.daemon.log[logged:], "it drains")
            self.notice.unlink()
        self.storm.on = False
        calm(self.daemon, name)
        return evening(self.daemon, logged)

    def begin_again(self, *, is_killed: bool) -> None:
        """Start the daemon again after it was killed, or stopped."""
        if is_killed:
            self.daemon.kill()
        else:
            assert self.daemon.stop(PATIENCE_SECONDS) in (0, 6)
        self.daemon.start()

    def rotate(self, access_key: str) -> None:
        """Let other keys stand in the file of credentials, and the old ones be refused."""
        old = ACCESS_KEY if access_key == NEXT_ACCESS_KEY else NEXT_ACCESS_KEY
        if self.refused is not None:
            self.refused.times = 0
        told = f"credential={old}/"
        answer = ANSWERS["403"]
        self.refused = self.proxy.rule("answer", "*", "", times=10**6, answer=answer, headers=told)
        self.credentials.write_text(keys(access_key))


def grown(evenings: Sequence[Evening], what: str) -> str:
    """Return in words how something grew over the week, empty where it did not."""
    values = [float(getattr(one, what)) for one in evenings]
    first, last = max(values[: len(values) // 2]), max(values[len(values) // 2 :])
    slack = SLACK.get(what, 8.0)
    return f"{what}: {values}" if last > first * 1.3 + slack else ""


@pytest.mark.server
@pytest.mark.slow
def test_a_week_in_little_time(
    tmp_path: Path, root: Path, program: Start, proxy: Proxy, s3_server: S3Server, prefix: str
) -> None:
    """Descriptors, threads, memory, ledger and the log of a day stay as they are; all is whole."""
    for folder in ("single", "renamed"):
        (root / folder).mkdir(parents=True)
    notice, credentials = tmp_path / "notice", tmp_path / "credentials"
    credentials.write_text(keys(ACCESS_KEY))
    more = ("--notice-file", str(notice), "--backlog", "newest", "--sweep-seconds", "2s")
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    env = {**nothing, "AWS_SHARED_CREDENTIALS_FILE": str(credentials)}
    daemon = program(root, prefix, *options(proxy), *more, env=env).start()
    with storming(proxy, Storm(Random(3), 0.1, 0.5)) as storm:
        week = Week(root, daemon, notice, storm, proxy, credentials)
        evenings = [week.day(number) for number in range(DAYS)]
    for what in Evening.__dataclass_fields__:
        assert not grown(evenings, what), grown(evenings, what)
    assert daemon.stop(PATIENCE_SECONDS) == 0
    assert begun_uploads(s3_server, prefix) == []
    to_read = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    assert command("verify", prefix, "--level", "full", *to_read).returncode == 0
