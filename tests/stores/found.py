"""What the probe found on each S3-compatible server that it met: tested, or run by hand.

The table of ``docs/stores.md`` is made from this; for servers that the tests start (``fixture``) a
test compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.stores.s3.probe import Findings


@dataclass(frozen=True, slots=True)
class Found:
    """One server: its version, what was found, and what else a user should know.

    Checks of small files, pieces and wholes (empty: nothing is checked, so objects are read back);
    conditions on a put and on a finish; how If-Match is quoted; whether uploads can be abandoned.
    """

    server: str
    files: str
    pieces: str
    whole: str
    creates: bool
    finishes: bool
    matches: str
    abandons: bool
    fixture: str = ""
    note: str = ""

    def agrees(self, found: Findings) -> bool:
        """Return whether the probe found the same."""
        return (
            (self.files, self.pieces, self.whole)
            == (found.put_check, found.piece_check, found.whole_check)
            and (self.creates, self.finishes) == (found.create_only_put, found.create_only_finish)
            and (self.matches, self.abandons) == (found.matches, found.can_abandon)
        )


CRC, SHA, MD5 = "crc64nvme", "sha256", "md5"

FOUND: tuple[Found, ...] = (
    Found("SeaweedFS 4.48", CRC, CRC, CRC, True, True, "as told", True, "s3_server"),
    Found("Ceph RGW 16.2.15", SHA, SHA, "", True, False, "bare", True),
    Found("ministack 1.5.33", CRC, CRC, "", True, True, "as told", True),
    Found("JuiceFS gateway 1.4.2", SHA, SHA, "", False, False, "", True,
          note="with `--object-meta --keep-etag`; without, it forgets whose an object is"),
    Found("rclone 1.75.0, `serve s3`", MD5, MD5, "", False, False, "", True,
          note="keeps no metadata; a part cannot be sent again with other bytes"),
    Found("moto 5.2.5", "", "", "", True, True, "as told", True, "moto_server"),
    Found("localbucket 1.2.1", "", "", "", True, True, "", True, note="keeps no metadata"),
    Found("nanio 0.1.7", MD5, "", "", False, False, "", True, "nanio_server",
          "refuses names with a percent sign (403)"),
    Found("s3rver 3.7.1", "", "", "", False, False, "", False, "s3rver_server",
          "fails on the second page of a list (500), gives no range of one byte"),
)  # fmt: skip
