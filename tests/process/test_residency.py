"""The rules about where bytes may lie, kept by the real program against a server with regions."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import trainer_checkpoint
from tests.proxy import Proxy, Rule, proxied

ELSEWHERE = (
    b'<?xml version="1.0" encoding="UTF-8"?>'
    b'<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">eu-west-9'
    b"</LocationConstraint>"
)


@pytest.fixture
def canadian(moto_server: servers.S3Server) -> Iterator[tuple[Proxy, str, list[str]]]:
    """Run a proxy before a server with a bucket in Canada; return it, a URL and the flags."""
    name = f"canadian-{uuid.uuid4().hex[:8]}"
    s3 = servers.client(moto_server.endpoint)
    where = {"LocationConstraint": "ca-central-1"}
    s3.create_bucket(Bucket=name, CreateBucketConfiguration=where)
    with in_front_of(moto_server.endpoint) as (proxy, endpoint):
        yield proxy, f"s3://{name}/run", ["--s3-endpoint", endpoint]


@contextmanager
def in_front_of(endpoint: str) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy and return it with its endpoint."""
    parts = urlsplit(endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as proxy:
        yield proxy, f"http://127.0.0.1:{proxy.server.server_address[1]}"


def written(proxy: Proxy) -> list[str]:
    """Return the requests that could have brought a byte of ours there."""
    return [f"{r.method} {r.target}" for r in proxy.requests if r.method in ("PUT", "POST")]


def answer(body: bytes) -> bytes:
    """Return an answer with this body."""
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def test_an_allowed_region(
    root: Path, program: Start, canadian: tuple[Proxy, str, list[str]]
) -> None:
    """With its region allowed the bucket is used as ever."""
    _, url, flags = canadian
    trainer_checkpoint(root, 10)
    daemon = program(root, url, *flags, "--allowed-regions", "ca-central-1").start()
    daemon.until_safe("checkpoint-10")


@pytest.mark.parametrize("verb", ["run", "sync"])
def test_another_region_ends_it_before_the_first_byte(
    root: Path, tmp_path: Path, canadian: tuple[Proxy, str, list[str]], verb: str
) -> None:
    """Code 7, the reason names bucket and rule, and no byte was sent."""
    proxy, url, flags = canadian
    trainer_checkpoint(root, 10)
    state = ["--state-dir", str(tmp_path / "state"), "--socket", str(tmp_path / "s")]
    done = command(verb, str(root), url, *flags, *state, "--allowed-regions", "eu-central-1")
    assert done.returncode == 7, done.stderr
    assert "it lies in ca-central-1" in done.stderr
    assert written(proxy) == []


def test_reading_commands_keep_the_rules(
    tmp_path: Path, canadian: tuple[Proxy, str, list[str]]
) -> None:
    """A restore from a bucket that is not allowed ends with code 7 as well."""
    _, url, flags = canadian
    rule = ["--country", "CA"]  # a server of one's own may call its place what it likes
    for arguments in (["list", url], ["restore", url, str(tmp_path / "here")], ["verify", url]):
        done = command(*arguments, *flags, *rule)
        assert done.returncode == 7, (arguments, done.stderr)
    assert not (tmp_path / "here").exists()


def test_the_region_is_asked_again_after_a_lost_connection(
    root: Path, program: Start, canadian: tuple[Proxy, str, list[str]]
) -> None:
    """Where another bucket answers after that, the daemon ends with code 7."""
    proxy, url, flags = canadian
    trainer_checkpoint(root, 10)
    daemon = program(root, url, *flags, "--allowed-regions", "ca-central-1").start()
    daemon.until_safe("checkpoint-10")
    before = len(proxy.requests)
    with proxy.lock:
        proxy.rules.append(Rule("GET", re.compile(r"\?location"), 9, "answer", answer(ELSEWHERE)))
        proxy.rules.append(Rule("PUT", re.compile(r"claims/"), 1, "refuse"))
    trainer_checkpoint(root, 20)
    until(daemon.ended, lambda: f"it ends\n{daemon.log[-2000:]}")
    assert daemon.wait() == 7
    assert "eu-west-9" in daemon.log
    puts = [one.target for one in proxy.requests[before:] if one.method == "PUT"]
    assert not [target for target in puts if "checkpoint-20/" in target]


def test_a_store_that_is_down_at_the_start_is_asked_later(
    root: Path, program: Start, canadian: tuple[Proxy, str, list[str]]
) -> None:
    """The daemon starts all the same, and sends nothing before it knows."""
    proxy, url, flags = canadian
    rule = Rule("GET", re.compile(r"\?location"), 3, "refuse")
    with proxy.lock:
        proxy.rules.append(rule)
    trainer_checkpoint(root, 10)
    daemon = program(root, url, *flags, "--allowed-regions", "ca-central-1").start()
    daemon.until_safe("checkpoint-10")
    first = next(n for n, r in enumerate(proxy.requests) if "?location" in r.target)
    assert not [r for r in proxy.requests[:first] if r.method in ("PUT", "POST")]
    assert rule.times == 0
