"""Settings: who wins, what is refused, and in which words."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.errors import UsageError
from ckptsyncd.settings import BY_NAME, DEFINITIONS, GROUPS, Loaded, Settings, load, load_places
from ckptsyncd.settings.gather import Given
from ckptsyncd.settings.sample import sample, shown

Flags = dict[str, Given]


@pytest.fixture
def flags(tmp_path: Path) -> Flags:
    """Return the least that must be said."""
    (tmp_path / "run").mkdir()
    return {"dir": str(tmp_path / "run"), "url": "s3://bucket/run"}


def config(tmp_path: Path, text: str) -> str:
    """Return the name of a config file with that text."""
    path = tmp_path / "c.toml"
    path.write_text(text)
    return str(path)


def refused(
    flags: Flags, environ: dict[str, str] | None = None, file: str | None = None
) -> tuple[str, str]:
    """Return text and hint of the refusal, each of one line."""
    with pytest.raises(UsageError) as caught:
        load(flags, environ or {}, file)
    text, hint = str(caught.value), caught.value.hint
    assert "\n" not in text + hint
    return text, hint


def test_every_setting_has_help_bounds_and_a_home() -> None:
    """The table is complete: each setting explains itself, and its default is allowed."""
    for made in DEFINITIONS:
        assert made.help.endswith("."), made.name
        assert made.kind.allowed()
        assert made.group in GROUPS
        assert made.example_text(), made.name
        if made.default_text() and not isinstance(made.default, bool):
            assert made.kind.take(made.default) == made.default, made.name
    assert [made.name for made in DEFINITIONS] == [f.name for f in dataclasses.fields(Settings)]


def test_defaults_are_the_rules_own() -> None:
    """Without a word from the user the mind's rules are those of Policy; hands are only a bound."""
    assert Settings().policy() == replace(Policy(), hands=Settings().hands)


def test_rules_follow_the_settings(flags: Flags) -> None:
    """A setting with a rule's name reaches the rule."""
    settings = load({**flags, "quiet_seconds": "7s", "hands": "2", "take_over": True}, {}).settings
    policy = settings.policy()
    assert (policy.quiet_seconds, policy.hands, policy.take_over) == (7.0, 2, True)


def test_flags_win_over_variables_over_the_file(tmp_path: Path, flags: Flags) -> None:
    """Each of the three is heard, in this order, and the place of each is remembered."""
    file = config(tmp_path, "hands = 2\nnodes = 2\nquiet_seconds = 2\nexclude = ['*.tmp']\n")
    environ = {"CKPTSYNCD_HANDS": "3", "CKPTSYNCD_NODES": "3", "OTHER": "x"}
    typed = {**flags, "hands": "4", "exclude": ("a", "b,c"), "node": "1", "nodes": None}
    loaded = load(typed, environ, file)
    settings = loaded.settings
    assert (settings.hands, settings.nodes, settings.quiet_seconds) == (4, 3, 2.0)
    assert settings.exclude == ("a", "b,c")
    assert dict(loaded.origins) == {
        "dir": "DIR",
        "url": "URL",
        "exclude": "--exclude",
        "hands": "--hands",
        "node": "--node",
        "nodes": "CKPTSYNCD_NODES",
        "quiet_seconds": f"{file}:3",
    }


def test_the_file_is_named_by_a_variable_too(tmp_path: Path, flags: Flags) -> None:
    """CKPTSYNCD_CONFIG names the config file, and --config wins over it."""
    file = config(tmp_path, "hands = 2\n")
    environ = {"CKPTSYNCD_CONFIG": file}
    assert load(flags, environ).settings.hands == 2
    other = tmp_path / "other.toml"
    other.write_text("hands = 9\n")
    assert load(flags, environ, str(other)).settings.hands == 9


def test_everything_may_stand_in_the_file(tmp_path: Path) -> None:
    """No flag and no variable is needed."""
    (tmp_path / "run").mkdir()
    file = config(tmp_path, f"dir = '{tmp_path}/run/'\nurl = 's3://b/p/'\nbandwidth = '8Mbit/s'\n")
    settings = load({}, {}, file).settings
    assert (settings.dir, settings.url, settings.bandwidth) == (
        str(tmp_path / "run"),
        "s3://b/p",
        1_000_000,
    )


def test_an_empty_word_is_no_word(tmp_path: Path, flags: Flags) -> None:
    """Empty variables and empty texts in the file leave the default standing."""
    file = config(tmp_path, "s3_region = ''\nlog_format = ''\n")
    settings = load(flags, {"CKPTSYNCD_HANDS": "", "CKPTSYNCD_S3_PROFILE": ""}, file).settings
    assert (settings.hands, settings.s3_region, settings.log_format) == (32, "", "auto")


def test_no_source_at_all_may_be_said(tmp_path: Path, flags: Flags) -> None:
    """An empty list in the file is a list without members, not the default."""
    assert load(flags, {}, config(tmp_path, "sources = []")).settings.sources == ()


