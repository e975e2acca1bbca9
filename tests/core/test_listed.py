"""What the indexes in one machine's share say of it: files of others, and files of nobody."""

from __future__ import annotations

from ckptsyncd.core.facts import FileLook
from ckptsyncd.core.seeing.layouts.pytorch import DISTRIBUTED, LIGHTNING_SHARDED
from ckptsyncd.core.seeing.listed import Named, named
from ckptsyncd.core.seeing.view import MemberView
from tests.core.parts import fact


def member(rel: str, *lists: str) -> MemberView:
    """Return a file below ``step-5`` that names these beside it."""
    it = fact(f"step-5/{rel}")
    return MemberView(rel=rel, fact=it, look=FileLook(it, lists=lists))


def test_an_index_names_files_of_other_machines() -> None:
    """All that it names is told, what of that is not here, and which data here it leaves out."""
    found = named(
        DISTRIBUTED,
        "step-5",
        (
            member("model/.metadata", "__0_0.distcp", "__1_0.distcp"),
            member("model/__0_0.distcp"),
            member("rng_state_0.pth"),
            member("config.json"),
        ),
    )
    assert found == Named(
        ("step-5/model/__0_0.distcp", "step-5/model/__1_0.distcp"),
        ("step-5/model/__1_0.distcp",),
        ("step-5/rng_state_0.pth",),
    )


def test_a_mark_is_not_left_out() -> None:
    """What a framework writes last has data in it, and no other machine has one like it."""
    members = (member(".metadata", "__0_0.distcp"), member("meta.pt"), member("__0_0.distcp"))
    assert named(LIGHTNING_SHARDED, "a.ckpt", members).loose == ()


def test_where_nothing_names_files_all_data_is_left_out() -> None:
    """Shards of a framework without an index belong to nobody knows how many machines."""
    assert named(DISTRIBUTED, ".", (member("mp_rank_00.pt"),)) == Named((), (), ("mp_rank_00.pt",))
