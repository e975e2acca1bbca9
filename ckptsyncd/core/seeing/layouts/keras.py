"""Keras 3. Single files (``.keras``, ``.weights.h5``) are in ``files``."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: The index is written anew after each shard, so it only rules out, and quiet decides.
KERAS_SHARDED = Layout(
    name="keras-sharded",
    read_from="keras 3.15.1 (torch and tensorflow)",
    group=r"(?P<unit>.+?)(?:_\d{5}\.weights\.h5|\.weights\.json)",
    signs=(r".+_\d{5}\.weights\.h5",),
    markers=(Marker(path=r".+\.weights\.json", seals=False),),
)

KERAS_BACKUP = Layout(
    name="keras-backup",
    read_from="keras 3.15.1 BackupAndRestore",
    signs=(r"latest\.weights\.h5", r"training_metadata\.json"),
    claims="flat",
    members=r"latest\.weights\.h5|training_metadata\.json",
    markers=(Marker(path=r"training_metadata\.json"),),
)
