"""The watch root: whether it is there, changes are seen, files can be read, examined and kept."""

from __future__ import annotations

from ckptsyncd.check.finding import Finding, fail, ok, warn
from ckptsyncd.core.premises import Premises
from ckptsyncd.core.words import count_words, size_words

#: From this share of the limit on, a growing run may hit it (guessed).
_NEAR = 0.5
_OWNER = "run it as the trainer's user"


def root(premises: Premises, *, polls: bool) -> list[Finding]:
    """Return everything there is to say about a watch root."""
    if not premises.exists:
        text = f"{premises.root} does not exist yet; it is waited for"
        hint = "check the name if the trainer has started already"
        return [warn("watch root", text, hint), *room(premises)]
    findings = [existence(premises), events(premises, polls=polls), readable(premises)]
    findings += [lease(premises), pins(premises), space(premises), device(premises)]
    return findings + room(premises)


def existence(premises: Premises) -> Finding:
    """Tell what lies there."""
    census = premises.census
    more = "more than " if census.is_cut_short else ""
    text = (
        f"{premises.root} ({premises.file_system}): {more}{count_words(census.files, 'file')}, "
        f"{size_words(census.bytes)}"
    )
    if census.largest:
        text += f"; the largest checkpoint is {census.largest}, {size_words(census.largest_bytes)}"
    return ok("watch root", text)


def events(premises: Premises, *, polls: bool) -> Finding:
    """Judge how changes are seen: by events, or by polling and why."""
    watching = premises.watching
    if polls:
        return ok("events", "polling was asked for")
    if watching.no_instance:
        text = f"no inotify instance: {watching.no_instance}; everything is polled"
        return warn("events", text, "raise fs.inotify.max_user_instances")
    if watching.polled:
        path, reason = watching.polled[0]
        others = len(watching.polled) - 1
        more = f" and {others} more are" if others else " is"
        text = f"{path or 'the whole tree'}{more} polled: {reason}"
        return warn("events", text, "it works, and sees a change some seconds later")
    text = f"{count_words(watching.watched, 'directory').replace('ys', 'ies')} watched"
    if watching.limit is None:
        return ok("events", f"inotify, {text}")
    text = f"inotify, {text}, {watching.limit} allowed"
    if watching.watched > watching.limit * _NEAR:
        return warn("events", text, "raise fs.inotify.max_user_watches before the tree grows")
    return ok("events", text)


def readable(premises: Premises) -> Finding:
    """Judge whether everything can be read."""
    census = premises.census
    if census.unreadable:
        text = f"{count_words(census.unreadable, 'file')} cannot be read, such as {census.example}"
        return fail("readable", text, f"{_OWNER}, or give it the trainer's group", 2)
    if census.trouble:
        return fail("readable", f"a directory cannot be listed: {census.trouble}", _OWNER, 2)
    return ok("readable", "every file can be read")


def lease(premises: Premises) -> Finding:
    """Judge whether the kernel says who still writes."""
    subject = "open writers"
    if premises.hides_writers:
        text = f"{premises.hides_writers} does not tell who writes on other machines"
        return warn(subject, text, "checkpoints there are whole by marker, rename or quiet time")
    if premises.lease == "unasked":
        return ok(subject, "there is no file yet to ask the kernel about")
    if premises.lease == "granted":
        return ok(subject, f"the kernel tells who writes (read lease on {premises.tried_on})")
    text = f"no read lease on {premises.tried_on}: {premises.lease_trouble}"
    return warn(subject, text, f"{_OWNER}, or with CAP_LEASE; else quiet time decides")


def pins(premises: Premises) -> Finding:
    """Judge how a checkpoint is kept readable while the trainer rotates it away."""
    if premises.pin == "unasked":
        return ok("pins", "there is no file yet to try it with")
    if premises.pin == "link":
        return ok("pins", "hard links keep what the trainer removes until it is uploaded")
    if premises.pin == "descriptor":
        text = "no hard link can be made; files are held open instead, and not over a restart"
        return warn("pins", text, f"{_OWNER}, and make the directory above the root writable")
    text = f"{premises.tried_on} can be neither linked nor held open: {premises.pin_trouble}"
    return fail("pins", text, _OWNER, 2)


def space(premises: Premises) -> Finding:
    """Judge whether the disk holds one more checkpoint than the trainer keeps."""
    largest = premises.census.largest_bytes
    text = f"{size_words(premises.free_bytes)} free for what is pinned"
    if largest and premises.free_bytes < largest:
        text += f", less than one checkpoint ({size_words(largest)})"
        hint = "make room: what is rotated away before its upload ends needs space that long"
        return warn("disk space", text, hint)
    return ok("disk space", text)


def room(premises: Premises) -> list[Finding]:
    """Judge whether a destination that is a directory has room for one more checkpoint."""
    if premises.target_free_bytes is None:
        return []
    largest = premises.census.largest_bytes
    text = f"{size_words(premises.target_free_bytes)} free at the destination"
    if premises.target_free_bytes < max(largest, 1):
        text += f", less than one checkpoint ({size_words(largest)})" if largest else ""
        hint = "make room there, or let keep_last and its like prune what is old"
        return [warn("room", text, hint)]
    return [ok("room", text)]


def device(premises: Premises) -> Finding:
    """Judge whether the destination survives the loss of the disk."""
    if premises.shares_device:
        text = "the destination is on the watch root's own disk"
        return warn("same disk", text, "mount a volume that survives this machine, or name a store")
    return ok("same disk", "the destination is not on the watch root's disk")
