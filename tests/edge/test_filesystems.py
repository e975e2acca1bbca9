"""Which file systems hide other machines' writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptsyncd.edge.filesystems import WITHOUT_EVENTS, without_events
from ckptsyncd.statfs import magic_of


def test_path_and_descriptor_give_the_same_type(tmp_path: Path) -> None:
    """A type can be asked by path and by open descriptor."""
    fd = os.open(tmp_path, os.O_RDONLY)
    assert magic_of(str(tmp_path)) == magic_of(fd) != 0
    os.close(fd)


def test_kernel_types_are_read_as_they_are_written_down() -> None:
    """The numbers are read as linux/magic.h has them (proc is 0x9FA0 everywhere)."""
    assert magic_of("/proc") == 0x9FA0
    assert without_events("/proc") == ""


def test_network_file_systems_are_known() -> None:
    """Every file system that the design names is in the table."""
    assert {"NFS", "CIFS", "SMB2", "FUSE", "Lustre", "GPFS", "9p", "CephFS", "BeeGFS"} <= {
        *WITHOUT_EVENTS.values()
    }


def test_missing_place_raises_as_the_system_does(tmp_path: Path) -> None:
    """A place that is not there is an OSError of its kind, not an answer."""
    with pytest.raises(FileNotFoundError):
        magic_of(str(tmp_path / "none"))
    with pytest.raises(OSError, match="Bad file descriptor"):
        magic_of(-1)
