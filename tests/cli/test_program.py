"""The program: errors become two lines and an exit code, and commands load only what they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ckptsyncd import __version__
from ckptsyncd.cli import main
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.lazy import Entry, LazyGroup, loaded
from ckptsyncd.cli.program import COMMANDS, told
from ckptsyncd.settings import DEFINITIONS

MINE = ("run", "sync", "status", "drain", "commit", "wait", "config", "demo")
HEAVY = ("boto3", "botocore", "awscrt", "prometheus_client", "structlog", "ckptsyncd.app")
#: What only other commands or other stores need; each costs a restore time before its first byte.
FOR_OTHERS = (
    "botocore", "google", "azure", "requests", "urllib3", "prometheus_client", "structlog",
    "sqlite3", "ckptsyncd.app", "ckptsyncd.sources", "ckptsyncd.signals",
)  # fmt: skip


def ended(*arguments: str) -> int:
    """Return the exit code of a command run in this process."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    code = caught.value.code
    assert isinstance(code, int)
    return code


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is the package's; the help names every command."""
    assert ended("--version") == 0
    assert capsys.readouterr().out == f"ckptsyncd {__version__}\n"
    assert ended("--help") == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)
    assert ended() == 2
    assert capsys.readouterr().out == text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command can be loaded, has the words of the list, and explains itself."""
    found = loaded(COMMANDS[name].target)
    assert isinstance(found, click.Command)
    assert (found.name, found.short_help) == (name, COMMANDS[name].short_help)
    assert ended(name, "--help") == 0
    assert f"Usage: ckptsyncd {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", MINE)
def test_examples_can_be_typed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The help ends in examples, each on its own line as it would be typed."""
    found = loaded(COMMANDS[name].target)
    assert isinstance(found, Command)
    assert found.examples
    ended(name, "--help")
    shown = capsys.readouterr().out.splitlines()
    assert shown[-len(found.examples) :] == [f"  {line}" for line in found.examples]
    assert all(line.startswith(f"ckptsyncd {name}") for line in found.examples)


def test_every_setting_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """`run` takes every setting of the table, and says its variable."""
    ended("run", "--help")
    words = capsys.readouterr().out.split()
    for made in DEFINITIONS:
        flag = f"[{made.flag}]" if made.positional else made.flag
        assert not flag or flag in words, made.name
        assert made.positional or not flag or f"{made.variable}]" in words


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["nope"], "No such command 'nope'.", "see 'ckptsyncd --help'"),
        (["status", "--jsno"], "No such option", "see 'ckptsyncd status --help'"),
        (["run", "--watch", "x", "d", "s3://b/p"], "'--watch'", "see 'ckptsyncd run --help'"),
        (["run", "--"], "there is no command after --", "leave -- away"),
        (["run"], "DIR is missing", "CKPTSYNCD_DIR"),
        (["wait"], "one of PATH and --step is needed", "wait --help"),
        (["wait", "--step", "1", "--timeout", "x"], "--timeout: 'x': not a duration", "allowed"),
        (["config"], "one of --sample and --show", "config --help"),
    ],
)
def test_usage_errors(
    arguments: list[str], error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong command line is two lines on stderr, nothing on stdout, and exit code 2."""
    assert ended(*arguments) == 2
    out, err = capsys.readouterr()
    first, second = err.splitlines()
    assert out == ""
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint: ")
    assert hint in second


def test_an_error_is_two_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Line breaks, escapes and secrets of a foreign error do not reach the terminal."""
    assert told("PUT https://u:pw@h/\n\x1b[2Jfailed", "look\nthere", 5) == 5
    assert capsys.readouterr().err == (
        "error: PUT https://[hidden]@h/ \\x1b[2Jfailed\nhint: look there\n"
    )


def test_what_the_machine_refuses_is_no_traceback(tmp_path: Path) -> None:
    """An OSError that nobody expected is told in two lines, with exit code 1."""
    code = (
        "import sys; from ckptsyncd.cli import program; from ckptsyncd.cli.lazy import Entry\n"
        "import click\n"
        "@click.command()\n"
        "def full(): raise OSError(28, 'No space left on device')\n"
        "program.group._entries['full'] = Entry('__main__:full', '')\n"
        "program.main(['full'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: [Errno 28] No space left on device\nhint: ")


def imported_by(*arguments: str, environ: dict[str, str]) -> tuple[str, set[str]]:
    """Return the output of the program, and the modules that it had imported at its end."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n'.join(['<<', *sys.modules]), file=sys.stderr))\n"
        "from ckptsyncd.cli import main\n"
        f"main({list(arguments)!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
    )
    text, _, modules = done.stderr.partition("<<")
    return done.stdout + text, set(modules.split())


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["config", "--sample"]])
def test_light_commands_stay_light(arguments: list[str], tmp_path: Path) -> None:
    """Asking needs no cloud library, no checksum library and not the daemon's own modules."""
    environ = {"CKPTSYNCD_SOCKET": str(tmp_path / "none.sock"), "HOME": str(tmp_path)}
    _, modules = imported_by(*arguments, environ=environ)
    assert "ckptsyncd.cli.program" in modules
    assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("verb", ["list", "verify", "restore"])
def test_what_reads_a_volume_needs_no_cloud(verb: str, tmp_path: Path) -> None:
    """No SDK, no metadata of a machine, no ledger and no metrics are imported to read a volume."""
    to = [str(tmp_path / "here")] if verb == "restore" else []
    arguments = [verb, f"file://{tmp_path}/durable", *to]
    out, modules = imported_by(*arguments, environ={"HOME": str(tmp_path)})
    assert "no checkpoint" in out
    assert f"ckptsyncd.cli.{verb}" in modules
    assert "ckptsyncd.stores.volume.store" in modules
    assert modules.isdisjoint(FOR_OTHERS)


def test_names_are_completed(tmp_path: Path) -> None:
    """The shell completes commands without loading them, and flags."""
    environ = {
        "_CKPTSYNCD_COMPLETE": "bash_complete",
        "COMP_WORDS": "ckptsyncd s",
        "COMP_CWORD": "1",
        "HOME": str(tmp_path),
    }
    out, modules = imported_by(environ=environ)
    assert out.split() == ["plain,sync", "plain,status"]
    assert "ckptsyncd.cli.status" not in modules
    typed = {"COMP_WORDS": "ckptsyncd status --j", "COMP_CWORD": "2"}
    out, _ = imported_by(environ={**environ, **typed})
    assert out.split() == ["plain,--json"]


def test_a_group_of_nothing() -> None:
    """A group without such a command says so, not that a module is missing."""
    group = LazyGroup("x", entries={"a": Entry("ckptsyncd.cli.wait:command", "A.")})
    assert group.get_command(click.Context(group), "b") is None
    assert group.list_commands(click.Context(group)) == ["a"]


def test_the_module_is_the_program() -> None:
    """``python -m ckptsyncd`` is the same program."""
    done = subprocess.run(
        [sys.executable, "-m", "ckptsyncd", "--version"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"ckptsyncd {__version__}\n"
