"""Checkpoints as a look found them, for tables of verdicts."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.facts import FileFact, FileLook, Shape, Writer
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.layouts import BUILT_IN, Layout
from ckptsyncd.core.seeing.shapes import shape_of
from ckptsyncd.core.seeing.view import (
    MemberView,
    Patience,
    View,
)

NAMED = {layout.name: layout for layout in BUILT_IN}
PLAIN, RANKED = NAMED["directory"], NAMED["deepspeed"]
TRAINER, DCP = NAMED["huggingface-trainer"], NAMED["torch-distributed"]
PATIENCE = Patience.under(Policy(), hasty=False)


def member(  # noqa: PLR0913 - a row of the tables below
    rel: str,
    event: int = 1,
    *,
    size: int = 100,
    writer: Writer = "none",
    shape: Shape = "unknown",
    fault: str = "",
    ctime_ns: int = 1,
    mtime_ns: int = 1,
    is_stale: bool = False,
) -> MemberView:
    """Return one file as a look found it; it changed at 100 s."""
    fact = FileFact(f"c/{rel}", "file", 1, 1, size, mtime_ns, ctime_ns=ctime_ns)
    look = FileLook(fact, writer, "pid 7 (python)", shape, shape == "whole", fault)
    return MemberView(
        rel=rel,
        fact=fact,
        look=look,
        event=event,
        ctime_ns=ctime_ns,
        mtime_ns=mtime_ns,
        changed_at=100.0,
        is_stale=is_stale,
    )


def view(layout: Layout, *members: MemberView, idle: float = 0.1) -> View:
    """Return a checkpoint that last changed at 100 s and was looked at ``idle`` seconds later."""
    return View("c", layout, members, looked_at=100.0 + idle, changed_at=100.0)


def index(rel: str, *lists: str, size: int = 0) -> MemberView:
    """Return an index that names these files, of so many bytes together."""
    made = member(rel, 8)
    assert made.look is not None
    return replace(made, look=replace(made.look, lists=lists, lists_bytes=size))


A, B = member("a.pt", 1), member("b.pt", 2)
WHOLE = member("a.pt", shape="whole")
STATE = member("trainer_state.json", 9)
RANK_0, RANK_1 = member("rng_state_0.pth", 2), member("rng_state_1.pth", 3)
HF = view(TRAINER, A, STATE)
RANKS = view(TRAINER, RANK_0, RANK_1, STATE)
MODEL = shape_of("c", [("a.pt", A.fact), ("b.pt", B.fact)])
RANKS_MODEL = shape_of("c", [(m.rel, m.fact) for m in RANKS.members])

SHARDS = (member("m-00001-of-00002.safetensors"), member("m-00002-of-00002.safetensors"))
NAMES = [shard.rel for shard in SHARDS]

#: As ``rsync -a`` makes them: in the order of names, with the times that they had.
COPIED = (member("trainer_state.json", 1, mtime_ns=9), member("training_args.bin", 2, mtime_ns=3))
COPIED_MODEL = shape_of("c", [(m.rel, m.fact) for m in COPIED])
COPIED_SHARDS = (
    replace(index(".metadata", "__0_0.distcp"), event=1),
    member("__0_0.distcp", 12, mtime_ns=1),
)
