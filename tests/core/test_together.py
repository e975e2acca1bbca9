"""What makes one checkpoint of several machines' parts, and what must never make one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.messages import KeysListed, RecordPut, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, HandOrder, ListKeys, PutSmall
from ckptsyncd.core.records.documents import Claim, Epoch, Starts
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.records.memory import Recalled
from ckptsyncd.core.records.names import part_key
from ckptsyncd.core.sending import answers
from ckptsyncd.core.sending.case import Case
from ckptsyncd.core.sending.compare import is_share
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.series import Series, epoch_seen
from ckptsyncd.core.sending.start import Start
from ckptsyncd.core.sending.together.asking import frame_of, missing, part_of
from ckptsyncd.core.sending.together.fit import unfit
from ckptsyncd.core.sending.together.merging import Lacks, Refused, merged, nodes_words
from ckptsyncd.core.sending.together.part import Part
from ckptsyncd.core.sending.together.patience import (
    commit_patience,
    latest_delay,
    pause,
    turn_delay,
)
from ckptsyncd.core.sending.together.saves import is_same_save, mark_of
from ckptsyncd.core.turn import Notebook
from ckptsyncd.errors import CkptsyncdError
from tests.core.parts import LIMITS, NOW, POLICY, edition, fact, scene, settled, stored

TWO = replace(POLICY, node=0, nodes=2)
NAME = "run/step-5"


def part(node: int, *paths: str, **other: object) -> Part:
    """Return the part of a node that has these files, each with a content of its own."""
    one = edition(*(fact(f"{NAME}/{path}") for path in paths))
    one.joint.save_id = "shared"
    one.stored = {
        f"{NAME}/{path}": stored(f"{NAME}/{path}", crc64nvme=sum(path.encode()), node=node)
        for path in paths
    }
    made = part_of(one, scene(policy=replace(TWO, node=node)))
    return replace(made, **other)  # type: ignore[arg-type]


def frame() -> Manifest:
    """Return what the committing node knows before it has read any part."""
    one = edition()
    one.joint.save_id = "shared"
    return frame_of(one, scene(policy=TWO))


def test_a_part_is_read_back_as_it_was_written() -> None:
    """Encoding loses nothing: files, absent and stale paths, and where there is no step."""
    one = part(
        1,
        "a",
        "b",
        absent=(f"{NAME}/c",),
        named=(f"{NAME}/c",),
        loose=(f"{NAME}/a",),
        stale=(f"{NAME}/a",),
        step=None,
    )
    assert Part.decode(one.encode()) == one


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: row | {"absent": ["../../etc/passwd"]},
        lambda row: row | {"files": [{"path": "/x", "kind": "file"}]},
        lambda row: row | {"node": -1},
        lambda row: row | {"edition": "1"},
        lambda row: {key: value for key, value in row.items() if key != "save_id"},
    ],
)
def test_a_part_that_nobody_of_ours_wrote_is_refused(
    spoil: Callable[[dict[str, object]], object],
) -> None:
    """Paths that leave the root, other types and missing fields raise an error of ours."""
    row = json.loads(part(0, "a").encode())
    with pytest.raises(CkptsyncdError):
        Part.decode(json.dumps(spoil(row)).encode())


def test_all_parts_make_one_manifest() -> None:
    """It names every file with the node that has it, and every node."""
    made = merged({0: part(0, "a"), 1: part(1, "b")}, frame())
    assert isinstance(made, Manifest)
    assert [(file.path, file.node) for file in made.files] == [(f"{NAME}/a", 0), (f"{NAME}/b", 1)]
    assert (made.nodes, made.save_id) == ((0, 1), "shared")


def test_what_both_have_alike_is_named_once() -> None:
    """A replicated file is in the manifest once, with both nodes."""
    made = merged({0: part(0, "a", "same"), 1: part(1, "b", "same")}, frame())
    assert isinstance(made, Manifest)
    (same,) = (file for file in made.files if file.path.endswith("same"))
    assert (same.node, same.also) == (0, (1,))


def test_other_content_under_one_name_is_refused_and_both_are_named() -> None:
    """Two nodes that wrote the same name differently cannot be one checkpoint."""
    other = part(1, "a")
    other = replace(other, files=(replace(other.files[0], crc64nvme=5),))
    made = merged({0: part(0, "a"), 1: other}, frame())
    assert made == Refused(f"refused: nodes 0 and 1 have other content in {NAME}/a")


def test_a_part_of_another_save_is_refused() -> None:
    """A part whose claim was another save's makes no manifest."""
    made = merged({0: part(0, "a"), 1: part(1, "b", save_id="another")}, frame())
    assert made == Refused("node 1 of another save")


