"""The one table of metrics: name, kind, labels, meaning, and how each is read.

The exposition, the tables of the documentation and the checks of rules and dashboards are made
from it. Values are read when somebody asks; times are seconds since the epoch, sizes bytes.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

from ckptsyncd.core.snapshot import is_incomplete
from ckptsyncd.report import metric_reads as reads
from ckptsyncd.report.metric_reads import Read, one, points, shown

PREFIX = "ckptsyncd_"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. A counter's exposed name ends in ``_total``; ``read`` yields its samples."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    meaning: str
    read: Read

    @property
    def exposed(self) -> str:
        """Its name as a query writes it."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


# fmt: off
METRICS: tuple[Metric, ...] = (
    Metric("build_info", "gauge", ("version",), "1, with the program's version.", reads.build),
    Metric("state", "gauge", ("state",),
        "1 for the state in which the daemon is, 0 for the others.", reads.state),
    Metric("snapshot_timestamp_seconds", "gauge", (),
        "When the values of this scrape were taken; it stands still if the loop does.",
        shown(lambda it: it.taken_at)),
    Metric("recovery_point_timestamp_seconds", "gauge", ("series",),
        "When the newest safe checkpoint of the series was committed.",
        points(lambda it: it.committed_at, min)),
    Metric("recovery_point_step", "gauge", ("series",),
        "Training step of the newest safe checkpoint of the series.",
        points(lambda it: it.step, min)),
    Metric("recovery_point_bytes", "gauge", ("series",),
        "Size of the newest safe checkpoint of the series.",
        points(lambda it: it.bytes, operator.add)),
    Metric("behind_seconds", "gauge", ("series",),
        "For how long the series has had finished work that is newer than its recovery point"
        " and not safe; 0 where there is none.", reads.behind),
    Metric("checkpoints", "gauge", ("state",),
        "Checkpoints that the daemon knows, by state.", reads.checkpoints),
    Metric("incomplete_checkpoints", "gauge", (),
        "Checkpoints for whose other machines' parts was waited longer than is usual; 'status' says"
        " which nodes are missing.",
        shown(lambda it: sum(map(is_incomplete, it.checkpoints)))),
    Metric("unsynced_bytes", "gauge", (),
        "Bytes of finished checkpoints that are not in the store.",
        shown(lambda it: it.unsynced_bytes)),
    Metric("unsynced_age_seconds", "gauge", (),
        "For how long there have been such bytes; 0 where there are none.",
        one(reads.unsynced_age)),
    Metric("upload_rate_bytes_per_second", "gauge", (),
        "How fast bytes arrived in the store of late, while something was under way.",
        shown(lambda it: it.rate_bytes_per_second)),
    Metric("drain_eta_seconds", "gauge", (),
        "How long everything unsynced takes at that rate; absent where no rate was measured.",
        shown(reads.drain_eta)),
    Metric("would_fit_notice", "gauge", (),
        "1 where what is at risk, or else the newest checkpoint, would be safe within a notice as"
        " it is usual here, 0 where not; absent where no rate was measured.",
        shown(reads.would_fit)),
    Metric("drain_given_up_bytes", "gauge", (),
        "Bytes that will not be safe by the deadline, by the plan of the drain that is under way.",
        shown(reads.given_up)),
    Metric("drain_bytes", "gauge", ("fate",),
        "Bytes of the plan of a drain that is under way: chosen, or given up.", reads.drain_bytes),
    Metric("drain_lost_bytes", "gauge", (),
        "Bytes of finished checkpoints that the last report of a drain calls lost.",
        shown(reads.lost)),
    Metric("notice", "gauge", (),
        "1 while a binding interruption notice is in force.",
        shown(lambda it: it.notice is not None)),
    Metric("notice_deadline_timestamp_seconds", "gauge", (),
        "When this machine or process ends; absent where that is not known.",
        shown(lambda it: it.notice_deadline_at)),
    Metric("source_blind", "gauge", ("source",),
        "1 where a source of interruption notices cannot be heard.", reads.blind),
    Metric("store_failing", "gauge", (),
        "1 while nothing that is asked of the store succeeds.",
        shown(lambda it: bool(it.store_failing))),
    Metric("store_failing_since_timestamp_seconds", "gauge", (),
        "Since when nothing that is asked of the store succeeds; absent while something does.",
        shown(lambda it: it.failing_since)),
    Metric("store_refused", "gauge", (),
        "1 while nothing succeeds because the store refuses the credentials or its policy says no.",
        shown(lambda it: it.failing_kind == "refused")),
    Metric("disk_failing", "gauge", (),
        "1 while the watch root's disk does not answer: nobody knows what was saved since.",
        shown(lambda it: bool(it.disk_failing))),
    Metric("slowed_to_hands", "gauge", (),
        "Requests at a time while the store asks for fewer; absent while it does not.",
        shown(lambda it: it.slowed_to)),
    Metric("warnings", "gauge", (),
        "Warnings that 'ckptsyncd status' shows.",
        shown(lambda it: len(it.warnings))),
    Metric("polled_subtrees", "gauge", (),
        "Directories that are listed again and again because no events come from them.",
        shown(lambda it: len(it.polled))),
    Metric("pins", "gauge", (),
        "Checkpoints kept readable although the trainer may remove them.",
        shown(lambda it: it.pins)),
    Metric("orphaned_uploads", "gauge", (),
        "Begun uploads in the store that nobody goes on with and that are still to be dropped.",
        shown(lambda it: it.orphans)),
    Metric("credentials_expiry_timestamp_seconds", "gauge", (),
        "When the store's credentials end that nobody renews; absent where they are renewed by"
        " themselves or never end.",
        one(lambda seen: seen.credentials_expire_at)),
    Metric("longest_lease_seconds", "gauge", (),
        "Longest time for which a trainer's open() could have been held up by a look of ours.",
        one(lambda seen: seen.longest_hold_seconds)),
    Metric("verified_timestamp_seconds", "gauge", (),
        "When 'ckptsyncd verify' last looked at everything; absent where that is not known.",
        shown(lambda it: it.tidying.verified_at)),
    Metric("verified_broken_checkpoints", "gauge", (),
        "Checkpoints in the store that were not whole then.",
        shown(reads.verified_broken)),
    Metric("pruning_failing", "gauge", (),
        "1 while old checkpoints that are to go do not; 'status' says why.",
        shown(lambda it: bool(it.tidying.prune_failing))),
    Metric("pruned_checkpoints", "counter", (),
        "Checkpoints removed from the store by the rules about what is kept.",
        shown(lambda it: it.tidying.pruned)),
    Metric("removed_objects", "counter", (),
        "Objects that were removed with them.",
        shown(lambda it: it.tidying.objects_removed)),
    Metric("local_removed_bytes", "counter", (),
        "Bytes of safe checkpoints that were removed from this machine's disk to make room.",
        shown(lambda it: it.tidying.local_bytes_removed)),
    Metric("event_overflows", "counter", (),
        "How often the kernel lost file events.",
        shown(lambda it: it.overflows)),
    Metric("rescans", "counter", (),
        "How often the whole watch root was listed.",
        shown(lambda it: it.rescans)),
    Metric("pieces_stored", "counter", (),
        "Pieces and small files that reached the store.",
        shown(lambda it: it.pieces_stored)),
    Metric("sent_bytes", "counter", (),
        "Bytes of checkpoints that reached the store.",
        shown(lambda it: it.bytes_sent)),
    Metric("retries", "counter", (),
        "Store orders that failed and are tried again.",
        shown(lambda it: it.retries)),
    Metric("throttled", "counter", (),
        "Answers in which the store asked for fewer requests.",
        shown(lambda it: it.throttled)),
    Metric("store_calls", "counter", ("call", "outcome"),
        "What was asked of the store, by verb and by outcome: done, or the kind of the error"
        " (again, never, gone, missing, lost, refused; failed: our own disk).", reads.calls),
    Metric("store_call_bytes", "counter", ("call",),
        "Bytes that calls moved which were done.", reads.call_bytes),
    Metric("store_call_seconds", "counter", ("call",),
        "Time that calls took, whatever their outcome.", reads.call_seconds),
    Metric("store_requests", "counter", ("class",),
        "Calls of the store by the class in which they are billed: write (and list), read, free.",
        reads.requests),
    Metric("store_bytes", "counter", ("direction",),
        "Bytes that were sent to the store and received from it.", reads.directions),
    Metric("estimated_cost", "counter", (),
        "What requests and traffic cost by the prices in the settings, in their currency; absent"
        " without prices.", one(lambda seen: seen.usage.cost)),
    Metric("commit_latency_seconds", "histogram", (),
        "From the last byte that the trainer wrote into a checkpoint to safe.",
        reads.of_histogram),
)
# fmt: on
