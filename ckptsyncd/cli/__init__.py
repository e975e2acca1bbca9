"""The command line: one file per command, loaded when it is asked for."""

from ckptsyncd.cli.program import main

__all__ = ["main"]
