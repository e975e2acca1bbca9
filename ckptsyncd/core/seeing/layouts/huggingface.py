"""Hugging Face: the Trainer, Accelerate's save_state, and model directories."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: ``trainer_state.json`` comes last on rank 0; other ranks' random states have no barrier to it
#: (2 s later in one trace).
TRAINER = Layout(
    name="huggingface-trainer",
    read_from="transformers 5.24.0, one rank and two; DeepSpeed and FSDP inside by its source",
    folder=r"checkpoint-\d+",
    signs=(
        (
            r"trainer_state\.json|training_args\.bin|optimizer\.pt|scheduler\.pt|"
            r"rng_state(?:_\d+)?\.pth|global_step\d+/.+"
        ),
    ),
    markers=(Marker(path=r"trainer_state\.json", ranks=r"rng_state_\d+\.pth"),),
)

#: A copy of one under another name (``best``).
TRAINER_COPY = replace(
    TRAINER,
    folder="",
    signs=(r"trainer_state\.json", r"optimizer\.pt|scheduler\.pt|rng_state(?:_\d+)?\.pth"),
    claims="tree",
)

#: Also before its first telling file: a save that was killed after the weights must not pass.
TRAINER_YOUNG = replace(
    TRAINER,
    signs=(
        (
            r"(?:generation_)?config\.json|adapter_config\.json|optimizer\.bin|tokenizer.*|"
            r"(?:pytorch_)?(?:adapter_)?model(?:[-._].*)?\.(?:safetensors|bin|json)|"
            r"(?:pytorch_model_fsdp|optimizer)_\d+/.*"
        ),
    ),
)

ACCELERATE = Layout(
    name="accelerate",
    read_from="accelerate 1.15.0 save_state",
    signs=(
        (
            r"random_states_\d+\.pkl|scheduler(?:_\d+)?\.bin|sampler(?:_\d+)?\.bin|"
            r"custom_checkpoint_\d+\.pkl"
        ),
    ),
    claims="tree",
    ranked=True,
)

#: Also before its first telling file.
ACCELERATE_YOUNG = replace(
    ACCELERATE,
    folder=r"checkpoint_\d+",
    signs=(
        r"(?:pytorch_)?model[-._].*(?:safetensors|bin)|optimizer.*\.bin|pytorch_model_fsdp_\d+/.*",
    ),
    claims="",
)

#: A directory of save_pretrained; the index, where there are shards, is written after them.
MODEL = Layout(
    name="huggingface-model",
    read_from="transformers 5.24.0 save_pretrained and save_model",
    signs=(
        r"config\.json|adapter_config\.json",
        r"(?:pytorch_|adapter_)?model(?:[-.].*)?\.(?:safetensors|bin)",
    ),
    claims="flat",
    members=r"(?:generation_|adapter_|preprocessor_|processor_)?config\.json|training_args\.bin|"
    r"(?:pytorch_|adapter_)?model(?:[-.].*)?\.(?:safetensors|bin|json)|tokenizer.*|vocab.*|"
    r"merges\.txt|special_tokens_map\.json|added_tokens\.json|spiece\.model|chat_template.*",
    markers=(
        Marker(
            path=r".+\.index\.json",
            when=r".+-\d{5}-of-\d{5}\.(?:safetensors|bin)",
            over=r".+-\d{5}-of-\d{5}\.(?:safetensors|bin)",
            seals=False,
        ),
    ),
)
