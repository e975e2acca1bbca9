"""The pretended service is as strict as the real ones, and can be driven from another process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from ckptsyncd.sources.pretend.__main__ import main
from ckptsyncd.sources.pretend.admin import Admin
from ckptsyncd.sources.pretend.azure import NAME
from ckptsyncd.sources.wire import Answer, Wire
from tests.sources.bench import Bench

TOKEN = "/latest/api/token"  # noqa: S105 - a path
LIFE = "X-aws-ec2-metadata-token-ttl-seconds"
GOOGLE = {"Metadata-Flavor": "Google"}
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
AZURE = {"Metadata": "true"}


def ask(
    bench: Bench,
    path: str,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    body: bytes | None = None,
) -> Answer:
    """Return an answer that must come."""
    found = bench.wire().exchange(method, path, headers or {}, body=body)
    assert isinstance(found, Answer), found
    return found


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (TOKEN, {LIFE: "21600"}, 200),
        (TOKEN, {LIFE: "21601"}, 400),
        (TOKEN, {LIFE: "0"}, 400),
        (TOKEN, {LIFE: "long"}, 400),
        (TOKEN, {}, 400),
        (TOKEN, {LIFE: "60", "X-Forwarded-For": "10.0.0.1"}, 403),
        ("/2021-03-23/api/token", {LIFE: "60"}, 403),
    ],
)
def test_ec2s_tokens(bench: Bench, path: str, headers: dict[str, str], status: int) -> None:
    """Tokens are granted for a life of up to six hours, to nobody behind a proxy."""
    assert ask(bench, path, headers, "PUT").status == status


def test_ec2s_data(bench: Bench) -> None:
    """A bad token is refused even where none is required; folders list what is in them."""
    token = ask(bench, TOKEN, {LIFE: "60"}, "PUT").body.decode()
    header = {"X-aws-ec2-metadata-token": token}
    number = ask(bench, "/latest/meta-data/instance-id", header)
    assert number.headers[LIFE.lower()] == "60"
    assert number.headers["content-type"] == "text/plain"
    wrong = {"X-aws-ec2-metadata-token": "wrong"}
    assert ask(bench, "/latest/meta-data/instance-id", wrong).status == 401
    bench.wait(61.0)
    assert ask(bench, "/latest/meta-data/instance-id", header).status == 401
    assert b"placement/" in ask(bench, "/latest/meta-data/").body
    assert ask(bench, "/latest/meta-data/placement").body == b"availability-zone\nregion"
    identity = ask(bench, "/latest/dynamic/instance-identity/document").body
    assert json.loads(identity)["region"] == "us-east-1"
    missing = ask(bench, "/latest/meta-data/spot/instance-action")
    assert (missing.status, b"404 - Not Found" in missing.body) == (404, True)
    assert ask(bench, "/latest/meta-data/events/maintenance/scheduled").body == b"[]"
    assert ask(bench, "/elsewhere").status == 404


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("instance/preempted", {}, 403),
        ("instance/preempted", {"Metadata-Flavor": "Amazon"}, 404),
        ("instance/preempted", {**GOOGLE, "X-Forwarded-For": "10.0.0.1"}, 403),
        ("instance/preempted", GOOGLE, 200),
        ("instance/preempted?wait_for_change=true&timeout_sec=soon", GOOGLE, 400),
        ("instance/scheduling", GOOGLE, 301),
        ("instance/shutdown-details/stop-state", GOOGLE, 404),
    ],
)
def test_googles_data(bench: Bench, path: str, headers: dict[str, str], status: int) -> None:
    """The flavour is demanded and given, and folders want their slash."""
    answer = ask(bench, f"/computeMetadata/v1/{path}", headers)
    assert answer.status == status
    if headers == GOOGLE:
        assert answer.headers["metadata-flavor"] == "Google"


def test_googles_folders(bench: Bench) -> None:
    """Folders are listed, or given as a tree with names in camel case."""
    root = "/computeMetadata/v1/instance/"
    assert b"scheduling/" in ask(bench, root, GOOGLE).body.splitlines()
    tree = json.loads(ask(bench, root + "?recursive=true", GOOGLE).body)
    assert tree["maintenanceEvent"] == "NONE"
    assert tree["scheduling"]["onHostMaintenance"] == "TERMINATE"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (EVENTS, AZURE, 200),
        (EVENTS, {}, 400),
        (EVENTS, {"Metadata": "true", "X-Forwarded-For": "10.0.0.1"}, 400),
        ("/metadata/scheduledevents", AZURE, 400),
        ("/metadata/scheduledevents?api-version=1999-01-01", AZURE, 400),
        (EVENTS + "&api-version=2020-07-01", AZURE, 400),
        ("/metadata/instance/compute/location?api-version=2021-02-01", AZURE, 400),
        ("/metadata/instance/compute/location?api-version=2021-02-01&format=text", AZURE, 200),
        ("/metadata/nothing?api-version=2020-07-01", AZURE, 404),
    ],
)
def test_azures_data(bench: Bench, path: str, headers: dict[str, str], status: int) -> None:
    """The header and the version are demanded, and a leaf has only one format."""
    assert ask(bench, path, headers).status == status


def test_azures_approval(bench: Bench) -> None:
    """An approved event starts, once, under the same id, with an empty NotBefore."""
    bench.cloud.azure.schedule("Preempt", 30.0, "e1")
    body = json.dumps({"StartRequests": [{"EventId": "e1"}]}).encode()
    for _ in range(2):
        assert ask(bench, EVENTS, AZURE, "POST", body).status == 200
    document = json.loads(ask(bench, EVENTS, AZURE).body)
    assert document["DocumentIncarnation"] == 3
    (event,) = document["Events"]
    assert (event["EventStatus"], event["NotBefore"]) == ("Started", "")
    assert event["Resources"] == [NAME]
    assert ask(bench, EVENTS, AZURE, "POST", b"{").status == 400
    assert ask(bench, EVENTS, AZURE, "POST", body.replace(b"e1", b"e2")).status == 400


def test_oracles_data(bench: Bench) -> None:
    """Oracle wants its bearer."""
    assert ask(bench, "/opc/v2/instance/").status == 403
    assert ask(bench, "/opc/v2/instance/", {"Authorization": "Bearer Oracle"}).status == 200


def order(admin: str, who: str, what: str, arguments: Mapping[str, object]) -> Answer:
    """Send one order to the admin's port."""
    body = json.dumps({"who": who, "do": what, "with": arguments}).encode()
    with closing(Wire(admin, read_seconds=10.0)) as wire:
        found = wire.exchange("POST", "/", {"Content-Type": "application/json"}, body=body)
    assert isinstance(found, Answer), found
    return found


