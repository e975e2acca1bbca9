"""The unit files: accepted by the service manager, hardened, and in step with the program."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ckptsyncd import errors
from ckptsyncd.settings import load

UNITS = Path(__file__).parent.parent.parent / "systemd"
NAMES = ("ckptsyncd.service", "ckptsyncd@.service")
#: The manager's scale goes to 10, for a service that may do everything.
MOST_EXPOSURE = 2.0

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian: systemd)"
)


def settings_of(text: str) -> dict[str, list[str]]:
    """Return every key of a unit file with its values."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def installed(directory: Path, dropins: tuple[str, ...] = ()) -> list[Path]:
    """Install the units as the documentation says, with a program that exists, and return them."""
    for name in NAMES:
        text = (UNITS / name).read_text().replace("/opt/ckptsyncd/bin/ckptsyncd", "/bin/true")
        (directory / name).write_text(text)
        for dropin in dropins:
            (directory / f"{name}.d").mkdir(exist_ok=True)
            shutil.copy(UNITS / dropin, directory / f"{name}.d" / dropin)
    return [directory / "ckptsyncd.service", directory / "ckptsyncd@llama.service"]


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask the service manager's own judge."""
    command = ["systemd-analyze", "--no-pager", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@needs_systemd
@pytest.mark.parametrize("dropins", [(), ("credentials.conf",)])
def test_the_units_are_clean(tmp_path: Path, dropins: tuple[str, ...]) -> None:
    """The manager finds nothing to say about either unit, alone or with the keys' drop-in."""
    for unit in installed(tmp_path, dropins):
        done = analyzed("verify", str(unit))
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_the_units_are_hardened(name: str) -> None:
    """The exposure by the manager's own reckoning is under the limit."""
    threshold = f"--threshold={MOST_EXPOSURE * 10:.0f}"
    done = analyzed("security", "--offline=true", threshold, str(UNITS / name))
    told = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert told, done.stderr
    assert (done.returncode, float(told[1]) < MOST_EXPOSURE) == (0, True), done.stdout[-200:]


@needs_systemd
def test_a_wrong_unit_is_noticed(tmp_path: Path) -> None:
    """The check itself fails for a line that the manager does not know."""
    unit = installed(tmp_path)[0]
    unit.write_text(unit.read_text() + "\n[Service]\nWatchDogSecs=1\n")
    assert "WatchDogSecs" in analyzed("verify", str(unit)).stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_stop_fits_the_drain(name: str, tmp_path: Path) -> None:
    """The manager waits longer than the program takes; both numbers stand in the unit."""
    found = settings_of((UNITS / name).read_text())
    environment = dict(line.split("=", 1) for line in found["Environment"])
    flags = {"dir": str(tmp_path), "url": "s3://bucket/run", "socket": "/run/s", "state_dir": "/s"}
    settings = load(flags, environment).settings
    assert settings.stop_timeout + 5 <= float(found["TimeoutStopSec"][0])
    assert float(found["WatchdogSec"][0]) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_what_a_restart_does_not_help_is_not_restarted(name: str) -> None:
    """The exit codes that prevent a restart are those of wrong settings, wreckage and refusal."""
    found = settings_of((UNITS / name).read_text())
    kinds = (errors.UsageError, errors.NothingVerifies, errors.Fenced)
    expected = {kind.exit_code for kind in kinds}
    assert {int(code) for code in found["RestartPreventExitStatus"][0].split()} == expected


def test_the_template_differs_only_where_it_must() -> None:
    """Both units are the same but for the names of places and their first comment."""
    one, template = ((UNITS / name).read_text().splitlines() for name in NAMES)
    pairs = list(zip(one, template, strict=True))
    differ = [(a, b) for a, b in pairs if a != b and not a.startswith("#")]
    assert len(differ) == 5
    for _, line in differ:
        assert "%i" in line
