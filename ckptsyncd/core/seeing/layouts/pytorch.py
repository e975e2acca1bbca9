"""PyTorch's own writers and those built on them: distributed checkpoints, Lightning, Composer."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

_SHARD = r"__\d+_\d+\.distcp"

#: All ranks write shards, then rank 0 renames ``.metadata`` into place after a collective. The old
#: one stays while shards are truncated in a second save under the same name.
DISTRIBUTED = Layout(
    name="torch-distributed",
    read_from="torch 2.13.0 (sync, async by thread and by process, two ranks); torchtitan's step-N",
    signs=(_SHARD,),
    claims="tree",
    markers=(Marker(path=r"\.metadata"),),
)

#: The writer for Hugging Face tensors puts one file per rank and no mark at all.
DISTRIBUTED_TENSORS = Layout(
    name="torch-distributed-safetensors",
    read_from="torch 2.13.0 HuggingFaceStorageWriter",
    signs=(r"shard-\d+-.+\.safetensors",),
    claims="tree",
    ranked=True,
)

#: Sharded strategies make ``NAME.ckpt`` a directory and write ``meta.pt`` after ``.metadata``.
LIGHTNING_SHARDED = Layout(
    name="lightning-sharded",
    read_from="lightning 2.6.6, by its source",
    folder=r".+\.ckpt",
    signs=(rf"{_SHARD}|\.metadata",),
    markers=(Marker(path=r"meta\.pt"),),
)

LIGHTNING_DEEPSPEED = Layout(
    name="lightning-deepspeed",
    read_from="lightning 2.6.6, by its source",
    folder=r".+\.ckpt",
    signs=(r"checkpoint/.+_states\.pt",),
    ranked=True,
)

LIGHTNING = Layout(
    name="lightning",
    read_from="lightning 2.6.6 (temporary directory on the same and on another file system)",
    file=r"(?:.*(?:epoch|step)=.*|last(?:-v\d+)?|best(?:-v\d+)?)\.ckpt",
)

SNAPSHOT = Layout(
    name="torchsnapshot",
    read_from="torchsnapshot 0.1.0",
    signs=(r"\.snapshot_metadata|batched/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",),
    claims="tree",
    markers=(Marker(path=r"\.snapshot_metadata"),),
)

#: One file per rank, no mark.
COMPOSER = Layout(
    name="composer",
    read_from="mosaicml 0.32.1",
    group=r"(?P<unit>.+)-rank\d+\.pt",
    ranked=True,
    pointers=r"(?:latest|best)-rank\d+(?:\.pt)?(?:\.symlink)?",
)
