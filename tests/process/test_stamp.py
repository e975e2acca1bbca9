"""Checkpoints of Orbax versions that mark nothing on a disk, in a bucket that wants a mark."""

from __future__ import annotations

from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import command
from tests.process.saving import content

STAMP = ("--linger-seconds", "100ms", "--orbax-stamp")
MARKS = {"5/commit_success.txt", "5/default/commit_success.txt"}


def save(root: Path, step: int) -> Path:
    """Save as Orbax 0.11 does: under a temporary name, whole, and renamed; no mark anywhere."""
    building = root / f"{step}.orbax-checkpoint-tmp-1"
    for name in ("default/_METADATA", "default/d/0a1b", "default/manifest.ocdbt"):
        (building / name).parent.mkdir(parents=True, exist_ok=True)
        (building / name).write_bytes(f"{name} of {step}".encode() * 99)
    (building / "_CHECKPOINT_METADATA").write_text("{}")
    return building.rename(root / str(step))


def names(folder: Path) -> set[str]:
    """Return the files below a directory, ours left out."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith(".ckptsyncd")}


def test_a_stamped_checkpoint(tmp_path: Path, root: Path, durable: str, program: Start) -> None:
    """The marks lie in the bucket, verify, come back, are known again, and are pruned with it."""
    root.mkdir()
    daemon = program(root, durable, *STAMP).start()
    folder = save(root, 5)
    daemon.until_safe("5")
    bucket = tmp_path / "durable"
    assert names(bucket) == names(root) | MARKS
    assert not (folder / "commit_success.txt").exists()
    assert daemon.stop() == 0
    assert command("verify", durable, "--level", "full").returncode == 0

    back = tmp_path / "back"
    assert command("restore", durable, str(back)).returncode == 0
    assert names(back) == names(bucket)
    assert {k: v for k, v in content(back).items() if k not in MARKS} == content(root)

    # Both, the trainer's own and the restored one, are the committed content: nothing is sent.
    for place in (root, back):
        again = program(place, durable, *STAMP, state=f"again-{place.name}").start()
        again.until_safe("5")
        assert len(list((bucket / ".ckptsyncd/manifests").iterdir())) == 1
        assert again.stop() == 0

    again = program(root, durable, *STAMP[:2], state="daemon-0").start()
    save(root, 6)
    again.until_safe("6")
    assert again.stop() == 0
    for _ in ("the checkpoint", "its data"):
        rules = ("--keep-last", "1", "--min-keep", "1", "--grace", "0s")
        pruned = command("prune", durable, *rules)
        assert pruned.returncode == 0, pruned.stderr
    assert not any(name.startswith("5/") for name in names(bucket))
    assert "6/commit_success.txt" not in names(bucket)
