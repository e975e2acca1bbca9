"""The image, built and run without a container engine: by Debian's buildah and crun, as root.

The base is a Debian made by mmdebstrap, for no registry is needed then. Building happens in a
chroot; running in namespaces of its own, with a read-only root and without any rights.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent.parent
TOOLS = ("buildah", "crun", "mmdebstrap")
BASE = "localhost/ckptsyncd-base:test"
IMAGE = "localhost/ckptsyncd:test"
#: How this machine reaches package registries: given to the build, never into the image.
REACHING = (
    "/etc/pip.conf",
    "/etc/xdg/pip",
    "/etc/ssl/certs/ca-certificates.crt",
    *os.environ.get("PIP_FIND_LINKS", "").split(),
)
BUILD_SECONDS = 900
#: A container runtime wants one version of control groups; a machine may mount both.
PRIVATE = 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'


def missing() -> str:
    """Return why no image can be built here, or nothing."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"needs {', '.join(absent)} (Debian packages of the same names)"
    return "" if os.geteuid() == 0 else "needs root"


@dataclass(frozen=True, slots=True)
class Images:
    """A private storage of images below a directory."""

    directory: Path

    def buildah(self, *arguments: str) -> str:
        """Run buildah and return what it printed; AssertionError with its errors if it failed."""
        places = ["--root", str(self.directory / "root"), "--runroot", str(self.directory / "run")]
        command = ["buildah", "--storage-driver", "vfs", *places, *arguments]
        environment = {"HOME": str(self.directory), "BUILDAH_ISOLATION": "chroot"}
        return ran(command, environment, BUILD_SECONDS)

    def make_base(self) -> None:
        """Make the base image: Debian with Python, and nothing else."""
        tar = self.directory / "base.tar"
        suite = _release()
        include = "--include=python3,python3-venv,ca-certificates"
        ran(["mmdebstrap", "--variant=minbase", "--mode=root", include, suite, str(tar)], {}, 600)
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", container, str(tar), "/")
        self.buildah("commit", "--rm", container, BASE)
        tar.unlink()

    def build(self) -> None:
        """Build the image from the Dockerfile, as its first comment says but for the base."""
        volumes = [f"--volume={path}:{path}:ro" for path in REACHING if Path(path).exists()]
        file = str(PROJECT / "docker" / "Dockerfile")
        options = ["--format", "docker", "--timestamp", "0", "--build-arg", f"BASE={BASE}"]
        self.buildah("build", *options, *volumes, "-t", IMAGE, "-f", file, str(PROJECT))

    def config(self) -> dict[str, Any]:
        """Return the image's configuration: user, entry point, health check and the rest."""
        told = json.loads(self.buildah("inspect", "--type", "image", IMAGE))
        config: dict[str, Any] = told["Docker"]["config"]
        return config

    def bytes(self, image: str) -> int:
        """Return an image's size."""
        (found,) = json.loads(self.buildah("images", "--json", image))
        number, unit = str(found["size"]).split()
        return int(float(number) * {"KB": 1e3, "MB": 1e6, "GB": 1e9}[unit])

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mount a container's root file system for as long as it is needed."""
        container = self.buildah("from", "--pull-never", IMAGE).strip()
        try:
            yield Path(self.buildah("mount", container).strip())
        finally:
            self.buildah("rm", container)


@dataclass(frozen=True, slots=True)
class Container:
    """One container of an image under crun, from ``start`` to its end."""

    name: str
    bundle: Path
    user: str

    def start(self, arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Run it in the foreground of a process that is returned, its output in ``log``."""
        with log.open("wb") as output:
            command = self._command("run", "--bundle", str(self.bundle), self.name)
            self._write(arguments)
            return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def execute(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        command = self._command("exec", "--user", self.user, self.name, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def signal(self, name: str) -> None:
        """Send its first process a signal."""
        ran(self._command("kill", self.name, name), {}, 60)

    def remove(self) -> None:
        """End it if it still runs, and forget it."""
        command = self._command("delete", "--force", self.name)
        subprocess.run(command, capture_output=True, check=False, timeout=60)

    def _command(self, verb: str, *arguments: str) -> list[str]:
        runtime = ["crun", "--root", str(self.bundle / "crun"), "--cgroup-manager=disabled"]
        private = ["unshare", "--mount", "--propagation=private", "sh", "-c", PRIVATE, "sh"]
        return [*private, *runtime, verb, *arguments]

    def _write(self, arguments: Sequence[str]) -> None:
        path = self.bundle / "config.json"
        spec = json.loads(path.read_text())
        spec["process"]["args"] = list(arguments)
        path.write_text(json.dumps(spec))


def bundled(
    directory: Path, root: Path, config: dict[str, Any], mounts: dict[str, Path | None]
) -> Container:
    """Prepare a container with the image's user and environment, and without any rights.

    ``mounts`` maps places inside to directories outside, or to ``None`` for one in memory.
    """
    directory.mkdir()
    ran(["crun", "spec"], {}, 60, cwd=directory)
    spec = json.loads((directory / "config.json").read_text())
    user, group = (int(number) for number in config["User"].split(":"))
    spec["root"] = {"path": str(root), "readonly": True}
    spec["process"] |= {
        "terminal": False,
        "user": {"uid": user, "gid": group},
        "env": [*config["Env"], "HOME=/"],
        "capabilities": {},
        "noNewPrivileges": True,
    }
    spec["linux"].pop("resources", None)
    for inside, outside in mounts.items():
        options = ["rbind", "rw"] if outside else ["rw", "mode=0700", f"uid={user}", f"gid={group}"]
        kind = "bind" if outside else "tmpfs"
        one = {"destination": inside, "type": kind, "source": str(outside or "tmpfs")}
        spec["mounts"].append({**one, "options": options})
    (directory / "config.json").write_text(json.dumps(spec))
    return Container(directory.name, directory, config["User"])


def ran(
    command: Sequence[str], environment: dict[str, str], seconds: int, cwd: Path | None = None
) -> str:
    """Run a command to its end and return its output; AssertionError with all of it if it fails."""
    done = subprocess.run(
        list(command),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env={**os.environ, **environment},
        cwd=cwd,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def _release() -> str:
    """Return the name of this machine's own Debian: its mirror surely has it."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return values.get("VERSION_CODENAME", "bookworm").strip('"')
