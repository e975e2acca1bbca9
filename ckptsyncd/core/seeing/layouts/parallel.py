"""Model-parallel trainers: DeepSpeed, Megatron, NeMo."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: ``latest`` is written before other ranks have finished (5 of 6 saves): it marks nothing.
DEEPSPEED = Layout(
    name="deepspeed",
    read_from="deepspeed 0.19.8 (ZeRO 1 to 3, two ranks; one of them late)",
    signs=(r"(?:.*_)?mp_rank_\d+.*_states\.pt|layer_\d+-.*_states\.pt|expert_\d+_.*_states\.pt",),
    claims="tree",
    ranked=True,
    pointers=r"latest",
)

#: ``common.pt`` first, shards, ``.metadata``, and then ``metadata.json``.
MEGATRON_CORE = Layout(
    name="megatron-core",
    read_from="megatron-core 0.16.1 dist_checkpointing",
    signs=(r"common\.pt", r"__\d+_\d+\.distcp|\.metadata|metadata\.json"),
    claims="tree",
    markers=(Marker(path=r"metadata\.json"),),
    pointers=r"latest_checkpointed_iteration\.txt",
)

#: Only the tracker beside it tells that it is whole, and the tracker is no member.
MEGATRON = Layout(
    name="megatron",
    read_from="the documented layout before megatron-core's, written by a script",
    signs=(r"mp_rank_\d+(?:_\d+)*/(?:model_optim_rng|model_rng|distrib_optim|optim)\.pt",),
    claims="tree",
    ranked=True,
)

#: ``NAME-unfinished`` lies beside a checkpoint while it is written.
NEMO = Layout(
    name="nemo",
    read_from="NeMo's documentation of its unfinished markers",
    signs=(r"weights/(?:__\d+_\d+\.distcp|common\.pt|\.metadata)",),
    claims="tree",
    markers=(Marker(path=r"weights/metadata\.json", over=r"weights/.*", seals=False),),
    ranked=True,
    unfinished=r"(?P<unit>.+)-unfinished",
)

#: Copied in by every worker; two of them may write one path.
RAY = Layout(
    name="ray-train",
    read_from="ray 2.60.0, two workers",
    folder=r"checkpoint_(?:\d{6}|\d{4}-\d\d-\d\d_.+)",
    ranked=True,
    pointers=r"checkpoint_manager_snapshot\.json",
    ignored=r"\.validate_storage_marker",
    step=r"^checkpoint_(\d{6})$",
)
