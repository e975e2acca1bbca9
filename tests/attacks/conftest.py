"""Attacks use the programs and servers of the process tests."""

from __future__ import annotations

from tests.process.conftest import durable, prefix, program, proxy, root

__all__ = ["durable", "prefix", "program", "proxy", "root"]
