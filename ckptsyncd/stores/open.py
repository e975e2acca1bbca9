"""From a URL to the store it names. The only place that knows what URLs look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import UsageError
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.s3.options import S3Options

FORMS = (
    "s3://bucket/prefix, gs://bucket/prefix, az://account/container/prefix or file:///absolute/path"
)

#: Wider than AWS's own rule: other servers allow capitals and underscores.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
#: Google's own rule; a bucket that is named for a domain may have dots.
_GCS_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
#: Azure's own rules.
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_WINDOWS = re.compile(r"(file:/*)?[A-Za-z]:[\\/]|.*\\")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")


Scheme = Literal["s3", "gs", "az", "file"]


@dataclass(frozen=True, slots=True)
class Destination:
    """What a URL says: a bucket and a prefix in it, or (``file``) a directory and no bucket.

    For ``az`` the bucket is a container, and the account has it.
    """

    scheme: Scheme
    bucket: str
    path: str
    account: str = ""


def parse_url(url: str) -> Destination:
    """Return what the URL says; UsageError, with the right form as its hint, where it is wrong.

    Names are taken as they stand, so ``file://$PWD/durable`` works where ``$PWD`` has spaces in
    it; a name that looks percent-encoded is refused, since either reading might be meant.
    """
    before, _, host = url.partition("://")[2].partition("/")[0].rpartition("@")
    if before:
        hint = "give credentials as the store's SDK finds them, the endpoint as an option"
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
    if scheme not in _READERS:
        raise _wrong(url, f"has an unknown scheme {scheme!r}")
    parts = _split(url)
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise _wrong(url, "has a query or fragment", "options are flags, not part of the URL")
    if _ESCAPED.search(url):
        raise _wrong(url, "is percent-encoded", "write names as they are")
    return _READERS[scheme](url, parts)


def open_store(
    url: str,
    *,
    s3: S3Options | None = None,
    gcs: GcsOptions | None = None,
    azure: AzureOptions | None = None,
) -> Store:
    """Return the store that the URL names, with the options of its kind; nothing is asked yet.

    Raises UsageError for a wrong URL, for credentials that cannot be used, or where the store's
    SDK is not installed.
    """
    to = parse_url(url)
    if to.scheme == "file":
        from ckptsyncd.stores.volume.store import VolumeStore  # noqa: PLC0415 - only where used

        return VolumeStore(to.path)
    with _sdk(url, to.scheme):
        if to.scheme == "gs":
            from ckptsyncd.stores.gcs.store import GcsStore  # noqa: PLC0415 - only where used

            return GcsStore(to.bucket, to.path, gcs)
        if to.scheme == "az":
            from ckptsyncd.stores.azure.store import AzureStore  # noqa: PLC0415 - only where used

            return AzureStore(to.account, to.bucket, to.path, azure)
        from ckptsyncd.stores.s3.store import S3Store  # noqa: PLC0415 - only where it is used

        return S3Store(to.bucket, to.path, s3)


#: What each SDK is called, the extra that brings it, and the packages that are it.
_SDKS = {
    "s3": ("boto3", "s3", ("botocore",)),
    "gs": ("google-cloud-storage", "gcs", ("google", "requests")),
    "az": ("azure-storage-blob", "azure", ("azure", "requests")),
}


@contextmanager
def _sdk(url: str, scheme: str) -> Iterator[None]:
    """Tell that an SDK is missing, and how to install it; every other error passes through."""
    name, extra, packages = _SDKS[scheme]
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        msg = f"{url} needs {name}, which is not installed"
        raise UsageError(msg, hint=f"pip install 'ckptsyncd[{extra}]'") from error


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _wrong(url, f"cannot be read: {error}") from None


def _s3(url: str, parts: SplitResult) -> Destination:
    form = "write s3://bucket/prefix"
    return Destination("s3", _host(url, parts, _BUCKET, "bucket", form), _prefix(url, parts.path))


def _gs(url: str, parts: SplitResult) -> Destination:
    form = "write gs://bucket/prefix"
    bucket = _host(url, parts, _GCS_BUCKET, "bucket", form)
    return Destination("gs", bucket, _prefix(url, parts.path))


def _az(url: str, parts: SplitResult) -> Destination:
    form = "write az://account/container/prefix"
    account = _host(url, parts, _ACCOUNT, "account", form)
    container, _, prefix = parts.path.strip("/").partition("/")
    if not container:
        raise _wrong(url, "names no container", form)
    if not _CONTAINER.fullmatch(container):
        raise _wrong(url, f"names no possible container: {container!r}", form)
    return Destination("az", container, _prefix(url, prefix), account)


def _host(url: str, parts: SplitResult, rule: re.Pattern[str], what: str, form: str) -> str:
    if "://" not in url or not parts.netloc:
        raise _wrong(url, f"names no {what}", form)
    if not rule.fullmatch(parts.netloc):
        raise _wrong(url, f"names no possible {what}: {parts.netloc!r}", form)
    return parts.netloc


def _prefix(url: str, path: str) -> str:
    prefix = path.strip("/")
    if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
        raise _wrong(url, "has an empty, '.' or '..' component in its prefix")
    return prefix


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


_READERS: dict[str, Callable[[str, SplitResult], Destination]] = {
    "s3": _s3,
    "gs": _gs,
    "az": _az,
    "file": _directory,
}