def test_what_an_index_names_must_be_somewhere() -> None:
    """A shard that the framework's metadata names may be on any node, and must be on one."""
    index = part(0, "a", absent=(f"{NAME}/b",))
    assert isinstance(merged({0: index, 1: part(1, "b")}, frame()), Manifest)
    made = merged({0: index, 1: part(1, "c")}, frame())
    assert made == Lacks(f"{NAME}/b is missing, which an index of node 0 names")


# Nobody counted the nodes ------------------------------------------------------------------------

INDEX = (f"{NAME}/__0_0.distcp", f"{NAME}/__1_0.distcp")


def first_share(**other: object) -> Part:
    """Return the part of the node that has a shard, and the index that names another as well."""
    return part(0, "__0_0.distcp", ".metadata", named=INDEX, absent=INDEX[1:], **other)


def uncounted(*parts: Part) -> Manifest | Refused | Lacks:
    """Return what these parts make together where nobody counted the nodes."""
    return merged({one.node: one for one in parts}, frame(), is_counted=False)


def test_an_index_tells_what_is_whole() -> None:
    """Once the shards that it names are there, on however many nodes, there is a manifest."""
    made = uncounted(first_share())
    assert made == Lacks(f"{INDEX[1]} is missing, which an index of node 0 names")
    made = uncounted(first_share(), part(5, "__1_0.distcp"))
    assert isinstance(made, Manifest)
    assert made.nodes == (0, 5)


def test_without_an_index_the_nodes_must_be_counted() -> None:
    """Shards that nothing names make no checkpoint, and it is said what to set."""
    made = uncounted(part(0, "mp_rank_00.pt"), part(1, "mp_rank_01.pt"))
    assert made == Lacks(
        "no index tells which files there are beside those of nodes 0, 1: "
        "tell how many nodes there are (--nodes)"
    )


def test_data_that_no_index_names_may_have_more_like_it() -> None:
    """Optimizer shards beside an index of weights are one node's of nobody knows how many."""
    rng = f"{NAME}/rng_state_0.pth"
    made = uncounted(first_share(loose=(rng,)), part(1, "__1_0.distcp"))
    assert made == Lacks(
        f"no index names {rng}, other nodes may have more like it: "
        "tell how many nodes there are (--nodes)"
    )
    named = uncounted(first_share(), part(1, "__1_0.distcp", loose=INDEX[1:]))
    assert isinstance(named, Manifest)


def hears(case: Case, message: RecordRead | KeysListed) -> list[HandOrder]:
    """Return what is asked after an answer."""
    answers.hear(case, message)
    return list(missing(case.edition, case.scene))


def test_parts_of_uncounted_nodes_are_read_once_each_until_all_is_there() -> None:
    """A node asks for who is there, reads who is new, and commits when the index is satisfied."""
    policy = replace(TWO, nodes=0)
    one = edition(pinned=True, claimed="yes", looked=True)
    one.joint.save_id, one.joint.part, one.joint.mine = "shared", "yes", first_share()
    now = scene(policy=policy)
    editions = Editions(policy, "me", Recalled())
    editions.open[one.checkpoint, one.save_id] = one

    def lists(*nodes: int) -> list[HandOrder]:
        one.joint.seeks, one.joint.due = False, NOW.boot
        (order,) = missing(one, now)
        assert isinstance(order, ListKeys)
        keys = tuple(part_key(one.checkpoint, one.number, node) for node in nodes)
        return hears(Case(editions, one, order, now, Notebook()), KeysListed(order.errand, keys))

    assert lists(0) == []
    assert one.joint.reason == f"{INDEX[1]} is missing, which an index of node 0 names"
    (read,) = lists(0, 7)
    assert isinstance(read, GetSmall)
    told = RecordRead(read.errand, part(7, "config.json").encode(), "v")
    assert hears(Case(editions, one, read, now, Notebook()), told) == []
    (read,) = lists(0, 7, 1)
    assert isinstance(read, GetSmall)
    assert read.errand.path == "1"
    told = RecordRead(read.errand, part(1, "__1_0.distcp").encode(), "v")
    (order,) = hears(Case(editions, one, read, now, Notebook()), told)
    assert order.errand.purpose == "confirm claim"
    assert one.joint.whole is not None
    assert one.joint.whole.nodes == (0, 1, 7)


