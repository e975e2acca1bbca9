"""What the image is made of is pinned with hashes, listed with licences, and can be told on."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.docs.blocks import ROOT

LOCKS = ("docker/requirements.lock", "docker/build.lock")


def pinned(lock: str) -> dict[str, int]:
    """Return each package of a lock with the number of its hashes."""
    found: dict[str, int] = {}
    name = ""
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([\w.-]+)==", line):
            name = match[1].lower()
            found.setdefault(name, 0)
        if name:
            found[name] += line.count("--hash=sha256:")
    return found


def test_everything_is_pinned_with_hashes_and_without_addresses() -> None:
    """No line of a lock names where to fetch from, and no package is without a hash."""
    for lock in LOCKS:
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert "://" not in text, lock
        assert "--index" not in text, lock
        assert all(pinned(lock).values()), lock


def test_every_package_is_listed_with_its_licence() -> None:
    """The page has each package of the lock, with a licence that lets us be given on."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+) \|", page, re.MULTILINE))
    del rows["package"], rows["---"]
    assert set(rows) == set(pinned(LOCKS[0]))
    allowed = re.compile(r"(MIT|MIT-0|BSD|BSD-[23]-Clause|Apache-2\.0|MPL-2\.0|PSF-2\.0)")
    for name, licence in rows.items():
        for one in re.split(r" (?:OR|AND) ", licence.strip()):
            assert allowed.fullmatch(one), (name, licence)


def test_the_bill_of_materials_names_all_of_it() -> None:
    """The document is CycloneDX, with a version and the hashes of each package."""
    done = subprocess.run(
        [sys.executable, "docker/sbom.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {one["name"] for one in bill["components"]} == set(pinned(LOCKS[0]))
    assert all(one["version"] and one["hashes"] for one in bill["components"])
