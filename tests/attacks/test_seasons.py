"""Seasons of trouble in front of a store with TLS: each ends, and then everything is safe."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from tests.attacks.seasons import SEASONS, Place, in_turn, place
from tests.attacks.storm import Storm, storming
from tests.attacks.test_soak import Evening, calm, evening, grown
from tests.attacks.test_weather import trainer
from tests.attacks.test_weather_elsewhere import orphans
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import content
from tests.process.test_kill import begun_uploads
from tests.proxy import Proxy
from tests.servers import S3Server

#: By hand for longer: CKPTSYNCD_TEST_SEASON_SECONDS=25 and CKPTSYNCD_TEST_SEASON_ROUNDS=10.
SEASON_SECONDS = float(os.environ.get("CKPTSYNCD_TEST_SEASON_SECONDS", "1"))
ROUNDS = int(os.environ.get("CKPTSYNCD_TEST_SEASON_ROUNDS", "1"))
MOST_DELAY_SECONDS = min(60.0, SEASON_SECONDS * 3)
#: After a season the next try may be a minute away, and so may the one after it.
PATIENCE_SECONDS = 240.0


@pytest.fixture
def here(tmp_path: Path, proxy: Proxy) -> Place:
    """Give the store a name that only the program knows; skip where that cannot be done."""
    made = place(proxy, tmp_path / "place")
    if subprocess.run([*made.under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace of its own")
    return made


def options(here: Place) -> tuple[str, ...]:
    """Return how the daemon reaches the store."""
    return (
        *("--s3-endpoint", here.endpoint, "--s3-path-style", "--piece-bytes", "5MiB"),
        *("--linger-seconds", "0s", "--stop-timeout", "60s"),
    )


@dataclass
class Year:
    """Rounds of seasons, each round ended by calm weather and a look at the daemon."""

    root: Path
    daemon: Program
    here: Place
    storm: Storm
    chance: Random = field(default_factory=lambda: Random(ROUNDS))
    evenings: list[Evening] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def goes_by(self, seasons: Sequence[str]) -> None:
        """Let each season last its time while a trainer saves; then all becomes safe."""
        logged, self.storm.on = len(self.daemon.log), True
        pause = max(0.5, SEASON_SECONDS / 20)
        with trainer(self.root, 3, pause, len(self.names)) as saved:
            for name in seasons:
                with SEASONS[name](self.here, self.storm):
                    lasting(name)
            until(lambda: saved, "one is saved")
        self.storm.on = False
        self.names += saved
        calm(self.daemon, self.names[-1], PATIENCE_SECONDS)
        self.evenings.append(evening(self.daemon, logged))
        print(time.ctime(), self.evenings[-1], self.storm.did, flush=True)  # noqa: T201 - by hand


def lasting(season: str) -> None:
    """Wait for a season's end."""
    ends = time.monotonic() + SEASON_SECONDS
    until(lambda: time.monotonic() > ends, season, SEASON_SECONDS + 60)


@pytest.mark.server
@pytest.mark.slow
def test_every_season_ends_well(
    tmp_path: Path, root: Path, program: Start, here: Place, s3_server: S3Server, prefix: str
) -> None:
    """Ten kinds of trouble in turn: all is safe, nothing is torn, left over, or grows."""
    root.mkdir()
    env = {"AWS_CA_BUNDLE": str(here.authority.trusted)}
    daemon = program(root, prefix, *options(here), env=env)
    daemon.under = here.under
    daemon.start()
    with storming(here.proxy, Storm(Random(11), 0.03, MOST_DELAY_SECONDS)) as storm:
        year = Year(root, daemon, here, storm)
        year.goes_by(())
        for _ in range(ROUNDS):
            year.goes_by(in_turn(year.chance))
    for what in Evening.__dataclass_fields__:
        assert not grown(year.evenings, what), grown(year.evenings, what)
    assert daemon.stop(120) == 0
    assert begun_uploads(s3_server, prefix) == []
    assert orphans(s3_server, urlsplit(prefix).path.strip("/")) == []
    to_read = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    verified = command("verify", prefix, "--level", "full", *to_read, seconds=600.0)
    assert verified.returncode == 0, verified.stdout
    back = command("restore", prefix, str(tmp_path / "back"), *to_read)
    assert back.returncode == 0, back.stderr
    newest = year.names[-1]
    assert content(tmp_path / "back")[newest] == content(root)[newest]
