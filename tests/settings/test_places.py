"""Default places: private, the service manager's first, and different for different runs."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from ckptsyncd.errors import UsageError
from ckptsyncd.settings import found_sockets, found_state_dirs, make_private
from ckptsyncd.settings.places import default_socket, default_state_dir, place_id

PAIR = ("/data/run", "s3://bucket/run")


def test_the_service_manager_comes_first(tmp_path: Path) -> None:
    """RUNTIME_DIRECTORY and STATE_DIRECTORY win over XDG, which wins over the rest."""
    session = tmp_path / "session"
    session.mkdir()
    xdg = {
        "XDG_RUNTIME_DIR": str(session),
        "XDG_STATE_HOME": str(tmp_path / "xdg"),
        "HOME": str(tmp_path),
    }
    systemd = {"RUNTIME_DIRECTORY": "/run/a:/run/b", "STATE_DIRECTORY": "/var/lib/a"}
    assert default_socket(*PAIR, {**xdg, **systemd}).parent == Path("/run/a")
    assert default_state_dir(*PAIR, {**xdg, **systemd}).parent == Path("/var/lib/a")
    assert default_socket(*PAIR, xdg).parent == session / "ckptsyncd"
    assert default_state_dir(*PAIR, xdg).parent == tmp_path / "xdg" / "ckptsyncd"


def test_without_any_of_them(tmp_path: Path) -> None:
    """Then state lies below the home directory, or with the socket in a private one in /tmp."""
    private = Path("/tmp") / f"ckptsyncd-{os.geteuid()}"  # noqa: S108
    state = default_state_dir(*PAIR, {"HOME": str(tmp_path)})
    assert state.parent == tmp_path / ".local" / "state" / "ckptsyncd"
    assert default_state_dir(*PAIR, {}).parent == private / "state"
    gone = {"XDG_RUNTIME_DIR": str(tmp_path / "gone"), "XDG_STATE_HOME": "relative"}
    assert default_socket(*PAIR, gone).parent == private


def test_two_runs_do_not_collide() -> None:
    """Another watch root or destination has another socket and state directory."""
    pairs = [PAIR, ("/data/run2", PAIR[1]), (PAIR[0], "s3://bucket/run2")]
    assert len({default_socket(*pair, {}) for pair in pairs}) == 3
    assert len({default_state_dir(*pair, {}) for pair in pairs}) == 3
    assert place_id("/data/../data/run", "s3://bucket/run/") == place_id(*PAIR)


def test_long_names_stay_short() -> None:
    """A socket's name does not grow with the watch root's, for the kernel bounds its path."""
    assert len(default_socket("/" + "x" * 200, "s3://" + "y" * 500, {}).name) == 17


def test_sockets_and_states_are_found(tmp_path: Path) -> None:
    """Every socket, also one directory down, and every ledger below the default places is found."""
    run, state = tmp_path / "run", tmp_path / "state"
    (run / "instance").mkdir(parents=True)
    (state / "a").mkdir(parents=True)
    (state / "a" / "ledger.sqlite").write_text("")
    (run / "no.sock").write_text("")
    listening = []
    for path in (run / "a.sock", run / "instance" / "b.sock"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        listening.append(server)
    environ = {"RUNTIME_DIRECTORY": str(run), "STATE_DIRECTORY": str(state)}
    found = [path for path in found_sockets(environ) if tmp_path in path.parents]
    assert found == [run / "a.sock", run / "instance" / "b.sock"]
    assert [p for p in found_state_dirs(environ) if tmp_path in p.parents] == [state / "a"]
    for server in listening:
        server.close()


def test_directories_are_made_private(tmp_path: Path) -> None:
    """Everything that is missing is made for its owner only, whatever is above it."""
    make_private(tmp_path / "a" / "b")
    make_private(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_planted_directory_is_refused(tmp_path: Path) -> None:
    """In a directory like /tmp a name that is a symlink or another user's is not trusted."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (tmp_path / "elsewhere").mkdir()
    (shared / "ours").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="belongs to another user"):
        make_private(shared / "ours" / "state")
    if os.geteuid() == 0:
        (shared / "theirs").mkdir()
        os.chown(shared / "theirs", 12345, 12345)
        with pytest.raises(UsageError, match=r"another user \(uid 12345\)"):
            make_private(shared / "theirs" / "state")
    make_private(shared / "fresh" / "state")


def test_what_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """A file in the way is a refusal that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make the directory"):
        make_private(tmp_path / "file" / "state")
    with pytest.raises(UsageError, match="cannot make the directory"):
        make_private(tmp_path / "file")
