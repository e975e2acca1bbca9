"""What a server really does, found out by trying: a header that is ignored answers 200 as well.

Everything is tried on small objects below one key that nobody else uses, and removed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.errors import Again, Never, StoreError
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.rounds import Notes
from ckptsyncd.stores.s3.faults import status_of
from ckptsyncd.stores.s3.sending import SentBody, as_base64, declared
from ckptsyncd.stores.s3.wire import Params, Wire

#: What the probe's objects hold: enough to be no special case, little enough to cost nothing.
CONTENT = b"ckptsyncd looks what this store checks. " * 25
OTHER = CONTENT[::-1]

#: Ways in which a server can check content, the strongest first.
CHECKS = ("crc64nvme", "crc32c", "sha256", "md5")

#: How an upload must be begun so that its pieces are checked this way.
BEGINNINGS: dict[str, Params] = {
    "crc64nvme": {"ChecksumAlgorithm": "CRC64NVME", "ChecksumType": "FULL_OBJECT"},
    "crc32c": {"ChecksumAlgorithm": "CRC32C"},
}

#: Answers that say no to what was asked, not to the moment or the asker's speed.
_NO = frozenset({400, 403, 404, 405, 411, 412, 501})


@dataclass(frozen=True, slots=True)
class Findings:
    """What was seen. A check is named where the wrong value was refused and the right one taken.

    ``one_pass``: the whole's checksum is checked also where the pieces' were not declared.
    ``matches``: how If-Match must quote a version (Ceph 16 compares without the quotes), empty
    where it is ignored or refused. ``leftover``: why the probe's own objects are still there.
    """

    put_check: str
    piece_check: str
    whole_check: str
    create_only_put: bool
    create_only_finish: bool
    matches: Literal["as told", "bare", ""]
    can_abandon: bool = True
    one_pass: bool = False
    leftover: str = ""

    def in_words(self) -> str:
        """Return one line for people."""
        checks = {"files": self.put_check, "pieces": self.piece_check, "whole": self.whole_check}
        checked = ", ".join(f"{what} {how or 'not'}" for what, how in checks.items())
        conditions = {
            "create-only put": self.create_only_put,
            "create-only finish": self.create_only_finish,
            "compare-and-set": bool(self.matches),
            "abandon": self.can_abandon,
        }
        able = ", ".join(f"{what} {'yes' if can else 'no'}" for what, can in conditions.items())
        passes = " in one pass" if self.one_pass else ""
        return f"content checked: {checked}{passes}; {able}{self.leftover and '; ' + self.leftover}"


@dataclass(frozen=True, slots=True)
class Known:
    """What single steps found out, by the names of what is found (``whole``: a whole's check)."""

    create_only_put: bool | None = None
    matches: Literal["as told", "bare", ""] | None = None
    put_check: str | None = None
    piece_check: str | None = None
    one_pass: bool | None = None
    whole: bool | None = None
    create_only_finish: bool | None = None


class Probe:
    """One round of trying, at ``key``, which nobody has used before."""

    def __init__(
        self, wire: Wire, key: str, extras: Params, notes: Notes[Known], *, trust_size: bool
    ) -> None:
        """Remember where; ``extras`` are the parameters that every object is stored with.

        ``notes`` are what earlier rounds found out: a bad moment costs one step, not all of them.
        """
        self._wire = wire
        self._key = key
        self._extras = extras
        self._trust_size = trust_size
        self._notes = notes
        self._begun: list[str] = []

    def findings(self) -> Findings:
        """Try everything (about 20 small requests); raises StoreError where it is not usable.

        A store that gives other bytes back than it was given is not usable at all.
        """
        try:
            if self._notes.known.create_only_put is not None:
                self._put()
            create_only_put = self._notes.step("create_only_put", self._first_put)
            matches = self._notes.step("matches", lambda: self._matching(self._read_back()))
            put_check = self._notes.step("put_check", self._put_check)
            piece_check = self._notes.step("piece_check", self._piece_check)
            sums = piece_check == "crc64nvme"
            one_pass = sums and self._notes.step("one_pass", lambda: self._whole_is_checked(""))
            is_whole = one_pass or (sums and self._notes.step("whole", self._whole_is_checked))
            whole_check = "crc64nvme" if is_whole else ""
            create_only_finish = self._notes.step(
                "create_only_finish", lambda: self._create_only_finish(piece_check, whole_check)
            )
        except StoreError:
            self._sweep(insists=False)
            raise
        upload_left, object_left = self._sweep(insists=True)
        return Findings(
            put_check,
            piece_check,
            whole_check,
            create_only_put,
            create_only_finish,
            matches,
            can_abandon=not upload_left,
            one_pass=one_pass,
            leftover=upload_left or object_left,
        )

    def _ask(self, verb: str, **parameters: Any) -> Params:
        return self._wire.ask(verb, self._key, Key=self._key, **parameters)

    def _takes(self, act: Callable[[], object]) -> bool:
        """Tell whether the server takes it; what is no answer to the question is raised."""
        try:
            act()
        except StoreError as error:
            if status_of(error) not in _NO:
                raise
            return False
        return True

    def _put(self, **condition: str) -> str:
        """Store the content; with its MD5, which buckets with object lock demand."""
        content = declared("md5", BytesBody(CONTENT))
        answer = self._ask("put_object", Body=CONTENT, **content, **self._extras, **condition)
        return str(answer.get("ETag", ""))

    def _first_put(self) -> bool:
        if not self._takes(lambda: self._put(IfNoneMatch="*")):
            self._put()
            return False
        return not self._takes(lambda: self._put(IfNoneMatch="*"))

    def _read_back(self) -> str:
        answer = self._ask("get_object")
        found = b"".join(self._wire.blocks("get_object", self._key, answer["Body"]))
        if found != CONTENT and not self._trust_size:
            msg = (
                f"the store gave {len(found)} other bytes back than the {len(CONTENT)} it was given"
            )
            raise Never(
                msg, hint="do not keep checkpoints there; the server damages what it stores"
            )
        return str(answer.get("ETag", ""))

    def _matching(self, version: str) -> Literal["as told", "bare", ""]:
        wrong = "0" * 32
        if self._takes(lambda: self._put(IfMatch=version)):
            return "" if self._takes(lambda: self._put(IfMatch=f'"{wrong}"')) else "as told"
        if self._takes(lambda: self._put(IfMatch=version.strip('"'))):
            return "" if self._takes(lambda: self._put(IfMatch=wrong)) else "bare"
        return ""

    def _put_check(self) -> str:
        found = (check for check in CHECKS if self._is_checked("put_object", check, self._extras))
        return next(found, "")

    def _piece_check(self) -> str:
        return next((check for check in CHECKS if self._piece_is_checked(check)), "")

    def _piece_is_checked(self, check: str) -> bool:
        beginning = BEGINNINGS.get(check, {})
        if not self._takes(lambda: self._begin(beginning)):
            return False
        extra = {"UploadId": self._begun[-1], "PartNumber": 1}
        return self._is_checked("upload_part", check, extra)

    def _is_checked(self, verb: str, check: str, extra: Mapping[str, Any]) -> bool:
        """Tell whether a body other than declared is refused, and one as declared is taken."""
        if self._takes(lambda: self._send(verb, check, lie=True, **extra)):
            return False
        return self._takes(lambda: self._send(verb, check, lie=False, **extra))

    def _whole_is_checked(self, piece_check: str = "crc64nvme") -> bool:
        """Tell whether the whole's checksum is checked on finishing, over pieces sent this way."""
        try:
            token, parts = self._one_part(piece_check, BEGINNINGS["crc64nvme"])
        except StoreError as error:
            if status_of(error) not in _NO:
                raise
            return False
        if self._takes(lambda: self._complete(token, parts, **whole_params(crc64nvme(OTHER)))):
            return False
        right = whole_params(crc64nvme(CONTENT))
        return self._takes(lambda: self._complete(token, parts, **right))

    def _create_only_finish(self, piece_check: str, whole_check: str) -> bool:
        """Tell whether a finish over an existing object (ours) is refused."""
        token, parts = self._one_part(piece_check, beginning_of(piece_check, whole_check))
        whole = whole_params(crc64nvme(CONTENT)) if whole_check else {}
        if self._takes(lambda: self._complete(token, parts, IfNoneMatch="*", **whole)):
            return False
        self._complete(token, parts, **whole)
        return True

    def _begin(self, beginning: Params) -> str:
        answer = self._ask("create_multipart_upload", **beginning, **self._extras)
        self._begun.append(str(answer["UploadId"]))
        return self._begun[-1]

    def _one_part(self, check: str, beginning: Params) -> tuple[str, list[Params]]:
        token = self._begin(beginning)
        answer = self._send("upload_part", check, lie=False, UploadId=token, PartNumber=1)
        part = {"PartNumber": 1, "ETag": answer.get("ETag", "")}
        if check == "crc32c":
            part |= declared(check, BytesBody(CONTENT))
        return token, [part]

    def _complete(self, token: str, parts: list[Params], **extra: str) -> None:
        self._ask(
            "complete_multipart_upload", UploadId=token, MultipartUpload={"Parts": parts}, **extra
        )

    def _send(self, verb: str, check: str, *, lie: bool, **extra: Any) -> Params:
        """Send the content, as it was declared or (``lie``) as something else was."""
        told = declared(check, BytesBody(OTHER if lie else CONTENT))
        body = TwoFacedBody() if lie and check == "sha256" else BytesBody(CONTENT)
        sent = SentBody(body, summing=False)
        return self._ask(verb, sent=sent, signed=check == "sha256" or None, **told, **extra)

    def _sweep(self, *, insists: bool) -> tuple[str, str]:
        """Remove what was stored; return why an upload and an object are left, for people.

        ``insists``: a bad moment is raised, for it says nothing of what the store can do.
        """
        left = [
            self._removed(insists, "abort_multipart_upload", UploadId=token)
            for token in self._begun
        ]
        return next(filter(None, left), ""), self._removed(insists, "delete_object")

    def _removed(self, insists: bool, verb: str, **parameters: str) -> str:  # noqa: FBT001 - as above
        try:
            self._ask(verb, **parameters)
        except StoreError as error:
            if status_of(error) == 404:  # noqa: PLR2004
                return ""
            if insists and isinstance(error, Again):
                raise
            return f"the probe left something behind: {error}"
        return ""


def wipe(wire: Wire, key: str) -> None:
    """Remove what a round left that a bad moment ended, also what nobody was told of."""
    answer = wire.ask("list_multipart_uploads", key, Prefix=key)
    for one in answer.get("Uploads", []):
        token = str(one["UploadId"])
        wire.ask("abort_multipart_upload", key, Key=key, UploadId=token)
    wire.ask("delete_object", key, Key=key)


def beginning_of(piece_check: str, whole_check: str) -> Params:
    """Return how an upload is begun: the whole's checksum is promised only where it is checked."""
    if piece_check == "crc64nvme" and not whole_check:
        return {}
    return BEGINNINGS.get(piece_check, {})


def whole_params(checksum: int) -> Params:
    """Return how a finish tells the checksum of the whole."""
    return {"ChecksumType": "FULL_OBJECT", "ChecksumCRC64NVME": as_base64(checksum, 8)}


class TwoFacedBody(BytesBody):
    """Other bytes when it is sent than when it was signed: what a signature must not cover."""

    def __init__(self) -> None:
        """Show the first face."""
        super().__init__(OTHER)
        self._starts = 0

    def rewind(self) -> None:
        """Start again; the second time, after the signer, with the other face."""
        super().rewind()
        self._starts += 1
        if self._starts > 1:
            self._data = CONTENT