@pytest.mark.parametrize(
    ("line", "where", "hint"),
    [
        ('quiet_second = "5s"', ':2: unknown key "quiet_second"', 'did you mean "quiet_seconds"?'),
        ("quiet-seconds = 5", ':2: unknown key "quiet-seconds"', 'did you mean "quiet_seconds"?'),
        ("[retention]", ':2: unknown key "retention"', "the nearest key is"),
        ('hands = "x"', ":2: hands = 'x': a string, not a whole number", "allowed: 1 to 64"),
        ("hands = 900", ":2: hands = '900': out of range", "allowed: 1 to 64"),
        ("hands = true", ":2: hands = 'True': a boolean, not a whole number", "allowed: 1 to 64"),
        ('quiet_seconds = "soon"', ":2: quiet_seconds = 'soon': not a duration", "200ms to 1h"),
        ('backlog = "all"', ":2: backlog = 'all': not one of them", "newest or keep-all"),
        ("companions = 1", ":2: companions = '1': a number, not true or false", "true or false"),
        ("exclude = 'x'", ":2: exclude = 'x': a string, not a list", "allowed: list"),
        ("hands = ", ":2: not TOML", "config --sample"),
        ("node = 1\nnodes = 1", ":2: node = 1, but there are 1 nodes", "allowed: 0 to 0"),
    ],
)
def test_what_the_file_says_wrong(
    tmp_path: Path, flags: Flags, line: str, where: str, hint: str
) -> None:
    """The refusal names file, line and value, and the hint what is allowed or was meant."""
    file = config(tmp_path, f"# a comment\n{line}\n")
    text, told = refused(flags, file=file)
    assert file + where in text
    assert hint in told


def test_flags_and_variables_say_wrong(flags: Flags) -> None:
    """A wrong flag is named by its flag, a wrong variable by its variable."""
    text, hint = refused({**flags, "hands": "many"})
    assert text == "--hands: hands = 'many': not a whole number"
    assert hint == "allowed: 1 to 64"
    text, _ = refused(flags, {"CKPTSYNCD_PIECE_BYTES": "16M"})
    assert text.startswith("CKPTSYNCD_PIECE_BYTES: piece_bytes = '16M': unknown unit M; known are")


def test_a_misspelt_variable_is_noticed(flags: Flags) -> None:
    """A variable that is nearly a setting's is refused with the one that was meant."""
    text, hint = refused(flags, {"CKPTSYNCD_QUIET_SECOND": "3"})
    assert text == "unknown variable CKPTSYNCD_QUIET_SECOND"
    assert hint == "did you mean CKPTSYNCD_QUIET_SECONDS?"


def test_variables_of_kubernetes_are_no_settings(flags: Flags) -> None:
    """What Kubernetes puts into every pod beside services of our name changes nothing."""
    environ = {
        "CKPTSYNCD_SERVICE_HOST": "10.0.0.1",
        "CKPTSYNCD_SERVICE_PORT": "9465",
        "CKPTSYNCD_PORT": "tcp://10.0.0.1:9465",
        "CKPTSYNCD_PORT_9465_TCP_ADDR": "10.0.0.1",
        "CKPTSYNCD_METRICS_PORT": "tcp://10.0.0.1:9465",
    }
    assert load(flags, environ).settings == load(flags, {}).settings


def test_a_config_file_that_cannot_be_read(tmp_path: Path, flags: Flags) -> None:
    """A named config file must exist and be text."""
    text, _ = refused(flags, file=str(tmp_path / "none.toml"))
    assert text.endswith("none.toml: No such file or directory")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    text, _ = refused(flags, file=str(tmp_path / "bytes.toml"))
    assert text.endswith("it is no UTF-8 text")


@pytest.mark.parametrize(
    ("url", "part", "hint"),
    [
        ("", "URL is missing", "such as s3://"),
        ("/mnt/volume", "is a path, not a URL", "file:///mnt/volume"),
        ("ftp://host/x", "does not begin with s3://, gs://, az://, file://", "such as"),
        ("bucket/run", "does not begin with", "such as"),
        ("s3:///run", "names no bucket", "such as"),
        ("s3://key:secret@bucket/run", "credentials", "environment"),
        ("file://mnt/run", "not of the form file:///path", "three slashes"),
    ],
)
def test_urls_that_are_refused(flags: Flags, url: str, part: str, hint: str) -> None:
    """A destination that cannot be meant is refused, and a secret in it is not repeated."""
    text, told = refused({**flags, "url": url})
    assert part in text
    assert hint in told
    assert "secret" not in text + told


def test_directories_that_are_refused(tmp_path: Path, flags: Flags) -> None:
    """DIR must be named, be a directory, or have one above it in which it can appear."""
    assert refused({"url": "s3://b/p"})[0].startswith("DIR is missing")
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refused({**flags, "dir": str(tmp_path / "file")})[0]
    text = refused({**flags, "dir": str(tmp_path / "none" / "run")})[0]
    assert "nor does the directory above it" in text
    later = load({**flags, "dir": str(tmp_path / "later")}, {}).settings
    assert later.dir == str(tmp_path / "later")


