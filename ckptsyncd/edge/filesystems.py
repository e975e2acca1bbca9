"""File systems that other machines (or servers) write behind our kernel's back.

There inotify reports only what this machine does, and a read lease says nothing about writers
elsewhere. The magic numbers are those of statfs(2) and of the file systems' own headers.
"""

from __future__ import annotations

from ckptsyncd.statfs import magic_of

WITHOUT_EVENTS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x65735546: "FUSE",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x01021997: "9p",
    0x00C36400: "CephFS",
    0x19830326: "BeeGFS",
    0x5346414F: "OpenAFS",
    0x6B414653: "kAFS",
    0xAAD7AAEA: "PanFS",
    0x786F4256: "vboxsf",
}

#: Local ones, for people.
LOCAL = {
    0xEF53: "ext4",
    0x58465342: "XFS",
    0x9123683E: "btrfs",
    0x2FC12FC1: "ZFS",
    0x01021994: "tmpfs",
    0x794C7630: "overlayfs",
    0xF2F52010: "F2FS",
    0x4D44: "vfat",
}


def name_of(place: str | int) -> str:
    """Return the file system's name, its number where it is none that we know; raises OSError."""
    magic = magic_of(place)
    return WITHOUT_EVENTS.get(magic) or LOCAL.get(magic) or f"file system {magic:#x}"


def without_events(place: str | int) -> str:
    """Return the name of the file system if it hides other machines' writes, else ``""``."""
    return WITHOUT_EVENTS.get(magic_of(place), "")
