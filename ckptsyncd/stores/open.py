"""From a URL to the store it names. The only place that knows what URLs look like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import UsageError
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.volume.store import VolumeStore

FORMS = "s3://bucket/prefix or file:///absolute/path"

#: Wider than AWS's own rule: other servers allow capitals and underscores.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_WINDOWS = re.compile(r"(file:/*)?[A-Za-z]:[\\/]|.*\\")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class Destination:
    """What a URL says: a bucket and a prefix in it, or (``file``) a directory and no bucket."""

    scheme: Literal["s3", "file"]
    bucket: str
    path: str


def parse_url(url: str) -> Destination:
    """Return what the URL says; UsageError, with the right form as its hint, where it is wrong.

    Names are taken as they stand, so ``file://$PWD/durable`` works where ``$PWD`` has spaces in
    it; a name that looks percent-encoded is refused, since either reading might be meant.
    """
    before, _, host = url.partition("://")[2].partition("/")[0].rpartition("@")
    if before:
        hint = "give credentials as the AWS SDK finds them, the endpoint as an option"
        without = f"...@{host}"
        raise _wrong(without, "has credentials in it", hint)
    if not url.strip():
        raise _wrong(url, "is empty")
    if url != url.strip() or any(ord(char) < 32 or ord(char) == 127 for char in url):  # noqa: PLR2004
        raise _wrong(url, "has spaces around it or control characters in it")
    if _WINDOWS.match(url):
        raise _wrong(url, "is a Windows path; ckptsyncd runs on Linux")
    scheme, colon, _ = url.partition(":")
    if not colon or "/" in scheme:
        raise _wrong(url, "has no scheme", f"write file://{_absolute(url)} for a directory")
    if scheme not in ("s3", "file"):
        raise _wrong(url, f"has an unknown scheme {scheme!r}")
    parts = _split(url)
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise _wrong(url, "has a query or fragment", "options are flags, not part of the URL")
    if _ESCAPED.search(url):
        raise _wrong(url, "is percent-encoded", "write names as they are")
    return _bucket(url, parts) if scheme == "s3" else _directory(url, parts)


def open_store(url: str, *, s3: S3Options | None = None) -> Store:
    """Return the store that the URL names; nothing is asked of it yet.

    Raises UsageError for a wrong URL, an unknown profile, or where boto3 is not installed.
    """
    destination = parse_url(url)
    if destination.scheme == "file":
        return VolumeStore(destination.path)
    try:
        from ckptsyncd.stores.s3.store import S3Store  # noqa: PLC0415 - only where it is used
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("boto3", "botocore"):
            raise
        msg = f"{url} needs boto3, which is not installed"
        raise UsageError(msg, hint="pip install 'ckptsyncd[s3]'") from error
    return S3Store(destination.bucket, destination.path, s3)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _wrong(url, f"cannot be read: {error}") from None


def _bucket(url: str, parts: SplitResult) -> Destination:
    if not url.startswith("s3://") or not parts.netloc:
        raise _wrong(url, "names no bucket", "write s3://bucket/prefix")
    if not _BUCKET.fullmatch(parts.netloc):
        raise _wrong(url, f"names no possible bucket: {parts.netloc!r}", "write s3://bucket/prefix")
    prefix = parts.path.strip("/")
    if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
        raise _wrong(url, "has an empty, '.' or '..' component in its prefix")
    return Destination("s3", parts.netloc, prefix)


def _directory(url: str, parts: SplitResult) -> Destination:
    if not url.startswith("file://"):
        raise _wrong(url, "is not absolute", "write file:///absolute/path, with three slashes")
    if parts.netloc not in ("", "localhost"):
        hint = (
            f"write file://{_absolute(parts.netloc + parts.path)} for a directory of this machine"
        )
        raise _wrong(url, f"names the host {parts.netloc!r}", hint)
    names = [name for name in parts.path.split("/") if name]
    if not names:
        raise _wrong(url, "names no directory")
    if any(name in (".", "..") for name in names):
        raise _wrong(url, "has a '.' or '..' component")
    return Destination("file", "", "/" + "/".join(names))


def _absolute(path: str) -> str:
    return path if path.startswith("/") else "/absolute/path/to/" + path.removeprefix("./")


def _wrong(url: str, why: str, hint: str = f"write {FORMS}") -> UsageError:
    return UsageError(f"the destination {url!r:.200} {why}", hint=hint)
