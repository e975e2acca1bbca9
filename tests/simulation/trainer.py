"""Pretended trainers: programs that write checkpoints the ways that real ones do.

A trainer is a generator that yields how many seconds it is busy with other things. It is killed by
never being asked again; the system then closes its files, however far they got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.simulation.disk import OpenFile, PretendDisk
from tests.simulation.inodes import Inode

Steps = Iterator[float]

#: The members of a Hugging Face checkpoint in the order in which they are written.
HF_FILES = ("model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json")

#: Under such a name a checkpoint's directory is written until it is whole.
STAGED = "tmp-checkpoint"


@dataclass(slots=True, eq=False)
class Trainer:
    """One run directory and a process that writes into it.

    ``style`` names how it saves; ``interval`` is the mean of the seconds between saves; ``keep``
    how many checkpoints stay. ``finished`` maps each checkpoint to the step at which it was whole.
    """

    disk: PretendDisk
    random: Random
    run: str
    style: str
    interval: float
    keep: int
    stride: int = 100
    step: int = 0
    count: int = 0
    is_retiring: bool = False
    process: Steps | None = None
    opened: list[OpenFile] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    newest: str = ""
    source: tuple[bytes, int] | None = None

    def live(self) -> Steps:
        """Train and save until told to retire."""
        self.disk.mkdir(self.run)
        yield self.random.uniform(0.1, self.interval)
        while not self.is_retiring:
            self.step += self.stride
            yield from STYLES[self.style](self)
            yield from self._rotate()
            self._log()
            yield self.random.expovariate(1 / self.interval)

    def die(self) -> None:
        """Be killed: the system closes what was open."""
        for file in self.opened:
            file.close(is_whole=False)
        self.opened.clear()

    def resume(self) -> None:
        """Start again from a checkpoint that is there, often an older one than the newest."""
        steps = sorted(self.finished.values())
        whole = [step for step in steps if step <= self.step] or [0]
        self.step = self.random.choice(whole[-3:])

    # Pieces of a save ---------------------------------------------------------------------------

    def content(self, size: int) -> bytes:
        """Return bytes that no other save has, and no part of which another save has."""
        self.count += 1
        mark = f"{self.run[-1]}{self.disk.device}{self.count:04x}|".encode()
        return (mark * (size // len(mark) + 1))[:size]

    def size(self) -> int:
        """Return a file's size in bytes, of which most need several pieces."""
        return self.random.choice((0, 3, 20, 40, 90, 160))

    def write(self, path: str, data: bytes) -> Steps:
        """Write a file from its start to its end, in some chunks."""
        file = self.disk.open(path)
        self.opened.append(file)
        chunks = self.random.randint(1, 3)
        length = -(-len(data) // chunks) or 1
        for start in range(0, len(data), length):
            yield self.random.choice((0.001, 0.05, 0.3))
            file.append(data[start : start + length])
        yield 0.001
        self._close(file)

    def _close(self, file: OpenFile) -> None:
        self.opened.remove(file)
        file.close()

    def begins(self, checkpoint: str) -> None:
        """Note that a checkpoint is being written or removed from now on."""
        self.finished.pop(checkpoint, None)
        self.disk.history.begins(checkpoint)

    def ends(self, checkpoint: str) -> None:
        """Note that a checkpoint is whole."""
        self.finished[checkpoint] = self.step
        self.newest = checkpoint
        self.disk.history.ends(checkpoint)

    # Ways to save -------------------------------------------------------------------------------

    def renamed(self) -> Steps:
        """Write a file under a temporary name, then rename it (Lightning, most careful ones)."""
        name = f"{self.run}/step={self.step}.ckpt"
        yield from self.write(name + ".tmp", self.content(self.size() + 1))
        self.begins(name)
        self.disk.rename(name + ".tmp", name)
        self.ends(name)

    def in_place(self) -> Steps:
        """Truncate and write the same file again and again."""
        name = f"{self.run}/last.ckpt"
        self.begins(name)
        yield from self.write(name, self.content(self.size() + 1))
        self.ends(name)

    def patched(self) -> Steps:
        """Write over parts of the same file, whose size and end stay; perhaps through a map."""
        name = f"{self.run}/last.ckpt"
        self.begins(name)
        node = self.disk.names.get(name)
        if not isinstance(node, Inode) or not node.data:
            yield from self.write(name, self.content(150))
        else:
            yield from self._patch(name)
        self.ends(name)

    def _patch(self, name: str) -> Steps:
        file = self.disk.open(name, truncate=False)
        self.opened.append(file)
        # Without leases nobody can see a mapped writer: such a disk is not promised anything.
        is_mapped = self.random.random() < 0.5 and self.disk.has_lease
        for offset in (0, 50, 100):
            file.patch(offset, self.content(50), stamp=offset == 0 or not is_mapped)
            yield self.random.choice((0.01, 0.3, 2.0))
        self._close(file)

    def hugging_face(self) -> Steps:
        """Write a directory whose marker comes last, over what an earlier run left there."""
        yield from self._directory(f"{self.run}/checkpoint-{self.step}", HF_FILES)

    def promoted(self) -> Steps:
        """Write such a directory, and give it another name at some time."""
        first, last = f"{self.run}/checkpoint-{self.step}", f"{self.run}/checkpoint-{self.step + 1}"
        yield from self._directory(first, HF_FILES)
        yield self.random.choice((0.0, 0.1, 1.0, 5.0))
        yield from self.remove(last)
        self.begins(first)
        self.begins(last)
        self.disk.rename(first, last)
        self.disk.history.ends(first)
        self.ends(last)

    def staged(self) -> Steps:
        """Write a directory under a temporary name, then rename it."""
        name = f"{self.run}/checkpoint-{self.step}"
        temporary = f"{self.run}/{STAGED}-{self.step}"
        yield from self._clear(temporary)
        self.disk.mkdir(temporary)
        for file in HF_FILES:
            yield from self.write(f"{temporary}/{file}", self.content(self.size() + 1))
        yield from self.remove(name)
        self.begins(name)
        self.disk.rename(temporary, name)
        self.ends(name)

    def unmarked(self) -> Steps:
        """Write a directory that nothing marks as whole, always with the same files."""
        files = ("rank0.pt", "rank1.pt", "meta.json")
        yield from self._directory(f"{self.run}/step_{self.step}", files)

    def rewritten(self) -> Steps:
        """Write the same directory again and again; some files stay as they are."""
        yield from self._directory(f"{self.run}/checkpoint-1", HF_FILES)

    def synced(self) -> Steps:
        """Have a file brought from elsewhere with its times kept, often the same one again."""
        name = f"{self.run}/weights.pt"
        kind = self.random.random()
        if self.source is None or kind < 0.5:
            self.source = (self.content(self.size() + 1), self.disk.now_ns())
            yield self.random.choice((0.1, 5.0))
        elif kind < 0.7:
            # Tools that set all times to one fixed value are not rare.
            self.source = (self.content(len(self.source[0])), self.source[1])
        self.begins(name)
        self.disk.place(name, *self.source)
        self.ends(name)

    def _directory(self, name: str, files: tuple[str, ...]) -> Steps:
        self.begins(name)
        self.disk.mkdir(name)
        for file in files:
            yield from self.write(f"{name}/{file}", self.content(self.size() + 1))
        self.ends(name)

    # Rotation -----------------------------------------------------------------------------------

    def _rotate(self) -> Steps:
        by_step = sorted(self.finished, key=lambda name: (self.finished[name], name))
        for name in by_step[: max(0, len(by_step) - self.keep)]:
            if name != self.newest:
                yield from self.remove(name)

    def remove(self, name: str) -> Steps:
        """Remove a checkpoint, file by file."""
        if name in self.disk.names:
            self.begins(name)
            yield from self._clear(name)
            self.disk.history.ends(name)

    def _clear(self, name: str) -> Steps:
        for path in [p for p in self.disk.names if p.startswith(name + "/")]:
            self.disk.unlink(path)
            yield 0.002
        self.disk.unlink(name)

    def _log(self) -> None:
        path = f"{self.run}/train.log"
        file = self.disk.open(path, truncate=False)
        file.append(f"saved {self.step}\n".encode())
        file.close()
        pointer = f"{self.run}/latest"
        if self.style in ("renamed", "staged"):
            file = self.disk.open(pointer)
            file.append(self.newest.rpartition("/")[2].encode())
            file.close()


STYLES: dict[str, Callable[[Trainer], Steps]] = {
    "renamed": Trainer.renamed,
    "in place": Trainer.in_place,
    "patched": Trainer.patched,
    "hugging face": Trainer.hugging_face,
    "staged": Trainer.staged,
    "synced": Trainer.synced,
    "unmarked": Trainer.unmarked,
    "rewritten": Trainer.rewritten,
    "promoted": Trainer.promoted,
}
#: What any night may meet; the others have nights of their own.
USUAL = tuple(sorted(set(STYLES) - {"promoted"}))
