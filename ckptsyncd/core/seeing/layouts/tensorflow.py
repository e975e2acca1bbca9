"""TensorFlow: checkpoints by prefix, and SavedModel."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: Data files are renamed into place, then the index is copied there.
TENSORFLOW = Layout(
    name="tensorflow",
    read_from="tensorflow-cpu 2.21.0 (CheckpointManager, asynchronous, in a Keras callback)",
    group=r"(?P<unit>.+)\.(?:index|data-\d{5}-of-\d{5}|meta)",
    signs=(r".+\.data-\d{5}-of-\d{5}",),
    markers=(Marker(path=r".+\.index", over=r".+\.data-\d{5}-of-\d{5}"),),
    pointers=r"checkpoint",
)

SAVED_MODEL = Layout(
    name="savedmodel",
    read_from="tensorflow-cpu 2.21.0",
    signs=(r"saved_model\.pb|fingerprint\.pb|variables/variables\.(?:index|data-.+)",),
    claims="tree",
    markers=(Marker(path=r"fingerprint\.pb"),),
)
