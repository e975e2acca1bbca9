"""Broken ones are passed over and told; silence of the store is never taken for broken."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Restorations
from ckptsyncd.errors import (
    Again,
    CkptsyncdError,
    NoCheckpoint,
    NothingVerifies,
    PathRefused,
    Refused,
    StoreError,
    UsageError,
)
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench


def two(tmp_path: Path) -> tuple[MemoryStore, str, str]:
    """Return a store with two checkpoints, the older and the newer name."""
    store = MemoryStore()
    older, newer = bench.save(tmp_path / "there", 10), bench.save(tmp_path / "there", 20)
    bench.commit(store, tmp_path / "there", older)
    bench.commit(store, tmp_path / "there", newer)
    return store, older, newer


def overwrite(store: MemoryStore, key: str, data: bytes) -> None:
    """Put another object in the place of one."""
    store.delete(key)
    store.put_whole(key, BytesBody(data), "other", create_only=False)


def break_it(store: MemoryStore, name: str, how: str) -> None:
    """Break a checkpoint in one way."""
    key = f"{name}/model.safetensors"
    if how == "missing":
        store.delete(key)
    elif how == "short":
        overwrite(store, key, store.objects()[key][:-1])
    elif how == "changed":
        overwrite(store, key, b"!" + store.objects()[key][1:])
    elif how == "no manifest":
        store.put_small(names.manifest_key(name, 1), b'{"format": 1', None)
    elif how == "another's manifest":
        other = name.replace("20", "30")
        data = store.objects()[names.manifest_key(name, 1)].replace(name.encode(), other.encode())
        store.put_small(names.manifest_key(name, 1), data, None)
    elif how == "future manifest":
        document = json.loads(store.objects()[names.manifest_key(name, 1)]) | {"format": 99}
        store.put_small(names.manifest_key(name, 1), json.dumps(document).encode(), None)


@pytest.mark.parametrize("how", ["missing", "short", "changed"])
def test_the_next_older_one_is_restored(tmp_path: Path, how: str) -> None:
    """A newest with a missing, shorter or different object is passed over, with the reason."""
    store, older, newer = two(tmp_path)
    break_it(store, newer, how)
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert [skip.title for skip in result.skipped] == [f"{newer}@1"]
    assert "model.safetensors" in result.skipped[0].reason
    assert not (tmp_path / "here" / newer).exists()
    assert result.lineage == 1, "the newest in the store stays newest only until the next save"


@pytest.mark.parametrize("how", ["no manifest", "another's manifest", "future manifest"])
def test_a_bad_manifest_hides_nothing_else(tmp_path: Path, how: str) -> None:
    """A manifest that cannot be used is told, and the older checkpoint restored."""
    store, older, newer = two(tmp_path)
    break_it(store, newer, how)
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert [skip.title for skip in result.skipped] == [f"{newer}@1"]
    told = Restorations.decode((tmp_path / "here/.ckptsyncd/restored.json").read_bytes())
    assert told.rows[0].lineage == 1


def test_nothing_verifies(tmp_path: Path) -> None:
    """Where none is whole the exit code says stop, never start afresh; nothing is left behind."""
    store, older, newer = two(tmp_path)
    break_it(store, newer, "changed")
    break_it(store, older, "missing")
    with pytest.raises(NothingVerifies, match=r"checkpoint-20@1.*checkpoint-10@1") as caught:
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert caught.value.exit_code == 4
    left = [path.name for path in (tmp_path / "here/.ckptsyncd").iterdir()]
    assert left == ["restore.lock"]


def test_only_unreadable_manifests_are_no_fresh_start(tmp_path: Path) -> None:
    """A store with nothing but unreadable manifests is no empty store."""
    store, older, newer = two(tmp_path)
    break_it(store, newer, "no manifest")
    break_it(store, older, "no manifest")
    with pytest.raises(NothingVerifies):
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    """Objects without a manifest are no checkpoint; nothing is made in the target's place."""
    store = MemoryStore()
    store.put_whole("checkpoint-5/model.pt", BytesBody(b"x"), "n", create_only=True)
    with pytest.raises(NoCheckpoint) as caught:
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert caught.value.exit_code == 3
    assert not (tmp_path / "here").exists()


