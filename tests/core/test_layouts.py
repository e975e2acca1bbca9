"""Where every path belongs: units, series, steps, pointers, companions and temporary names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.messages import Polled
from ckptsyncd.core.seeing.layouts import BUILT_IN, Layout, step_of
from ckptsyncd.core.seeing.tree import Tree, is_below, root_of
from tests.core.stage import Stage, save

#: Paths of one disk, the checkpoint that each belongs to, and the kind where it is in none.
PLACES = [
    # Single files.
    ("model.pt", "model.pt"),
    ("runs/a/weights/epoch=3-step=1200.ckpt", "runs/a/weights/epoch=3-step=1200.ckpt"),
    ("ckpt.pt", "ckpt.pt"),
    ("x.weights.h5", "x.weights.h5"),
    ("net.pth.tar", "net.pth.tar"),
    ("rl_model_1000_steps.zip", "rl_model_1000_steps.zip"),
    ("xgb_model_7.json", "xgb_model_7.json"),
    ("LightGBM_model.txt.snapshot_iter_100", "LightGBM_model.txt.snapshot_iter_100"),
    ("checkpoint_500", "checkpoint_500"),
    ("run with spaces/épo\udcffque.ckpt", "run with spaces/épo\udcffque.ckpt"),
    # Directories named like a checkpoint; everything below belongs to the outermost.
    ("checkpoint-500/model.safetensors", "checkpoint-500"),
    ("runs/a/checkpoint-500/global_step500/mp_rank_00_model_states.pt", "runs/a/checkpoint-500"),
    ("checkpoint-500/latest", "checkpoint-500"),
    ("step-10/.metadata", "step-10"),
    ("step_10/sub/deep/x", "step_10"),
    ("iter_0000100/mp_rank_00/model_optim_rng.pt", "iter_0000100"),
    ("global_step7/zero_pp_rank_0_mp_rank_00_optim_states.pt", "global_step7"),
    ("epoch_1/batched/290a5db6-7d1c-4d9c-93e1-8c08e3b75ae0", "epoch_1"),
    ("checkpoint_2026-11-27_10-11-12.345678/model.pt", "checkpoint_2026-11-27_10-11-12.345678"),
    ("lightning/epoch=1-step=20.ckpt/checkpoint/x.pt", "lightning/epoch=1-step=20.ckpt"),
    ("orbax/1000/default/d/abc", "orbax/1000"),
    ("checkpoint-best/model.bin", "checkpoint-best"),
    # Groups by prefix.
    ("tf/ckpt-1.index", "tf/ckpt-1"),
    ("tf/ckpt-1.data-00000-of-00001", "tf/ckpt-1"),
    ("out/model-00001-of-00004.safetensors", "out/model"),
    ("out/model.safetensors.index.json", "out/model"),
    ("split-00002-of-00003.gguf", "split"),
    ("sharded_00000.weights.h5", "sharded"),
    ("sharded.weights.json", "sharded"),
    ("ep1-ba8-rank0.pt", "ep1-ba8"),
    # Pointers.
    ("latest", "pointer"),
    ("tf/checkpoint", "pointer"),
    ("latest_checkpointed_iteration.txt", "pointer"),
    ("latest-rank0.pt", "pointer"),
    ("checkpoint_manager_snapshot.json", "pointer"),
    # Companions.
    ("config.yaml", "companion"),
    ("trainer_state.json", "companion"),
    ("zero_to_fp32.py", "companion"),
    ("lightning_logs/version_0/hparams.yaml", "companion"),
    ("checkpoint-500/events.out.tfevents.123.host", "companion"),
    ("step_10/train.log", "companion"),
    ("history.csv", "companion"),
    # Temporary names, which never count.
    (".tmpEohdvR", "temporary"),
    ("checkpoint-5/.tmpNMgTDw", "temporary"),
    ("step-10/.metadata.tmp", "temporary"),
    ("ckpt-1_temp/part-00000-of-00001.index", "temporary"),
    ("ckpt-1_temp/part-00000-of-00001.data-00000-of-00001.tempstate15166388", "temporary"),
    ("checkpoint.tmp32aa1e3898aa42d2b59620ee9b5f12d3", "temporary"),
    ("ck1.orbax-checkpoint-tmp/_METADATA", "temporary"),
    ("1000.orbax-checkpoint-tmp-1700000000000/default/d/x", "temporary"),
    ("tmp-checkpoint-500/model.safetensors", "temporary"),
    ("checkpoint-7/.model.safetensors.ASDNW7", "temporary"),
    ("checkpoint-7/.rsync-partial/model.safetensors", "temporary"),
    ("big.pt.part", "temporary"),
    ("sedkfMkHd", "temporary"),
    (".nfs000000000123", "ignored"),
    ("model.pkl.0123456789abcdef0123456789abcdef-12-34", "temporary"),
    ("x/.todelete/5/_METADATA", "ignored"),
    ("d/manifest.ocdbt.__lock", "temporary"),
    (".git/objects/ab/cdef.pt", "ignored"),
]


@pytest.mark.parametrize(("path", "expected"), PLACES, ids=[repr(p) for p, _ in PLACES])
def test_places(path: str, expected: str) -> None:
    """A path alone tells where it belongs."""
    place = Tree(BUILT_IN).place(path)
    assert (place.unit if place.kind == "member" else place.kind) == expected


COMPONENTS = st.one_of(
    st.sampled_from([path.rpartition("/")[2] for path, _ in PLACES]),
    st.sampled_from(["checkpoint-5", "step_1", "42", "epoch=1.ckpt", "x.orbax-checkpoint-tmp"]),
    st.text(st.characters(blacklist_characters="/\0"), min_size=1, max_size=12),
).filter(lambda text: text not in (".", ".."))


@given(paths=st.lists(st.lists(COMPONENTS, min_size=1, max_size=4).map("/".join), max_size=12))
def test_places_of_anything(paths: list[str]) -> None:
    """A member lies in its checkpoint, and what is below a temporary name is in none."""
    tree = Tree(BUILT_IN)
    for path in paths:
        tree.place(path)
        tree.place(path, is_folder=True)
    for path in paths:
        place = tree.place(path)
        root, folder = root_of(place.unit), path.rpartition("/")[0]
        if place.kind == "member":
            assert is_below(path, root) or root.rpartition("/")[0] == folder
        else:
            assert place.unit == "" or place.kind in ("temporary", "ignored")
        if any(".orbax-checkpoint-tmp" in part for part in path.split("/")):
            assert place.kind in ("temporary", "ignored")


STEPS = [
    ("checkpoint-500", 500),
    ("runs/7/epoch=3-step=1200.ckpt", 1200),
    ("epoch=3-step=1200-v1.ckpt", 1200),
    ("global_step7", 7),
    ("iter_0000100", 100),
    ("ckpt-12", 12),
    ("model.ckpt-100", 100),
    ("epoch=3.ckpt", 3),
    ("eepoch=0-val_loss=5.00.ckpt", 0),
    ("epoch_1", 1),
    ("step-10", 10),
    ("1000", 1000),
    ("ckpt_0.pt", 0),
    ("s2.pt", 2),
    ("1.keras", 1),
    ("w-03.weights.h5", 3),
    ("m-01-15202.68.keras", 1),
    ("ep1-ba8", 8),
    ("rl_model_1000_steps.zip", 1000),
    ("model_000003.pt", 3),
    ("checkpoint_2026-11-27_10-11-12.345678", None),
    ("last.ckpt", None),
    ("best.pt", None),
    ("model.safetensors", None),
    ("val_loss=0.25.ckpt", None),
    ("split", None),
    (".", None),
]


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_steps(name: str, step: int | None) -> None:
    """The number in a name is its step, and a loss or a date is none."""
    assert step_of(name) == step


def test_a_run_directory_of_digits_is_no_checkpoint() -> None:
    """A directory called 42 is one checkpoint until checkpoints turn up inside it."""
    stage = Stage()
    stage.run(1)
    stage.make("42")
    stage.write("42/config.bin")
    stage.run(1)
    stage.make("42/checkpoint-5")
    stage.write("42/checkpoint-5/trainer_state.json")
    stage.run(10)
    assert stage.evidence() == {"42/checkpoint-5": "marker", "42/config.bin": "quiet"}


def test_single_files_with_steps_make_a_run_of_a_number() -> None:
    """Files named by epoch inside a directory called 42 are checkpoints, the directory is not."""
    tree = Tree(BUILT_IN)
    assert tree.place("42/epoch=3.ckpt").unit == "42/epoch=3.ckpt"
    assert tree.place("1000/model_step_1000.pt").unit == "1000"


def test_several_runs_under_one_root() -> None:
    """Each path is judged by itself: different frameworks side by side, each in its series."""
    stage = Stage()
    stage.run(1)
    for folder in ("a", "b", "b/c"):
        stage.make(folder)
    stage.make("a/checkpoint-5")
    stage.write("a/checkpoint-5/optimizer.pt")
    stage.write("a/checkpoint-5/trainer_state.json")
    stage.make("b/step-7")
    stage.write("b/step-7/__0_0.distcp")
    stage.write("b/step-7/.metadata")
    stage.write("b/c/epoch=1.ckpt")
    stage.run(1)
    settled = {s.checkpoint: (s.series, s.step, s.layout) for s in stage.settled()}
    assert settled == {
        "a/checkpoint-5": ("a", 5, "huggingface-trainer"),
        "b/step-7": ("b", 7, "torch-distributed"),
        "b/c/epoch=1.ckpt": ("b/c", 1, "lightning"),
    }


def test_a_users_layout_comes_first() -> None:
    """A layout that a user wrote wins over every built-in one, with its own marker."""
    mine = Layout(
        name="mine",
        read_from="a user",
        folder=r"snap-\d+",
        markers=(Stage().layouts[0].markers[0].__class__(path="DONE"),),
        temporary=r"scratch-.*",
    )
    stage = Stage(layouts=(mine, *BUILT_IN))
    stage.run(1)
    stage.make("snap-3")
    stage.write("snap-3/weights.pt")
    stage.write("snap-3/scratch-1.pt")
    stage.run(60)
    assert stage.settled() == []
    stage.write("snap-3/DONE")
    stage.run(1)
    (settled,) = stage.settled()
    assert (settled.layout, settled.evidence, settled.step) == ("mine", "marker", 3)
    assert [f.path for f in settled.listing.files] == ["snap-3/DONE", "snap-3/weights.pt"]


def test_excluded_names_never_count() -> None:
    """What a user excludes is neither a member nor a checkpoint nor a companion."""
    stage = Stage(exclude=("*.bak", "scratch", "runs/old/*"))
    stage.run(1)
    for path in ("a.pt.bak", "scratch/b.pt", "runs/old/c.pt", "d.pt", "x.bak"):
        stage.write(path)
    stage.run(30)
    assert set(stage.evidence()) == {"d.pt"}
    assert stage.companions() == []


#: A framework's files, in an order, and what they make of a directory with a free name.
CLAIMED = [
    (["__0_0.distcp", ".metadata"], ("mine", "torch-distributed", "marker")),
    (["0/optim/a", "batched/290a5db6-7d1c-4d9c-93e1-8c08e3b75ae0", ".snapshot_metadata"],
     ("mine", "torchsnapshot", "marker")),
    (["common.pt", "__0_0.distcp", ".metadata", "metadata.json"],
     ("mine", "megatron-core", "marker")),
    (["variables/variables.data-00000-of-00001", "variables/variables.index",
      "saved_model.pb", "fingerprint.pb"], ("mine", "savedmodel", "marker")),
    (["latest.weights.h5", "training_metadata.json"], ("mine", "keras-backup", "marker")),
    (["model.safetensors", "optimizer.bin", "scheduler.bin", "random_states_0.pkl"],
     ("mine", "accelerate", "quiet")),
    (["mp_rank_00_model_states.pt"], ("mine", "deepspeed", "quiet")),
    (["mp_rank_00/model_optim_rng.pt"], ("mine", "megatron", "quiet")),
    (["config.json", "model.safetensors", "training_args.bin"],
     ("mine", "huggingface-model", "quiet")),
    (["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
      "model.safetensors.index.json"], ("mine", "huggingface-model", "quiet")),
    (["shard-00001-model-00001-of-00001.safetensors"],
     ("mine", "torch-distributed-safetensors", "quiet")),
    (["optimizer.pt", "rng_state.pth", "trainer_state.json"],
     ("mine", "huggingface-trainer", "marker")),
    (["weights/common.pt", "weights/__0_0.distcp", "weights/.metadata", "weights/metadata.json",
      "context/model.yaml"], ("mine", "nemo", "quiet")),
]  # fmt: skip


#: Files in a directory whose name tells that it is a checkpoint, and what they make of it.
NAMED = [
    ("checkpoint-5", ["model.safetensors"], "huggingface-trainer", "no trainer_state.json"),
    ("checkpoint-5", ["unet/w.bin", "optimizer.bin", "scheduler.bin"], "accelerate", "quiet"),
    ("checkpoint_0", ["model.safetensors"], "accelerate", "quiet"),
    ("checkpoint_000012", ["model.pt"], "ray-train", "quiet"),
    ("global_step100", ["actor/model_world_size_8_rank_0.pt"], "directory-ranks", "quiet"),
    ("step_5", ["model.pt", "optimizer.pt"], "directory", "quiet"),
    ("epoch=1.ckpt", ["__0_0.distcp", ".metadata"], "lightning-sharded", "no meta.pt"),
    ("epoch=1.ckpt", ["__0_0.distcp", ".metadata", "meta.pt"], "lightning-sharded", "marker"),
    ("epoch=1.ckpt", ["checkpoint/x_states.pt"], "lightning-deepspeed", "quiet"),
    ("1000", ["default/x", "_CHECKPOINT_METADATA", "commit_success.txt"], "orbax", "marker"),
    ("1000", ["w.pt"], "directory", "quiet"),
]


@pytest.mark.parametrize(("name", "files", "layout", "expected"), NAMED)
def test_layouts_inside_named_directories(
    name: str, files: list[str], layout: str, expected: str
) -> None:
    """What is inside tells whose checkpoint it is, and so what it waits for."""
    stage = Stage()
    stage.run(1)
    stage.make(name)
    for rel in files:
        stage.write(f"{name}/{rel}")
        stage.run(0.01)
    stage.run(40)
    views = {view.checkpoint: (view.layout, view.reason) for view in stage.eyes.views()}
    views |= {s.checkpoint: (s.layout, s.evidence) for s in stage.settled()}
    assert views[name][0] == layout
    assert views[name][1].startswith(expected)


@pytest.mark.parametrize(("files", "expected"), CLAIMED, ids=[e[1] for _, e in CLAIMED])
def test_directories_by_their_signs(files: list[str], expected: tuple[str, str, str]) -> None:
    """A directory of any name is known by what is written into it, as one checkpoint."""
    stage = Stage()
    stage.run(1)
    stage.make("mine")
    for rel in files:
        stage.open(f"mine/{rel}", 100)
        stage.run(0.02)
        stage.close(f"mine/{rel}")
    stage.run(40)
    (settled,) = stage.settled()
    assert (settled.checkpoint, settled.layout, settled.evidence) == expected
    assert len(settled.listing.files) == len(files)
    assert stage.removed() == []


@pytest.mark.parametrize(("files", "expected"), CLAIMED, ids=[e[1] for _, e in CLAIMED])
def test_the_watch_root_itself_can_be_a_checkpoint(
    files: list[str], expected: tuple[str, str, str]
) -> None:
    """Somebody who watches a single checkpoint's directory gets it, under the name of a dot."""
    stage = Stage()
    stage.run(1)
    for rel in files:
        stage.write(rel)
    stage.run(40)
    (settled,) = stage.settled()
    assert (settled.checkpoint, settled.series) == (".", ".")
    assert (settled.layout, settled.evidence) == expected[1:]
    assert len(settled.listing.files) == len(files)


