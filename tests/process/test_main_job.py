"""The main job through the real program: written here, safe there, and back again."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import (
    MIB,
    by_rename,
    content,
    in_place,
    trainer_checkpoint,
    trainer_files,
)
from tests.servers import S3Server


def s3_options(server: S3Server) -> tuple[str, ...]:
    """Return the flags that lead to the test server."""
    return ("--s3-endpoint", server.endpoint, "--s3-path-style")


@pytest.mark.server
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_three_ways_of_saving_become_safe_and_come_back(
    kind: str, tmp_path: Path, root: Path, program: Start, request: pytest.FixtureRequest
) -> None:
    """What is renamed, filled over time, or overwritten is committed whole and restored alike."""
    url = f"file://{tmp_path}/durable"
    options: tuple[str, ...] = ()
    if kind == "s3":
        options = s3_options(request.getfixturevalue("s3_server"))
        url = request.getfixturevalue("prefix")
    daemon = program(root, url, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "ckpt.pt", MIB, 1)
    in_place(root / "last.ckpt", MIB, 2)
    folder = root / "checkpoint-500"
    folder.mkdir()
    pause = threading.Event()
    for name, data in trainer_files(500):
        (folder / name).write_bytes(data)
        pause.wait(0.25)  # the directory grows over two seconds, as real ones do
    for name in ("ckpt.pt", "last.ckpt", "checkpoint-500"):
        daemon.until_safe(name)
    in_place(root / "last.ckpt", MIB, 3)
    daemon.until_safe("last.ckpt", 2)
    assert daemon.stop() == 0
    listed = command("list", url, "--json", *options)
    rows = json.loads(listed.stdout)
    assert {(row["checkpoint"], row["edition"]) for row in rows} == {
        ("ckpt.pt", 1), ("last.ckpt", 1), ("last.ckpt", 2), ("checkpoint-500", 1),
    }  # fmt: skip
    for name in ("ckpt.pt", "last.ckpt", "checkpoint-500"):
        back = command("restore", url, str(tmp_path / "back"), "--checkpoint", name, *options)
        assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back") == content(root)


def test_a_half_written_checkpoint_is_never_committed(
    root: Path, durable: str, program: Start
) -> None:
    """A directory without the file that is written last stays where it is."""
    daemon = program(root, durable).start()
    trainer_checkpoint(root, 1)
    daemon.until_safe("checkpoint-1")
    folder = root / "checkpoint-2"
    folder.mkdir()
    for name, data in trainer_files(2):
        if name != "trainer_state.json":
            (folder / name).write_bytes(data)
    trainer_checkpoint(root, 3)
    daemon.until_safe("checkpoint-3")
    assert daemon.states()[("checkpoint-2", 1)] == "writing"
    assert daemon.stop() == 0
    assert "checkpoint-2" not in command("list", durable).stdout


def test_a_restored_directory_is_adopted_without_sending_data(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Restored files are safe by their checksums although the state is empty; others are not."""
    daemon = program(root, durable).start()
    trainer_checkpoint(root, 500)
    daemon.until_safe("checkpoint-500")
    assert daemon.stop() == 0
    before = content(root)
    shutil.rmtree(root)
    assert command("restore", durable, str(root)).returncode == 0
    assert content(root) == before
    again = program(root, durable).start()
    again.until_safe("checkpoint-500")
    status = again.status()
    assert status is not None
    assert status["bytes_sent"] == 0
    for name, data in trainer_files(500, weights=300 * 1024):
        (root / "checkpoint-500" / name).write_bytes(data)
    again.until_safe("checkpoint-500", 2)
    assert again.stop() == 0
    for edition in ("1", "2"):
        target = tmp_path / edition
        name = f"checkpoint-500@{edition}"
        assert command("restore", durable, str(target), "--checkpoint", name).returncode == 0
    assert content(tmp_path / "1") == before
    assert content(tmp_path / "2") == content(root)


def test_rotation_does_not_lose_what_had_settled(root: Path, durable: str, program: Start) -> None:
    """Of ten checkpoints of which only one stays on disk, the last is safe and none is torn."""
    daemon = program(root, durable).start()
    for step in range(1, 11):
        trainer_checkpoint(root, step)
        if step > 1:
            shutil.rmtree(root / f"checkpoint-{step - 1}")
    daemon.until_safe("checkpoint-10")
    assert daemon.stop() == 0
    verified = command("verify", durable, "--level", "full")
    assert verified.returncode == 0, verified.stdout


def test_sync_does_the_same_in_one_pass(tmp_path: Path, root: Path, durable: str) -> None:
    """One command uploads what is whole and ends; the second time it sends nothing."""
    trainer_checkpoint(root, 7)
    by_rename(root / "ckpt.pt", 4096, 1)
    state = ("--state-dir", str(tmp_path / "state"))
    first = command("sync", str(root), durable, *state)
    assert first.returncode == 0, first.stderr
    rows = json.loads(command("list", durable, "--json").stdout)
    assert {row["checkpoint"] for row in rows} == {"checkpoint-7", "ckpt.pt"}
    second = command("sync", str(root), durable, *state)
    assert second.returncode == 0
    assert "uploading" not in second.stderr


def test_status_words_follow_the_checkpoint(root: Path, durable: str, program: Start) -> None:
    """While a file is held open its checkpoint is ``writing`` and nothing is at risk."""
    daemon = program(root, durable).start()
    root.mkdir(exist_ok=True)
    with (root / "big.pt").open("wb") as file:
        file.write(b"PK" + bytes(1000))
        file.flush()
        until(lambda: daemon.states().get(("big.pt", 1)) == "writing", "it is seen")
        shown = command("status", "--socket", str(daemon.socket_path))
        assert shown.returncode == 0
        assert "big.pt" in shown.stdout
    by_rename(root / "big.pt", MIB, 5)
    daemon.until_safe("big.pt")
    assert daemon.stop() == 0


def test_a_name_rewritten_faster_than_it_uploads_is_copied_and_safe(
    root: Path, durable: str, program: Start
) -> None:
    """Overwritten in place again and again behind a slow link, it is safe, and never torn."""
    daemon = program(root, durable, "--bandwidth", "4MiB/s").start()
    root.mkdir(exist_ok=True)
    pause = threading.Event()
    for save in range(8):
        in_place(root / "last.ckpt", 6 * MIB, save)
        pause.wait(0.8)  # an upload takes 1.5 s
    until(lambda: set(daemon.states().values()) == {"safe"}, "the last save is safe")
    assert "whole: copy" in daemon.log
    assert daemon.stop() == 0
    verified = command("verify", durable, "--level", "full")
    assert verified.returncode == 0, verified.stdout
    assert command("restore", durable, str(root.parent / "back")).returncode == 0
    assert content(root.parent / "back") == content(root)
