"""The import law, checked over the syntax trees: who may know whom."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "ckptsyncd"

#: What the mind may use of the standard library: nothing that touches the world.
PURE = {
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "fnmatch",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "posixpath",
    "re",
    "types",
    "typing",
    "urllib.parse",
    "zlib",
}

#: Which rooms of ours a room may know. ``errors`` imports nothing of ours and everybody may.
MAY_KNOW: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": {"cli"},
    "errors": set(),
    "checksum": set(),
    "holes": {"statfs"},
    "statfs": set(),
    "core": {"core"},
    "settings": {"core"},
    "edge": {"core", "checksum", "holes", "statfs"},
    "formats": {"core"},
    "stores": {"core", "checksum", "holes"},
    "sources": {"core"},
    "recover": {"core", "checksum", "holes"},
    "report": {"checksum", "core"},
    "check": {"core"},
    "client": {"core"},
    "destination": {"core", "residence", "settings", "stores"},
    "residence": {"core", "settings", "sources", "stores"},
    "signals": {"edge"},
    "notified": {"core", "edge", "report", "settings", "sources"},
    "outward": {"core", "edge", "report", "settings"},
    "tidied": {"core", "destination", "recover", "residence", "settings"},
    "whereabouts": {"core", "report", "settings", "stores"},
    "demo": {"core", "client"},
    "app": {
        "__init__", "core", "destination", "edge", "formats", "notified", "outward", "stores",
        "sources", "recover", "report", "residence", "settings", "signals", "tidied",
        "whereabouts",
    },
    "cli": {
        "__init__", "app", "check", "client", "core", "demo", "destination", "edge", "formats",
        "notified", "recover", "report", "residence", "settings", "signals", "sources", "stores",
    },
}  # fmt: skip

#: Third-party packages, and the only modules that may import each.
GUESTS: dict[str, set[str]] = {
    "boto3": {"stores.s3"},
    "botocore": {"stores.s3"},
    "google": {"stores.gcs"},
    "azure": {"stores.azure"},
    # What both SDKs send through.
    "requests": {"stores.gcs", "stores.azure", "stores.surroundings"},
    "urllib3": {"report.posting", "sources.wire", "stores.s3"},
    "wandb": {"report.wandb_child"},
    "click": {"cli"},
    "structlog": {"report", "app"},
    "prometheus_client": {"report.metrics"},
    "inotify_simple": {"edge.watcher", "edge.premises"},
    "awscrt": {"checksum", "stores.s3"},
    "tomli": {"settings"},
    "tomllib": {"settings"},  # of the standard library from Python 3.11 on
}

MODULES = sorted(HOUSE.rglob("*.py"))


def dotted(path: Path) -> str:
    """Return the module's name below the package."""
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(path: Path) -> list[str]:
    """Return the full name of every import in a module, also of those inside functions."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} relative import"
            found.append(node.module or "")
    return found


def offence(room: str, module: str, name: str) -> str:
    """Return why this import breaks the law, or nothing."""
    if name == "ckptsyncd" or name.startswith("ckptsyncd."):
        other = ([*name.split("."), "__init__"])[1]
        if other == "errors" or other in MAY_KNOW[room] or (room == other):
            return ""
        return f"{room} may not know {other}"
    top = name.split(".", maxsplit=1)[0]
    if room == "core" and name not in PURE:
        return f"the mind may not use {name}"
    if top in sys.stdlib_module_names:
        return ""
    allowed = GUESTS.get(top, set())
    fits = any(module == place or module.startswith(place + ".") for place in allowed)
    return "" if fits else f"{top} is not for {module}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_keep_the_law(path: Path) -> None:
    """Every module is in a listed room and imports only what that room may know."""
    module = dotted(path)
    room = module.split(".")[0]
    assert room in MAY_KNOW, f"{module} is in no listed room"
    broken = [text for name in imports_of(path) if (text := offence(room, module, name))]
    assert not broken, f"{module}: {broken}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_modules_and_functions_are_small(path: Path) -> None:
    """No module is over 400 lines and no function over 40 (docstrings not counted)."""
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            is_doc = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            first = body[1] if is_doc and len(body) > 1 else body[0]
            length = (node.end_lineno or 0) - first.lineno + 1
            assert length <= 40, f"{node.name} has {length} lines"


def test_the_law_can_be_broken() -> None:
    """The check itself notices an import that is not allowed."""
    assert offence("core", "core.brain", "time")
    assert offence("edge", "edge.loop", "ckptsyncd.stores.s3")
    assert offence("stores", "stores.gcs", "boto3")
    assert not offence("stores", "stores.s3", "boto3")