def test_the_one_asked_for_is_not_replaced(tmp_path: Path) -> None:
    """Who names a checkpoint gets that one or none."""
    store, older, newer = two(tmp_path)
    break_it(store, newer, "missing")
    with pytest.raises(NothingVerifies):
        restore(store, tmp_path / "here", RestoreRequest(checkpoint=newer), pace=bench.pace())
    with pytest.raises(NothingVerifies):
        restore(store, tmp_path / "here", RestoreRequest(step=20), pace=bench.pace())
    break_it(store, older, "no manifest")
    with pytest.raises(NothingVerifies):
        restore(store, tmp_path / "here", RestoreRequest(checkpoint=older), pace=bench.pace())


def test_asking_for_what_is_not_there(tmp_path: Path) -> None:
    """Who asks for what is not there is told what is; that is no reason for a fresh start."""
    store, older, _ = two(tmp_path)
    for request in (
        RestoreRequest(checkpoint="run/checkpoint-11"),
        RestoreRequest(checkpoint=f"{older}@2"),
        RestoreRequest(step=11),
        RestoreRequest(series="walk"),
    ):
        with pytest.raises(UsageError, match="checkpoint-10@1"):
            restore(store, tmp_path / "here", request, pace=bench.pace())
    with pytest.raises(UsageError, match=r"only \[0\]"):
        restore(store, tmp_path / "here", RestoreRequest(node=3), pace=bench.pace())
    with pytest.raises(UsageError, match=r"model\.safetensors"):
        restore(store, tmp_path / "here", RestoreRequest(only=("*.gguf",)), pace=bench.pace())


def test_several_series_must_be_named(tmp_path: Path) -> None:
    """Two runs below one prefix: one is not chosen by chance."""
    store, _, _ = two(tmp_path)
    bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", 5, run="walk"))
    with pytest.raises(UsageError, match="'run', 'walk'"):
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())


@pytest.mark.parametrize("verb", ["list", "get_small", "read_range"])
@pytest.mark.parametrize("error", [Again("time-out"), Refused("no credentials")])
def test_silence_is_not_broken(tmp_path: Path, verb: str, error: StoreError) -> None:
    """A store that does not answer ends the restore with its own error; nothing is passed over."""
    store, _, _ = two(tmp_path)
    calls: list[str] = []

    def weather(asked: str, key: str) -> Fault | None:
        calls.append(key)
        return Fault(error) if asked == verb else None

    request = RestoreRequest(workers=1)
    with pytest.raises(type(error)) as caught:
        restore(FaultyStore(store, weather), tmp_path / "here", request, pace=bench.pace())
    assert caught.value.exit_code == 5
    assert len(calls) < 60, "attempts are bounded"
    assert not (tmp_path / "here" / "run").exists()


def test_an_object_that_is_not_given(tmp_path: Path) -> None:
    """A store that answers, and never gives one file: the older checkpoint, and why, in bounds."""
    store, older, newer = two(tmp_path)
    calls: list[str] = []

    def weather(verb: str, key: str) -> Fault | None:
        calls.append(key)
        is_sick = verb == "read_range" and key == f"{newer}/model.safetensors"
        return Fault(Again("InternalError (500)")) if is_sick else None

    request = RestoreRequest(workers=1)
    result = restore(FaultyStore(store, weather), tmp_path / "here", request, pace=bench.pace())
    assert result.placed == (older,)
    (skipped,) = result.skipped
    assert skipped.title == f"{newer}@1"
    assert "does not give all of it: InternalError (500)" in skipped.reason
    assert len(calls) < 60, "attempts are bounded"
    assert not list((tmp_path / "here/.ckptsyncd").glob("*/*")), "what came of it is cleared away"


