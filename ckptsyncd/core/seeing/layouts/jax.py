"""JAX: Orbax and Flax."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker

#: Orbax's own mark that a directory is whole.
STAMP_NAME = "commit_success.txt"

#: Written under a temporary name and renamed as a whole, so what has the final name is whole. Where
#: a listing found it, ``commit_success.txt`` says the same (as of 0.12; earlier: quiet).
ORBAX = Layout(
    name="orbax",
    read_from="orbax-checkpoint 0.12.8 (sync, async, without OCDBT); older names by its source",
    signs=(r"_CHECKPOINT_METADATA|_METADATA|manifest\.ocdbt|commit_success\.txt",),
    claims="tree",
    markers=(Marker(path=r"commit_success\.txt", when=r"commit_success\.txt"),),
    temporary=r".+\.orbax-checkpoint-tmp.*|.+orbax-checkpoint-tmp-\d+|checkpoint_tmp|"
    r".+\.__lock",
    ignored=r"\.todelete",
)
