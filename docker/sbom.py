"""Print a bill of materials of the image (CycloneDX 1.6), made from its lock."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

LOCK = Path(__file__).with_name("requirements.lock")
_PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, object]]:
    """Return each package of a lock with its version and the hashes of its files."""
    found: list[dict[str, object]] = []
    hashes: list[dict[str, str]] = []
    for line in lock.splitlines():
        if pinned := _PINNED.match(line):
            name, version = pinned[1].lower(), pinned[2]
            purl, hashes = f"pkg:pypi/{name}@{version}", []
            found.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": version,
                    "purl": purl,
                    "hashes": hashes,
                }
            )
        hashes += [{"alg": "SHA-256", "content": one} for one in _HASH.findall(line)]
    return found


def bill(lock: str) -> dict[str, object]:
    """Return the whole document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "ckptsyncd"}},
        "components": components(lock),
    }


if __name__ == "__main__":
    json.dump(bill(LOCK.read_text(encoding="utf-8")), sys.stdout, indent=2)
    sys.stdout.write("\n")
