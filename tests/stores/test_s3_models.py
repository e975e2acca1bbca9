"""What the SDK knows of S3 takes no more memory than is used of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from botocore.loaders import JSONFileLoader
from botocore.session import Session

from ckptsyncd.stores.s3.models import LeanFiles


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_only_explanations_are_left_out(tmp_path: Path, ending: str) -> None:
    """A text of that name is emptied at every level; a member that has the name stays."""
    inner = {"documentation": {"shape": "S"}, "b": [1, {"documentation": "y"}]}
    whole = {"documentation": "x", "members": inner}
    text = json.dumps(whole).encode()
    (tmp_path / f"a{ending}").write_bytes(text if ending == ".json" else gzip.compress(text))
    files = LeanFiles()
    assert files.exists(str(tmp_path / "a"))
    assert files.load_file(str(tmp_path / "a")) == {
        "documentation": "",
        "members": {"documentation": {"shape": "S"}, "b": [1, {"documentation": ""}]},
    }


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    """The SDK asks for files that need not exist."""
    assert not LeanFiles().exists(str(tmp_path / "a"))
    assert LeanFiles().load_file(str(tmp_path / "a")) is None
    assert JSONFileLoader().load_file(str(tmp_path / "a")) is None


def test_the_sdk_builds_the_same_client_of_it() -> None:
    """Operations, their members and the endpoints' rules are those of the SDK's own reader."""
    whole, lean = Session(), Session()
    lean.get_component("data_loader").file_loader = LeanFiles()
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "eu-west-1"}
    ours, theirs = lean.create_client("s3", **keys), whole.create_client("s3", **keys)
    assert ours.meta.endpoint_url == theirs.meta.endpoint_url
    model, other = ours.meta.service_model, theirs.meta.service_model
    assert list(model.operation_names) == list(other.operation_names)
    for name in ("PutObject", "UploadPart", "CompleteMultipartUpload", "ListObjectsV2"):
        members = model.operation_model(name).input_shape.members
        assert list(members) == list(other.operation_model(name).input_shape.members)