CLAIM = Claim(NAME, 1, "run", "theirs", "n", 1, 0, "", 0.0, step=100, saved_at=5.0, nodes=2)


@pytest.mark.parametrize(
    ("claim", "mark", "same"),
    [
        (CLAIM, "", True),
        (replace(CLAIM, saved_at=64.0), "", True),
        (replace(CLAIM, saved_at=66.0), "", False),
        (replace(CLAIM, step=101), "", False),
        (replace(CLAIM, mark="m", saved_at=900.0), "m", True),
        (replace(CLAIM, mark="m"), "other", False),
        (replace(CLAIM, mark="m"), "", False),
        (replace(CLAIM, save_id=settled().listing.save_id(), saved_at=900.0), "", True),
    ],
)
def test_one_save_is_told_from_another(claim: Claim, mark: str, same: bool) -> None:  # noqa: FBT001
    """By the mark where there is one, else by step and time; the very same content always is."""
    assert is_same_save(claim, settled(), mark, TWO) == same


def test_the_content_of_a_done_file_marks_a_save() -> None:
    """Its checksum has to be known first; without a content it marks nothing."""
    policy = replace(TWO, done_file="DONE")
    path = f"{NAME}/DONE"
    one = settled(fact(path), checkpoint=NAME)
    assert mark_of(one, policy, {}) is None
    assert mark_of(one, policy, {path: 255}) == "10.00000000000000ff"
    assert mark_of(settled(fact(path, size=0), checkpoint=NAME), policy, {}) == ""
    assert mark_of(one, TWO, {}) == ""


@pytest.mark.parametrize(
    ("claim", "state", "confirmed"),
    [
        (replace(CLAIM, save_id="shared"), "settled", True),
        (replace(CLAIM, save_id="shared", pruned_at=9.0), "superseded", False),
        (replace(CLAIM, save_id="another"), "settled", False),
        (None, "settled", False),
    ],
)
def test_what_was_pruned_meanwhile_is_not_committed_again(
    claim: Claim | None,
    state: str,
    confirmed: bool,  # noqa: FBT001
) -> None:
    """Whoever was stopped for a day asks for the claim before it writes a manifest."""
    editions, one = Editions(TWO, "me", Recalled()), edition()
    editions.open[one.checkpoint, one.save_id] = one
    one.claimed, one.joint.save_id = "yes", "shared"
    order = GetSmall(Errand("confirm claim", one.checkpoint, one.save_id, index=1), "key")
    case = Case(editions, one, order, scene(policy=TWO), Notebook())
    data = None if claim is None else claim.encode()
    answers.hear(case, RecordRead(order.errand, data, "v"))
    assert one.state == state
    assert (one.joint.confirmed_at == NOW.boot) == confirmed
    assert confirmed or state == "superseded" or one.number == 2


def test_nobody_asks_in_a_tight_loop() -> None:
    """Pauses double up to half a minute, spread by a half; they are short against a deadline."""
    for nonce in ("a", "b", "c"):
        pauses = [pause(count, nonce, hasty=False) for count in range(20)]
        assert all(0.5 * 2.0**n <= p < 1.5 * 2.0**n for n, p in enumerate(pauses[:4]))
        assert all(15.0 <= p < 45.0 for p in pauses[5:])
        assert all(pause(count, nonce, hasty=True) < 3.0 for count in range(20))


def test_what_was_put_off_is_asked_soon_when_time_is_short() -> None:
    """A pause of half a minute that began before a notice does not outlast the machine."""
    one = edition(pinned=True, claimed="yes", looked=True)
    one.joint.part, one.joint.waits_since, one.joint.due = "yes", NOW.boot - 3.0, NOW.boot + 27.0
    assert list(missing(one, scene(policy=TWO))) == []
    assert len(list(missing(one, scene(policy=TWO, hasty=True)))) == 1


