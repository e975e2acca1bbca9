"""``python -m tests.docs``: make every part of the documentation anew that repeats code."""

from __future__ import annotations

import sys

from tests.docs.blocks import write

if __name__ == "__main__":
    sys.stdout.write("".join(f"written: {path}\n" for path in write()) or "nothing changed\n")
