"""Four real daemons, four disks, one checkpoint: killed, stopped, cut off, replaced."""

from __future__ import annotations

import json
import pickle
import shutil
import signal
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests import servers
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import by_rename, content
from tests.proxy import Proxy
from tests.servers import S3Server, client

pytestmark = pytest.mark.server

NODES = 4
QUICK = ("--quiet-seconds", "1", "--ranks-quiet-seconds", "1", "--incomplete-seconds", "2s")


@pytest.fixture
def crew(tmp_path: Path, program: Start, s3_server: S3Server, prefix: str, proxy: Proxy) -> Crew:
    """Make four programs, each with a watch root; the last one speaks through a proxy."""
    return Crew(tmp_path, program, s3_server, prefix, proxy)


class Crew:
    """The daemons of four nodes, by number."""

    def __init__(
        self, base: Path, program: Start, server: S3Server, prefix: str, proxy: Proxy
    ) -> None:
        """Start nothing yet."""
        self.base, self.program, self.server, self.prefix = base, program, server, prefix
        self.reach = ("--s3-endpoint", server.endpoint, "--s3-path-style")
        self.by_proxy = ("--s3-endpoint", proxy.endpoint, "--s3-path-style")
        self.proxy = proxy
        self.daemons = [self.make(node, f"root-{node}") for node in range(NODES)]

    def make(self, node: int, name: str) -> Program:
        """Make the program of one node for a watch root of this name."""
        root = self.base / name
        root.mkdir()
        reach = self.by_proxy if node == NODES - 1 else self.reach
        options = (*reach, *QUICK, "--node", str(node), "--nodes", str(NODES))
        return self.program(root, self.prefix, *options)

    def save(self, step: int, *daemons: Program) -> None:
        """Let each node's trainer write its share of a checkpoint, and a file that all have."""
        for daemon in daemons or self.daemons:
            node = daemon.options[daemon.options.index("--node") + 1]
            folder = daemon.root / f"checkpoint-{step}"
            folder.mkdir()
            (folder / f"shard-{node}.bin").write_bytes(f"{step} {node} ".encode() * 50_000)
            (folder / "config.json").write_text(json.dumps({"step": step}))

    def manifests(self) -> list[str]:
        """Return the names of all manifests, asked without the program."""
        folder = self.prefix.partition(f"{self.server.bucket}/")[2]
        found = client(self.server.endpoint).list_objects_v2(
            Bucket=self.server.bucket, Prefix=f"{folder}/.ckptsyncd/manifests/"
        )
        return sorted(row["Key"].rpartition("/")[2] for row in found.get("Contents", []))

    def reason(self, node: int, step: int) -> str:
        """Return what status says of a checkpoint."""
        return reason_of(self.daemons[node], f"checkpoint-{step}")

    def until_safe(self, step: int, *daemons: Program) -> None:
        """Wait until a checkpoint is safe for each of them."""
        for daemon in daemons or self.daemons:
            daemon.until_safe(f"checkpoint-{step}")


def test_one_killed_one_stopped_one_cut_off(crew: Crew, tmp_path: Path) -> None:
    """Nothing is committed while shares are missing, status says whose; late ones complete it."""
    for daemon in crew.daemons:
        daemon.start()
    crew.save(10)
    crew.until_safe(10)
    first, killed, stopped, _ = crew.daemons
    killed.kill()
    stopped.signal(signal.SIGSTOP)
    cut = crew.proxy.rule("refuse", "*", r"", times=10**9)
    crew.save(20)
    missing = "incomplete: waiting for nodes 1, 2, 3"
    until(lambda: crew.reason(0, 20) == missing, lambda: f"it says so: {first.status()}")
    assert crew.manifests() == ["checkpoint-10.1.json"]
    killed.start()
    stopped.signal(signal.SIGCONT)
    cut.times = 0
    crew.until_safe(20)
    assert crew.manifests() == ["checkpoint-10.1.json", "checkpoint-20.1.json"]
    back = command("restore", crew.prefix, str(tmp_path / "back"), *crew.reach)
    assert back.returncode == 0, back.stderr
    expected: dict[str, str] = {}
    for daemon in crew.daemons:
        expected |= {name: data for name, data in content(daemon.root).items() if "20/" in name}
    assert content(tmp_path / "back") == expected
    assert command("verify", crew.prefix, "--level", "full", *crew.reach).returncode == 0


def test_a_machine_that_was_replaced_changes_nothing_any_more(crew: Crew) -> None:
    """A daemon that wakes up after its replacement committed is fenced; latest stays as it was."""
    for daemon in crew.daemons:
        daemon.start()
    crew.save(10)
    crew.until_safe(10)
    old = crew.daemons[1]
    old.signal(signal.SIGSTOP)
    heir = crew.daemons[1] = crew.make(1, "heir")
    shutil.copytree(old.root / "checkpoint-10", heir.root / "checkpoint-10")
    heir.start()
    crew.save(20)
    crew.until_safe(20)
    old.signal(signal.SIGCONT)
    crew.save(15, old)
    until(lambda: state_of(old) == "fenced", lambda: f"it is fenced: {old.log[-2000:]}")
    assert crew.manifests() == ["checkpoint-10.1.json", "checkpoint-20.1.json"]
    listed = command("list", crew.prefix, "--json", *crew.reach)
    assert json.loads(listed.stdout)[0]["checkpoint"] == "checkpoint-20"
    assert state_of(heir) == "running"


