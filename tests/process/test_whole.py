"""What makes a checkpoint whole, and what keeps it from being so, in the real program."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import safetensors_bytes

#: So long nothing is called whole for being quiet.
NEVER_QUIET = ("--quiet-seconds", "1h", "--ranks-quiet-seconds", "1h")


def row(daemon: Program, checkpoint: str, edition: int = 1) -> dict[str, Any]:
    """Return what status says of an edition."""
    rows = (daemon.status() or {"checkpoints": []})["checkpoints"]
    named = (one for one in rows if (one["checkpoint"], one["edition"]) == (checkpoint, edition))
    return next(named, {})


def evidence(durable: str, checkpoint: str) -> list[tuple[str, str]]:
    """Return layout and evidence of each committed edition, as the manifests have them."""
    folder = Path(durable.removeprefix("file://"), ".ckptsyncd/manifests")
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return [(m["layout"], m["evidence"]) for m in found if m["checkpoint"] == checkpoint]


def says(daemon: Program, checkpoint: str, words: str) -> bool:
    """Return whether a checkpoint is parked for this reason."""
    shown = row(daemon, checkpoint)
    return shown.get("state") == "parked" and words in shown["reason"]


def is_writing(daemon: Program, checkpoint: str, edition: int) -> bool:
    """Return whether an edition is seen and not whole yet."""
    return row(daemon, checkpoint, edition).get("state") == "writing"


def test_an_index_waits_for_what_it_names(root: Path, durable: str, program: Start) -> None:
    """While a shard is missing or too small the reason says which; then all of it is safe."""
    daemon = program(root, durable, "--quiet-seconds", "500ms").start()
    folder = root / "checkpoint_best"
    folder.mkdir(parents=True)
    shards = {f"part-{part}.safetensors": safetensors_bytes(4096, n) for n, part in enumerate("ab")}
    index = {"metadata": {"total_size": 2 * 4096}, "weight_map": {name: name for name in shards}}
    first, last = shards
    (folder / first).write_bytes(shards[first])
    (folder / "weights.safetensors.index.json").write_text(json.dumps(index))
    missing = f"{last} is missing, which weights.safetensors.index.json names"
    until(lambda: says(daemon, folder.name, missing), lambda: str(daemon.status()))
    (folder / last).write_bytes(safetensors_bytes(100, 7))
    small = "names files of 8192 bytes, they hold"
    until(lambda: says(daemon, folder.name, small), lambda: str(daemon.status()))
    (folder / last).write_bytes(shards[last])
    daemon.until_safe(folder.name)
    assert daemon.stop() == 0


def test_a_done_file_says_that_it_is_whole(root: Path, durable: str, program: Start) -> None:
    """A directory is whole at once when its done-file comes, and again when it comes again."""
    daemon = program(root, durable, *NEVER_QUIET, "--done-file", "*.done").start()
    folder = root / "step_7"
    folder.mkdir(parents=True)
    for edition in (1, 2):
        (folder / "weights.bin").write_bytes(bytes([edition]) * 1000)
        until(partial(is_writing, daemon, "step_7", edition), "it is seen")
        (folder / "all.done").write_text("yes")
        daemon.until_safe("step_7", edition)
    assert daemon.stop() == 0
    assert [why for _, why in evidence(durable, "step_7")] == ["explicit"] * 2


def test_commit_says_that_it_is_whole(root: Path, durable: str, program: Start) -> None:
    """What no rule would ever call whole is safe once somebody says so, whatever its name."""
    daemon = program(root, durable, *NEVER_QUIET).start()
    (root / "odd").mkdir(parents=True)
    (root / "odd/anything").write_bytes(b"x" * 1000)
    (root / "checkpoint-3").mkdir()
    (root / "checkpoint-3/config.json").write_text("{}")
    for name in ("odd", "checkpoint-3"):
        path = str(root / name)
        said = command("commit", path, "--wait", "--socket", str(daemon.socket_path))
        assert said.returncode == 0, said.stderr
        assert [why for _, why in evidence(durable, name)] == ["explicit"]
    assert daemon.stop() == 0


def test_a_layout_of_the_users_own(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """A ``[[layout]]`` table makes checkpoints of its directories, whole by its own marker."""
    config = tmp_path / "c.toml"
    config.write_text(
        "[[layout]]\nname = 'mine'\nfolder = 'dump\\.\\d+'\nmarker = 'index'\nstep = '(\\d+)'\n"
    )
    daemon = program(root, durable, *NEVER_QUIET, "--config", str(config)).start()
    folder = root / "run/dump.40"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"x" * 1000)
    until(lambda: row(daemon, "run/dump.40").get("step") == 40, "it is seen with its step")
    (folder / "index").write_bytes(b"a")
    daemon.until_safe("run/dump.40")
    assert daemon.stop() == 0
    assert evidence(durable, "run/dump.40") == [("mine", "marker")]
