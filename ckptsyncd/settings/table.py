"""The one table of settings: name, default, kind and meaning of everything that a user may say.

Flags, environment variables, the sample config and the tables of the documentation are made from
it. Durations are seconds, sizes bytes. Defaults of the mind's own rules are those of ``Policy``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.layouts import Layout
from ckptsyncd.settings.amounts import Duration, Moment, Price, Size, rate
from ckptsyncd.settings.keeping import EVERY, retention_of
from ckptsyncd.settings.kinds import Choice, Count, Kind, Many, Path, Switch, Text
from ckptsyncd.settings.layouts import Layouts

_HOUR = 3600.0
_DAY = 24 * _HOUR
_GIB = 2**30
_RULES = Policy()
_SOURCE = Text("a source's name", r"[a-z0-9][a-z0-9_-]*")

WHERE = "What and where"
WHOLE = "When a checkpoint is whole"
UPLOAD = "Uploading"
KEEPING = "Removing old checkpoints"
COST = "What it costs"
NOTICE = "Interruptions and stopping"
TRAINER = "Telling the trainer of a notice"
NODES = "Several machines"
REPORT = "Reports"
RESIDENCY = "Where bytes may lie"
S3 = "S3"
GCS = "Google Cloud Storage"
AZURE = "Azure Blob"
#: Groups that say how a store is reached, where it may be and what it keeps with the objects.
STORES = (RESIDENCY, S3, GCS, AZURE)


@dataclass(frozen=True, slots=True)
class Definition:
    """One setting: its key in the file; flag and environment variable follow from it."""

    name: str
    kind: Kind
    default: Any
    group: str
    help: str
    example: str = ""
    positional: bool = False

    @property
    def flag(self) -> str:
        """Return its flag, or its place where it is given without one; empty: only in a file."""
        if isinstance(self.kind, Layouts):
            return ""
        return self.name.upper() if self.positional else "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Return its environment variable, which only tells what is wrong where a file must."""
        return "CKPTSYNCD_" + self.name.upper()

    def default_text(self) -> str:
        """Return the default as it would stand in a file, empty where there is none."""
        return "" if self.default in (None, "", ()) else self.kind.show(self.default)

    def example_text(self) -> str:
        """Return the default, or where there is none an example, as it would stand in a file."""
        return self.default_text() or self.example


