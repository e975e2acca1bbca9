"""What is made of facts that a test machine cannot have, or not cheaply; no disk, no store."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ckptsyncd.check import bucket, metadata, rate, root, setup, stop, store
from ckptsyncd.check.documents import absolute_paths, documents
from ckptsyncd.check.finding import Finding, exit_code, fail, failed, ok, warn, worst
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Limits
from ckptsyncd.core.premises import Census, Premises, StopBudget, Watching
from ckptsyncd.core.rules.bucket import BucketRule
from ckptsyncd.errors import Again, Gone, Lost, Refused, StoreError
from ckptsyncd.stores.azure.situation import AzureSituation

PREMISES = Premises("/data/run", exists=True, file_system="ext4", free_bytes=2**40)


def test_the_worst_line_has_the_exit_code() -> None:
    """Warnings never fail; of what fails, the highest code is the program's."""
    calm = [ok("a", "."), warn("b", ".", ".")]
    assert (exit_code(calm), worst(calm)) == (0, "warn")
    rows = [*calm, fail("c", ".", ".", 5), fail("d", ".", ".", 2)]
    assert (exit_code(rows), worst(rows)) == (5, "fail")
    assert (exit_code([]), worst([])) == (0, "ok")


def test_an_error_brings_its_hint_and_code() -> None:
    """A line made of an error says what the error says, with the same code."""
    found = failed("store", Refused("no", hint="renew"))
    assert found == Finding("store", "fail", "no", "renew", 5)


@pytest.mark.parametrize("kind", [StoreError, Again, Gone, Lost, Refused])
def test_no_advice_that_only_a_daemon_could_follow(kind: type[StoreError]) -> None:
    """Where an error has no hint of its own, nobody is sent to 'check', or told to wait."""
    hint = failed("store", kind("no")).hint
    assert hint
    assert "ckptsyncd" not in hint
    assert "by itself" not in hint
    slow = failed("store", Again("503", hint="slowed down by themselves", throttled=True))
    assert slow.hint.endswith("check again later")


@pytest.mark.parametrize(
    ("premises", "level", "says"),
    [
        (Watching(3, limit=100), "ok", "3 directories watched, 100 allowed"),
        (Watching(60, limit=100), "warn", "60 directories watched, 100 allowed"),
        (Watching(1), "ok", "1 directory watched"),
        (Watching(2, (("b", "no watches left"),)), "warn", "b is polled: no watches left"),
        (Watching(0, (("", "NFS hides"),)), "warn", "the whole tree is polled: NFS hides"),
        (Watching(2, tuple((x, "full") for x in "abc")), "warn", "a and 2 more are polled: full"),
        (Watching(no_instance="Too many open files"), "warn", "no inotify instance: Too many"),
    ],
)
def test_events(premises: Watching, level: str, says: str) -> None:
    """Watches are compared with the limit; whatever cannot be watched is told with its reason."""
    found = root.events(Premises("/r", exists=True, watching=premises), polls=False)
    assert found.level == level
    assert says in found.text


def test_file_systems_that_hide_writers() -> None:
    """On NFS no lease is trusted, whatever the kernel granted."""
    found = root.lease(Premises("/r", exists=True, hides_writers="NFS", lease="granted"))
    assert (found.level, "NFS does not tell who writes" in found.text) == ("warn", True)


def test_too_little_room() -> None:
    """Less room than one checkpoint is a warning with both numbers."""
    census = Census(largest="c", largest_bytes=10 * 2**30)
    found = root.space(Premises("/r", exists=True, census=census, free_bytes=2**30))
    assert found.level == "warn"
    assert "1.0 GiB free" in found.text
    assert "10.0 GiB" in found.text


@pytest.mark.parametrize(
    ("free", "level", "says"),
    [
        (2**40, "ok", "1.0 TiB free"),
        (2**30, "warn", "less than one checkpoint (10.0 GiB)"),
        (0, "warn", "0 B free"),
    ],
)
def test_room_at_a_destination_that_is_a_directory(free: int, level: str, says: str) -> None:
    """It is compared with the largest checkpoint; a bucket has no such line."""
    census = Census(largest="c", largest_bytes=10 * 2**30)
    (found,) = root.room(Premises("/r", exists=True, census=census, target_free_bytes=free))
    assert (found.level, says in found.text) == (level, True)
    assert root.room(Premises("/r", exists=True, census=census)) == []


