"""Recorded traces played in real time on a real disk, watched by the real program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ckptsyncd.core.records.documents import Pointers
from ckptsyncd.core.records.manifest import Manifest, decode
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.traces.player import NAMES, Player, Row
from tests.traces.rerun import Rerun
from tests.traces.table import TABLE, Save

#: Every way of saving and of dying once. The pure replay has all traces; all of them can be played
#: here too (``CKPTSYNCD_TEST_TRACES=all``), which takes a quarter of an hour.
SAMPLE = (
    "dcp_sync",
    "hf_trainer_basic",
    "keras_backup",
    "kill_dcp",
    "kill_hf_trainer",
    "kill_keras_zip",
    "kill_orbax",
    "kill_torch_over",
    "lightning_topk_last",
    "safetensors",
    "style_hardlink",
    "tf_manager",
    "torch_overwrite",
    "user_mv_in",
)
ASKED = tuple(os.environ.get("CKPTSYNCD_TEST_TRACES", "").split())
CHOSEN = tuple(NAMES) if ASKED == ("all",) else ASKED or SAMPLE

#: How long each evidence takes where nobody hurries, and how much later a busy machine may be.
TAKES = {"rename": 0.02, "marker": 0.1, "format": 0.1, "shape": 1.0}
SLACK_SECONDS = 0.75
#: Times in the table are rounded to a tenth of a millisecond.
ROUNDED = 0.0002
#: Parts of names that nobody restores.
TEMPORARY = (".tmp", "orbax-checkpoint-tmp", "tempstate", "_temp", ".rsync-partial", ".__lock")
#: What changes a file; the rest of a trace are readers and the recorder.
CHANGES = ("CREATE", "MODIFY", "CLOSE_WRITE", "DELETE", "MOVED_FROM", "MOVED_TO", "SYNTH_EXISTS")


@dataclass(frozen=True)
class Committed:
    """One manifest, and when its file was made."""

    manifest: Manifest
    at: float

    @property
    def what(self) -> tuple[str, int | None, int]:
        """Return what tells it from others in a row of the table."""
        files = sum(file.kind != "directory" for file in self.manifest.files)
        return self.manifest.checkpoint, self.manifest.step, files


def committed(durable: Path) -> list[Committed]:
    """Return everything that was ever committed, by the time of its save."""
    paths = sorted((durable / ".ckptsyncd/manifests").glob("*.json"))
    found = [Committed(decode(p.read_bytes()), p.stat().st_mtime) for p in paths]
    return sorted(found, key=lambda one: (one.manifest.saved_at, one.manifest.edition))


def undisturbed(name: str, rows: list[Row]) -> list[bool]:
    """Return for each expected save whether the trainer left it alone for long enough to settle."""
    player = Player(name)
    place = player.stage.eyes._gaze.tree.place
    changes = [(row["t"] or 0.0, row["path"]) for row in rows if row["events"][0] in CHANGES]
    units = {path: place(path, learns=False).unit for _, path in changes}
    kept = []
    for save in TABLE[name].whole:
        needs = TAKES.get(save.evidence, 30.0 if "global_step" in save.name else 5.0)
        later = [t for t, path in changes if t > save.at and _is_in(path, units[path], save.name)]
        kept.append(min(later, default=float("inf")) - save.at >= needs + SLACK_SECONDS)
    return kept


def _is_in(path: str, unit: str, name: str) -> bool:
    return name in (unit, path) or path.startswith((name + "/", name + "-", name + "."))


def check_table(rerun: Rerun, saves: list[Save], found: list[Committed]) -> None:
    """Assert that what was committed are saves of the table, and none is missing that must be."""
    rest = list(found)
    must = undisturbed(rerun.name, rerun.rows)
    for save, is_needed in zip(saves, must, strict=True):
        same = [
            one
            for one in rest
            if one.what == save.what and written_at(rerun, one) <= save.at + ROUNDED
        ]
        if same:
            rest.remove(same[0])
            evidence = same[0].manifest.evidence
            assert evidence == save.evidence or not is_needed, (save, evidence)
        assert same or not is_needed, f"{save} is missing; there are {[x.what for x in found]}"
    assert not rest, f"not in the table: {[one.what for one in rest]}"


def written_at(rerun: Rerun, one: Committed) -> float:
    """Return when, in recorded time, the last file of what was committed was finished."""
    files = (file for file in one.manifest.files if file.kind == "file" and file.size)
    return max(rerun.finished[file.crc64nvme] for file in files)


def check_content(rerun: Rerun, found: list[Committed]) -> None:
    """Assert that every committed byte was finished, and no temporary name is among them."""
    for one in found:
        for file in one.manifest.files:
            assert not any(part in file.path for part in TEMPORARY), file.path
            assert file.kind != "file" or not file.size or file.crc64nvme in rerun.finished, file


def check_pointers(durable: Path, wanted: set[str], found: list[Committed]) -> None:
    """Assert that the pointers are those of the table, each written after what it names."""
    told: set[str] = set()
    for path in (durable / ".ckptsyncd/pointers").glob("*.json"):
        kept = Pointers.decode(path.read_bytes())
        told |= {pointer.path for pointer in kept.pointers}
        named = [one for one in found if one.manifest.checkpoint == kept.checkpoint]
        assert min(one.at for one in named) <= path.stat().st_mtime
    assert told <= wanted


@pytest.mark.parametrize("name", CHOSEN)
def test_replay(name: str, tmp_path: Path, root: Path, durable: str, program: Start) -> None:
    """Finished saves are committed with name, step and evidence, and nothing else ever is."""
    row = TABLE[name]
    (tmp_path / "outside").mkdir()
    root.mkdir()
    options = ("--backlog", "keep-all", "--linger-seconds", "0")
    daemon = program(root, durable, *options).start()
    until(lambda: "daemon.running" in daemon.log, "it watches")
    rerun = Rerun(name, root, tmp_path / "outside", frozenset(row.torn), frozenset(row.endless))
    rerun.play()
    store = tmp_path / "durable"
    until(lambda: is_over(daemon, row.missed), lambda: f"{name} is judged\n{told(daemon)}")
    assert daemon.stop() == 0
    found = committed(store)
    check_content(rerun, found)
    check_table(rerun, row.whole, found)
    check_pointers(store, row.pointer, found)
    stored = [str(path) for path in store.rglob("*") if path.is_file()]
    assert not [path for path in stored if any(part in path for part in TEMPORARY)]
    if found:
        verified = command("verify", durable, "--level", "full")
        assert verified.returncode == 0, verified.stdout


def told(daemon: Program) -> str:
    """Return what the daemon says, for a failure's message."""
    rows = (daemon.status() or {"checkpoints": []})["checkpoints"]
    return "\n".join([daemon.log[-3000:], *(str(row) for row in rows)])


def is_over(daemon: Program, missed: dict[str, str]) -> bool:
    """Return whether nothing is on its way any more, and what is parked is so for its reason."""
    status = daemon.status() or {"checkpoints": []}
    rows = {row["checkpoint"]: row for row in status["checkpoints"] if row["state"] != "safe"}
    for checkpoint, one in rows.items():
        # The pretended disk of the pure replay has words of its own for a torn file.
        why = missed.get(checkpoint, "").removesuffix("the end is missing")
        if one["state"] != "parked" or not (why and one["reason"].startswith(why)):
            return False
    return True
