"""The Kubernetes manifests: valid, in step with each other, and with commands that can be typed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ckptsyncd.cli.program import group
from ckptsyncd.settings import load
from ckptsyncd.settings.table import DEFINITIONS

kubernetes_validate = pytest.importorskip("kubernetes_validate")

PROJECT = Path(__file__).parent.parent.parent
MANIFESTS = PROJECT / "docker" / "kubernetes"
BUILT = ("base", "overlays/eks", "overlays/gke", "overlays/aks", "overlays/indexed", "jobset")
#: The first version with native sidecars by default, and the newest whose schemas we have.
VERSIONS = ("1.29", "1.34")
Manifest = dict[str, Any]

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="needs kubectl (for its kustomize; no cluster)"
)


def built(name: str) -> list[Manifest]:
    """Build a kustomization as 'kubectl apply -k' does, without a cluster."""
    command = ["kubectl", "kustomize", str(MANIFESTS / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return list(yaml.safe_load_all(done.stdout))


def as_job(manifest: Manifest) -> Manifest:
    """Return a Job, or that inside of a JobSet (whose own schema no library brings)."""
    if manifest["kind"] == "JobSet":
        (inside,) = manifest["spec"]["replicatedJobs"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": manifest["metadata"]}
        return {**job, "spec": inside["template"]["spec"]}
    return manifest


def pod_of(manifests: list[Manifest]) -> Manifest:
    """Return the specification of the trainer's pod."""
    (job,) = [as_job(one) for one in manifests if one["kind"] in ("Job", "JobSet")]
    pod: Manifest = job["spec"]["template"]["spec"]
    return pod


def containers(pod: Manifest) -> dict[str, Manifest]:
    """Return all containers by name."""
    return {one["name"]: one for one in [*pod["initContainers"], *pod["containers"]]}


def environment(manifests: list[Manifest], container: Manifest) -> dict[str, str]:
    """Return what a container finds in its environment, references expanded."""
    maps = {m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "ConfigMap"}
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= maps[source["configMapRef"]["name"]]
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {})
        if "configMapKeyRef" in source:
            value = maps[source["configMapKeyRef"]["name"]][source["configMapKeyRef"]["key"]]
        else:
            value = "3" if "fieldRef" in source else expanded(entry["value"], found)
        found[entry["name"]] = value
    return found


def expanded(text: str, environ: dict[str, str]) -> str:
    """Return a text with references filled in, as the kubelet does; KeyError for an unknown one."""
    return re.sub(r"\$\((\w+)\)", lambda match: environ[match[1]], text)


def commands(container: Manifest, environ: dict[str, str]) -> Iterator[list[str]]:
    """Yield every command line of ours in a container: its own and those of hooks and probes."""
    if "command" not in container:
        yield [expanded(text, environ) for text in container["args"]]
    hooks = [container.get("lifecycle", {}).get("preStop", {})]
    hooks += [container.get(f"{kind}Probe", {}) for kind in ("startup", "liveness", "readiness")]
    for hook in hooks:
        if "exec" in hook:
            name, *rest = hook["exec"]["command"]
            assert name == "ckptsyncd"
            yield rest


def seconds_of(text: str) -> float:
    """Return a duration of the manifests."""
    kind = next(made.kind for made in DEFINITIONS if made.name == "stop_timeout")
    seconds: float = kind.parse(text)
    return seconds


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BUILT)
@needs_kubectl
def test_manifests_are_valid(name: str, version: str) -> None:
    """Every object of every kustomization fits the schema of the oldest and the newest version."""
    for manifest in built(name):
        kubernetes_validate.validate(as_job(manifest), version, strict=True)


def test_a_misspelt_field_is_noticed() -> None:
    """The check itself fails for a field that there is not."""
    manifest = yaml.safe_load((MANIFESTS / "base" / "job.yaml").read_text())
    kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
    manifest["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", BUILT)
@needs_kubectl
def test_commands_can_be_typed(name: str, tmp_path: Path) -> None:
    """Every command of ours parses, and the settings in the environment are accepted."""
    manifests = built(name)
    for container in containers(pod_of(manifests)).values():
        environ = environment(manifests, container)
        for line in commands(container, environ):
            command = group.get_command(click.Context(group), line[0])
            assert command is not None, line
            command.make_context(line[0], line[1:])
        if container.get("args") == ["run"]:
            (tmp_path / "checkpoints").mkdir()
            environ["CKPTSYNCD_DIR"] = str(tmp_path / "checkpoints")
            settings = load({"socket": "/run/s", "state_dir": "/s"}, environ).settings
            assert settings.metrics_port == container["ports"][0]["containerPort"]


@pytest.mark.parametrize("name", BUILT)
@needs_kubectl
def test_the_grace_budget_adds_up(name: str) -> None:
    """Drain and stop end before the kill; the trainer's user is that of the sidecar."""
    manifests = built(name)
    pod = pod_of(manifests)
    sidecar = containers(pod)["ckptsyncd"]
    grace = pod["terminationGracePeriodSeconds"]
    hook = sidecar["lifecycle"]["preStop"]["exec"]["command"]
    assert seconds_of(hook[hook.index("--deadline") + 1]) < grace
    stop = environment(manifests, sidecar)["CKPTSYNCD_STOP_TIMEOUT"]
    assert seconds_of(stop) + 2 <= grace
    assert sidecar["restartPolicy"] == "Always"
    users = {one["securityContext"]["runAsUser"] for one in containers(pod).values()}
    assert users == {pod["securityContext"]["runAsUser"]} == {1000}


@pytest.mark.parametrize("name", BUILT)
@needs_kubectl
def test_nobody_has_more_rights_than_needed(name: str) -> None:
    """Every container of ours is locked: no rights, no writing outside of its volumes, no token."""
    pod = pod_of(built(name))
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for one in containers(pod).values():
        context = one["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


@needs_kubectl
def test_job_set_and_indexed_job_are_the_same_pod() -> None:
    """What is written twice says the same, but for the name that a JobSet gives by itself."""
    indexed, jobset = pod_of(built("overlays/indexed")), pod_of(built("jobset"))
    assert indexed.pop("subdomain") == "trainer"
    assert containers(indexed)["trainer"].pop("env")
    assert indexed == jobset


@pytest.mark.parametrize("name", ["overlays/indexed", "jobset"])
@needs_kubectl
def test_all_nodes_store_one_checkpoint(name: str) -> None:
    """A pod's index is its node, the number of pods that of nodes, and the destination is one."""
    manifests = built(name)
    found = containers(pod_of(manifests))
    (job,) = [as_job(one) for one in manifests if one["kind"] in ("Job", "JobSet")]
    for container in (found["restore"], found["ckptsyncd"]):
        environ = environment(manifests, container)
        assert environ["CKPTSYNCD_URL"] == "s3://change-me/run"
        assert environ["CKPTSYNCD_NODE"] == "3"
        assert environ["CKPTSYNCD_NODES"] == str(job["spec"]["completions"])
