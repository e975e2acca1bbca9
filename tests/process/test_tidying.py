"""The real daemon tidies up: the store by the user's rules, the disk, and what it calls safe."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import trainer_checkpoint

#: Do not stay for a trainer that might still write.
QUICK = ("--linger-seconds", "0s")


def manifests(url: str) -> list[str]:
    """Return the manifests in a directory that is a store."""
    return sorted(path.name for path in Path(url[7:], ".ckptsyncd", "manifests").glob("*.json"))


def save(daemon: Program, *steps: int) -> None:
    """Let the trainer save, each once the one before is safe."""
    for step in steps:
        trainer_checkpoint(daemon.root, step, weights=20_000)
        daemon.until_safe(f"checkpoint-{step}")


def folders(root: Path) -> list[str]:
    """Return the checkpoints on the disk."""
    return sorted(path.name for path in root.glob("checkpoint-*"))


def tidying(daemon: Program) -> dict[str, object]:
    """Return what the status says about it."""
    found = (daemon.status() or {}).get("tidying", {})
    assert isinstance(found, dict)
    return found


def test_old_checkpoints_go_from_the_store(root: Path, durable: str, program: Start) -> None:
    """Manifests go by the rules, data after its grace; what the trainer has stays on its disk."""
    rules = ("--keep-last", "2", "--prune-interval", "1s", "--prune-grace", "1s")
    daemon = program(root, durable, *rules).start()
    save(daemon, 10, 20, 30, 40)
    kept = ["checkpoint-30.1.json", "checkpoint-40.1.json"]
    until(lambda: manifests(durable) == kept, lambda: f"two stay: {manifests(durable)}")
    until(
        lambda: (
            sorted(p.name for p in Path(durable[7:]).glob("checkpoint-*"))
            == ["checkpoint-30", "checkpoint-40"]
        ),
        "the data goes too",
    )
    assert folders(root) == [f"checkpoint-{step}" for step in (10, 20, 30, 40)]
    until(lambda: tidying(daemon)["objects_removed"] == 16, lambda: f"told: {tidying(daemon)}")
    assert tidying(daemon)["pruned"] == 2
    assert set(daemon.states().values()) == {"safe"}
    assert {name for name, _ in daemon.states()} == {"checkpoint-30", "checkpoint-40"}
    assert command("verify", durable, "--level", "full").returncode == 0


def test_nothing_goes_by_itself(root: Path, durable: str, program: Start) -> None:
    """Without a rule nothing is ever pruned, whatever the interval."""
    daemon = program(root, durable, *QUICK, "--prune-interval", "1s", "--pinned", "best*").start()
    save(daemon, 10, 20, 30)
    assert daemon.stop() == 0
    assert len(manifests(durable)) == 3
    assert "prune" not in daemon.log


def test_what_somebody_else_pruned_is_not_called_safe(
    root: Path, durable: str, program: Start
) -> None:
    """The daemon notices without a restart, says so, and does not store it once more."""
    daemon = program(root, durable, "--recheck-seconds", "1s").start()
    save(daemon, 10, 20, 30)
    latest = Path(durable[7:], ".ckptsyncd", "latest", "%root.json")
    until(lambda: "checkpoint-30" in latest.read_text(), "the hint names the newest")
    assert command("prune", durable, "--keep-last", "1", "--min-keep", "1").returncode == 0
    until(
        lambda: daemon.states().get(("checkpoint-20", 1)) == "superseded",
        lambda: f"it is noticed: {daemon.states()}",
    )
    assert "it was pruned from the store" in daemon.log
    assert manifests(durable) == ["checkpoint-30.1.json"]
    assert daemon.states()["checkpoint-30", 1] == "safe"


def test_an_emptied_store_is_filled_again(root: Path, durable: str, program: Start) -> None:
    """Whoever empties the bucket under a daemon gets everything that lies here stored again."""
    daemon = program(root, durable, "--recheck-seconds", "1s").start()
    save(daemon, 10)
    for path in sorted(Path(durable[7:]).rglob("*"), reverse=True):
        if path.is_file():  # the store's own room stays: without it the volume has vanished
            path.unlink()
    until(lambda: "checkpoint.gone" in daemon.log, "the loss is noticed")
    until(lambda: manifests(durable) == ["checkpoint-10.1.json"], "it is committed again")
    daemon.until_safe("checkpoint-10")
    assert command("verify", durable, "--level", "full").returncode == 0


def test_local_copies_of_what_is_safe_make_room(root: Path, durable: str, program: Start) -> None:
    """The oldest go, never the newest; what is not ours stays; nothing goes from the store."""
    daemon = program(root, durable, "--local-bytes", "100KiB").start()
    save(daemon, 10)
    (root / "checkpoint-10" / "notes").mkdir()
    save(daemon, 20, 30)
    until(
        lambda: (
            folders(root) == ["checkpoint-10", "checkpoint-30"]
            and [path.name for path in (root / "checkpoint-10").iterdir()] == ["notes"]
        ),
        lambda: f"two go: {folders(root)}",
    )
    assert len(manifests(durable)) == 3
    until(lambda: daemon.log.count("local.removed") == 2, "both are told")
    assert command("restore", durable, str(root.parent / "back"), "--step", "10").returncode == 0


def test_a_copy_stays_while_the_store_has_no_other(
    root: Path, durable: str, program: Start
) -> None:
    """Before a local copy goes, every object of it is looked for once more."""
    daemon = program(root, durable, *QUICK).start()
    save(daemon, 10, 20)
    assert daemon.stop() == 0
    (Path(durable[7:]) / "checkpoint-10" / "model.safetensors").unlink()
    again = program(root, durable, "--local-bytes", "1KiB").start()
    save(again, 30)
    until(lambda: folders(root) == ["checkpoint-10", "checkpoint-30"], lambda: f"{folders(root)}")
    assert "local.kept" in again.log


def test_a_second_destination_gets_what_is_safe(root: Path, durable: str, program: Start) -> None:
    """Each checkpoint comes over after it is safe in the first, and restores from there alone."""
    second = f"file://{root.parent}/second"
    daemon = program(root, durable, *QUICK, "--also", second).start()
    save(daemon, 10, 20)
    both = ["checkpoint-10.1.json", "checkpoint-20.1.json"]
    until(lambda: manifests(second) == both, lambda: f"they come over: {daemon.log[-1000:]}")
    until(lambda: tidying(daemon)["also_behind"] == 0, lambda: f"told: {tidying(daemon)}")
    assert daemon.stop() == 0
    shutil.rmtree(durable[7:])
    assert command("verify", second, "--level", "full").returncode == 0
    back = root.parent / "back"
    assert command("restore", second, str(back)).returncode == 0
    assert (back / "checkpoint-20" / "trainer_state.json").exists()


def test_the_rules_hold_for_the_second_too(root: Path, durable: str, program: Start) -> None:
    """A second destination that may not lie there ends the program before anything is sent."""
    root.mkdir()
    options = ("--also", f"file://{root.parent}/second", "--country", "CA")
    daemon = program(root, durable, *options)
    daemon.begin()
    assert daemon.wait() == 7
    assert not Path(durable[7:]).exists()
