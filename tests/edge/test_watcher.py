"""Hints from real inotify events: nothing that happens in the tree goes unmentioned."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.messages import Message, Overflowed, Polled, RootLost, Touched
from ckptsyncd.edge.watcher import Watcher
from ckptsyncd.errors import UsageError
from tests.edge.world import Inbox, Mind, descriptors, disk_at

START = Touched("", tree=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty watch root."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def inbox() -> Inbox:
    """Return an empty inbox."""
    return Inbox()


@pytest.fixture
def watch(root: Path, inbox: Inbox) -> Iterator[Callable[..., Watcher]]:
    """Return what makes watchers (of the root, unless told otherwise), all stopped in the end."""
    made: list[Watcher] = []

    def make(place: Path = root, *, poll: bool = False) -> Watcher:
        made.append(Watcher(place, inbox.put, poll=poll))
        return made[-1]

    yield make
    for watcher in made:
        watcher.stop()


@pytest.fixture
def watcher(watch: Callable[..., Watcher], inbox: Inbox) -> Watcher:
    """Return a running watcher of the root, all watches in place."""
    watcher = watch()
    watcher.start()
    inbox.until(lambda seen: START in seen)
    return watcher


def has(*wanted: Message) -> Callable[[list[Message]], bool]:
    """Return the condition that all these were posted, in this order."""

    def met(seen: list[Message]) -> bool:
        rest = iter(seen)
        return all(message in rest for message in wanted)

    return met


def settled(root: Path, inbox: Inbox) -> list[Message]:
    """Return every message that what happened so far has caused (a link made now is one event)."""
    marker = root / f"marker-{len(inbox.seen)}"
    marker.symlink_to("nothing")
    inbox.until(has(Touched(marker.name)))
    return [m for m in inbox.seen if not (isinstance(m, Touched) and m.path.startswith("marker-"))]


@pytest.mark.usefixtures("watcher")
def test_file_written_in_place(root: Path, inbox: Inbox) -> None:
    """Creating and closing a file are hints; writing without closing is none."""
    with (root / "a.pt").open("wb") as file:
        inbox.until(has(Touched("a.pt")))
        file.write(b"x")
        file.flush()
        assert inbox.drained().count(Touched("a.pt")) == 1
    inbox.until(lambda seen: seen.count(Touched("a.pt")) == 2)


@pytest.mark.usefixtures("watcher")
def test_rename_from_a_temporary_name(root: Path, inbox: Inbox) -> None:
    """A rename tells the old name gone first, then the new one arrived; a late close follows."""
    with (root / ".tmpabcdef").open("wb") as file:
        file.write(b"x")
        (root / ".tmpabcdef").rename(root / "model.safetensors")
    inbox.until(
        has(
            Touched(".tmpabcdef"),
            Touched(".tmpabcdef", gone=True),
            Touched("model.safetensors", arrived=True),
            Touched("model.safetensors"),
        )
    )


@pytest.mark.usefixtures("watcher")
def test_links_and_removals(root: Path, tmp_path: Path, inbox: Inbox) -> None:
    """A symlink, a hard link and a removal are hints; a link made of a file elsewhere is none."""
    (root / "a").write_bytes(b"x")
    (root / "last").symlink_to("a")
    os.link(root / "a", root / "b")
    (root / "a").unlink()
    inbox.until(has(Touched("a"), Touched("last"), Touched("b"), Touched("a", gone=True)))
    before = settled(root, inbox)
    os.link(root / "b", tmp_path / "pin")
    (root / "b").chmod(0o600)
    assert settled(root, inbox) == before


@pytest.mark.usefixtures("watcher")
def test_directories_made_in_a_hurry(root: Path, inbox: Inbox) -> None:
    """Of 300 trees made as ``mkdir -p`` with a file at once, not one file is missed."""
    wanted = set()
    mind = Mind(disk_at(root))
    for number in range(300):
        directory = root / f"run-{number}" / "a" / "b" / "c"
        directory.mkdir(parents=True)
        (directory / "model.pt").write_bytes(b"x")
        wanted.add(f"run-{number}/a/b/c/model.pt")
    inbox.until(mind.knows(wanted))


def test_directories_made_in_a_hurry_are_all_watched(
    root: Path, inbox: Inbox, watcher: Watcher
) -> None:
    """After the hurry every directory is watched: a file in the deepest is a hint of its own."""
    for number in range(100):
        (root / f"run-{number}" / "a" / "b").mkdir(parents=True)
    settled(root, inbox)
    inbox.until(lambda _: watcher.watches == 301)
    for number in range(100):
        (root / f"run-{number}/a/b/x").write_bytes(b"")
        inbox.until(has(Touched(f"run-{number}/a/b/x")))


def test_tree_moved_in(root: Path, tmp_path: Path, inbox: Inbox, watcher: Watcher) -> None:
    """A populated directory from outside arrives as a tree, and is watched to its depth."""
    (tmp_path / "new/a/b").mkdir(parents=True)
    (tmp_path / "new/a/b/model.pt").write_bytes(b"x")
    (tmp_path / "new").rename(root / "checkpoint-1")
    inbox.until(has(Touched("checkpoint-1", arrived=True, tree=True)))
    assert watcher.watches == 4
    (root / "checkpoint-1/a/b/more").write_bytes(b"x")
    inbox.until(has(Touched("checkpoint-1/a/b/more")))


def test_tree_moved_out(root: Path, tmp_path: Path, inbox: Inbox, watcher: Watcher) -> None:
    """A directory moved out is gone: what is written into it later is no hint any more."""
    (root / "old/a").mkdir(parents=True)
    settled(root, inbox)
    inbox.until(lambda _: watcher.watches == 3)
    (root / "old").rename(tmp_path / "elsewhere")
    inbox.until(has(Touched("old", gone=True)))
    before = settled(root, inbox)
    (tmp_path / "elsewhere/a/file").write_bytes(b"x")
    (tmp_path / "elsewhere/file").write_bytes(b"x")
    assert settled(root, inbox) == before
    assert watcher.watches == 1


def test_directory_renamed_within(root: Path, inbox: Inbox, watcher: Watcher) -> None:
    """A renamed directory is gone under its old name, and watched under the new one (Orbax)."""
    (root / "5.orbax-checkpoint-tmp/default/d").mkdir(parents=True)
    settled(root, inbox)
    (root / "5.orbax-checkpoint-tmp").rename(root / "5")
    inbox.until(
        has(
            Touched("5.orbax-checkpoint-tmp", gone=True),
            Touched("5", arrived=True, tree=True),
        )
    )
    (root / "5/default/d/file").write_bytes(b"x")
    inbox.until(has(Touched("5/default/d/file")))
    assert watcher.watches == 4


def test_renamed_back_and_forth(root: Path, inbox: Inbox, watcher: Watcher) -> None:
    """After many renames and new directories under the old names, every hint has its true path."""
    for number in range(50):
        (root / "new/sub").mkdir(parents=True)
        (root / "new").rename(root / f"step-{number}")
    settled(root, inbox)
    inbox.until(lambda _: watcher.watches == 101)
    for number in range(50):
        (root / f"step-{number}/sub/x").write_bytes(b"")
        inbox.until(has(Touched(f"step-{number}/sub/x")))
    assert Touched("new/sub/x") not in inbox.seen


def test_names_that_are_exchanged(root: Path, inbox: Inbox, watcher: Watcher) -> None:
    """Both are there after it and both are watched, whatever the last event says of one of them."""
    for name in ("a", "b"):
        (root / name).mkdir()
    settled(root, inbox)
    inbox.until(lambda _: watcher.watches == 3)
    assert not exchange(root / "a", root / "b")
    inbox.until(has(Touched("b", gone=True), Touched("b", tree=True)))
    for name in ("a", "b"):
        (root / name / "x").write_bytes(b"")
        inbox.until(has(Touched(f"{name}/x")))


def exchange(one: Path, other: Path) -> int:
    """Exchange two names in one step (no call of Python's own does)."""
    here, exchanges = -100, 2
    library = ctypes.CDLL(None, use_errno=True)
    return int(library.renameat2(here, bytes(one), here, bytes(other), exchanges))


def test_removed_tree_leaves_no_watch(root: Path, inbox: Inbox, watcher: Watcher) -> None:
    """A removed checkpoint is told gone and its watches end."""
    (root / "checkpoint-1/a").mkdir(parents=True)
    settled(root, inbox)
    shutil.rmtree(root / "checkpoint-1")
    inbox.until(has(Touched("checkpoint-1/a", gone=True), Touched("checkpoint-1", gone=True)))
    assert watcher.watches == 1


@pytest.mark.usefixtures("watcher")
def test_our_own_directory_is_silent(root: Path, inbox: Inbox) -> None:
    """What happens below our own directory is no hint."""
    (root / ".ckptsyncd/pins").mkdir(parents=True)
    (root / ".ckptsyncd/pins/0").write_bytes(b"x")
    shutil.rmtree(root / ".ckptsyncd")
    assert settled(root, inbox) == [START]


@pytest.mark.usefixtures("watcher")
def test_symlinked_directory_is_not_followed(root: Path, tmp_path: Path, inbox: Inbox) -> None:
    """A link to a directory is a hint as a link; what happens behind it is none."""
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/file").write_bytes(b"x")
    assert settled(root, inbox) == [START, Touched("link")]


@pytest.mark.usefixtures("watcher")
def test_names_that_are_not_utf8(root: Path, inbox: Inbox) -> None:
    """A name of any bytes is carried as surrogate escapes, as walks carry it."""
    name = os.fsdecode(b"\xff\xe9.pt")
    (root / name).write_bytes(b"x")
    inbox.until(has(Touched(name)))
    assert [fact.path for fact in disk_at(root).walk(name, recursive=False)] == [name]


def test_what_lies_there_at_the_start_is_watched(
    root: Path, inbox: Inbox, watch: Callable[..., Watcher]
) -> None:
    """The first hint is the whole tree, after every directory of it is watched."""
    (root / "a/b/c").mkdir(parents=True)
    watcher = watch()
    watcher.start()
    assert inbox.until(bool) == [START]
    (root / "a/b/c/x").write_bytes(b"")
    inbox.until(has(START, Touched("a/b/c/x")))


def test_root_removed_and_made_again(root: Path, inbox: Inbox, watcher: Watcher) -> None:
    """The loss of the root is told, its return too, and then everything in it is watched."""
    for times in (1, 2, 3):
        shutil.rmtree(root)
        inbox.until(has(*[RootLost(present=False)] * times))
        (root / "a/b").mkdir(parents=True)
        there_again: list[Message] = [RootLost(present=False), RootLost(present=True), START]
        inbox.until(has(START, *there_again * times))
        (root / "a/b/x").write_bytes(b"")
        inbox.until(has(*[RootLost(present=True)] * times, Touched("a/b/x")))
    assert watcher.watches == 3


def test_root_replaced_in_one_step(
    root: Path, tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]
) -> None:
    """Another directory under the root's name is noticed although the name was never missing."""
    watcher = watch()
    watcher.turn(0)
    root.rename(tmp_path / "old")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a").mkdir()
    for _ in range(2):
        watcher.turn(0)
    assert has(START, RootLost(present=False), RootLost(present=True), START)(inbox.drained())
    assert watcher.watches == 2
    (tmp_path / "old/x").write_bytes(b"")
    (tmp_path / "run/y").write_bytes(b"")
    watcher.turn(0)
    assert Touched("y") in inbox.drained()
    assert Touched("x") not in inbox.seen


