"""The store's side of the preflight against real servers, with each failure made for real."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from time import time
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.check.asked import check, save
from tests.proxy import Proxy, Rule, proxied


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with a checkpoint."""
    save(tmp_path / "run")
    return tmp_path / "run"


@contextmanager
def in_front_of(server: servers.S3Server) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy and return it with its endpoint."""
    parts = urlsplit(server.endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as proxy:
        yield proxy, f"http://127.0.0.1:{proxy.server.server_address[1]}"


def at(server: servers.S3Server, endpoint: str = "") -> tuple[str, str, str]:
    """Return an empty place in the bucket, and the flags that lead there."""
    url = f"s3://{server.bucket}/{uuid.uuid4().hex}"
    return url, "--s3-endpoint", endpoint or server.endpoint


def keys(server: servers.S3Server, url: str) -> list[str]:
    """Return what lies below a URL."""
    s3 = servers.client(server.endpoint)
    prefix = urlsplit(url).path.lstrip("/")
    listed = s3.list_objects_v2(Bucket=server.bucket, Prefix=prefix)
    return [str(row["Key"]) for row in listed.get("Contents", ())]


def forbidden(method: str, target: str, times: int = 1000) -> Rule:
    """Answer 403 in the store's stead."""
    body = b"<Error><Code>AccessDenied</Code><Message>no right to do that</Message></Error>"
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    empty = method == "HEAD"
    return Rule(method, re.compile(target), times, "answer", head + (b"" if empty else body))


def test_a_store_that_does_everything(root: Path, s3_server: servers.S3Server) -> None:
    """Against a complete server every line about the store is well, and nothing is left in it."""
    url, *flags = at(s3_server)
    found = check(root, url, *flags, seconds=0.5)
    assert found.code == 0
    store = ("store", "credentials", "checksums", "conditions", "write", "read", "overwrite")
    for subject in (*store, "list", "delete", "clock", "upload rate", "fits the notice"):
        assert found.level(subject) == "ok", found.text(subject)
    assert keys(s3_server, url) == []


def test_no_server(root: Path) -> None:
    """A port where nobody listens is the store's failure, code 5, and nothing more is tried."""
    (port,) = servers.free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    found = check(root, "s3://bucket/run", "--s3-endpoint", endpoint, env=servers.ENVIRONMENT)
    assert (found.code, found.level("store")) == (5, "fail")
    assert "write" not in found.rows
    assert not {"region", "lifecycle", "clock"} & set(found.rows)  # it is told once


def test_something_that_speaks_no_s3(root: Path, moto_server: servers.S3Server) -> None:
    """Answers that are no XML are the store's failure, not a traceback."""
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{not: any xml}"
    with in_front_of(moto_server) as (proxy, endpoint):
        proxy.rules.append(Rule("GET", re.compile("."), 99, "answer", page))
        url, *flags = at(moto_server, endpoint)
        found = check(root, url, *flags)
        ruled = check(root, url, *flags, "--allowed-regions", "ca-central-1")
    assert (found.code, found.level("store")) == (5, "fail")
    assert (ruled.code, ruled.level("region")) == (5, "fail")
    assert "nothing that speaks S3 answers there" in ruled.text("region")


def test_a_bucket_that_no_server_can_have(root: Path, s3_server: servers.S3Server) -> None:
    """A name that the server refuses is told as a wrong URL, not as wrong credentials."""
    found = check(root, "s3://b1/run", "--s3-endpoint", s3_server.endpoint)
    assert (found.code, found.level("store")) == (5, "fail")
    assert "make the bucket, or correct the URL" in found.text("store")


def test_a_bucket_that_is_missing(root: Path, moto_server: servers.S3Server) -> None:
    """It is never made; the hint says so."""
    found = check(root, "s3://nowhere/run", "--s3-endpoint", moto_server.endpoint)
    assert (found.code, found.level("store")) == (5, "fail")
    assert "make the bucket, or correct the URL" in found.text("store")


