"""Whatever trainers do and however the disk is watched: only finished saves are ever told.

A pretended cluster of trainers saves, overwrites, rotates, dies and starts again, interleaved at
random, with pauses of up to a minute at any point of a save. Each save writes down what it had made
when it was finished; whatever the eyes tell must be one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import Overflowed, Polled
from ckptsyncd.core.sightings import Settled
from tests.core.stage import Stage

Steps = Iterator[None]


@dataclass
class Trainer:
    """One that saves into its own directory; ``finished`` is what was whole at some moment."""

    stage: Stage
    folder: str
    finished: set[frozenset[FileFact]] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)

    def file(self, path: str, size: int) -> Steps:
        """Write one file in place, with a pause in the middle."""
        yield
        self.stage.open(path, size // 2 + 1)
        self.opened.append(path)
        yield
        self.stage.grow(path, size)
        self.opened.remove(path)
        self.stage.close(path)

    def replace(self, path: str, size: int) -> Steps:
        """Write one file under a temporary name, and rename it."""
        yield from self.file(f"{path}.tmp", size)
        yield
        self.stage.rename(f"{path}.tmp", path)

    def is_whole(self, *paths: str) -> None:
        """Write down that these files are a finished save."""
        self.finished.add(frozenset(self.stage.fact(path) for path in paths))

    def folder_made(self, name: str) -> str:
        """Make a directory if it is not there yet, and return its path."""
        path = f"{self.folder}/{name}"
        if path not in self.stage.things:
            self.stage.make(path)
        return path

    def die(self) -> None:
        """Be killed: what is open is closed in the middle."""
        for path in self.opened:
            self.stage.close(path, is_whole=False)
        self.opened.clear()


def distributed(trainer: Trainer, number: int) -> Steps:
    """Save shards in place, and a marker by rename after the old one was unlinked."""
    home = trainer.folder_made("step-7")
    shards = [f"{home}/__{rank}_0.distcp" for rank in range(2)]
    for shard in shards:
        yield from trainer.file(shard, 100 + number)
    yield from trainer.file(f"{home}/.metadata.tmp", 10)
    yield
    trainer.stage.remove(f"{home}/.metadata")
    yield
    trainer.stage.rename(f"{home}/.metadata.tmp", f"{home}/.metadata")
    trainer.is_whole(*shards, f"{home}/.metadata")


def hugging_face(trainer: Trainer, number: int) -> Steps:
    """Save weights by rename, the rest in place, the state last; rotate the one before."""
    home = trainer.folder_made(f"checkpoint-{number}")
    yield from trainer.replace(f"{home}/model.safetensors", 300)
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "trainer_state.json"):
        yield from trainer.file(f"{home}/{name}", 100)
    names = ("model.safetensors", "training_args.bin", "optimizer.pt", "scheduler.pt")
    trainer.is_whole(*(f"{home}/{name}" for name in (*names, "trainer_state.json")))
    for name in names:
        yield
        trainer.stage.remove(f"{trainer.folder}/checkpoint-{number - 1}/{name}")
    trainer.stage.remove(f"{trainer.folder}/checkpoint-{number - 1}")


def tensorflow(trainer: Trainer, number: int) -> Steps:
    """Save data by rename, the index in place, the pointer by rename."""
    base = f"{trainer.folder}/ckpt-{number % 3}"
    yield from trainer.replace(f"{base}.data-00000-of-00001", 200)
    yield
    # An index that was cut off looks like any other: nobody dies in the middle of it here.
    trainer.stage.write(f"{base}.index", 20 + number)
    trainer.is_whole(f"{base}.data-00000-of-00001", f"{base}.index")
    yield from trainer.replace(f"{trainer.folder}/checkpoint", 30)


def orbax(trainer: Trainer, number: int) -> Steps:
    """Save a directory under a temporary name and rename it as a whole."""
    home = trainer.folder_made(f"{number}.orbax-checkpoint-tmp")
    for name in ("_CHECKPOINT_METADATA", "d", "commit_success.txt"):
        yield from trainer.file(f"{home}/{name}", 50)
    final = f"{trainer.folder}/{number}"
    yield
    trainer.stage.rename(home, final)
    names = ("_CHECKPOINT_METADATA", "d", "commit_success.txt")
    trainer.is_whole(*(f"{final}/{name}" for name in names))


def overwriting(trainer: Trainer, number: int) -> Steps:
    """Save one zip file over the last one, in place."""
    path = f"{trainer.folder}/ckpt.pt"
    yield from trainer.file(path, 100 + number)
    trainer.is_whole(path)


def replacing(trainer: Trainer, number: int) -> Steps:
    """Save one file without an end mark over the last one, by rename."""
    path = f"{trainer.folder}/ckpt.bin"
    yield from trainer.replace(path, 100 + number)
    trainer.is_whole(path)


KINDS: dict[str, Callable[[Trainer, int], Steps]] = {
    "dcp": distributed,
    "hf": hugging_face,
    "tf": tensorflow,
    "orbax": orbax,
    "zip": overwriting,
    "bin": replacing,
}

#: What happens next: a trainer by name goes on by one step, dies, or time passes.
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("go"), st.sampled_from(sorted(KINDS)), st.integers(1, 8)),
        st.tuples(st.just("die"), st.sampled_from(sorted(KINDS)), st.just(0)),
        st.tuples(st.just("pause"), st.just(""), st.sampled_from([1, 30, 150, 2000, 6000, 45000])),
        st.tuples(st.just("lose"), st.just(""), st.integers(0, 1)),
    ),
    min_size=5,
    max_size=60,
)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


class World:
    """All trainers on one disk."""

    def __init__(self, stage: Stage) -> None:
        """Begin with empty directories."""
        self.stage = stage
        stage.run(1)
        for name in KINDS:
            stage.make(name)
        self.trainers = {name: Trainer(stage, name) for name in KINDS}
        self.saves: dict[str, Steps] = {}
        self.numbers = dict.fromkeys(KINDS, 0)

    def act(self, kind: str, name: str, amount: int) -> None:
        """Let one thing happen."""
        if kind == "go":
            for _ in range(amount):
                self.go(name)
                self.stage.run(0.004)
        elif kind == "die":
            self.trainers[name].die()
            self.saves.pop(name, None)
        elif kind == "pause":
            self.stage.run(amount / 1000)
        elif amount:
            self.stage.has_events = False
        elif not self.stage.has_events:
            self.stage.has_events = True
            self.stage.hear(Overflowed())

    def go(self, name: str) -> None:
        """Let one trainer do the next step of its save, or begin one."""
        if name not in self.saves:
            self.numbers[name] += 1
            self.saves[name] = KINDS[name](self.trainers[name], self.numbers[name])
        if next(self.saves[name], "over") == "over":
            del self.saves[name]

    def finish(self) -> None:
        """Let every save that is under way come to its end, and everything settle."""
        self.stage.has_events = True
        self.stage.hear(Overflowed())
        for name in list(self.saves):
            while name in self.saves:
                self.go(name)
                self.stage.run(0.004)
        self.stage.run(200)

    def check(self) -> None:
        """Assert that only finished saves were told."""
        finished = set().union(*(trainer.finished for trainer in self.trainers.values()))
        for told in self.stage.told:
            if isinstance(told.sighting, Settled):
                files = frozenset(told.sighting.listing.files)
                assert files in finished, (told.at, told.sighting.checkpoint)


def run(stage: Stage, actions: list[tuple[str, str, int]]) -> World:
    """Let everything happen, checking all along."""
    world = World(stage)
    for action in actions:
        world.act(*action)
        world.check()
    world.finish()
    world.check()
    return world


@QUICK
@given(actions=ACTIONS)
def test_only_finished_saves_are_told(actions: list[tuple[str, str, int]]) -> None:
    """With leases and events, some of them lost, no torn, mixed or partial save is ever told."""
    world = run(Stage(), actions)
    told = {frozenset(settled.listing.files) for settled in world.stage.settled()}
    facts = {path: world.stage.fact(path) for path in world.stage.things}
    there = {
        save
        for trainer in world.trainers.values()
        for save in trainer.finished
        if all(facts.get(fact.path) == fact for fact in save)
    }
    # What lies there finished, with nothing else beside it, was told as it is.
    homes = {frozenset(fact.path.rpartition("/")[0] for fact in save): save for save in there}
    for home, save in homes.items():
        inside = {p for p in facts if p.rpartition("/")[0] in home and facts[p].kind == "file"}
        if inside == {fact.path for fact in save}:
            assert save in told, (save, world.stage.reasons())


@QUICK
@given(actions=ACTIONS, has_events=st.booleans())
def test_only_finished_files_are_told_without_leases(
    actions: list[tuple[str, str, int]], *, has_events: bool
) -> None:
    """Without leases a pause longer than the quiet can deceive, but never inside a broken file."""
    stage = Stage(has_lease=False)
    if not has_events:
        stage.hear(Polled("", "no events"))
    world = World(stage)
    for action in actions:
        stage.has_events &= has_events
        world.act(*action)
    for told in stage.told:
        if isinstance(told.sighting, Settled):
            ended = [f for f in told.sighting.listing.files if f.path.endswith(".pt")]
            assert all(fact in stage._finished for fact in ended)
            assert not any(f.path.endswith(".tmp") for f in told.sighting.listing.files)


@QUICK
@given(actions=ACTIONS)
def test_the_same_history_is_seen_the_same(actions: list[tuple[str, str, int]]) -> None:
    """Two pairs of eyes that hear the same at the same times tell the same."""
    first, second = (run(Stage(), actions).stage for _ in range(2))
    assert first.told == second.told
    assert first.looks == second.looks


@QUICK
@given(actions=ACTIONS)
def test_nothing_is_told_twice(actions: list[tuple[str, str, int]]) -> None:
    """The same content of a name is told once, unless it was gone in between."""
    world = run(Stage(commits=True), actions)
    last: dict[str, object] = {}
    for told in world.stage.told:
        if isinstance(told.sighting, Settled):
            assert last.get(told.sighting.checkpoint) != told.sighting.listing
            last[told.sighting.checkpoint] = told.sighting.listing