def test_root_that_does_not_exist_yet_is_waited_for(
    tmp_path: Path, inbox: Inbox, watch: Callable[..., Watcher]
) -> None:
    """A missing root is told lost, and told present when the trainer makes it."""
    watcher = watch(tmp_path / "later")
    watcher.start()
    inbox.until(has(RootLost(present=False)))
    (tmp_path / "later/a").mkdir(parents=True)
    inbox.until(has(RootLost(present=False), RootLost(present=True), START))
    (tmp_path / "later/a/x").write_bytes(b"")
    inbox.until(has(Touched("a/x")))


def test_root_without_a_parent_is_refused(tmp_path: Path, inbox: Inbox) -> None:
    """A missing parent is more likely a typing error than a trainer to come."""
    with pytest.raises(UsageError, match="no/run cannot be waited for"):
        Watcher(tmp_path / "no/run", inbox.put)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="is not a directory"):
        Watcher(tmp_path / "file", inbox.put)


def test_overflow_is_told_and_repaired(
    root: Path, inbox: Inbox, watch: Callable[..., Watcher]
) -> None:
    """After more events than the queue holds, one overflow is told and every directory watched."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip(f"fs.inotify.max_queued_events is {most}: a flood would take too long")
    (root / "moved-out/x").mkdir(parents=True)
    watcher = watch()
    watcher.turn(0)
    for number in range(most + 10):
        os.close(os.open(root / f"f{number % 1000}", os.O_CREAT | os.O_WRONLY))
    (root / "lost/a/b").mkdir(parents=True)
    (root / "moved-out").rename(root.parent / "gone")
    watcher.turn(0)
    assert inbox.drained().count(Overflowed()) == 1
    assert inbox.seen[-1] == Overflowed()
    assert watcher.watches == 4
    (root / "lost/a/b/x").write_bytes(b"")
    (root.parent / "gone/x/y").write_bytes(b"")
    watcher.turn(0)
    assert Touched("lost/a/b/x") in inbox.drained()
    assert not [m for m in inbox.seen if isinstance(m, Touched) and "moved-out/x/y" in m.path]


def test_polling_on_request(root: Path, inbox: Inbox, watch: Callable[..., Watcher]) -> None:
    """Where polling was asked for, everything is polled, and the root is still looked after."""
    watcher = watch(poll=True)
    watcher.start()
    inbox.until(has(Polled("", "polling was asked for"), START))
    assert (watcher.watches, watcher.polled) == (0, ("",))
    shutil.rmtree(root)
    inbox.until(has(RootLost(present=False)))
    root.mkdir()
    inbox.until(has(RootLost(present=True), START))


def test_stop_ends_the_thread_at_once(root: Path, inbox: Inbox) -> None:
    """A stop does not wait for the next event, may come twice, and leaves no descriptor open."""
    gc.collect()  # what earlier tests left to be closed is no concern of this one
    before = descriptors().keys()
    for start in (True, False):
        watcher = Watcher(root, inbox.put)
        if start:
            watcher.start()
        watcher.stop()
        watcher.stop()
        assert not watcher._thread.is_alive()
    assert not descriptors().keys() - before


def test_inotify_that_fails_is_replaced_by_polling(
    root: Path, inbox: Inbox, watch: Callable[..., Watcher]
) -> None:
    """A watcher whose inotify instance breaks says that everything is polled, and goes on."""
    watcher = watch()
    watcher.turn(0)
    assert watcher._inotify is not None
    with Path("/dev/null").open("rb") as null:
        os.dup2(null.fileno(), watcher._inotify.fileno())
    watcher.start()
    reason = "inotify failed: Inappropriate ioctl for device"
    inbox.until(has(START, Polled("", reason)))
    shutil.rmtree(root)
    inbox.until(has(Polled("", reason), RootLost(present=False)))