def test_a_root_that_is_not_there_yet() -> None:
    """Nothing else is said of a root that is waited for."""
    (found,) = root.root(Premises("/data/run"), polls=False)
    assert (found.level, "it is waited for" in found.text) == ("warn", True)


@pytest.mark.parametrize(
    ("budget", "timeout", "kill_after", "level", "says"),
    [
        (StopBudget(), 8.0, None, "ok", "nobody is known to kill"),
        (StopBudget("a.service", 90.0), 85.0, None, "ok", "a.service is killed 1 min 30 s after"),
        (StopBudget("a.service", 5.0), 8.0, None, "fail", "raise TimeoutStopSec="),
        (StopBudget("a.service", 8.5), 8.0, None, "warn", "leave a second"),
        (StopBudget("a.service", 90.0), 8.0, None, "warn", "the rest of the time is not used"),
        (StopBudget("a.service"), 8.0, None, "ok", "never killed"),
        (StopBudget(platform="kubernetes"), 60.0, None, "fail", "terminationGracePeriodSeconds"),
        (StopBudget(platform="kubernetes"), 60.0, 90.0, "ok", "kill_after"),
        (StopBudget(platform="container"), 8.0, None, "ok", "container kills 10 s after"),
        (StopBudget(platform="container"), 20.0, None, "fail", "docker stop --time"),
        (StopBudget(platform="slurm"), 28.0, None, "ok", "slurm kills 30 s after"),
    ],
)
def test_the_stop(
    budget: StopBudget, timeout: float, kill_after: float | None, level: str, says: str
) -> None:
    """The stop timeout must end before whoever kills does; what the user says comes first."""
    found = stop.stop(budget, timeout, kill_after)
    assert found.level == level
    assert says in f"{found.text} {found.hint}"
    assert (found.exit_code == 2) == (level == "fail")


ABORTS = BucketRule("tidy", "", aborts_days=7.0)


@pytest.mark.parametrize(
    ("rules", "level", "says"),
    [
        ([], "warn", "no rule ends unfinished uploads"),
        ([ABORTS], "ok", "no rule of the bucket removes"),
        ([ABORTS, BucketRule("old", "", expires_days=30.0)], "fail", "'old' removes checkpoints"),
        ([ABORTS, BucketRule("old", "runs/a/x", expires_days=1.0)], "fail", "after 1 days"),
        ([ABORTS, BucketRule("old", "logs/", expires_days=1.0)], "ok", "no rule"),
        ([ABORTS, BucketRule("old", "", expires_days=1.0, is_tagged=True)], "ok", "no rule"),
        ([BucketRule("tidy", "logs/", aborts_days=7.0)], "warn", "paid for ever"),
    ],
)
def test_the_lifecycle(rules: list[BucketRule], level: str, says: str) -> None:
    """A rule that expires our prefix fails; none that ends half uploads is a warning."""
    found = bucket.judged(rules, "runs/a/", keeps_parts=True)
    assert (found.level, says in found.text) == (level, True)


def test_rules_that_nobody_tells() -> None:
    """Where a store keeps its rules to itself nothing is claimed about them."""
    found = bucket.lifecycle(AzureSituation(cast("Any", None)), "runs/", keeps_parts=False)
    assert found.level == "ok"
    assert "not told" in found.text
    assert "no rule of the bucket" not in found.text


def test_parts_that_nobody_pays_for() -> None:
    """Where begun uploads expire by themselves no rule is missed."""
    assert bucket.judged([], "runs/", keeps_parts=False).level == "ok"


@pytest.mark.parametrize(
    ("seconds", "level"), [(0.4, "ok"), (-9.0, "ok"), (60.0, "warn"), (-1000.0, "fail")]
)
def test_the_clock(seconds: float, level: str) -> None:
    """Seconds do not matter, a minute is worth a line, stores refuse a quarter of an hour."""
    assert bucket.skew(seconds, signs=True).level == level
    assert bucket.skew(seconds, signs=False).level == level.replace("fail", "warn")


