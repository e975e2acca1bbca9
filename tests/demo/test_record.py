"""The trainer's own checksums: the demo believes nothing else."""

from __future__ import annotations

import argparse
import io
import json
import threading
from pathlib import Path

import pytest

from ckptsyncd.demo import story
from ckptsyncd.demo.machine import Places
from ckptsyncd.demo.record import compared, read_record
from ckptsyncd.demo.screen import Screen
from ckptsyncd.demo.trainer import files, save, train
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.formats import check


class NoPause(threading.Event):
    """A pause that takes no time."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        del timeout
        return False


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return a story whose trainer saved three times, and where the last save came back."""
    places = Places(tmp_path)
    with places.trainer_log.open("w") as log:
        options = argparse.Namespace(dir=tmp_path / "root", every=2, keep=2, weights=4096, steps=7)
        options.dir.mkdir()
        train(options, log, NoPause())
        save(options.dir, 8, 4096, log, NoPause())
        log.write('{"event": "step", "st')
    places.second_root.mkdir(parents=True)
    (options.dir / "checkpoint-6").rename(places.second_root / "checkpoint-6")
    return places


def screen(out: io.StringIO) -> Screen:
    """Return a screen that is no terminal."""
    return Screen(
        out, Path("/d"), lambda _document, _width: [], is_terminal=False, has_colour=False
    )


def test_the_log_tells_what_was_saved_and_what_was_begun(places: Places) -> None:
    """Steps, checksums and ends of saves are read back; a torn last line is no fault."""
    record = read_record(places.trainer_log)
    assert record.last_step == 8
    assert record.saved == {2, 4, 6}
    assert record.unfinished() == [8]
    assert [len(record.files[step]) for step in (2, 4, 6, 8)] == [8] * 4


def test_the_trainer_goes_on_where_it_was(places: Places) -> None:
    """From a restored checkpoint it counts on; from nothing it begins with the first step."""
    log = places.base / "second.log"
    with log.open("w") as file:
        options = argparse.Namespace(dir=places.second_root, every=4, keep=2, weights=4096, steps=2)
        train(options, file, NoPause())
    record = read_record(log)
    assert record.last_step == 8
    assert record.saved == {8}


def test_only_the_newest_saves_stay(places: Places) -> None:
    """The trainer rotates as real ones do."""
    left = sorted(path.name for path in (places.base / "root").iterdir())
    assert left == ["checkpoint-4", "checkpoint-8"]


def test_what_comes_back_is_told(places: Places) -> None:
    """Where all checksums match, the story says what was saved and what was lost."""
    out = io.StringIO()
    story.compare(places, screen(out), safe_step=6)
    assert "Saved: checkpoint-6; all 8 files" in out.getvalue()
    assert "2 steps of training after it, and checkpoint-8, which was being" in out.getvalue()


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda folder: (folder / "optimizer.pt").write_bytes(b"x"), "optimizer.pt has other"),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "more").write_bytes(b""), "more was never written"),
        (lambda folder: folder.rename(folder.with_name("checkpoint-5")), "no such checkpoint"),
        (lambda folder: folder.rename(folder.with_name("x")), "0 checkpoints came back"),
    ],
)  # fmt: skip
def test_what_comes_back_otherwise_is_an_error(places: Places, spoil: object, fault: str) -> None:
    """One byte, one file, one name that is not the trainer's: the demo fails and says which."""
    assert callable(spoil)
    spoil(places.second_root / "checkpoint-6")
    with pytest.raises(CkptsyncdError, match=fault) as caught:
        story.compare(places, screen(io.StringIO()), safe_step=0)
    assert caught.value.exit_code == 1


def test_an_older_checkpoint_than_the_safe_one_is_an_error(places: Places) -> None:
    """What was called safe must come back, not something before it."""
    with pytest.raises(CkptsyncdError, match="step 7 was called safe, step 6 came back"):
        story.compare(places, screen(io.StringIO()), safe_step=7)


def test_files_are_what_their_names_say(tmp_path: Path) -> None:
    """The trainer's eight files pass the same format checks as those of real frameworks."""
    shapes = {}
    for name, data in files(20, 4096):
        (tmp_path / name).write_bytes(data)
        with (tmp_path / name).open("rb") as file:
            shapes[name] = check(file.fileno(), name, len(data))[0]
    assert shapes == dict.fromkeys(shapes, "whole")
    assert len(shapes) == 8
    assert json.loads((tmp_path / "trainer_state.json").read_text())["global_step"] == 20


def test_an_empty_record_matches_nothing(tmp_path: Path) -> None:
    """A directory that the trainer never wrote is no match, even an empty one."""
    assert compared(tmp_path, {}).faults == ("the trainer wrote no such checkpoint",)
