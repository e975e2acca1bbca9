"""The judgement itself, as a table: what a look found, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.settle import judge
from ckptsyncd.core.seeing.view import (
    Held,
    Parked,
    Patience,
    Waits,
    Whole,
)
from tests.core.judging import (
    COPIED,
    COPIED_MODEL,
    COPIED_SHARDS,
    DCP,
    HF,
    MODEL,
    NAMED,
    NAMES,
    PATIENCE,
    PLAIN,
    RANK_0,
    RANKED,
    RANKS,
    RANKS_MODEL,
    SHARDS,
    STATE,
    TRAINER,
    WHOLE,
    A,
    B,
    index,
    member,
    view,
)

WHOLES = {
    "a copy in the order of names, as its siblings are": (
        replace(view(TRAINER, *COPIED, idle=5.0), model=COPIED_MODEL),
        "shape",
    ),
    "a copy in the order of names, with all that its marker lists": (
        view(DCP, *COPIED_SHARDS, idle=5.0),
        "marker",
    ),
    "files added to what was whole": (
        replace(view(PLAIN, A, B, idle=5.0), is_grown=True, model=MODEL),
        "quiet",
    ),
    "files added to what was whole, where ranks could be late": (
        replace(view(TRAINER, member("a.pt", 12), STATE, idle=30.0), is_grown=True),
        "quiet",
    ),
    "all that an index names is there, as large as it says": (
        view(PLAIN, *SHARDS, index("m.safetensors.index.json", *NAMES, size=200), idle=5.0),
        "quiet",
    ),
    "an index in a directory of the checkpoint names what lies beside it": (
        view(PLAIN, member("sub/a.bin"), index("sub/m.bin.index.json", "a.bin"), idle=5.0),
        "quiet",
    ),
    "an index names what is no part of such a group": (
        view(NAMED["sharded"], *SHARDS, index("m.safetensors.index.json", "odd.fp16.safetensors")),
        "marker",
    ),
    "a user said so": (replace(view(PLAIN, A), is_explicit=True), "explicit"),
    "a user said so, though no marker is there": (
        replace(view(TRAINER, A), is_explicit=True),
        "explicit",
    ),
    "arrived by rename": (replace(view(PLAIN, A, B), is_arrived=True), "rename"),
    "arrived by rename, and its layout's marker with it": (replace(HF, is_arrived=True), "rename"),
    "the marker is newest": (HF, "marker"),
    "the marker is newest by ctime, where only a scan saw both": (
        view(DCP, member("__0_0.distcp", 0, ctime_ns=5), member(".metadata", 0, ctime_ns=6)),
        "marker",
    ),
    "the marker and a member of one moment": (
        view(DCP, member("__0_0.distcp", 0, ctime_ns=5), member(".metadata", 0, ctime_ns=5)),
        "marker",
    ),
    "ranks' files after the grace": (replace(RANKS, looked_at=105.0), "marker"),
    "ranks' files as its sibling had them, at once": (
        replace(RANKS, model=RANKS_MODEL),
        "marker",
    ),
    "ranks' files, all written anew in a second save, at once": (
        replace(RANKS, is_complete_again=True),
        "marker",
    ),
    "a rank's file newer than the marker, after the grace": (
        view(TRAINER, RANK_0, member("rng_state_1.pth", 12), STATE, idle=5.0),
        "marker",
    ),
    "stale members after the grace": (
        view(TRAINER, member("a.pt", is_stale=True), STATE, idle=5.0),
        "marker",
    ),
    "the framework's unfinished mark went away": (
        replace(view(PLAIN, A), is_unveiled=True),
        "marker",
    ),
    "one file with its end mark": (replace(view(PLAIN, WHOLE), is_single=True), "format"),
    "one file with its end mark and an unknown writer, 150 ms later": (
        replace(
            view(PLAIN, member("a.pt", shape="whole", writer="unknown"), idle=0.15),
            is_single=True,
        ),
        "format",
    ),
    "the same files as its sibling, as large": (
        replace(view(PLAIN, A, B, idle=1.0), model=MODEL),
        "shape",
    ),
    "the same files of several ranks as their sibling": (
        replace(view(RANKED, A, B, idle=1.0), model=MODEL),
        "shape",
    ),
    "quiet": (view(PLAIN, A, B, idle=5.0), "quiet"),
    "quiet, where ranks write": (view(RANKED, A, B, idle=30.0), "quiet"),
    "more files than its sibling": (
        replace(view(PLAIN, A, B, member("c.pt"), idle=5.0), model=MODEL),
        "quiet",
    ),
    "a file less than its sibling, much later": (
        replace(view(PLAIN, A, idle=65.0), model=MODEL),
        "quiet, shape differs",
    ),
    "a file much smaller than its sibling's, much later": (
        replace(view(PLAIN, A, member("b.pt", size=89), idle=65.0), model=MODEL),
        "quiet, shape differs",
    ),
    "unknown writers and no end mark, 150 ms after a marker behind a barrier": (
        view(DCP, member("__0_0.distcp", writer="unknown"), member(".metadata", 2), idle=0.15),
        "marker",
    ),
    "unknown writers and no end mark, 150 ms after a directory's rename": (
        replace(view(PLAIN, member("a.bin", writer="unknown"), B, idle=0.15), is_arrived=True),
        "rename",
    ),
    "unknown writers and no end mark, after the quiet": (
        replace(view(PLAIN, member("a.bin", writer="unknown"), idle=5.0), is_single=True),
        "quiet",
    ),
    "rewritten faster than it uploads": (replace(HF, is_torn=True), "copy"),
    "never quiet, one file, seen at rest before": (
        replace(view(PLAIN, A), is_single=True, is_overdue=True, is_rewritten=True),
        "copy",
    ),
    "never quiet, but everything written anew since it was whole": (
        replace(view(PLAIN, A, B), is_overdue=True, is_complete_again=True),
        "copy",
    ),
}


@pytest.mark.parametrize("case", WHOLES)
def test_whole(case: str) -> None:
    """This is whole, and on this evidence."""
    found, evidence = WHOLES[case]
    verdict = judge(found, PATIENCE)
    assert isinstance(verdict, Whole), verdict
    assert verdict.evidence == evidence
    assert verdict.is_copy == (evidence == "copy")


WAITS = {
    "quiet is not over": (view(PLAIN, A, B, idle=4.9), 105.0, "waiting for quiet"),
    "ranks' quiet is not over": (view(RANKED, A, idle=29.0), 130.0, "waiting for quiet"),
    "one file without an end mark": (
        replace(view(PLAIN, A), is_single=True),
        105.0,
        "waiting for quiet",
    ),
    "unknown writer": (
        replace(view(PLAIN, member("a.pt", shape="whole", writer="unknown")), is_single=True),
        100.15,
        "cannot be told",
    ),
    "unknown writer, no end mark, though the marker is there": (
        view(DCP, member("__0_0.distcp", writer="unknown"), member(".metadata", 2)),
        100.15,
        "cannot be told",
    ),
    "unknown writer, no end mark, the marker older than a member": (
        view(DCP, member("__0_0.distcp", 3, writer="unknown"), member(".metadata", 2)),
        105.0,
        "cannot be told",
    ),
    "unknown writer, no end mark, a marker before which ranks do not wait": (
        view(TRAINER, member("a.bin", writer="unknown"), STATE),
        105.0,
        "cannot be told",
    ),
    "unknown writer, no end mark, one file though it arrived by rename": (
        replace(view(PLAIN, member("a.bin", writer="unknown")), is_arrived=True, is_single=True),
        105.0,
        "cannot be told",
    ),
    "other ranks": (RANKS, 105.0, "other ranks"),
    "a rank that its sibling had": (
        replace(view(TRAINER, RANK_0, STATE), model=RANKS_MODEL),
        105.0,
        "other ranks",
    ),
    "stale members": (view(TRAINER, member("a.pt", is_stale=True), STATE), 105.0, "older than"),
    "the sibling's shape, before a second": (
        replace(view(PLAIN, A, B, idle=0.5), model=MODEL),
        101.0,
        "waiting for quiet",
    ),
    "a file less than its sibling": (
        replace(view(PLAIN, A, idle=6.0), model=MODEL),
        165.0,
        "its siblings have b.pt",
    ),
    "a stale file counts as missing for the shape": (
        replace(view(PLAIN, A, member("b.pt", is_stale=True), idle=6.0), model=MODEL),
        165.0,
        "its siblings have b.pt",
    ),
    "a temporary file in it": (replace(HF, is_busy=True), 105.0, "temporary"),
    "broken, but somebody may be writing": (
        view(PLAIN, member("a.pt", writer="unknown", fault="no end")),
        105.0,
        "truncated: a.pt: no end",
    ),
    "a copy in the order of names": (
        replace(view(TRAINER, *COPIED, idle=4.0), model=COPIED_MODEL),
        105.0,
        "older times",
    ),
    "files added to what was whole": (
        replace(view(TRAINER, member("a.pt", 12), STATE, idle=29.0), is_grown=True),
        130.0,
        "files were added",
    ),
    "a stale file of the siblings' shape": (
        replace(view(PLAIN, A, member("b.pt", is_stale=True), idle=6.0), model=MODEL),
        165.0,
        "b.pt is older than this save",
    ),
    "no marker yet": (view(TRAINER, A), None, "no trainer_state.json yet"),
    "marker older": (
        view(TRAINER, member("a.pt", 12), STATE),
        None,
        "a.pt is newer than trainer_state.json",
    ),
    "its framework says that it is unfinished": (
        replace(view(PLAIN, A, idle=99.0), veil="c-unfinished"),
        None,
        "c-unfinished",
    ),
    "a number is missing": (
        view(PLAIN, member("m-00001-of-00003.bin"), member("m-00003-of-00003.bin")),
        None,
        "m-00002-of-00003.bin is missing",
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_waits(case: str) -> None:
    """This may still become whole, then, and for this reason."""
    found, until, because = WAITS[case]
    verdict = judge(found, PATIENCE)
    assert isinstance(verdict, Waits), verdict
    assert verdict.until == until
    assert because in verdict.because


PARKED = {
    "no marker came": (view(TRAINER, A, idle=5.0), "ckptsyncd commit c"),
    "an old marker": (view(DCP, member(".metadata", 1), member("__0_0.distcp", 2), idle=5.0),
                      "__0_0.distcp is newer than .metadata"),
    "an old marker, and nobody knows whether all of the copy is there": (
        view(TRAINER, *COPIED, idle=99.0), "training_args.bin is newer than trainer_state.json"),
    "an old marker, and less than its siblings have": (
        replace(view(TRAINER, *COPIED, idle=99.0), model={**COPIED_MODEL, "optimizer.pt": 9}),
        "training_args.bin is newer"),
    "an old marker by its own time, too": (
        replace(view(TRAINER, COPIED[0], member("training_args.bin", 2, mtime_ns=10), idle=99.0),
                model=COPIED_MODEL), "training_args.bin is newer"),
    "an old marker, and not all that it lists": (
        view(DCP, index(".metadata", "__0_0.distcp", "__1_0.distcp"), COPIED_SHARDS[1], idle=99.0),
        "__1_0.distcp is missing"),
    "an old marker by ctime": (
        view(DCP, member(".metadata", 0, ctime_ns=5), member("__0_0.distcp", 0, ctime_ns=6),
             idle=99.0), "__0_0.distcp is newer"),
    "an old marker by mtime, which a link moved since": (
        view(
            DCP,
            member(".metadata", 0, ctime_ns=9, mtime_ns=5),
            member("__0_0.distcp", 0, ctime_ns=6, mtime_ns=6),
            idle=99.0,
        ),
        "__0_0.distcp is newer than .metadata",
    ),
    "a marker from before this save": (
        view(DCP, member(".metadata", 9, is_stale=True), member("__0_0.distcp", 8), idle=99.0),
        ".metadata is older than this save"),
    "arrived without its marker": (replace(view(TRAINER, A, idle=5.0), is_arrived=True),
                                   "no trainer_state.json"),
    "broken": (view(PLAIN, A, member("b.pt", fault="zip end record is missing")),
               "truncated: b.pt: zip end record is missing"),
    "unreadable": (view(PLAIN, member("b.pt", fault="unreadable: mode 0600")),
                   "b.pt: unreadable: mode 0600"),
    "broken, whatever a user says": (
        replace(view(PLAIN, member("b.pt", fault="bad")), is_explicit=True), "truncated: b.pt"),
    "empty": (view(PLAIN, member("a.pt", size=0), idle=9.0), "truncated: a.pt is empty"),
    "a shard is missing": (
        view(PLAIN, member("m-00002-of-00002.bin"), idle=9.0), "m-00001-of-00002.bin is missing"),
    "an index names what is not there": (
        view(PLAIN, A, index("m.safetensors.index.json", "a.pt", "x.safetensors"), idle=9.0),
        "truncated: x.safetensors is missing, which m.safetensors.index.json names"),
    "distributed metadata names a shard that is not there": (
        view(DCP, member("__0_0.distcp"), index(".metadata", "__0_0.distcp", "__1_0.distcp"),
             idle=9.0),
        "truncated: __1_0.distcp is missing, which .metadata names"),
    "shards hold less than their index says": (
        view(PLAIN, *SHARDS, index("m.safetensors.index.json", *NAMES, size=300), idle=9.0),
        "truncated: m.safetensors.index.json names files of 300 bytes, they hold 200"),
    "an index outweighs an arrival by rename": (
        replace(view(PLAIN, A, index("m.bin.index.json", "b.bin"), idle=9.0), is_arrived=True),
        "truncated: b.bin is missing"),
    "files were removed": (replace(view(PLAIN, A, idle=99.0), is_frozen=True),
                           "nothing was written since (if it is whole: ckptsyncd commit c)"),
}  # fmt: skip


@pytest.mark.parametrize("case", PARKED)
def test_parked(case: str) -> None:
    """This is not whole, and nothing but the trainer or a user can change that."""
    found, because = PARKED[case]
    verdict = judge(found, PATIENCE)
    assert isinstance(verdict, Parked), verdict
    assert because in verdict.because


@pytest.mark.parametrize("case", [*WHOLES, *WAITS])
def test_an_open_writer_outweighs_everything(case: str) -> None:
    """While somebody holds a file of it open for writing, no evidence counts, not even a user's."""
    found = (WHOLES | WAITS)[case][0]
    held = member("z.pt", writer="open")
    verdict = judge(replace(found, members=(*found.members, held)), PATIENCE)
    assert verdict == Held("z.pt is held open for writing by pid 7 (python)")


def test_an_empty_note_is_no_shard() -> None:
    """Only files that hold data must not be empty: markers and notes may be."""
    assert isinstance(judge(view(PLAIN, A, member("DONE", size=0), idle=5.0), PATIENCE), Whole)


def test_draining_shortens_the_wait_and_nothing_else() -> None:
    """In a drain quiet takes 1 s and ranks 5 s; the grace of other ranks stays."""
    hasty = Patience.under(Policy(), hasty=True)
    assert isinstance(judge(view(PLAIN, A, idle=1.0), hasty), Whole)
    assert isinstance(judge(view(RANKED, A, idle=5.0), hasty), Whole)
    assert isinstance(judge(view(RANKED, A, idle=4.0), hasty), Waits)
    assert isinstance(judge(replace(RANKS, looked_at=104.0), hasty), Waits)


def test_never_quiet_is_no_excuse_for_a_first_save() -> None:
    """A directory that is written for a long time for the first time is not copied in its midst."""
    slow = replace(view(PLAIN, A, B), is_overdue=True)
    assert isinstance(judge(slow, PATIENCE), Waits)
    assert isinstance(judge(replace(slow, is_single=True, members=(A,)), PATIENCE), Waits)