def _setting(
    default: Any,
    kind: Kind,
    group: str,
    help_text: str,
    example: str = "",
    *,
    positional: bool = False,
) -> Any:
    """Return a dataclass field that carries its definition; ``example`` where no default shows."""
    made = Definition("", kind, default, group, help_text, example, positional)
    return dataclasses.field(default=default, metadata={"definition": made})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a user decides, read and validated by ``load``.

    ``socket`` and ``state_dir`` are empty only in Settings that were not made by ``load``.
    """

    # fmt: off
    dir: str = _setting("", Path("the watch root"), WHERE,
        "Directory the trainer writes checkpoints into.", '"/data/run"', positional=True)
    url: str = _setting("", Text("a URL: s3://, gs://, az:// or file://"), WHERE,
        "Destination, such as s3://bucket/run or file:///mnt/volume/run.",
        '"s3://bucket/run"', positional=True)
    also: str = _setting("", Text("a URL: s3://, gs://, az:// or file://"), WHERE,
        "Second destination: gets every checkpoint once it is safe in the first, read back from "
        "there. Store options hold for both.", '"gs://other-bucket/run"')
    restore: bool = _setting(False, Switch(), WHERE,
        "Where the watch root holds no checkpoint, 'run' restores before it watches.")
    exclude: tuple[str, ...] = _setting((), Many(Text("a glob below the watch root")), WHERE,
        "Paths that are never looked at, as globs relative to the watch root.",
        '["*.tmp", "wandb/**"]')
    companions: bool = _setting(_RULES.companions, Switch(), WHERE,
        "Keep files that belong to no checkpoint (logs, configs) too, at low priority.")
    state_dir: str = _setting("", Path(), WHERE,
        "Directory of ledger and lock; by default one for each watch root and destination.",
        '"/var/lib/ckptsyncd/run"')
    socket: str = _setting("", Path(), WHERE,
        "Unix socket of status, drain, commit and wait; by default one for each watch root and "
        "destination.", '"/run/ckptsyncd/run.sock"')
    watch: str = _setting("auto", Choice(words=("auto", "inotify", "poll")), WHERE,
        "How changes are seen; auto polls only file systems that send no events.")

    quiet_seconds: float = _setting(_RULES.quiet_seconds, Duration(0.2, _HOUR), WHOLE,
        "Without better evidence a checkpoint is whole after this long without a change.")
    ranks_quiet_seconds: float = _setting(_RULES.ranks_quiet_seconds, Duration(0.2, _HOUR), WHOLE,
        "The same where several ranks write one checkpoint without a marker.")
    grace_seconds: float = _setting(_RULES.grace_seconds, Duration(0.0, _HOUR), WHOLE,
        "Wait after a marker whose other ranks may still be writing.")
    sweep_seconds: float = _setting(_RULES.sweep_seconds, Duration(1.0, _DAY), WHOLE,
        "Look at everything again this often, whatever the events said.")
    poll_seconds: float = _setting(_RULES.poll_seconds, Duration(0.1, _HOUR), WHOLE,
        "List a directory without events this often.")
    done_file: str = _setting(_RULES.done_file, Text("a name, as in a shell"), WHOLE,
        "A file in a checkpoint that says it is whole, once it is newer than all else in it.",
        '"DONE"')
    layout: tuple[Layout, ...] = _setting((), Layouts(), WHOLE,
        "Layouts of your own, tried before the built-in ones (see docs/layouts.md).",
        '[{ name = "mine", folder = "save-[0-9]+", marker = "index[.]json" }]')
    max_wait_seconds: float = _setting(_RULES.max_wait_seconds, Duration(1.0, _DAY), WHOLE,
        "A checkpoint rewritten faster than it uploads is copied aside after this long.")

    pins_floor_bytes: int | None = _setting(None, Size(0, 2**60), WHOLE,
        "Checkpoints that the trainer removed are let go of while less than this is free. "
        "Default: a twentieth of the disk, 10GiB at most.", '"20GiB"')
    pins_most_bytes: int | None = _setting(None, Size(0, 2**60), WHOLE,
        "Checkpoints that the trainer removed are kept until they are safe, but of all no more "
        "than this. Default: half of the disk.", '"500GiB"')

    hands: int = _setting(32, Count(1, 64), UPLOAD,
        "Requests to the store under way at most; how many are of use is found out by measuring.")
    piece_bytes: int = _setting(_RULES.piece_bytes, Size(2**18, 5 * _GIB), UPLOAD,
        "Wanted size of one piece; large files on fast links go in pieces up to four times larger.")
    bandwidth: int | None = _setting(None, rate(2**16, 2**40), UPLOAD,
        "Send at most this much (800Mbit/s, 100MiB/s); lifted while draining. "
        "Default: no limit.", '"800Mbit/s"')
    nice: int = _setting(0, Count(0, 19), UPLOAD,
        "How far the CPU priority of what uploads lies below the daemon's own, where it shares "
        "cores with the training; lifted while draining.")
    backlog: str = _setting(_RULES.backlog, Choice(words=("newest", "keep-all")), UPLOAD,
        "newest: an older checkpoint that has not begun gives way; keep-all: upload every one.")
    trust_size: bool = _setting(False, Switch(), UPLOAD,
        "Call a file safe by its size where the store can check nothing better.")
    orbax_stamp: bool = _setting(_RULES.orbax_stamp, Switch(), UPLOAD,
        "Add Orbax's commit_success.txt to its checkpoints: Orbax before 0.12.3 writes none on a "
        "disk, and deletes what has none in a bucket.")
    allow_step_back: bool = _setting(_RULES.allow_step_back, Switch(), UPLOAD,
        "Let a lower step than the newest become the latest (a new lineage).")

    keep_last: int | None = _setting(None, Count(1, 10**6), KEEPING,
        "Keep so many checkpoints of each series in the store; what no rule keeps is pruned. "
        "Default: nothing is ever pruned.", "5")
    keep_every: tuple[str, ...] = _setting((), Many(Text("steps (1000) or a time (24h)", EVERY)),
        KEEPING, "Keep one for so many steps, or for so long; one of each may be said.",
        '["1000", "24h"]')
    newer_than: float | None = _setting(None, Duration(0.0, 3660 * _DAY), KEEPING,
        "Keep what was saved so recently.", '"2d"')
    pinned: tuple[str, ...] = _setting((), Many(Text("a glob of names, or NAME@EDITION")), KEEPING,
        "Keep checkpoints of these names, whatever the other rules say.", '["best*"]')
    min_keep: int = _setting(_RULES.retention.min_keep, Count(1, 10**6), KEEPING,
        "Whatever the rules say, so many that verify stay of each series.")
    prune_grace: float = _setting(_RULES.prune_grace, Duration(0.0, 366 * _DAY), KEEPING,
        "Data goes so long after its checkpoint, so that a restore that is under way can end.")
    prune_interval: float = _setting(_RULES.prune_interval, Duration(1.0, 7 * _DAY), KEEPING,
        "From the end of one prune to the next at least.")
    prune_rate: int = _setting(_RULES.prune_rate, Count(1, 1000), KEEPING,
        "Remove at most so many objects a second.")
    reap: bool = _setting(_RULES.reap, Switch(), KEEPING,
        "Once a day remove what writers left unfinished that are gone for a week.")
    local_bytes: int | None = _setting(_RULES.local_bytes, Size(0, 2**60), KEEPING,
        "While the watch root's checkpoints hold more, local copies of safe ones are removed, the "
        "oldest first, never the newest. Default: none ever is.", '"500GiB"')
    recheck_seconds: float = _setting(_RULES.recheck_seconds, Duration(0.0, 7 * _DAY), UPLOAD,
        "Ask the store this often whether what is safe is still there; 0: only at the start.")

    price_writes: float = _setting(0.0, Price(), COST,
        "Price of a thousand requests that write or list, for the estimate in status.", "0.005")
    price_reads: float = _setting(0.0, Price(), COST,
        "Price of a thousand requests that read.", "0.0004")
    price_sent: float = _setting(0.0, Price(), COST,
        "Price of sending one GiB to the store.", "0.02")
    price_received: float = _setting(0.0, Price(), COST,
        "Price of receiving one GiB from it.", "0.09")
    currency: str = _setting("", Text("such as USD", r"[A-Z]{3}"), COST,
        "Currency of these prices.", '"USD"')

    sources: tuple[str, ...] = _setting(("auto",), Many(_SOURCE), NOTICE,
        "Where interruption notices come from; auto finds out on which cloud this is.")
    without_sources: tuple[str, ...] = _setting((), Many(_SOURCE), NOTICE,
        "Single sources that are left out, by the names that 'ckptsyncd status' gives them.",
        '["aws-rebalance"]')
    metadata_url: str = _setting("", Text("an http URL", r"http://[^/@\s]+/?"), NOTICE,
        "Address of the cloud's metadata service where it is not the usual one.",
        '"http://127.0.0.1:8080"')
    notice_file: str = _setting("", Path(), NOTICE,
        "A file whose appearance is an interruption notice.", '"/run/interruption"')
    notice_command: tuple[str, ...] = _setting((), Many(Text("an argument")), NOTICE,
        "A command that is run again and again: status 0 is a notice, 1 is none.",
        '["/usr/local/bin/is-doomed", "--quiet"]')
    notice_command_interval: float = _setting(5.0, Duration(0.1, _HOUR), NOTICE,
        "From the start of one run of that command to the start of the next.")
    notice_command_timeout: float = _setting(10.0, Duration(0.1, _HOUR), NOTICE,
        "It is stopped after this long.")
    notice_default_seconds: float = _setting(30.0, Duration(0.0, _DAY), NOTICE,
        "Time left after a notice file or command that names none.")
    notice_lead_seconds: float = _setting(600.0, Duration(0.0, 7 * _DAY), NOTICE,
        "Ends that are known in advance (maintenance, hard_stop_at) bind this long before.")
    hard_stop_at: float | None = _setting(None, Moment(), NOTICE,
        "When this machine ends, where that is known in advance (a capacity block's end).",
        '"2030-01-31T12:00:00Z"')
    aws_v1_fallback: bool = _setting(True, Switch(), NOTICE,
        "Ask EC2's metadata service without a token where it gives none.")
    aws_legacy: bool = _setting(False, Switch(), NOTICE,
        "Ask EC2 for spot/termination-time too.")
    aws_hook_seconds: float = _setting(0.0, Duration(0.0, 2 * _DAY), NOTICE,
        "Heartbeat timeout of the Auto Scaling group's termination hook, if it has one.")
    gcp_preemption_seconds: float = _setting(0.0, Duration(0.0, _HOUR), NOTICE,
        "The machine's --preemption-notice-duration, if it was made with one.")
    gcp_terminate_seconds: float = _setting(60.0, Duration(0.0, 2 * _HOUR), NOTICE,
        "Warning before maintenance that ends the machine; 1h with GPUs.")
    azure_acknowledges: bool = _setting(False, Switch(), NOTICE,
        "Once drained, let Azure begin an event early, if it is about this machine alone.")
    notice_seconds: float | None = _setting(None, Duration(0.0, _DAY), NOTICE,
        "How long before the end a notice comes, for 'would a notice do' in status. Default: "
        "what is usual on this cloud, else 30s.", '"2m"')
    stop_margin_seconds: float = _setting(_RULES.stop_margin_seconds, Duration(0.1, _HOUR), NOTICE,
        "Be done this long before a deadline.")
    stop_timeout: float = _setting(8.0, Duration(0.0, _DAY), NOTICE,
        "Time between SIGTERM and the kill that follows. Default: two seconds less than kill_after "
        "or what is usual here (10s, Kubernetes and Slurm 30s, RunPod 5s).")
    kill_after: float | None = _setting(None, Duration(0.0, _DAY), NOTICE,
        "When the platform kills after SIGTERM (terminationGracePeriodSeconds), for "
        "'ckptsyncd check' to compare with stop_timeout.", '"90s"')
    linger_seconds: float = _setting(_RULES.linger_seconds, Duration(0.0, _DAY), NOTICE,
        "After SIGTERM stay this long after the last change, and as long as a file is open for "
        "writing, a trainer runs that tell_pid, tell_pid_file or tell_process names, or a "
        "done_file is missing; within the stop timeout.")
    exit_when_drained: bool = _setting(False, Switch(), NOTICE,
        "End the program once everything is safe after a notice.")
    take_over: bool = _setting(_RULES.take_over, Switch(), NOTICE,
        "Take the run over although a newer daemon was seen on it.")

    tell_signal: str = _setting("", Text("a signal's name", r"SIG[A-Z0-9]+"), TRAINER,
        "Signal that tells the trainer of a notice; with 'run -- CMD' it goes to CMD.",
        '"SIGUSR1"')
    tell_pid: int | None = _setting(None, Count(2, 2**22), TRAINER,
        "Process that gets that signal.", "4242")
    tell_pid_file: str = _setting("", Path(), TRAINER,
        "File that holds the number of the process that gets it.", '"/run/trainer.pid"')
    tell_process: str = _setting("", Text("a program's name"), TRAINER,
        "Name of the programs that get it, in the same PID namespace.", '"train.py"')
    tell_command: tuple[str, ...] = _setting((), Many(Text("an argument")), TRAINER,
        "Command that tells the trainer; CKPTSYNCD_NOTICE_SECONDS says how long it has.",
        '["/usr/local/bin/save-now"]')
    tell_file: str = _setting("", Path(), TRAINER,
        "File that is written on a notice, for the trainer to see, and removed if it is withdrawn.",
        '"/run/save-now.json"')
    trainer_seconds: float = _setting(_RULES.trainer_seconds, Duration(0.0, _HOUR), TRAINER,
        "A drain waits this long for the last checkpoint of a trainer that was told; never longer "
        "than the deadline allows.")

    node: int = _setting(_RULES.node, Count(0, 99_999), NODES,
        "Number of this machine, from 0.")
    nodes: int = _setting(_RULES.nodes, Count(0, 100_000), NODES,
        "How many machines write parts of one checkpoint; 0 where only an index among its files "
        "tells what belongs to it, which is so if node is set and this is not.")
    sharded: bool = _setting(False, Switch(), NODES,
        "Every machine writes a share of each checkpoint; what node and nodes do not say is taken "
        "from the environment of Slurm, torchrun or Kubernetes.")
    shared_root: bool = _setting(_RULES.shared_root, Switch(), NODES,
        "Several daemons see this same watch root: one uploads, by a lease in the store, and the "
        "others idle until it is gone.")
    lease_seconds: float = _setting(_RULES.lease_seconds, Duration(3.0, _HOUR), NODES,
        "With shared_root: how long the one that uploads may be silent before another takes over.")
    save_window_seconds: float = _setting(_RULES.save_window_seconds, Duration(1.0, _DAY), NODES,
        "What machines wrote under one name within this time is one save, where no done-file with "
        "a content of its own says so.")
    incomplete_seconds: float = _setting(_RULES.incomplete_seconds, Duration(1.0, _DAY), NODES,
        "The other machines' parts are waited for this long before status calls it incomplete.")

    webhook: str = _setting("", Text("an http or https URL", r"https?://[^@\s]+"), REPORT,
        "Address that is sent a small JSON document on a notice, on the report of a drain, and "
        "when uploads stall or go on.", '"https://hooks.example.com/T0/B0"')
    stall_seconds: float = _setting(300.0, Duration(1.0, 7 * _DAY), REPORT,
        "The webhook is told of a stall once finished work waits and nothing moved for this long.")
    heartbeat_url: str = _setting("", Text("an http or https URL", r"https?://[^@\s]+"), REPORT,
        "Address that is called (GET) again and again, but only while everything whole is safe: a "
        "dead-man switch.", '"https://hc.example.com/ping/0000"')
    heartbeat_seconds: float = _setting(60.0, Duration(1.0, _DAY), REPORT,
        "Call it this often.")
    tensorboard_dir: str = _setting("", Path(), REPORT,
        "Directory for TensorBoard: each series is a run below its ckptsyncd/.", '"/data/logs"')
    wandb_project: str = _setting("", Text("a project's name", r"[^/\s]+"), REPORT,
        "Plot in this project at Weights & Biases (extra 'wandb'); WANDB_... variables say the "
        "rest.", '"llama"')
    tracker_seconds: float = _setting(10.0, Duration(1.0, _DAY), REPORT,
        "Both are told at most this often of what changed, and at once when something is safe.")
    log_format: str = _setting("auto", Choice(words=("auto", "human", "json")), REPORT,
        "auto: human on a terminal, JSON lines elsewhere.")
    log_level: str = _setting("info", Choice(words=("debug", "info", "warning", "error")), REPORT,
        "Least severe events that are logged.")
    metrics_port: int | None = _setting(None, Count(1, 65535), REPORT,
        "Serve Prometheus metrics and probes on this port. Default: none.", "9465")
    metrics_host: str = _setting("127.0.0.1", Text("an IP address", r"[0-9.]+|[0-9A-Fa-f:.]+"),
        REPORT, "Address on which they are served; anybody who reaches it may read them.")
    synced_seconds: float = _setting(300.0, Duration(0.0, 7 * _DAY), REPORT,
        "/synced is bad once finished work newer than the recovery point waited this long.")

    allowed_regions: tuple[str, ...] = _setting((), Many(Text("a region, host or 'file'")),
        RESIDENCY, "Regions that a bucket may lie in; a store that tells no region is allowed by "
        "its host's name, a volume by 'file'.", '["ca-central-1", "northamerica-northeast1"]')
    country: str = _setting("", Text("an ISO 3166 code", r"[A-Z]{2}"), RESIDENCY,
        "Country that a bucket must lie in; regions named in allowed_regions need not.", '"CA"')
    egress: str = _setting("any", Choice(words=("any", "same-continent", "same-region")), RESIDENCY,
        "How far from this machine's own region the bucket may be.")
    machine_region: str = _setting("", Text("such as aws:eu-west-1", r"(aws|gcp|azure):[a-z0-9-]+"),
        RESIDENCY, "Cloud and region of this machine where its metadata does not tell.",
        '"aws:ca-central-1"')

    s3_endpoint: str = _setting("", Text("an http or https URL", r"https?://[^/@\s]+/?"), S3,
        "Endpoint of an S3 store that is not AWS.", '"https://s3.example.com"')
    s3_region: str = _setting("", Text("a region", r"[A-Za-z0-9-]+"), S3,
        "Region of the bucket.", '"eu-central-1"')
    s3_profile: str = _setting("", Text("a profile"), S3,
        "Profile in the AWS config files.", '"training"')
    s3_path_style: bool = _setting(False, Switch(), S3,
        "Name the bucket in the path, not in the host name.")
    s3_sse: str = _setting("", Choice(words=("AES256", "aws:kms", "aws:kms:dsse")), S3,
        "Server-side encryption to ask for. Default: the bucket's own.", '"aws:kms"')
    s3_kms_key_id: str = _setting("", Text("a key id or ARN"), S3,
        "KMS key for s3_sse = aws:kms.", '"alias/checkpoints"')
    s3_storage_class: str = _setting("", Text("a storage class", r"[A-Z0-9_]+"), S3,
        "Storage class of the data objects.", '"STANDARD_IA"')

    gcs_endpoint: str = _setting("", Text("an http or https URL", r"https?://[^/@\s]+/?"), GCS,
        "Endpoint of the JSON API, such as an emulator's; nothing is presented to one without TLS.",
        '"http://127.0.0.1:4443"')
    gcs_anonymous: bool = _setting(False, Switch(), GCS,
        "Present no credentials: for buckets that are open to everybody.")
    gcs_user_project: str = _setting("", Text("a project", r"[a-z0-9.:-]+"), GCS,
        "Project that pays for the requests, where it is not the bucket's.", '"my-project"')
    gcs_kms_key_name: str = _setting("", Text("a key's resource name", r"projects/\S+"), GCS,
        "Customer-managed key to encrypt with. Default: the bucket's own.",
        '"projects/p/locations/eu/keyRings/r/cryptoKeys/k"')
    gcs_storage_class: str = _setting("", Text("a storage class", r"[A-Z_]+"), GCS,
        "Storage class of the data objects.", '"NEARLINE"')

    azure_endpoint: str = _setting("", Text("an http or https URL", r"https?://[^@\s?]+"), AZURE,
        "Address of the account where it is not Azure's own.",
        '"http://127.0.0.1:10000/devstoreaccount1"')
    azure_sas_token_file: str = _setting("", Path(), AZURE,
        "File with a SAS token; read again when the store refuses what was read before.",
        '"/run/secrets/sas"')
    azure_encryption_scope: str = _setting("", Text("an encryption scope", r"[A-Za-z0-9-]+"), AZURE,
        "Encryption scope of everything that is stored. Default: the container's own.", '"team-a"')
    azure_access_tier: str = _setting("", Choice(words=("Hot", "Cool", "Cold")), AZURE,
        "Access tier of the data blobs. Default: the account's own.", '"Cool"')
    # fmt: on

    def policy(self) -> Policy:
        """Return the mind's rules: every rule that has a setting's name, as set."""
        names = {field.name for field in dataclasses.fields(self)}
        shared = [field.name for field in dataclasses.fields(Policy) if field.name in names]
        said = {name: value for name in shared if (value := getattr(self, name)) is not None}
        kept = retention_of(
            self.keep_last, self.keep_every, self.newer_than, self.pinned, self.min_keep
        )
        return Policy(**said, retention=kept, has_also=bool(self.also))


DEFINITIONS: tuple[Definition, ...] = tuple(
    dataclasses.replace(field.metadata["definition"], name=field.name)
    for field in dataclasses.fields(Settings)
)  # fmt: skip
BY_NAME: dict[str, Definition] = {made.name: made for made in DEFINITIONS}
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(made.group for made in DEFINITIONS))
