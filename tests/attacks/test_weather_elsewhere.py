"""Bad weather in front of Google's and Azure's emulators: all is safe, nothing is left over."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ckptsyncd.core.records import names as keys
from tests.attacks.storm import Storm, storming
from tests.attacks.test_soak import calm, evening
from tests.attacks.test_weather import trainer
from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import content
from tests.proxy import proxied
from tests.stores.conftest import azurite_server, fake_gcs_server, gcp_emulator_server, google_front
from tests.stores.gcs_bench import address
from tests.stores.test_clouds import place_on

__all__ = ["azurite_server", "fake_gcs_server", "gcp_emulator_server", "google_front"]

#: By hand for longer: CKPTSYNCD_TEST_WEATHER_SECONDS=240.
SECONDS = float(os.environ.get("CKPTSYNCD_TEST_WEATHER_SECONDS", "10"))
PATIENCE_SECONDS = 240.0
#: Records of which there is one, or one for each checkpoint, series or companion.
RECORDS = (
    *(keys.MANIFESTS, keys.CLAIMS, keys.LATEST, keys.POINTERS, keys.EPOCHS, keys.STARTS),
    *(keys.COMPANIONS, keys.VERIFIED),
)


def orphans(server: Any, prefix: str) -> list[str]:
    """Return what lies below a prefix that no record speaks of, read without the program.

    What a claim without a manifest stands for was given up; it goes when the claim is old.
    """
    there = server.objects(f"{prefix}/")
    documents = [json.loads(data) for key, data in there.items() if key.startswith(keys.MANIFESTS)]
    assert documents, "something was committed"
    spoken = {file["key"] for one in documents for file in one["files"] if "key" in file}
    claims = [json.loads(data) for key, data in there.items() if key.startswith(keys.CLAIMS)]
    given_up = tuple(
        f"{keys.EDITIONS}{keys.quoted(one['checkpoint'])}/{one['edition']}" for one in claims
    )
    names = {one["checkpoint"] for one in claims}
    return sorted(
        key
        for key in there
        if key not in spoken | names and not key.startswith((*RECORDS, *given_up))
    )


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("name", ["fake_gcs_server", "google_front", "azurite_server"])
def test_mixed_trouble_loses_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, root: Path, program: Start, name: str
) -> None:
    """A third of all requests goes wrong, the first ones too: the last save is safe, all whole."""
    server = request.getfixturevalue(name)
    prefix = f"weather {name}"
    root.mkdir()
    with proxied(*address(server.endpoint)) as proxy:
        place = place_on(server, prefix, proxy.endpoint)
        more = ("--piece-bytes", "1MiB", "--linger-seconds", "0s", "--stop-timeout", "60s")
        daemon = program(root, place.url, *place.flags, *more, env=place.environment)
        with storming(proxy, Storm(Random(5), 0.3)) as storm:
            daemon.start()
            with trainer(root, keep=3) as names:
                until(lambda: len(names) >= 4, "some are saved")
                ends = time.monotonic() + SECONDS
                until(lambda: time.monotonic() > ends, "the storm is over", SECONDS + 60)
        calm(daemon, names[-1], PATIENCE_SECONDS)
        rests = evening(daemon, 0)
        assert rests.descriptors < 80, rests
        assert rests.resident_mib < 180, rests
        assert len(storm.did) >= 4, storm.did
        assert daemon.stop(120) == 0
    place = place_on(server, prefix)
    to_read = (place.url, *place.flags)
    verified = command("verify", *to_read, "--level", "full", env=place.environment)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    back = command("restore", *to_read, str(tmp_path / "back"), env=place.environment)
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back")[names[-1]] == content(root)[names[-1]]
    assert orphans(server, prefix) == []
