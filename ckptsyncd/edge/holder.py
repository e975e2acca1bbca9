"""Who a daemon is to another one: what the refusal of a second daemon names."""

from __future__ import annotations

import json
import os
import re
import socket as network
from dataclasses import asdict, dataclass, fields
from pathlib import Path

_CONTAINER = re.compile(r"(?:containers|docker|libpod|crio|cri-containerd)[/-]([0-9a-f]{64})\b")
_POD = re.compile(r"pods/([0-9a-f-]{36})/|kubepods[^\n]*/(?:[^/\n]*-)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock, for people: a process, where it runs, and where it can be asked."""

    pid: int = 0
    host: str = ""
    container: str = ""
    socket: str = ""
    state_dir: str = ""
    watch_root: str = ""
    url: str = ""
    started_at: float = 0.0

    def encode(self) -> bytes:
        """Return the holder as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> Holder:
        """Return the holder in ``data``; what is missing or of a wrong type is empty."""
        try:
            row = json.loads(data)
        except ValueError:
            row = None
        found = row if isinstance(row, dict) else {}
        kinds = {field.name: type(field.default) for field in fields(cls)}
        return cls(
            **{
                name: found[name]
                for name, kind in kinds.items()
                if isinstance(found.get(name), kind)
            }
        )

    def words(self) -> str:
        """Return ``pid 7 on host, container 1a2b, socket /run/...``, as far as it is known."""
        where = f"pid {self.pid} on {self.host}" if self.pid else "a process that left no name"
        container = f", container {self.container}" if self.container else ""
        return where + container + (f", socket {self.socket}" if self.socket else "")


def this_process(
    *, socket: str, state_dir: str, watch_root: str, url: str, started_at: float
) -> Holder:
    """Return how this process would be named to another daemon."""
    return Holder(
        pid=os.getpid(),
        host=network.gethostname(),
        container=this_container(),
        socket=socket,
        state_dir=state_dir,
        watch_root=watch_root,
        url=url,
        started_at=started_at,
    )


def this_container() -> str:
    """Return the short id of the container that this process runs in, or nothing."""
    return container_of(_read("/proc/self/cgroup"), _read("/proc/self/mountinfo"))


def container_of(cgroup: str, mountinfo: str) -> str:
    """Return the container's short id from a process's own cgroup and mounts, or nothing.

    With cgroup v2 the group is ``/`` inside a container; the mount of its ``hostname`` tells then.
    """
    for text in (cgroup, mountinfo):
        for pattern in (_CONTAINER, _POD):
            if found := pattern.search(text):
                return next(part for part in found.groups() if part)[:12]
    return ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