def test_nested_places_are_refused(tmp_path: Path, flags: Flags) -> None:
    """Destination and watch root may not contain each other, by whatever path, nor state in it."""
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for inside in (f"{tmp_path}/run/out", f"{tmp_path}/run", f"{tmp_path}/link/out"):
        text, _ = refused({**flags, "url": f"file://{inside}"})
        assert "the destination lies inside the watch root" in text or "same" in text
    text, _ = refused({**flags, "url": f"file://{tmp_path}"})
    assert "the watch root lies inside the destination" in text
    text, _ = refused({**flags, "state_dir": f"{tmp_path}/run/state"})
    assert "the state directory" in text
    load({**flags, "url": f"file://{tmp_path}/running"}, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_an_unwritable_destination_is_refused(tmp_path: Path, flags: Flags) -> None:
    """A file:// destination below a directory that we may not write into is refused at once."""
    (tmp_path / "closed").mkdir(mode=0o500)
    text, _ = refused({**flags, "url": f"file://{tmp_path}/closed/run"})
    assert text.endswith("closed is not writable")


def test_a_destination_below_a_file_is_refused(tmp_path: Path, flags: Flags) -> None:
    """A file:// destination that can never be a directory is refused at once."""
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refused({**flags, "url": f"file://{tmp_path}/file/run"})[0]


def test_a_socket_path_has_a_limit(flags: Flags) -> None:
    """A path that the kernel would not take for a unix socket is refused with the limit."""
    text, _ = refused({**flags, "socket": "/run/" + "x" * 120})
    assert text == "--socket: the socket's path is longer than 107 bytes"


def test_whom_to_tell_needs_a_signal(flags: Flags) -> None:
    """A process without a signal, and a signal that there is not, are refused."""
    with pytest.raises(UsageError, match="no signal that it is to get"):
        load({**flags, "tell_pid_file": "/run/trainer.pid"}, {})
    with pytest.raises(UsageError, match="there is no signal SIGSAVE"):
        load({**flags, "tell_signal": "SIGSAVE"}, {})
    told = load({**flags, "tell_signal": "SIGUSR1", "tell_process": "train.py"}, {}).settings
    assert told.tell_signal == "SIGUSR1"


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 8.0),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 28.0),
        ({"SLURM_JOB_ID": "7"}, 28.0),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "RUNPOD_POD_ID": "x"}, 3.0),
        ({"CKPTSYNCD_KILL_AFTER": "90s", "SLURM_JOB_ID": "7"}, 88.0),
        ({"CKPTSYNCD_STOP_TIMEOUT": "60s", "SLURM_JOB_ID": "7"}, 60.0),
    ],
)
def test_a_stop_takes_as_long_as_is_usual_here(
    flags: Flags, environ: dict[str, str], seconds: float
) -> None:
    """Unless somebody said it, a stop is over two seconds before whoever runs us kills."""
    assert load(flags, environ).settings.stop_timeout == seconds


def test_the_sample_changes_nothing(tmp_path: Path, flags: Flags) -> None:
    """The sample config names every setting and, as it is, leaves every default."""
    text = sample()
    assert all(re.search(rf"^#{name} = ", text, re.MULTILINE) for name in BY_NAME)
    by_flag = [made for made in DEFINITIONS if made.flag]
    assert all(made.variable in text and made.flag in text for made in by_flag)
    assert load(flags, {}, config(tmp_path, text)).settings == load(flags, {}).settings


def test_the_sample_without_its_marks_is_valid(tmp_path: Path, flags: Flags) -> None:
    """Every line of the sample can be taken as it stands, defaults and examples alike."""
    text = re.sub(r"^#(?=[a-z])", "", sample(), flags=re.MULTILINE)
    loaded = load(flags, {}, config(tmp_path, text))
    assert len(loaded.origins) == len(DEFINITIONS)


def test_what_is_shown_loads_as_the_same(tmp_path: Path, flags: Flags) -> None:
    """`config --show` prints a config file that means what holds now, with its places."""
    loaded: Loaded = load({**flags, "bandwidth": "8Mbit/s"}, {"CKPTSYNCD_HANDS": "2"})
    text = shown(loaded)
    assert "hands = 2  # CKPTSYNCD_HANDS" in text
    assert "# config file: none" in text
    assert load({}, {}, config(tmp_path, text)).settings == loaded.settings


def test_commands_that_only_ask_need_only_places(tmp_path: Path, flags: Flags) -> None:
    """Socket and state directory are found although other settings are wrong or missing."""
    environ = {"CKPTSYNCD_HANDS": "x", "HOME": str(tmp_path)}
    settings = load_places(flags, environ)
    assert settings.socket == load(flags, {"HOME": str(tmp_path)}).settings.socket
    assert load_places({}, environ).socket == ""
    assert load_places({"socket": "s"}, {}).socket == str(Path("s").absolute())
