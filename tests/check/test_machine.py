"""The machine's side of the preflight, with each failure made for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest

from ckptsyncd.check import root as judge
from ckptsyncd.cli.check import command
from ckptsyncd.edge.premises import premises
from ckptsyncd.edge.stopping import seconds_of, stop_budget
from ckptsyncd.errors import UsageError
from ckptsyncd.settings import load
from ckptsyncd.sources.pretend.scene import Scene
from ckptsyncd.sources.pretend.server import PretendedMetadata
from tests.check.asked import check, save
from tests.edge.world import as_nobody, needs_root

LIMITED = """
import sys
from pathlib import Path
from ckptsyncd.edge.premises import watching
for limit in sys.argv[2:]:
    name, value = limit.split("=")
    Path("/proc/sys/user", name).write_text(value)
print(watching(sys.argv[1]))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with a checkpoint."""
    save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Name a destination that does not exist yet."""
    return f"file://{tmp_path}/durable"


@pytest.fixture
def cloud() -> Iterator[PretendedMetadata]:
    """Run a pretended metadata service."""
    with closing(PretendedMetadata(Scene())) as service:
        yield service


def limited(root: Path, *limits: str) -> str:
    """Return what comes of watching in a process with such limits."""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, str(root)]
    done = subprocess.run(
        [*command, *limits], capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare" in done.stderr or "/proc/sys/user" in done.stderr:
        pytest.skip(f"needs user namespaces: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_machine_where_all_is_well(root: Path, url: str) -> None:
    """Every subject has a line, none fails, and nothing of the trial is left beside the root."""
    before = sorted(root.parent.rglob("*"))
    found = check(root, url, seconds=0.2)
    assert found.code == 0
    assert not [row for row in found.rows.values() if row["level"] == "fail"]
    assert "2 files" in found.text("watch root")
    assert "2 directories watched" in found.text("events")
    assert "/s over" in found.text("upload rate")
    left = {path for path in root.parent.rglob("*") if "durable" not in path.parts}
    assert left == set(before)
    inside = [path for path in (root.parent / "durable").rglob("*") if path.is_file()]
    assert [path.name for path in inside] == ["lock"]


def test_the_second_destination_is_tried_too(root: Path, url: str) -> None:
    """It has lines of its own, under the same rules about where it may lie."""
    second = f"file://{root.parent}/second"
    found = check(root, url, "--also", second)
    assert found.code == 0
    assert found.level("also: write") == "ok"
    found = check(root, url, "--also", second, "--allowed-regions", "ca-central-1")
    assert found.code == 7
    assert found.level("also: region") == "fail"
    assert "also: write" not in found.rows


def test_people_get_lines_and_what_to_do(root: Path, url: str) -> None:
    """Without --json each finding is a line, a warning is followed by its advice."""
    command = [sys.executable, "-m", "ckptsyncd", "check", str(root), url, "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("warn  same disk"))
    assert lines[at + 1].strip().startswith("-> mount a volume")
    assert lines[-1].endswith(" 0 failing")


def test_settings_that_cannot_be_used(root: Path, tmp_path: Path) -> None:
    """What is wrong with the settings is the only line, with code 2."""
    home = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}
    config = tmp_path / "c.toml"
    config.write_text(f'dir = "{root}"\nurll = "file:///x"\n')
    found = check("--config", config, env=home)
    assert found.code == 2
    assert found.text("settings").endswith('unknown key "urll" -> did you mean "url"?')
    assert list(found.rows) == ["settings"]


def test_what_may_not_be_read_is_left_to_the_settings() -> None:
    """No flag judges by itself whether a path may be read: the settings do, with a hint."""
    types = [made.type for made in command.params]
    paths = [kind for kind in types if isinstance(kind, click.Path)]
    assert paths
    assert not [kind for kind in paths if kind.readable or kind.exists]


@needs_root
def test_a_config_file_of_somebody_else(tmp_path: Path) -> None:
    """The advice about a file without the right to read it is not to name it."""
    config = tmp_path / "c.toml"
    config.write_text("")
    config.chmod(0)
    tmp_path.chmod(0o755)
    opened_up(tmp_path)
    with as_nobody(), pytest.raises(UsageError, match="Permission denied") as caught:
        load({}, {}, str(config))
    assert caught.value.hint == "let this user read it"


def test_settings_of_a_file(root: Path, url: str, tmp_path: Path) -> None:
    """The line names the file and what it said."""
    config = tmp_path / "c.toml"
    config.write_text(f'dir = "{root}"\nurl = "{url}"\n')
    found = check("--config", config, env={"CKPTSYNCD_HANDS": "2"})
    assert f"config file {config}; " in found.text("settings")
    assert "2 by the file" in found.text("settings")
    assert "1 by variables" in found.text("settings")


def test_a_root_that_is_missing(tmp_path: Path, url: str) -> None:
    """It is waited for, which is a warning: it may be a wrong name."""
    found = check(tmp_path / "later", url)
    assert (found.code, found.level("watch root")) == (0, "warn")


def test_too_few_watches(root: Path) -> None:
    """One watch for two directories: one is polled, and the reason names the sysctl."""
    said = limited(root, "max_inotify_watches=1")
    assert "watched=1" in said
    assert "raise fs.inotify.max_user_watches" in said


def test_no_instance(root: Path) -> None:
    """Where no instance is to be had, that is what is said."""
    said = limited(root, "max_inotify_instances=0")
    assert "no_instance='Too many open files" in said


@needs_root
def test_another_users_files(root: Path) -> None:
    """Without the owner's rights there is no lease, and no link where links are protected."""
    opened_up(root)
    with as_nobody():
        found = premises(str(root), "", polls=False)
    lease, pins = judge.lease(found), judge.pins(found)
    assert (lease.level, found.lease) == ("warn", "refused")
    assert "CAP_LEASE" in lease.hint
    assert (pins.level, found.pin) == ("warn", "descriptor")


@needs_root
def test_files_that_cannot_be_read(root: Path) -> None:
    """A file that only its owner may read fails with code 2 and names itself."""
    opened_up(root)
    (root / "checkpoint-10" / "weights.dat").chmod(0o600)
    with as_nobody():
        found = judge.readable(premises(str(root), "", polls=True))
    assert (found.level, found.exit_code) == ("fail", 2)
    assert found.text == "1 file cannot be read, such as checkpoint-10/weights.dat"
    assert judge.readable(premises(str(root), "", polls=True)).level == "ok"


def opened_up(root: Path) -> None:
    """Let everybody come as far as the watch root."""
    for path in root.parents:
        if Path(tempfile.gettempdir()) in path.parents and path.stat().st_uid == os.getuid():
            path.chmod(0o755)


def test_absolute_paths_in_json(root: Path, url: str) -> None:
    """What would name nothing on another machine is told with file, key and value."""
    state = {"best_model_checkpoint": f"{root}/checkpoint-10"}
    (root / "checkpoint-10" / "trainer_state.json").write_text(json.dumps(state))
    found = check(root, url)
    assert found.level("absolute paths") == "warn"
    assert "trainer_state.json says best_model_checkpoint" in found.text("absolute paths")


def test_a_destination_on_another_disk(root: Path) -> None:
    """Memory is another device than the disk: no warning about the same disk."""
    memory = Path("/dev/shm")  # noqa: S108
    if memory.stat().st_dev == root.stat().st_dev:
        pytest.skip("needs a second device")
    found = premises(str(root), "/dev/shm/not-there/yet", polls=False)  # noqa: S108
    assert judge.device(found).level == "ok"
    assert found.target_free_bytes == shutil.disk_usage(memory).free


def test_a_hop_limit_that_is_too_small(root: Path, url: str, cloud: PretendedMetadata) -> None:
    """The verdict about the metadata service is a line of its own, and no failure."""
    cloud.aws.is_beyond_hop_limit, cloud.aws.tokens = True, "required"
    found = check(root, url, env=aws(cloud))
    assert found.code == 0
    assert "this is aws" in found.text("notices")
    assert "hop limit is too small" in found.text("notices: aws-spot")


def test_metadata_that_answers(root: Path, url: str, cloud: PretendedMetadata) -> None:
    """Sources that are heard say so; a spot notice is what the rate is compared with."""
    found = check(root, url, env=aws(cloud), seconds=0.2)
    assert found.level("notices: aws-spot") == "ok"
    assert "within a spot notice of EC2 (2 min)" in found.text("fits the notice")


def aws(cloud: PretendedMetadata) -> dict[str, str]:
    """Return the environment that points at a pretended EC2."""
    return {
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.url,
        "AWS_EC2_METADATA_DISABLED": "",
        "AWS_METADATA_SERVICE_TIMEOUT": "1",
    }


def test_a_unit_that_kills_too_early(root: Path, url: str, tmp_path: Path) -> None:
    """The service manager is asked for the unit's time, and a longer stop timeout fails."""
    tool = tmp_path / "bin" / "systemctl"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho LoadState=loaded\necho TimeoutStopUSec=5s\n")
    tool.chmod(0o755)
    path = f"{tool.parent}:{os.environ['PATH']}"
    found = check(root, url, env={"PATH": path})
    assert (found.code, found.level("stop")) == (2, "fail")
    assert "ckptsyncd.service is killed 5.0 s after SIGTERM" in found.text("stop")


def test_the_managers_words_for_time() -> None:
    """Durations are read as the service manager writes them."""
    assert seconds_of("1min 30s") == 90.0
    assert seconds_of("500ms") == 0.5
    assert seconds_of("infinity") is None
    assert seconds_of("") is None


def test_without_a_service_manager(no_programs: None) -> None:
    """Where there is no service manager only the platform counts."""
    del no_programs
    assert stop_budget(0, "kubernetes").platform == "kubernetes"
    assert stop_budget(0, "kubernetes").unit == ""


@pytest.fixture
def no_programs(tmp_path: Path) -> Iterator[None]:
    """Let no program be found."""
    before = os.environ["PATH"]
    os.environ["PATH"] = str(tmp_path)
    yield
    os.environ["PATH"] = before


def test_a_state_directory_that_cannot_be_made(root: Path, url: str, tmp_path: Path) -> None:
    """A file in the way of the state directory fails with code 2."""
    (tmp_path / "file").write_text("")
    found = check(root, url, "--state-dir", tmp_path / "file" / "state")
    assert (found.code, found.level("state")) == (2, "fail")