@pytest.mark.parametrize(
    ("checksum", "level"),
    [("crc64nvme", "ok"), ("md5", "ok"), ("read back", "warn"), ("size", "warn")],
)
def test_the_checksum_mode(checksum: str, level: str) -> None:
    """Whatever the store does not check is told, with its price."""
    limits = Limits(1, 2, 3, 4, checksum=checksum)
    assert store.content(limits).level == level


def test_stores_without_conditions() -> None:
    """A store that keeps no two writers apart is told to have one."""
    found = store.conditions(Limits(1, 2, 3, 4, create_only_finish=False, compare_and_set=False))
    assert "no create-only uploads and no compare-and-set" in found.text
    assert found.level == "warn"


def test_what_fits_a_notice() -> None:
    """The measured rate times the notice is compared with the largest checkpoint."""
    assert rate.fits(2**20, 30.0, "a notice", 29 * 2**20).level == "ok"
    assert rate.fits(2**20, 30.0, "a notice", 31 * 2**20).level == "warn"
    assert rate.fits(2**20, 30.0, "a notice", 0).level == "ok"


def test_sources_that_cannot_be_heard() -> None:
    """A blind source is a warning with its verdict; a notice that is there already another one."""
    blind = metadata.source("aws-spot", Poll("unknown", reason="the hop limit is too small"))
    assert (blind.level, "the hop limit is too small" in blind.text) == ("warn", True)
    there = Poll("notice", (Announcement("1", "binding", "EC2 ends this machine"),))
    assert metadata.source("aws-spot", there).level == "warn"
    assert metadata.source("aws-spot", Poll("none")).level == "ok"
    assert [one.level for one in metadata.metadata("", "", [])] == ["ok"]


def test_a_reason_is_told_once() -> None:
    """Four keys behind one door that is shut have one reason, and three that refer to it."""
    shut = Poll("unknown", reason="the door is shut")
    first, second = metadata.metadata("aws", "dmi", [("a", shut), ("b", shut)])[1:]
    assert "the door is shut" in first.text
    assert (second.level, "the same as with a" in second.text) == ("warn", True)


def test_an_end_that_is_known_in_advance() -> None:
    """It is told with its time, and is a warning from when the daemon would drain for it."""
    end = Announcement("1", "scheduled", "the lease ends", 2_000_000_000.0, lead_seconds=600.0)
    early = metadata.source("end", Poll("notice", (end,), server_wall=1_999_999_000.0))
    assert (early.level, "2033-05-18 03:33 UTC" in early.text) == ("ok", True)
    late = metadata.source("end", Poll("notice", (end,), server_wall=1_999_999_500.0))
    assert (late.level, late.hint) == ("warn", "the daemon drains at once")
    advice = Poll("notice", (Announcement("2", "advisory", "it may be taken"),))
    assert metadata.source("end", advice).level == "ok"


def test_where_settings_were_said() -> None:
    """The line names the file, and counts what was said elsewhere."""
    origins = [("dir", "DIR"), ("hands", "CKPTSYNCD_HANDS"), ("node", "/etc/c.toml:3")]
    text = setup.settings("/etc/c.toml", origins).text
    assert text == "config file /etc/c.toml; 1 by flags, 1 by variables, 1 by the file"


def test_absolute_paths_are_found_wherever_they_stand() -> None:
    """Keys are told with dots; a path that only begins alike is none."""
    document = {"a": [{"best": "/data/run/checkpoint-5"}, "/data/runner"], "root": "/data/run"}
    assert list(absolute_paths(document, "/data/run")) == [
        ("a.best", "/data/run/checkpoint-5"),
        ("root", "/data/run"),
    ]


def test_documents_that_are_none() -> None:
    """Files that are gone, too large or no JSON are passed over."""
    files = {"a.json": b"{", "b.json": b"[" * 5000, "c.json": None, "d.json": b'{"p": "/r/x"}'}
    found = documents("/r", files, lambda path: files[path])
    assert (found.level, found.text) == ("warn", "d.json says p = '/r/x'")
    assert documents("/r", ["a.json"], lambda path: files[path]).level == "ok"