def test_nodes_do_not_begin_at_once() -> None:
    """Whoever sees the last part at the same moment begins at its own place in a row."""
    delays = [turn_delay(node, 16, "save") for node in range(16)]
    assert min(delays) == 0.0
    assert max(delays) < 0.5
    assert len(set(delays)) == 16
    assert all(50.0 <= commit_patience(1000, str(node)) < 100.0 for node in range(100))
    assert all(10.0 <= latest_delay(node, "n") < 20.0 for node in range(100))


def test_nodes_are_told_by_number() -> None:
    """One, some, or the first ones and how many more."""
    assert nodes_words({3}) == "node 3"
    assert nodes_words({7, 3}) == "nodes 3, 7"
    assert nodes_words(range(20)) == "nodes 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"


def test_a_share_is_what_a_node_had() -> None:
    """Only all of its own files, perhaps with others' (a full restore), are its share."""
    made = merged({0: part(0, "a", "same"), 1: part(1, "b", "same")}, frame())
    assert isinstance(made, Manifest)

    def lies_there(*paths: str) -> bool:
        return is_share(Listing(tuple(fact(f"{NAME}/{path}") for path in paths)), made, 1)

    assert lies_there("b", "same")
    assert lies_there("a", "b", "same")
    assert not lies_there("b")
    assert not lies_there("a", "same")
    assert not lies_there("b", "same", "more")


def test_a_store_without_conditions_is_refused() -> None:
    """Several machines cannot agree there; one machine may use it."""
    weak = replace(LIMITS, compare_and_set=False)
    assert "no conditional writes" in str(unfit(TWO, weak))
    assert "no conditional writes" in str(unfit(replace(POLICY, shared_root=True), weak))
    assert "several machines" in str(unfit(replace(POLICY, nodes=0), weak))
    assert unfit(TWO, LIMITS) is None
    assert unfit(POLICY, weak) is None


# Who started later ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "replaced"), [(1, 2, True), (2, 1, False), (2, 2, False), (1, 0, False)]
)
def test_nobody_takes_a_run_from_who_started_later(
    ours: int,
    theirs: int,
    replaced: bool,  # noqa: FBT001
) -> None:
    """An old machine that never committed finds the epoch of its replacement and is fenced."""
    record = Epoch("run", 0, 4, "other", "host", 0.0, theirs)
    assert epoch_seen(Series("run"), record, "v", "me", ours) == replaced


def test_each_new_state_directory_gets_the_next_number() -> None:
    """One more than the store has counted, taken on the condition that nobody was faster."""
    one, notes = Start(), Notebook()
    (read,) = one.missing(LIMITS, 3, ("host", "me"), NOW)
    assert isinstance(read, GetSmall)
    data = Starts(3, 7, "other", "there", 0.0).encode()
    assert one.hear(RecordRead(read.errand, data, "v7"), "me", notes)
    assert not one.is_settled(LIMITS)
    (take,) = one.missing(LIMITS, 3, ("host", "me"), NOW)
    assert isinstance(take, PutSmall)
    assert Starts.decode(take.data).start == 8
    assert one.hear(RecordPut(take.errand, "v8"), "me", notes)
    assert (one.number, one.is_settled(LIMITS), list(one.missing(LIMITS, 3, ("", ""), NOW))) == (
        8,
        True,
        [],
    )
    assert len(notes.ledger) == 1


def test_a_number_that_the_ledger_knows_is_kept() -> None:
    """A restart takes no new one; a bucket that was emptied gets the old one back."""
    known, emptied = Start.recalled({"start": "4"}), Start.recalled({"start": "4"})
    record = Starts(0, 9, "other", "there", 0.0).encode()
    known.hear(RecordRead(Errand("read starts"), record, "v"), "me", Notebook())
    assert (known.number, known.is_known) == (4, True)
    emptied.hear(RecordRead(Errand("read starts"), None, ""), "me", Notebook())
    assert (emptied.wanted, emptied.is_known) == (4, False)


def test_a_start_that_was_answered_badly_may_be_ours() -> None:
    """Our own nonce in the count means that it was taken."""
    one = Start(is_read=True, wanted=3)
    one.failed()
    data = Starts(0, 3, "me", "here", 0.0).encode()
    one.hear(RecordRead(Errand("read starts"), data, "v"), "me", Notebook())
    assert (one.number, one.is_known) == (3, True)
