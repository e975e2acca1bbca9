"""Single files of every common suffix, groups of them, and directories named like a checkpoint."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: Suffixes of files that hold weights or optimizer state.
_SUFFIXES = (
    r"pt|pth|ckpt|safetensors|keras|h5|hdf5|npz|npy|gguf|ggml|bin|pkl|pickle|joblib|msgpack|nemo|"
    r"ubj|onnx|pdparams|pdopt|pdmodel|mlmodel|tflite|params|state|orbax|zarr|"
    r"(?:pt|pth|ckpt)\.tar|tar|zip"
)

#: Files of learners that write text: only names that say what they are.
_TEXTS = (
    r"(?i:.*(?:lgb|lightgbm|xgb|xgboost|booster).*\.(?:txt|json|model|bst))|"
    r"(?i:(?:.*[-_])?model[-_]?\d+\.(?:txt|json|model|bst|lgb))|.*\.(?:lgb|xgb|bst)|"
    r".*\.snapshot_iter_\d+"
)

#: A file that must not be empty in a checkpoint that counts. Not ``.distcp``: a rank that has
#: nothing of its own to save may leave an empty one (not measured).
DATA_FILE = rf".+\.(?:{_SUFFIXES})"

#: Names under which something is written that gets its final name by a rename.
TEMPORARY = (
    r"\.tmp[A-Za-z0-9_]{6}|.+\.tmp|.+\.tmp[0-9a-f]{32}|.+\.tempstate\d+|.+_temp|tmp-checkpoint-.*|"
    r"\..+\.[A-Za-z0-9]{6}|\.rsync-partial|\.~tmp~|.+\.part|.+\.partial|.+\.incomplete|"
    r"sed[A-Za-z0-9]{6}|.+\.[0-9a-f]{32}-\d+-\d+"
)

#: Names of what is no part of anything: locks, editors' and file systems' own, other tools' rooms.
IGNORED = (
    r".+\.lock|.+\.swp|.+\.swx|.+~|\.nfs[0-9a-f]+|#\d+|\.git|__pycache__|wandb|"
    r"\.ipynb_checkpoints|\.ckptsyncd|lost\+found|\.cache"
)

#: Files that a run appends to for as long as it lives.
STREAMS = r"events\.out\.tfevents\..*|.+\.log(?:\.\d+)?|.+\.csv|.+\.jsonl|.+\.tsv|.+\.out|.+\.err"

FILES = Layout(
    name="file",
    read_from="torch 2.13.0, safetensors 0.4.5 to 0.8.0, keras 3.15.1, gguf 0.19.0, "
    "xgboost 3.2.0, lightgbm 4.7.0, joblib 1.6.0",
    file=rf".+\.(?:{_SUFFIXES})|{_TEXTS}",
    pointers=r"latest|last|best|latest\.txt|latest_step|LATEST",
    streams=STREAMS,
    temporary=TEMPORARY,
    ignored=IGNORED,
)

DIRECTORY = Layout(
    name="directory",
    read_from="names seen in the wild",
    folder=r"(?i:(?:checkpoint|ckpt|step|iter|iteration|epoch|global_step|ep|batch)[-_=]?\d.*|"
    r"(?:checkpoint|ckpt)[-_](?:best|last|latest|final).*)",
)

#: The same with files that are named for ranks: somebody may be late.
RANKED = Layout(
    name="directory-ranks",
    read_from="names seen in the wild",
    folder=DIRECTORY.folder,
    signs=(r"(?is:.*(?:rank|shard|worker|node|world_size)[-_]?\d.*)",),
    ranked=True,
)

NUMBERED = Layout(
    name="directory",
    read_from="names seen in the wild",
    folder=r"\d+|(?i:.+[-_=.](?:checkpoint|ckpt|step|iter|epoch)[-_=]?\d+)",
    weak=True,
)

SHARDED = Layout(
    name="sharded",
    read_from="accelerate 1.15.0 save_model, transformers 5.24.0 save_pretrained",
    group=r"(?P<unit>.+?)(?:-\d{5}-of-\d{5}\.(?:safetensors|bin)|\.(?:safetensors|bin)\.index\.json)",
    signs=(r".+-\d{5}-of-\d{5}\.(?:safetensors|bin)|.+\.index\.json",),
    markers=(Marker(path=r".+\.index\.json"),),
)

SPLIT = Layout(
    name="split",
    read_from="gguf 0.19.0 split models, which have no index",
    group=r"(?P<unit>.+?)-\d{5}-of-\d{5}\.(?:gguf|pt|pth|h5|npz)",
)