HF_COPY = (
    *("config.json", "generation_config.json", "model.safetensors", "training_args.bin"),
    *("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"),
)


def test_a_copy_of_a_trainer_checkpoint_is_one_whatever_its_name() -> None:
    """Its first files look like a model alone; the rest of it makes all of it one checkpoint."""
    stage = Stage()
    stage.run(1)
    stage.make("best")
    for rel in HF_COPY:
        stage.write(f"best/{rel}")
        stage.run(0.02)
    stage.write("best/notes.txt")
    stage.write("best/trainer_state.json")
    stage.run(10)
    (settled,) = stage.settled()
    assert (settled.checkpoint, settled.evidence) == ("best", "marker")
    assert len(settled.listing.files) == len(HF_COPY) + 1


@pytest.mark.parametrize("has_events", [True, False])
def test_a_trainer_checkpoint_is_one_under_a_name_that_says_nothing(*, has_events: bool) -> None:
    """Listed in the order of names it looks like a model alone at first, too."""
    stage = Stage(has_events=has_events)
    stage.hear(Polled("", "asked for"))
    stage.run(1)
    save(stage, "checkpoint-5", *HF_COPY)
    stage.run(10)
    stage.rename("checkpoint-5", "mine")
    stage.run(10)
    assert {s.checkpoint: len(s.listing.files) for s in stage.settled()} == {
        "checkpoint-5": len(HF_COPY),
        "mine": len(HF_COPY),
    }
    assert stage.companions() == []