def test_wrong_credentials(root: Path, s3_server: servers.S3Server) -> None:
    """A wrong secret is refused, with what to do."""
    url, *flags = at(s3_server)
    found = check(root, url, *flags, env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert (found.code, found.level("store")) == (5, "fail")
    assert "credentials" in found.text("store")


def test_credentials_that_end_soon(root: Path, moto_server: servers.S3Server) -> None:
    """An end that the environment names is told where it is near."""
    url, *flags = at(moto_server)
    end = {"AWS_CREDENTIAL_EXPIRATION": "2099-01-01T00:00:00Z", "AWS_SESSION_TOKEN": "t"}
    assert "2099-01-01 00:00 UTC" in check(root, url, *flags, env=end).text("credentials")
    soon = end | {"AWS_CREDENTIAL_EXPIRATION": formatdate(time() + 3600)}
    assert check(root, url, *flags, env=soon).level("credentials") == "warn"


PROCESS = """#!/bin/sh
echo '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c",
"Expiration": "2001-01-01T00:00:00Z"}'
exit %d
"""


@pytest.mark.parametrize(
    ("status", "code", "says"), [(0, 5, "renew the credentials"), (1, 2, "run by hand what gives")]
)
def test_a_process_that_gives_no_good_credentials(
    root: Path, tmp_path: Path, moto_server: servers.S3Server, status: int, code: int, says: str
) -> None:
    """Credentials that ended already, or a process that fails, are told with what to do."""
    process = tmp_path / "credentials.sh"
    process.write_text(PROCESS % status)
    process.chmod(0o755)
    config = tmp_path / "aws"
    config.write_text(f"[profile made]\ncredential_process = {process}\n")
    keyless = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    url, *flags = at(moto_server)
    found = check(
        root, url, *flags, "--s3-profile", "made", env=keyless | {"AWS_CONFIG_FILE": str(config)}
    )
    assert (found.code, found.level("store")) == (code, "fail")
    assert says in found.text("store")


def test_a_missing_sdk(root: Path, tmp_path: Path) -> None:
    """Without the SDK the line says how to install it, and the code is that of settings."""
    hidden = tmp_path / "hidden" / "botocore"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError(name='botocore')\n")
    found = check(root, "s3://bucket/run", env={"PYTHONPATH": str(hidden.parent)})
    assert (found.code, found.level("store")) == (2, "fail")
    assert "pip install 'ckptsyncd[s3]'" in found.text("store")


def test_a_role_that_may_not_delete(root: Path, s3_server: servers.S3Server) -> None:
    """Uploads need no right to delete: a warning that says what does."""
    with in_front_of(s3_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("DELETE", r"probe/check-"))
        url, *flags = at(s3_server, endpoint)
        found = check(root, url, *flags)
    assert (found.code, found.level("delete")) == (0, "warn")
    assert "prune and cleaning up need it" in found.text("delete")
    assert "what the trial wrote stays below .ckptsyncd/probe/" in found.text("delete")


def test_a_role_that_may_not_prune(root: Path, s3_server: servers.S3Server) -> None:
    """Where the settings prune, deleting is tried beside the trial's own place as well."""
    with in_front_of(s3_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("DELETE", r"/[0-9a-f]{32}/(?!\.ckptsyncd/probe/)"))
        url, *flags = at(s3_server, endpoint)
        calm = check(root, url, *flags)
        found = check(root, url, *flags, "--keep-last", "3")
    assert "prune" not in calm.rows
    assert (found.code, found.level("delete"), found.level("prune")) == (0, "ok", "warn")
    assert "allow deleting below the whole prefix" in found.text("prune")
    url, *flags = at(s3_server)
    assert check(root, url, *flags, "--keep-last", "3").level("prune") == "ok"
    assert keys(s3_server, url) == []


def test_a_role_that_may_not_read(root: Path, s3_server: servers.S3Server) -> None:
    """The step that reads fails with the right that it wants; no other step is blamed for it."""
    with in_front_of(s3_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("HEAD", r"probe/check-"))
        url, *flags = at(s3_server, endpoint)
        found = check(root, url, *flags)
    assert (found.code, found.level("read"), found.level("delete")) == (5, "fail", "ok")
    assert "allow reading below the whole prefix" in found.text("read")
    assert keys(s3_server, url) == []


def test_a_role_that_may_not_list(root: Path, s3_server: servers.S3Server) -> None:
    """The daemon lists at its start, so a refused list fails."""
    with in_front_of(s3_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("GET", r"list-type=2"))
        url, *flags = at(s3_server, endpoint)
        found = check(root, url, *flags)
    assert (found.code, found.level("list")) == (5, "fail")


def test_a_role_that_may_not_write(root: Path, s3_server: servers.S3Server) -> None:
    """A refused write is the first thing that fails, and the last that is tried."""
    with in_front_of(s3_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("PUT", r"probe/"))
        url, *flags = at(s3_server, endpoint)
        found = check(root, url, *flags, seconds=0.2)
    assert (found.code, found.level("store")) == (5, "fail")
    assert not {"write", "upload rate"} & set(found.rows)


def test_a_store_that_checks_nothing(root: Path, moto_server: servers.S3Server) -> None:
    """A server that takes wrong checksums is told to be read back, and what that costs."""
    url, *flags = at(moto_server)
    found = check(root, url, *flags)
    assert found.level("checksums") == "warn"
    assert "read back" in found.text("checksums")


def test_a_clock_that_is_off(root: Path, moto_server: servers.S3Server) -> None:
    """The server's Date an hour away from ours fails: stores refuse such signatures."""
    with in_front_of(moto_server) as (proxy, endpoint):
        date = formatdate(time() - 3600, usegmt=True)
        head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n".encode()
        proxy.rules.append(Rule("HEAD", re.compile(rf"/{moto_server.bucket}$"), 9, "answer", head))
        url, *flags = at(moto_server, endpoint)
        found = check(root, url, *flags)
    assert (found.code, found.level("clock")) == (5, "fail")
    assert re.search(r"(59 min|1 h).* ahead", found.text("clock"))


@pytest.fixture
def ruled(moto_server: servers.S3Server) -> Iterator[servers.S3Server]:
    """Return a server whose bucket has no rule when the test is over."""
    yield moto_server
    servers.client(moto_server.endpoint).delete_bucket_lifecycle(Bucket=moto_server.bucket)


def rule(server: servers.S3Server, **parts: object) -> None:
    """Give the bucket one rule."""
    row = {"ID": "by-age", "Status": "Enabled", **parts}
    servers.client(server.endpoint).put_bucket_lifecycle_configuration(
        Bucket=server.bucket, LifecycleConfiguration={"Rules": [row]}
    )


def test_a_bucket_without_rules(root: Path, ruled: servers.S3Server) -> None:
    """Nothing ends what a lost machine had begun: a warning with the rule to add."""
    url, *flags = at(ruled)
    found = check(root, url, *flags)
    assert found.level("lifecycle") == "warn"
    assert "AbortIncompleteMultipartUpload" in found.text("lifecycle")


def test_a_rule_that_removes_checkpoints(root: Path, ruled: servers.S3Server) -> None:
    """An expiration that covers our prefix fails with the rule's name and days."""
    rule(ruled, Filter={"Prefix": ""}, Expiration={"Days": 30})
    url, *flags = at(ruled)
    found = check(root, url, *flags)
    assert (found.code, found.level("lifecycle")) == (7, "fail")
    assert "'by-age' removes checkpoints after 30 days" in found.text("lifecycle")


def test_a_rule_as_it_should_be(root: Path, ruled: servers.S3Server) -> None:
    """One that only ends unfinished uploads is what is asked for."""
    abort = {"DaysAfterInitiation": 7}
    rule(ruled, Filter={"Prefix": ""}, AbortIncompleteMultipartUpload=abort)
    url, *flags = at(ruled)
    assert check(root, url, *flags).level("lifecycle") == "ok"


def test_rules_that_may_not_be_read(root: Path, moto_server: servers.S3Server) -> None:
    """What cannot be seen is said to be unseen."""
    with in_front_of(moto_server) as (proxy, endpoint):
        proxy.rules.append(forbidden("GET", r"\?lifecycle"))
        url, *flags = at(moto_server, endpoint)
        found = check(root, url, *flags)
    assert (found.code, found.level("lifecycle")) == (0, "warn")


@pytest.fixture
def canadian(moto_server: servers.S3Server) -> Iterator[servers.S3Server]:
    """Return a server with a bucket in another region."""
    s3 = servers.client(moto_server.endpoint)
    where = {"LocationConstraint": "ca-central-1"}
    s3.create_bucket(Bucket="canadian", CreateBucketConfiguration=where)
    yield servers.S3Server("moto", moto_server.endpoint, "canadian")
    s3.delete_bucket(Bucket="canadian")


def test_a_region_that_is_allowed(root: Path, canadian: servers.S3Server) -> None:
    """The bucket's own region is asked for, and named."""
    url, *flags = at(canadian)
    found = check(root, url, *flags, "--allowed-regions", "ca-central-1")
    assert (found.code, found.level("region")) == (0, "ok")
    assert "ca-central-1" in found.text("region")


def test_a_region_that_is_not_allowed(root: Path, canadian: servers.S3Server) -> None:
    """Code 7, and not one byte is written."""
    with in_front_of(canadian) as (proxy, endpoint):
        url, *flags = at(canadian, endpoint)
        found = check(root, url, *flags, "--allowed-regions", "eu-central-1", seconds=0.2)
        written = [one for one in proxy.requests if one.method in ("PUT", "POST")]
    assert (found.code, found.level("region")) == (7, "fail")
    assert written == []
    assert {"store", "write", "upload rate"}.isdisjoint(found.rows)


def test_a_country_says_nothing_about_a_server_of_ones_own(
    root: Path, canadian: servers.S3Server
) -> None:
    """Elsewhere than at AWS a region is any word: it must be allowed by name."""
    url, *flags = at(canadian)
    found = check(root, url, *flags, "--country", "CA")
    assert (found.code, found.level("region")) == (7, "fail")
    both = check(root, url, *flags, "--country", "CA", "--allowed-regions", "ca-central-1")
    assert both.level("region") == "ok"


def test_a_volume_is_allowed_by_name(root: Path, tmp_path: Path) -> None:
    """Nobody knows where a volume lies but who mounted it."""
    url = f"file://{tmp_path}/durable"
    assert check(root, url, "--country", "CA").code == 7
    assert not (tmp_path / "durable").exists()
    assert check(root, url, "--country", "CA", "--allowed-regions", "file").code == 0


def test_secrets_are_not_shown(root: Path, s3_server: servers.S3Server) -> None:
    """No line holds the secret key."""
    url, *flags = at(s3_server)
    found = check(root, url, *flags)
    assert servers.SECRET_KEY not in json.dumps(list(found.rows.values()))
