"""Take out of an installation what the program never uses, and compile the rest, reproducibly.

``python slim.py DIRECTORY`` where the directory is a virtual environment. The AWS SDK brings
descriptions of some 400 services; four are used. Compiled files depend on content alone, not on
times, so that the same sources make the same image and a read-only file system needs no writing.
"""

from __future__ import annotations

import compileall
import py_compile
import shutil
import sys
from pathlib import Path

#: The destination, and how the SDK gets credentials.
SERVICES = {"s3", "sts", "sso", "sso-oidc", "signin"}
#: Directories that only those need who develop the packages.
IDLE = ("tests", "testing_data")


def main(environment: Path) -> None:
    """Slim one virtual environment."""
    for data in environment.glob("lib/python*/site-packages/boto*/data"):
        for service in data.iterdir():
            if service.is_dir() and service.name not in SERVICES:
                shutil.rmtree(service)
    for name in IDLE:
        for idle in environment.glob(f"lib/python*/site-packages/*/{name}"):
            shutil.rmtree(idle)
    for cache in list(environment.rglob("__pycache__")):
        shutil.rmtree(cache)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(str(environment / "lib"), quiet=1, invalidation_mode=mode)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
