"""Files, commands and known ends: what stands in for a metadata service that says nothing."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from ckptsyncd.core.messages import Noticed, Withdrawn
from ckptsyncd.sources.manual import Command, HardStop, NoticeFile
from ckptsyncd.sources.written import Reading
from tests.sources.bench import Bench, Listener

READING = Reading(default_seconds=30.0, lead_seconds=600.0)


def write(bench: Bench, path: Path, text: str, age_seconds: float = 0.0) -> None:
    """Write a notice file as somebody did so many seconds ago."""
    path.write_text(text)
    mtime = bench.clock.now().wall - age_seconds
    os.utime(path, (mtime, mtime))


def file(bench: Bench, path: Path) -> Listener:
    """Return a listener to a notice file."""
    return bench.listen(NoticeFile(str(path), READING))


def command(bench: Bench, script: str, most_seconds: float = 30.0) -> Listener:
    """Return a listener to a shell script."""
    source = Command(("sh", "-c", script), READING, most_seconds=most_seconds)
    return bench.listen(source)


def test_a_file_comes_and_goes(bench: Bench, tmp_path: Path) -> None:
    """An empty file is a notice with the default time; removed, it is withdrawn."""
    path = tmp_path / "notice"
    listener = file(bench, path)
    assert listener.is_quiet()
    assert listener.pause == 1.0
    write(bench, path, "")
    notice = listener.notice()
    assert (notice.source, notice.severity, bench.left(notice)) == ("notice-file", "binding", 30.0)
    bench.wait(5.0)
    assert listener.is_quiet()
    path.unlink()
    assert listener.turn() == [Withdrawn("notice-file", notice.notice_id)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("120", 100.0),
        ("deadline=2025-06-15T15:08:20Z", 100.0),
        ('{"deadline": "2025-06-15T15:08:20Z", "text": "the landlord says so"}', 100.0),
        ('{"seconds": 120}', 100.0),
        ("whenever", 30.0),
    ],
)
def test_what_stands_in_a_file(bench: Bench, tmp_path: Path, text: str, left: float) -> None:
    """Seconds count from when the file was written, so a restart does not lengthen them."""
    write(bench, tmp_path / "notice", text, age_seconds=20.0)
    assert bench.left(file(bench, tmp_path / "notice").notice()) == left


def test_a_file_that_is_written_again(bench: Bench, tmp_path: Path) -> None:
    """New content is a new notice, which may be later; the old one is withdrawn after it."""
    path = tmp_path / "notice"
    write(bench, path, "60")
    listener = file(bench, path)
    first = listener.notice()
    bench.wait(10.0)
    write(bench, path, "600")
    told = listener.turn()
    assert isinstance(told[0], Noticed)
    assert bench.left(told[0].notice) == 600.0
    assert told[1] == Withdrawn("notice-file", first.notice_id)


def test_a_file_that_is_put_there_again(bench: Bench, tmp_path: Path) -> None:
    """The same content at another time is another notice, also after a restart in between."""
    path = tmp_path / "notice"
    write(bench, path, "")
    first = file(bench, path).notice()
    bench.wait(3600.0)
    write(bench, path, "")
    assert file(bench, path).notice().notice_id != first.notice_id


def test_a_file_from_another_life(bench: Bench, tmp_path: Path) -> None:
    """A file whose time was over long ago, found on a disk that came back, drains nothing."""
    write(bench, tmp_path / "notice", "120", age_seconds=86400.0)
    assert file(bench, tmp_path / "notice").is_quiet()


def test_a_file_of_another_severity(bench: Bench, tmp_path: Path) -> None:
    """Whoever writes the file may say that it is only advice, or for later."""
    path = tmp_path / "notice"
    write(bench, path, '{"severity": "advisory"}')
    listener = file(bench, path)
    assert listener.notice().severity == "advisory"
    write(bench, path, '{"severity": "scheduled", "seconds": 3600}')
    assert isinstance(message := listener.turn()[0], Noticed)
    assert message.notice.severity == "scheduled"
    bench.wait(3001.0)
    assert listener.notice().severity == "binding"


def test_a_file_without_its_directory(bench: Bench, tmp_path: Path) -> None:
    """A directory that does not exist yet holds no notice."""
    assert file(bench, tmp_path / "missing" / "notice").is_quiet()


@pytest.mark.parametrize("kind", ["directory", "fifo", "loop"])
def test_a_file_that_is_none(bench: Bench, tmp_path: Path, kind: str) -> None:
    """What cannot be read is unknown, at once and without blocking."""
    path = tmp_path / "notice"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    assert "cannot be read" in file(bench, path).blind()


def test_a_command_decides(bench: Bench, tmp_path: Path) -> None:
    """Status 1 is none and 0 a notice, whose output says until when."""
    flag = tmp_path / "flag"
    listener = command(bench, f'test -e "{flag}" && echo 90')
    assert listener.is_quiet()
    assert listener.blind() == ""
    flag.touch()
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 90.0)
    flag.unlink()
    assert listener.turn() == [Withdrawn("command", notice.notice_id)]


def test_a_command_that_counts_down(bench: Bench, tmp_path: Path) -> None:
    """Seconds that shrink from run to run are one notice with one deadline."""
    count = tmp_path / "count"
    listener = command(bench, f'cat "{count}"')
    count.write_text("100")
    listener.notice()
    bench.wait(5.0)
    count.write_text("95")
    assert listener.is_quiet()
    bench.wait(5.0)
    count.write_text("20")
    assert bench.left(listener.notice()) == 20.0


def test_a_command_that_names_a_time(bench: Bench) -> None:
    """A written time is taken as it is."""
    assert bench.left(command(bench, "echo 2025-06-15T15:08:40Z").notice()) == 120.0


@pytest.mark.parametrize(
    ("script", "reason"),
    [("exit 2", "ended with status 2"), ("kill -9 $$", "ended with status -9")],
)
def test_a_command_that_fails(bench: Bench, script: str, reason: str) -> None:
    """Any other end is unknown: a broken command is no good news."""
    assert reason in command(bench, script).blind()


def test_a_command_that_is_not_there(bench: Bench) -> None:
    """A command that cannot be run is unknown."""
    listener = bench.listen(Command(("/nonexistent/command",), READING))
    assert "cannot be run" in listener.blind()


def test_a_command_that_hangs(bench: Bench, tmp_path: Path) -> None:
    """One that does not end in time is killed with everything that it started."""
    number = tmp_path / "number"
    script = f'sleep 600 & echo $! > "{number}"; wait'
    assert "took longer than 0.5 s" in command(bench, script, most_seconds=0.5).blind()
    assert has_ended(int(number.read_text()))


def has_ended(process: int) -> bool:
    """Wait at most ten seconds for a process that is not our child to end."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as file_of_process:
        return bool(select.select([file_of_process], [], [], 10.0)[0])


def test_a_command_that_talks_without_end(bench: Bench) -> None:
    """No more than 64 KiB of output are read; the pipe is then closed."""
    assert "ended with status" in command(bench, "exec yes", most_seconds=10.0).blind()


def test_a_known_end(bench: Bench) -> None:
    """An end given in advance is armed from the start and binds when its lead begins."""
    end = bench.clock.now().wall + 3600.0
    listener = bench.listen(HardStop(end, lead_seconds=600.0))
    assert listener.notice().severity == "scheduled"
    bench.wait(2999.0)
    assert listener.is_quiet()
    bench.wait(1.0)
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 600.0)


def test_a_known_end_that_is_long_over(bench: Bench) -> None:
    """An end that we outlived is none."""
    end = bench.clock.now().wall - 3600.0
    assert bench.listen(HardStop(end, lead_seconds=600.0)).is_quiet()
