"""Which machine this is among how many, by the environment of Slurm, torchrun and Kubernetes.

Only where a user says that every machine writes a share (``sharded``): of most trainings on several
machines one writes everything, and nobody is to wait for the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptsyncd.errors import UsageError
from ckptsyncd.settings.gather import Said

#: Variables that number this machine, those of the narrowest launcher first.
NODE_VARIABLES = (
    "SLURM_NODEID",
    "PET_NODE_RANK",
    "GROUP_RANK",
    "JOB_COMPLETION_INDEX",
)
#: Variables that count the machines; ``PET_NNODES`` may be a range, which is no count.
NODES_VARIABLES = ("SLURM_NNODES", "PET_NNODES")


def said_by_launcher(environ: Mapping[str, str], said: Mapping[str, Said]) -> dict[str, Said]:
    """Return node and nodes, as far as they were not said; UsageError where nothing tells node."""
    found = {name: what for name, what in said.items() if name in ("node", "nodes")}
    if "node" not in found:
        node = _first(environ, NODE_VARIABLES)
        if node is None:
            msg = "sharded is set, and nothing in the environment tells which machine this is"
            raise UsageError(msg, hint=f"set --node, or one of {', '.join(NODE_VARIABLES)}")
        found["node"] = node
    count = None if "nodes" in found else _count(environ)
    return found if count is None else found | {"nodes": count}


def uncounted(said: Mapping[str, Said]) -> dict[str, Said]:
    """Return that nobody counted the machines, where only this one's number is known."""
    if "node" not in said or "nodes" in said:
        return {}
    return {"nodes": Said("0", said["node"].where, is_text=True)}


def _first(environ: Mapping[str, str], variables: tuple[str, ...]) -> Said | None:
    for variable in variables:
        if _is_number(environ.get(variable, "")):
            return Said(environ[variable], variable, is_text=True)
    return None


def _count(environ: Mapping[str, str]) -> Said | None:
    world, local = environ.get("WORLD_SIZE", ""), environ.get("LOCAL_WORLD_SIZE", "")
    is_whole = _is_number(world) and _is_number(local) and int(local) > 0
    known = any(_is_number(environ.get(variable, "")) for variable in NODES_VARIABLES)
    if is_whole and not known and int(world) % int(local) == 0:
        text = str(int(world) // int(local))
        return Said(text, "WORLD_SIZE / LOCAL_WORLD_SIZE", is_text=True)
    return _first(environ, NODES_VARIABLES)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