def test_the_same_name_with_other_content_is_refused(crew: Crew) -> None:
    """Two nodes that wrote one file differently are both named, and nothing is committed."""
    for daemon in crew.daemons:
        daemon.start()
    for number, daemon in enumerate(crew.daemons):
        crew.save(10, daemon)
        (daemon.root / "checkpoint-10/config.json").write_text(f'{{"node": {number // 2}}}')
    told = "refused: nodes 0 and 2 have other content in checkpoint-10/config.json"
    until(
        lambda: any(crew.reason(node, 10) == told for node in range(NODES)),
        lambda: f"it is refused: {[crew.reason(node, 10) for node in range(NODES)]}",
    )
    assert crew.manifests() == []


def test_machines_that_nobody_counted_go_by_the_index(
    tmp_path: Path, program: Start, s3_server: S3Server, prefix: str
) -> None:
    """A distributed checkpoint is safe when all shards are stored that ``.metadata`` names.

    Shards that nothing names are never committed, and status says what to set.
    """
    reach = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    roots = [tmp_path / "first", tmp_path / "second"]
    shards = [b"first " * 50_000, b"second " * 50_000]
    for node, root in enumerate(roots):
        (root / "step-10").mkdir(parents=True)
        (root / "step-10" / f"__{node}_0.distcp").write_bytes(shards[node])
        (root / "checkpoint-20").mkdir()
        (root / "checkpoint-20" / f"mp_rank_{node:02d}.bin").write_bytes(shards[node])
    (roots[0] / "step-10/.metadata").write_bytes(pickle.dumps(["__0_0.distcp", "__1_0.distcp"]))
    first, second = (
        program(root, prefix, *reach, *QUICK, "--node", str(node))
        for node, root in enumerate(roots)
    )
    first.start()
    missing = "incomplete: step-10/__1_0.distcp is missing, which an index of node 0 names"
    until(lambda: reason_of(first, "step-10") == missing, lambda: f"{first.status()}")
    assert command("restore", prefix, str(tmp_path / "early"), *reach).returncode == 3
    second.start()
    first.until_safe("step-10")
    second.until_safe("step-10")
    told = (
        "incomplete: no index tells which files there are beside those of nodes 0, 1: "
        "tell how many nodes there are (--nodes)"
    )
    for daemon in (first, second):
        until(
            partial(says, daemon, "checkpoint-20", told),
            lambda: f"{first.status()} {second.status()}",
        )
    back = command("restore", prefix, str(tmp_path / "back"), *reach)
    assert back.returncode == 0, back.stderr
    expected = content(roots[0]) | content(roots[1])
    assert content(tmp_path / "back") == {
        name: data for name, data in expected.items() if name.startswith("step-10/")
    }


def says(daemon: Program, checkpoint: str, told: str) -> bool:
    """Return whether a daemon says just this of a checkpoint."""
    return reason_of(daemon, checkpoint) == told


def reason_of(daemon: Program, checkpoint: str) -> str:
    """Return what a daemon says of a checkpoint."""
    rows = (daemon.status() or {"checkpoints": []})["checkpoints"]
    return next((row["reason"] for row in rows if row["checkpoint"] == checkpoint), "")


@pytest.fixture(scope="module")
def weak_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Run an S3 server that ignores every condition of a write."""
    program = servers.command("nanio")
    if program is None:
        pytest.skip("needs 'nanio' (pip install nanio)")
    with servers.nanio(program, tmp_path_factory.mktemp("nanio")) as server:
        yield server


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--node", "1", "--nodes", "4"), "4 machines cannot store one checkpoint"),
        (("--shared-root",), "several daemons cannot share a directory"),
    ],
)
def test_a_store_without_conditional_writes_is_refused_at_the_start(
    options: tuple[str, ...], what: str, tmp_path: Path, program: Start, weak_server: S3Server
) -> None:
    """The program ends with code 2, says why and what to do, and has stored no checkpoint."""
    root, folder = tmp_path / "root", uuid.uuid4().hex
    root.mkdir()
    by_rename(root / "step-10.pt", 50_000, 1)
    url = f"s3://{weak_server.bucket}/{folder}"
    reach = ("--s3-endpoint", weak_server.endpoint, "--s3-path-style")
    env = dict(servers.ENVIRONMENT)
    daemon = program(root, url, *reach, *QUICK, *options, env=env)
    daemon.begin()
    assert daemon.wait() == 2, daemon.log
    assert f"{what} with this store: it has no conditional writes" in daemon.log
    assert "use another store, or one destination for each machine" in daemon.log
    with closing(client(weak_server.endpoint, servers.ACCESS_KEY, servers.SECRET_KEY)) as s3:
        rows = s3.list_objects_v2(Bucket=weak_server.bucket, Prefix=f"{folder}/")
    keys = [row["Key"].removeprefix(f"{folder}/") for row in rows.get("Contents", [])]
    ours = (".ckptsyncd/probe/", ".ckptsyncd/lease.json")
    assert [key for key in keys if not key.startswith(ours)] == []


def test_one_machine_may_use_a_store_without_conditional_writes(
    tmp_path: Path, program: Start, weak_server: S3Server
) -> None:
    """Without others to agree with the same store is good enough, and the checkpoint is safe."""
    root = tmp_path / "root"
    root.mkdir()
    by_rename(root / "step-10.pt", 50_000, 1)
    url = f"s3://{weak_server.bucket}/{uuid.uuid4().hex}"
    reach = ("--s3-endpoint", weak_server.endpoint, "--s3-path-style")
    daemon = program(root, url, *reach, *QUICK, env=dict(servers.ENVIRONMENT)).start()
    daemon.until_safe("step-10.pt")


def state_of(daemon: Program) -> str:
    """Return the daemon's own state."""
    return str((daemon.status() or {"daemon": {"state": ""}})["daemon"]["state"])
