"""The locks of the image: everything that is needed, with hashes, and no address to fetch from."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parent.parent.parent
LOCKS = ("requirements.lock", "build.lock")


def locked(name: str) -> dict[str, Requirement]:
    """Return the packages of a lock, by name; those for several Pythons once."""
    text = (PROJECT / "docker" / name).read_text()
    lines = re.findall(r"^[a-zA-Z0-9].*?(?= \\$)", text, re.MULTILINE)
    return {wanted.name: wanted for wanted in map(Requirement, lines)}


def wanted() -> list[Requirement]:
    """Return what the package needs with every destination."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *extras["s3"], *extras["gcs"], *extras["azure"]]
    texts += [text for text in extras["azure-identity"] if not text.startswith("ckptsyncd")]
    return [Requirement(text) for text in texts]


def test_the_lock_is_in_step_with_the_package() -> None:
    """Every requirement is locked at a version that it allows."""
    found = locked("requirements.lock")
    for one in wanted():
        name = one.name.replace("_", "-").lower()
        assert name in found, name
        (pinned,) = found[name].specifier
        assert pinned.operator == "=="
        assert one.specifier.contains(pinned.version), (name, pinned.version)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_content_and_no_place(name: str) -> None:
    """Each package has hashes, and nothing says from where it is to be fetched."""
    text = (PROJECT / "docker" / name).read_text()
    packages = re.split(r"^(?=[a-zA-Z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(packages) == len(re.findall(r"^[a-zA-Z0-9]", text, re.MULTILINE)) > 3
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", package) for package in packages)
    assert not re.search(r"://|--(extra-)?index-url|--find-links", text)
