"""Removing from a store: in the right order, with nothing gone that anybody may need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Latest, Pointer, Tombstone
from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.errors import Again, NoCheckpoint, UsageError
from ckptsyncd.recover.catalog import read_catalog
from ckptsyncd.recover.clear import STONE_SECONDS
from ckptsyncd.recover.prune import Pruned, PruneRequest, prune
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.recover.verify import VerifyRequest, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench

NOW = 1_700_000_000.0
GRACE = 3600.0
LAST = PruneRequest(Retention(keep_last=1, min_keep=1), GRACE, per_second=1e9)


def at(store: MemoryStore | FaultyStore, wall: float, request: PruneRequest = LAST) -> Pruned:
    """Prune at a time."""
    return prune(store, request, pace=bench.pace(), wall=lambda: wall)


def stored(tmp_path: Path, *steps: int) -> MemoryStore:
    """Return a store with a checkpoint of each step."""
    store = MemoryStore()
    for step in steps:
        bench.commit(store, tmp_path, bench.save(tmp_path, step))
    return store


def data(store: MemoryStore) -> set[str]:
    """Return the steps whose data is there."""
    keys = (fact.key for fact in store.list("run/"))
    return {key.split("/")[1] for key in keys}


def left(store: MemoryStore) -> list[str]:
    """Return what can be restored, newest first."""
    return [entry.title for entry in read_catalog(store, bench.pace()).entries]


def test_the_manifest_goes_first_and_the_data_later(tmp_path: Path) -> None:
    """A pruned checkpoint does not exist at once; its data goes with a run after the grace."""
    store = stored(tmp_path, 1, 2, 3)
    first = at(store, NOW)
    assert first.buried == ("run/checkpoint-1@1", "run/checkpoint-2@1")
    assert left(store) == ["run/checkpoint-3@1"]
    assert data(store) == {"checkpoint-1", "checkpoint-2", "checkpoint-3"}
    early = at(store, NOW + GRACE - 1)
    assert (early.cleared.objects, len(early.cleared.waiting)) == (0, 2)
    late = at(store, NOW + GRACE)
    assert (late.cleared.objects, late.cleared.waiting, late.buried) == (6, (), ())
    assert data(store) == {"checkpoint-3"}
    assert verify(store, VerifyRequest(level="full"), pace=bench.pace()).exit_code == 0


def test_tombstones_go_at_last_with_their_claims(tmp_path: Path) -> None:
    """A week later nothing is left of a pruned checkpoint."""
    store = stored(tmp_path, 1, 2)
    claim(store, "run/checkpoint-1", 1)
    at(store, NOW)
    at(store, NOW + GRACE)
    assert at(store, NOW + STONE_SECONDS - 1).cleared.stones == 0
    assert at(store, NOW + STONE_SECONDS).cleared.stones == 1
    assert not [f for f in store.list(names.OURS) if "checkpoint-1" in f.key]


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """It tells the same, and no object is another one afterwards."""
    store = stored(tmp_path, 1, 2, 3)
    before = {fact.key: fact.version for fact in store.list("")}
    told = at(store, NOW, replace(LAST, dry_run=True))
    assert {fact.key: fact.version for fact in store.list("")} == before
    assert told.buried == at(store, NOW).buried


def test_what_is_shared_stays(tmp_path: Path) -> None:
    """Data that a later edition names outlives the edition that it was stored for."""
    store = MemoryStore()
    name = bench.save(tmp_path, 1)
    first = bench.commit(store, tmp_path, name)
    bench.write(tmp_path, f"{name}/model.safetensors", b"rewritten", mtime_ns=bench.MTIME_NS + 9)
    second = shared(store, tmp_path, name, first)
    assert at(store, NOW).buried == (f"{name}@1",)
    cleared = at(store, NOW + GRACE).cleared
    assert cleared.objects == 1
    found = verify(store, VerifyRequest(level="full"), pace=bench.pace())
    assert [(one.title, one.faults) for one in found.results] == [(f"{name}@2", ())]
    assert {stored.key for stored in second.files if stored.kind == "file"} <= {
        fact.key for fact in store.list("")
    }


def shared(store: MemoryStore, root: Path, name: str, first: Manifest) -> Manifest:
    """Commit edition 2, which shares what did not change."""
    before = {(s.path, s.crc64nvme): s for s in first.files}

    def key_of(row: StoredFile) -> StoredFile:
        return before.get((row.path, row.crc64nvme), row)

    second = bench.manifest_of(root, name, edition=2)
    second = replace(second, files=tuple(map(key_of, second.files)), saved_at=first.saved_at + 9)
    changed = replace(second, files=tuple(s for s in second.files if s not in first.files))
    bench.put_data(store, root, changed)
    bench.put_manifest(store, second)
    return second


def test_data_of_a_name_that_is_being_uploaded_stays(tmp_path: Path) -> None:
    """While another edition is claimed and not committed, it may be about to share the data."""
    store = stored(tmp_path, 1, 2)
    at(store, NOW)
    claim(store, "run/checkpoint-1", 2)
    done = at(store, NOW + GRACE)
    assert done.cleared.objects == 0
    assert done.cleared.held == ("run/checkpoint-1@1: another edition of it is being uploaded",)
    assert data(store) == {"checkpoint-1", "checkpoint-2"}


def claim(store: MemoryStore, checkpoint: str, edition: int) -> None:
    """Claim an edition."""
    record = Claim(checkpoint, edition, "run", "save", "nonce", 1, 0, "", NOW)
    store.put_small(names.claim_key(checkpoint, edition), record.encode(), None)


def test_while_something_cannot_be_read_no_data_goes(tmp_path: Path) -> None:
    """A manifest that nobody can read may name anything."""
    store = stored(tmp_path, 1, 2)
    at(store, NOW)
    store.put_small(names.manifest_key("run/checkpoint-9", 1), b"{", None)
    done = at(store, NOW + GRACE)
    assert done.cleared.objects == 0
    assert "cannot be read" in done.cleared.held[0]


def test_the_newest_that_verify_stay(tmp_path: Path) -> None:
    """A broken newest one counts for nothing: the older ones stay until two newer are whole."""
    store = stored(tmp_path, 1, 2, 3, 4)
    store.delete("run/checkpoint-4/model.safetensors")
    rules = Retention(keep_last=1, min_keep=2)
    done = at(store, NOW, replace(LAST, rules=rules))
    assert done.buried == ("run/checkpoint-1@1",)
    whys = {fate.candidate.step: fate.keeps for fate in done.fates}
    assert whys == {4: "the newest", 3: "one of 2 that verify", 2: "one of 2 that verify", 1: ""}


def test_pointers_and_the_hint_keep_what_they_name(tmp_path: Path) -> None:
    """What ``best`` or ``latest`` names stays."""
    store = stored(tmp_path, 1, 2, 3, 4)
    newest = read_catalog(store, bench.pace()).entries[0]
    manifest = bench.manifest_of(tmp_path, newest.checkpoint)
    bench.put_pointers(store, manifest, Pointer("run/best", "symlink", "checkpoint-1"))
    hint = Latest("run", "run/checkpoint-2", 1, (0, 2, 0.0, 1), (), "n", NOW)
    store.put_small(names.latest_key("run"), hint.encode(), None)
    done = at(store, NOW)
    assert done.buried == ("run/checkpoint-3@1",)


def test_other_series_are_judged_by_themselves(tmp_path: Path) -> None:
    """The newest of each run stays."""
    store = stored(tmp_path, 1, 2)
    for step in (7, 8):
        bench.commit(store, tmp_path, bench.save(tmp_path, step, run="other"))
    assert set(at(store, NOW).buried) == {"run/checkpoint-1@1", "other/checkpoint-7@1"}


def test_the_users_own_objects_are_never_touched(tmp_path: Path) -> None:
    """Whatever else lies below the prefix stays as it is."""
    store = stored(tmp_path, 1, 2)
    for key in ("notes.txt", "run/checkpoint-1/mine.txt", ".ckptsyncd/other.json"):
        store.put_small(key, b"mine", None)
    at(store, NOW)
    at(store, NOW + GRACE)
    at(store, NOW + STONE_SECONDS)
    found = {fact.key for fact in store.list("")}
    assert {"notes.txt", "run/checkpoint-1/mine.txt", ".ckptsyncd/other.json"} <= found


def test_nothing_says_what_to_keep(tmp_path: Path) -> None:
    """Without a rule nothing is done."""
    with pytest.raises(UsageError):
        at(stored(tmp_path, 1), NOW, PruneRequest(Retention()))
    with pytest.raises(NoCheckpoint):
        at(MemoryStore(), NOW)


def test_something_more_urgent_comes(tmp_path: Path) -> None:
    """Between any two removals it can be stopped; the next run finishes, in the right order."""
    store = stored(tmp_path, 1, 2, 3)
    for wall in (NOW, NOW + GRACE):
        for count in range(30):
            answers = iter([True] * count)
            done = prune(
                store, LAST, pace=bench.pace(), wall=lambda wall=wall: wall,  # type: ignore[misc]
                may=lambda answers=answers: next(answers, False),  # type: ignore[misc]
            )  # fmt: skip
            assert verify(store, VerifyRequest(level="full"), pace=bench.pace()).exit_code == 0
            if not done.interrupted:
                break
        assert not done.interrupted
    assert data(store) == {"checkpoint-3"}


def test_a_kill_before_the_manifest_goes_loses_nothing(tmp_path: Path) -> None:
    """A tombstone beside a manifest means nothing: the checkpoint is there, and its data stays."""
    store = stored(tmp_path, 1, 2)
    answers = iter([True, True])
    request = replace(LAST, grace_seconds=0.0)
    prune(store, request, pace=bench.pace(), wall=lambda: NOW, may=lambda: next(answers, False))
    assert left(store) == ["run/checkpoint-2@1", "run/checkpoint-1@1"]
    keep = replace(request, rules=Retention(keep_last=2))
    assert at(store, NOW + GRACE, keep).cleared.objects == 0
    assert data(store) == {"checkpoint-1", "checkpoint-2"}


def test_the_claim_says_that_it_was_pruned(tmp_path: Path) -> None:
    """Whoever holds the same save finds out by the claim; a lost claim is made anew."""
    store = stored(tmp_path, 1, 2)
    at(store, NOW)
    data, _ = store.get_small(names.claim_key("run/checkpoint-1", 1), 10**6)
    record = Claim.decode(data)
    save_id = bench.manifest_of(tmp_path, "run/checkpoint-1").save_id
    assert (record.save_id, record.pruned_at) == (save_id, NOW)


def test_a_restore_under_way_comes_to_its_end(tmp_path: Path) -> None:
    """Pruned between the choice and the fetch: within the grace all its bytes are still there."""
    store = stored(tmp_path / "there", 1, 2)
    request = RestoreRequest(checkpoint="run/checkpoint-1")

    class Meanwhile:
        """Prunes when the checkpoint was chosen."""

        def said(self, text: str) -> None:
            """Ignore it."""

        def began(self, files: int, total_bytes: int, there_bytes: int) -> None:
            """Ignore it."""

        def moved(self, arrived_bytes: int) -> None:
            """Ignore it."""

        def reached(self, step: str) -> None:
            """Prune."""
            if step == "chosen":
                at(store, NOW)

    result = restore(store, tmp_path / "here", request, Meanwhile(), bench.pace())
    assert result.placed == ("run/checkpoint-1",)


def test_a_tombstone_reads_back() -> None:
    """Encoding and decoding are inverse."""
    stone = Tombstone("a", 2, ".", 7, "h", "r", 1.5, ("a/x", "a/y"))
    assert Tombstone.decode(stone.encode()) == stone


def test_a_store_that_falters(tmp_path: Path) -> None:
    """Errors that may go away are waited for, and lost answers found out."""
    store = stored(tmp_path, 1, 2)
    seen: set[tuple[str, str]] = set()

    def choose(verb: str, key: str) -> Fault | None:
        if (verb, key) in seen:
            return None
        seen.add((verb, key))
        return Fault(Again("lost", ambiguous=True), after=verb in ("put_small", "delete"))

    faulty = FaultyStore(store, choose)
    assert at(faulty, NOW).buried == ("run/checkpoint-1@1",)
    seen.clear()
    assert at(faulty, NOW + GRACE).cleared.objects == 3
    assert data(store) == {"checkpoint-2"}
