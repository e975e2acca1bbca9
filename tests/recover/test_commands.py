"""The commands: what they print, in which form, and with which exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from ckptsyncd.cli.bars import Bars, progress_line
from ckptsyncd.cli.list import command as list_command
from ckptsyncd.cli.restore import command as restore_command
from ckptsyncd.cli.verify import command as verify_command
from ckptsyncd.core.records import names
from ckptsyncd.errors import CkptsyncdError, NoCheckpoint, NothingVerifies, UsageError
from ckptsyncd.report.screen import bar
from ckptsyncd.stores.volume.store import VolumeStore
from tests.recover import bench


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Return a directory that a volume store has two checkpoints in."""
    place = tmp_path / "volume"
    store = VolumeStore(str(place))
    for step in (10, 20):
        bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", step))
    return place


def run(command: click.Command, *arguments: str | Path) -> Result:
    """Run a command; its own errors are left in the result."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit | CkptsyncdError):
        raise result.exception
    return result


def raised(result: Result) -> CkptsyncdError:
    """Return the error that a command raised."""
    assert isinstance(result.exception, CkptsyncdError)
    return result.exception


def test_list_for_people(volume: Path) -> None:
    """A table, newest first, with sizes and times as people read them."""
    lines = run(list_command, f"file://{volume}").stdout.splitlines()
    assert lines[0].split() == [
        "CHECKPOINT",
        "STEP",
        "SIZE",
        "FILES",
        "COMMITTED",
        "(UTC)",
        "LAYOUT",
    ]
    assert [line.split()[:2] for line in lines[1:]] == [
        ["run/checkpoint-20", "20"],
        ["run/checkpoint-10", "10"],
    ]
    assert "2020-09-13 12:28:21" in lines[1]


def test_list_for_programs(volume: Path) -> None:
    """JSON with the names of the documentation."""
    rows = json.loads(run(list_command, f"file://{volume}", "--json").stdout)
    assert [set(row) for row in rows] == [
        {"checkpoint", "series", "edition", "step", "layout", "bytes", "files", "committed_at"}
    ] * 2
    assert rows[0] | {"bytes": 0} == {
        "checkpoint": "run/checkpoint-20",
        "series": "run",
        "edition": 1,
        "step": 20,
        "layout": "directory",
        "bytes": 0,
        "files": 3,
        "committed_at": 1_600_000_101.0,
    }


def test_list_of_nothing(tmp_path: Path) -> None:
    """An empty store is an empty list and its own exit code."""
    result = run(list_command, f"file://{tmp_path}", "--json")
    assert json.loads(result.stdout) == []
    assert isinstance(raised(result), NoCheckpoint)


def test_list_takes_the_url_of_the_environment(volume: Path) -> None:
    """In a container the URL is a variable; without either the command says what is missing."""
    environment = {"CKPTSYNCD_URL": f"file://{volume}"}
    assert "checkpoint-20" in CliRunner(env=environment).invoke(list_command, []).stdout
    assert isinstance(raised(run(list_command)), UsageError)


def test_list_tells_what_is_broken(volume: Path) -> None:
    """What cannot be read is told on stderr; with nothing else the exit code says stop."""
    for step in (10, 20):
        key = names.manifest_key(f"run/checkpoint-{step}", 1)
        (volume / key).write_bytes(b"{\x1b[2J")
    result = run(list_command, f"file://{volume}")
    assert isinstance(raised(result), NothingVerifies)
    assert "run/checkpoint-10@1: not a JSON document" in result.stderr
    assert "\x1b" not in result.stderr


def test_restore_for_people(volume: Path, tmp_path: Path) -> None:
    """One line that says what was restored, where to, and how much."""
    result = run(restore_command, f"file://{volume}", tmp_path / "here")
    assert result.exit_code == 0
    assert result.stdout == (
        f"restored run/checkpoint-20@1 into {tmp_path}/here: 3 files, 137 KiB\n"
    )
    name = "run/checkpoint-20"
    assert bench.tree(tmp_path / "here", name) == bench.tree(tmp_path / "there", name)
    again = run(restore_command, f"file://{volume}", tmp_path / "here", "--if-empty")
    assert again.exit_code == 0
    assert "nothing to do" in again.stdout


def test_restore_for_programs(volume: Path, tmp_path: Path) -> None:
    """A dry run as JSON says what a real one would do, with the same names."""
    arguments = (f"file://{volume}", tmp_path / "here", "--json", "--step", "10")
    dry = json.loads(run(restore_command, *arguments, "--dry-run").stdout)
    assert not (tmp_path / "here").exists()
    wet = json.loads(run(restore_command, *arguments).stdout)
    assert set(dry) == set(wet)
    assert (dry["restored"], wet["restored"]) == (False, True)
    assert dry["placed"] == wet["placed"] == ["run/checkpoint-10"]
    assert dry["egress"]["distance"] == "none"
    assert dry["bytes_needed"] == wet["bytes_fetched"]
    assert wet["bytes_fetched"] == wet["bytes"]
    assert wet["lineage"] == 1


def test_restore_walks_back_aloud(volume: Path, tmp_path: Path) -> None:
    """What is passed over is told in the result and on stderr."""
    (volume / "run/checkpoint-20/model.safetensors").unlink()
    result = run(restore_command, f"file://{volume}", tmp_path / "here")
    assert result.exit_code == 0
    assert "passed over run/checkpoint-20@1" in result.stdout
    assert "its object is missing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--timeout", "5m"], "without --wait"),
        (["--wait", "--timeout", "soon"], "not a duration"),
        (["--checkpoint", "nope"], "no checkpoint fits"),
        (["--s3-endpoint", "nowhere"], "not an http"),
    ],
)
def test_restore_tells_mistakes(
    volume: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """A mistake is one line that names it."""
    error = raised(run(restore_command, f"file://{volume}", tmp_path / "here", *arguments))
    assert isinstance(error, UsageError)
    assert words in str(error)


def test_verify(volume: Path) -> None:
    """The exit code is the verdict; JSON has the faults."""
    assert run(verify_command, f"file://{volume}", "--level", "full").exit_code == 0
    (volume / "run/checkpoint-20/model.safetensors").write_bytes(b"x")
    result = run(verify_command, f"file://{volume}", "--json")
    found: dict[str, Any] = json.loads(result.stdout)
    assert (result.exit_code, found["exit_code"]) == (1, 1)
    assert [one["whole"] for one in found["checkpoints"]] == [False, True]
    assert found["checkpoints"][0]["faults"][0]["path"] == "run/checkpoint-20/model.safetensors"
    named = run(verify_command, f"file://{volume}", "run/checkpoint-20")
    assert named.exit_code == 4
    assert "run/checkpoint-20@1: broken:" in named.stdout


class Terminal(io.StringIO):
    """A terminal that keeps what was written."""


def test_bars_on_a_terminal() -> None:
    """A bar is drawn over itself, with rate and rest, and leaves a clean line."""
    now = [0.0]
    out = Terminal()
    bars = Bars(out, is_terminal=True, clock=lambda: now[0])
    bars.began(2, 4096, 1024)
    now[0] = 1.0
    bars.moved(1024)
    bars.said("a line\x1b[2J")
    bars.moved(0)
    bars.close()
    text = out.getvalue()
    assert "[########........]  50 %  2.0 KiB of 4.0 KiB  1.0 KiB/s  2.0 s left" in text
    assert "\r\x1b[Ka line\\x1b[2J\n" in text


def test_bars_in_a_log() -> None:
    """Without a terminal there are plain lines, and few of them."""
    now = [0.0]
    out = io.StringIO()
    bars = Bars(out, is_terminal=False, clock=lambda: now[0])
    bars.began(1, 1 << 30, 0)
    for second in range(60):
        now[0] = float(second)
        bars.moved(1 << 20)
    bars.close()
    lines = out.getvalue().splitlines()
    assert len(lines) == 6
    assert "\x1b" not in out.getvalue()
    assert lines[0] == "reading 1.0 GiB"


def test_numbers_that_make_no_sense() -> None:
    """Nothing to do, and more than was announced, are drawn all the same."""
    assert bar(5, 0) == bar(9, 5) == "[################]"
    assert progress_line(9, 5, 0.0) == "100 %  9 B of 5 B"


def test_a_verification_of_nothing(tmp_path: Path) -> None:
    """Where nothing was committed that is an error of its own; what lies there is told first."""
    result = run(verify_command, f"file://{tmp_path}/there", "--json")
    assert isinstance(raised(result), NoCheckpoint)
    document = json.loads(result.stdout)
    assert (document["exit_code"], document["checkpoints"]) == (3, [])
    assert document["unnamed"]["uploads"] == []


def test_a_script_may_start_afresh(tmp_path: Path) -> None:
    """An empty store is an error with a code of its own, unless one said that it is right."""
    there, here = f"file://{tmp_path}/there", tmp_path / "here"
    assert isinstance(raised(run(restore_command, there, here)), NoCheckpoint)
    result = run(restore_command, there, here, "--or-start-afresh")
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing to restore, start afresh: ")


def test_wreckage_is_no_fresh_start(volume: Path, tmp_path: Path) -> None:
    """Where checkpoints exist and none is whole, starting afresh stays an error."""
    for key in volume.rglob("*.json"):
        key.write_bytes(b"{")
    result = run(restore_command, f"file://{volume}", tmp_path / "here", "--or-start-afresh")
    assert isinstance(raised(result), NothingVerifies)
