"""A URL names one store or is refused with what to write instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ckptsyncd.errors import UsageError
from ckptsyncd.stores.open import Destination, open_store, parse_url
from ckptsyncd.stores.volume.store import VolumeStore


@pytest.mark.parametrize(
    ("url", "bucket", "path"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://My_bucket.name/a b/c=1", "My_bucket.name", "a b/c=1"),
        ("s3://bucket/runs/llama/", "bucket", "runs/llama"),
        ("file:///mnt/durable", "", "/mnt/durable"),
        ("file:///mnt//durable/", "", "/mnt/durable"),
        ("file://localhost/mnt/x y", "", "/mnt/x y"),
        ("file:///mnt/ü", "", "/mnt/ü"),
        ("file:///mnt/user@host/x", "", "/mnt/user@host/x"),
    ],
)
def test_right_urls_are_understood(url: str, bucket: str, path: str) -> None:
    """Bucket and prefix, or the directory, are what the URL says, without slashes at the ends."""
    assert parse_url(url) == Destination("s3" if bucket else "file", bucket, path)


@pytest.mark.parametrize(
    ("url", "says", "hint"),
    [
        ("", "empty", "s3://bucket/prefix"),
        ("  ", "empty", "file:///"),
        (" s3://bucket", "spaces", "s3://"),
        ("s3://bucket/a\nb", "control", "s3://"),
        ("/mnt/durable", "no scheme", "file:///mnt/durable"),
        ("./durable", "no scheme", "file:///absolute/path/to/durable"),
        ("durable", "no scheme", "file:///absolute/path/to/durable"),
        ("ftp://host/x", "unknown scheme 'ftp'", "s3://bucket/prefix"),
        ("memory:", "unknown scheme 'memory'", "s3://bucket/prefix"),
        ("S3://bucket", "unknown scheme 'S3'", "s3://bucket/prefix"),
        ("s3:bucket", "no bucket", "s3://bucket/prefix"),
        ("s3:/bucket/x", "no bucket", "s3://bucket/prefix"),
        ("s3://", "no bucket", "s3://bucket/prefix"),
        ("s3:///prefix", "no bucket", "s3://bucket/prefix"),
        ("s3://b ucket/x", "no possible bucket", "s3://bucket/prefix"),
        ("s3://bucket:9000/x", "no possible bucket", "s3://bucket/prefix"),
        ("s3://bucket/a//b", "component", "s3://"),
        ("s3://bucket/../b", "component", "s3://"),
        ("s3://bucket/x?region=eu", "query", "flags"),
        ("s3://bucket/x#1", "query or fragment", "flags"),
        ("s3://bucket/a%20b", "percent", "as they are"),
        ("file://", "no directory", "file:///"),
        ("file:///", "no directory", "file:///"),
        ("file:durable", "not absolute", "three slashes"),
        ("file://durable", "the host 'durable'", "file:///absolute/path/to/durable"),
        ("file://server/share/x", "the host 'server'", "of this machine"),
        ("file://./durable", "the host '.'", "file:///absolute/path/to/"),
        ("file:///mnt/../etc", "component", "file:///"),
        ("file:///mnt/x?y", "query", "flags"),
        ("C:\\ckpt", "Windows", "file:///"),
        ("file:///C:/ckpt", "Windows", "file:///"),
        ("file:///mnt\\x", "Windows", "file:///"),
        ("s3://[bad/x", "cannot be read", "s3://"),
    ],
)
def test_wrong_urls_are_refused_with_the_right_form(url: str, says: str, hint: str) -> None:
    """Every wrong form names what is wrong, and its hint can be copied."""
    with pytest.raises(UsageError, match=says) as caught:
        open_store(url)
    assert hint in caught.value.hint


def test_a_secret_in_a_url_is_not_repeated() -> None:
    """Credentials in a URL are refused without showing them, whatever else is wrong with it."""
    for url in ("s3://AKIA:hunter2@bucket/x?y", "http://user:hunter2@host/x"):
        with pytest.raises(UsageError, match="credentials") as caught:
            open_store(url)
        assert "hunter2" not in str(caught.value) + caught.value.hint


def test_a_file_url_opens_a_volume_and_touches_nothing(tmp_path: Path) -> None:
    """Opening makes no directory: only the first write does."""
    store = open_store(f"file://{tmp_path}/durable")
    assert isinstance(store, VolumeStore)
    assert store.describe() == f"file://{tmp_path}/durable: not tried out yet"
    assert list(tmp_path.iterdir()) == []


def test_no_sdk_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    """A daemon that stores on a volume never loads an SDK, and neither does a wrong URL."""
    program = (
        "import sys\n"
        "from ckptsyncd.stores.open import open_store\n"
        f"open_store('file://{tmp_path}/x')\n"
        "sdks = ('boto', 'google', 'azure')\n"
        "print(sorted(name for name in sys.modules if name.startswith(sdks)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_a_missing_sdk_is_a_matter_of_installing_it(tmp_path: Path) -> None:
    """Where what boto3 stands on cannot be imported, the error says what to install."""
    program = (
        "import sys\n"
        "sys.modules['botocore'] = None\n"
        "from ckptsyncd.errors import UsageError\n"
        "from ckptsyncd.stores.open import open_store\n"
        "try:\n"
        "    open_store('s3://bucket')\n"
        "except UsageError as error:\n"
        "    print(error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60,
        cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout == "pip install 'ckptsyncd[s3]'\n"


def test_an_unknown_profile_is_a_matter_of_usage(s3_environment: None) -> None:
    """A profile that does not exist is said at once, not at the first upload."""
    del s3_environment
    from ckptsyncd.stores.s3.options import S3Options  # noqa: PLC0415

    with pytest.raises(UsageError, match="nobody-has-this"):
        open_store("s3://bucket", s3=S3Options(profile="nobody-has-this"))
    with pytest.raises(UsageError, match="no S3 client"):
        open_store("s3://bucket", s3=S3Options(endpoint_url="not a url"))