def test_none_that_is_given_is_no_broken_store(tmp_path: Path) -> None:
    """Where no checkpoint is given the code is the store's, and a later try goes on."""
    store, _, newer = two(tmp_path)
    sick = FaultyStore(
        store, lambda v, k: Fault(Again("500")) if (v, k[-5:]) == ("read_range", "nsors") else None
    )
    with pytest.raises(Again, match=r"checkpoint-20@1.*checkpoint-10@1") as caught:
        restore(sick, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert caught.value.exit_code == 5
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (newer,)


def test_a_manifest_that_is_not_given(tmp_path: Path) -> None:
    """It hides nothing else; where no manifest is given it is the store that fails."""
    store, older, newer = two(tmp_path)
    asked: list[str] = []

    def sick(*keys: str) -> FaultyStore:
        def weather(verb: str, key: str) -> Fault | None:
            asked.append(key)
            return Fault(Again("500")) if verb == "get_small" and key in keys else None

        return FaultyStore(store, weather)

    first, second = names.manifest_key(newer, 1), names.manifest_key(older, 1)
    result = restore(sick(first), tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert "does not give all of it: 500" in result.skipped[0].reason
    asked.clear()
    with pytest.raises(Again):
        restore(sick(first, second), tmp_path / "there too", RestoreRequest(), pace=bench.pace())
    assert len(asked) < 60, "attempts are bounded"


def test_bad_weather_is_sat_out(tmp_path: Path) -> None:
    """Errors that go away are tried again, also where the bytes break off in the middle."""
    store, _, newer = two(tmp_path)
    calls: dict[tuple[str, str], int] = {}

    def weather(verb: str, key: str) -> Fault | None:
        calls[verb, key] = calls.get((verb, key), 0) + 1
        return Fault(Again("503"), after=verb == "read_range") if calls[verb, key] < 3 else None

    faulty = FaultyStore(store, weather)
    result = restore(faulty, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (newer,)
    assert bench.tree(tmp_path / "here", newer) == bench.tree(tmp_path / "there", newer)


def test_pruned_under_our_hands(tmp_path: Path) -> None:
    """A checkpoint that is pruned while it is restored is called pruned, not broken."""
    store, older, newer = two(tmp_path)

    def weather(verb: str, key: str) -> Fault | None:
        if verb == "read_range" and key.startswith(newer):
            store.delete(names.manifest_key(newer, 1))
            for path in ("model.safetensors", "sub/optimizer.pt", "trainer_state.json"):
                store.delete(f"{newer}/{path}")
        return None

    faulty = FaultyStore(store, weather)
    result = restore(faulty, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert result.skipped[0].reason == "it was pruned meanwhile"


def test_a_hostile_newest_is_refused_or_passed_over(tmp_path: Path) -> None:
    """Names that leave the target are told; with nothing else left the exit code says refused."""
    store, older, newer = two(tmp_path)
    key = names.manifest_key(newer, 1)
    data = store.objects()[key].replace(f'"path":"{newer}/model'.encode(), b'"path":"../../model')
    store.put_small(key, data, None)
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (older,)
    assert result.skipped[0].refused
    with pytest.raises(PathRefused) as caught:
        restore(store, tmp_path / "here", RestoreRequest(checkpoint=newer), pace=bench.pace())
    assert caught.value.exit_code == 7


def test_a_full_disk_is_told_before_the_first_byte(tmp_path: Path) -> None:
    """What cannot fit is not begun, and says how much is missing."""
    store, _, newer = two(tmp_path)
    key = names.manifest_key(newer, 1)
    huge = dataclasses.replace(
        bench.manifest_of(tmp_path / "there", newer),
        files=tuple(
            dataclasses.replace(stored, size=1 << 60) if stored.kind == "file" else stored
            for stored in bench.manifest_of(tmp_path / "there", newer).files
        ),
    )
    store.delete(key)
    bench.put_manifest(store, huge)

    class Roomy(FaultyStore):
        """A store whose objects have the size that the manifest says."""

        def list(self, prefix: str) -> Iterator[ObjectFact]:
            """List, with lies."""
            return (
                dataclasses.replace(fact, size=1 << 60) if fact.key.startswith(newer) else fact
                for fact in store.list(prefix)
            )

    lying = Roomy(store, lambda _verb, _key: None)
    with pytest.raises(CkptsyncdError, match="are to be fetched") as caught:
        restore(lying, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert caught.value.exit_code == 1
