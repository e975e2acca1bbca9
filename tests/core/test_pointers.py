"""A pointer is made to name what was restored, or it is left out."""

from __future__ import annotations

import pytest

from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.core.sending.pointers import is_inside, may_replace, point_at

TENSORFLOW = 'model_checkpoint_path: "ckpt-9"\nall_model_checkpoint_paths: "ckpt-8"\n'
COMPOSER = ("ep2-ba16-rank0.pt", "ep2-ba16-rank1.pt")


@pytest.mark.parametrize(
    ("path", "kind", "text", "checkpoint", "step", "expected"),
    [
        # It names the restored one already.
        ("latest", "file", "global_step500", "global_step500", 500, "global_step500"),
        ("run/latest", "file", "global_step5\n", "run/global_step5", 5, "global_step5\n"),
        ("latest_checkpointed_iteration.txt", "file", "500\n", "iter_0000500", 500, "500\n"),
        ("best.ckpt", "symlink", "epoch=3.ckpt", "epoch=3.ckpt", None, "epoch=3.ckpt"),
        ("run/best", "symlink", "../run/a", "run/a", None, "../run/a"),
        # It names another one, and means the newest.
        ("latest", "file", "global_step900", "global_step500", 500, "global_step500"),
        ("latest", "file", "900", "500", 500, "500"),
        ("latest_checkpointed_iteration.txt", "file", "900", "iter_0000500", 500, "500"),
        ("ckpts/last", "symlink", "step-9", "ckpts/step-5", 5, "step-5"),
        ("last.ckpt", "symlink", "epoch=4.ckpt", "epoch=3.ckpt", None, "epoch=3.ckpt"),
        ("last", "symlink", "/old/disk/checkpoint-9", "checkpoint-5", 5, "checkpoint-5"),
        ("run/last", "symlink", "../run/a9", "run/a5", 5, "a5"),
        # It names another one, and says something of its own.
        ("best.ckpt", "symlink", "epoch=4.ckpt", "epoch=3.ckpt", None, None),
        ("best", "file", "global_step900", "global_step500", 500, None),
        ("lastly", "file", "global_step900", "global_step500", 500, None),
        # It is no plain name.
        ("latest", "file", '{"step": 900}', "global_step500", 500, None),
        ("latest", "file", "two words", "global_step500", 500, None),
        ("latest", "file", "/old/disk/global_step900", "global_step500", 500, None),
        ("latest", "file", "", "global_step500", 500, None),
        ("latest_checkpointed_iteration.txt", "file", "release", "iter_0000500", 500, None),
        ("latest_checkpointed_iteration.txt", "file", "900", "iter_0000500", None, None),
        ("latest", "symlink", "../../etc", "checkpoint-5", 5, None),
        ("last", "symlink", "/old/disk/final", "checkpoint-5", 5, None),
        ("last", "symlink", "elsewhere/checkpoint-9", "checkpoint-5", 5, None),
        # TensorFlow's file lists only what is there.
        (
            "tf/checkpoint",
            "file",
            TENSORFLOW,
            "tf/ckpt-8",
            8,
            'model_checkpoint_path: "ckpt-8"\nall_model_checkpoint_paths: "ckpt-8"\n',
        ),
        ("checkpoint", "file", "just text", "ckpt-8", 8, None),
    ],
)
def test_pointers(
    path: str, kind: str, text: str, checkpoint: str, step: int | None, expected: str | None
) -> None:
    """Each row: a pointer as stored, what was restored, and what the pointer must say."""
    pointer = point_at(Pointer(path, kind, text), checkpoint, step)
    assert pointer == (None if expected is None else Pointer(path, kind, expected))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_link_to_one_of_several_files(rank: int) -> None:
    """A link to one rank's file is made to name the same rank's file."""
    old = Pointer(f"latest-rank{rank}.pt", "symlink", f"ep1-ba8-rank{rank}.pt")
    new = point_at(old, "ep2-ba16", 16, COMPOSER)
    assert new is not None
    assert new.text == COMPOSER[rank]


def test_a_link_that_cannot_be_told_is_left_out() -> None:
    """Where two files fit equally well none is guessed."""
    old = Pointer("latest.pt", "symlink", "ep1-ba8-rank7.pt")
    assert point_at(old, "ep2-ba16", 16, COMPOSER) is None


@pytest.mark.parametrize(
    ("link", "target", "inside"),
    [
        ("a", "b", True),
        ("a", "./b", True),
        ("a", ".", True),
        ("a/b/c", "../../d", True),
        ("a/b", "../c/d", True),
        ("a", "..", False),
        ("a/b", "../..", False),
        ("a", "/etc", False),
        ("a", "", False),
        ("a", "b/../..", False),
        ("a/b/c", "d/../../e", False),
        ("a", "b\0", False),
    ],
)
def test_links_that_stay_inside(link: str, target: str, inside: bool) -> None:  # noqa: FBT001
    """A target may climb at its front as far as the root, and nowhere else."""
    assert is_inside(link, target) is inside


@pytest.mark.parametrize(
    ("path", "text", "may"),
    [
        ("latest", "global_step5", True),
        ("last.ckpt", None, True),
        ("checkpoint", TENSORFLOW, True),
        ("train.py", "x", False),
        ("data", None, False),
        ("latest", "import this\n", False),
        ("checkpoint", "x", False),
    ],
)
def test_what_a_pointer_may_replace(path: str, text: str | None, may: bool) -> None:  # noqa: FBT001
    """Only another pointer of the same meaning is ever replaced."""
    assert may_replace(path, text) is may