def test_the_admin(bench: Bench) -> None:
    """Another process can move time, announce events, set fields and inject faults."""
    with closing(Admin(bench.cloud)) as admin:
        before = bench.scene.now()
        assert order(admin.url, "scene", "advance", {"seconds": 5}).status == 200
        assert bench.scene.now() == before + 5
        answer = order(admin.url, "aws", "interrupt", {"action": "stop"})
        assert json.loads(answer.body)["answer"].endswith("Z")
        assert order(admin.url, "aws", "tokens", {"value": "required"}).status == 200
        assert bench.cloud.aws.tokens == "required"
        fault = {"kind": "status", "route": "/latest/*", "count": 1, "argument": "500"}
        assert order(admin.url, "faults", "inject", fault).status == 200
        assert ask(bench, "/latest/meta-data/instance-id").status == 500
        for who, what in (("os", "system"), ("aws", "_grant"), ("aws", "missing")):
            assert order(admin.url, who, what, {}).status == 400


def test_it_is_installed_under_its_name() -> None:
    """The package brings it as a program of its own."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    target = re.search(r'(?m)^ckptsyncd-fake-metadata = "([a-z._]+):main"$', text)
    assert target is not None
    assert import_module(target[1]).main is main


def test_the_program() -> None:
    """Run as a program it says where it listens, serves, takes orders, and ends when told."""
    with subprocess.Popen(
        [sys.executable, "-m", "ckptsyncd.sources.pretend"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    ) as program:
        assert program.stdout is not None
        said = "".join(program.stdout.readline() for _ in range(5))
        found = dict(re.findall(r"(\S+)[ =](http://\S+)", said))
        order(found["admin"], "gcp", "preempt", {})
        with closing(Wire(found["Azure"], read_seconds=10.0)) as wire:
            answer = wire.exchange("GET", "/computeMetadata/v1/instance/preempted", GOOGLE)
        program.send_signal(signal.SIGTERM)
        assert program.wait(10.0) == 0
    assert isinstance(answer, Answer)
    assert answer.body == b"TRUE"
