"""The wiring: the only module that knows concrete classes. It decides nothing."""

from __future__ import annotations

import os
import random
import secrets
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from ckptsyncd import __version__
from ckptsyncd.core.brain import Brain
from ckptsyncd.core.documents import MAX_RECORD_BYTES, Restorations
from ckptsyncd.core.memory import TABLES, Recalled, recall
from ckptsyncd.core.messages import (
    Message,
    Overflowed,
    RootLost,
    StopRequested,
    TrainerEnded,
)
from ckptsyncd.core.ports import Store
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.wishes import Who
from ckptsyncd.edge.clock import BootClock, ticks
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.hands import Hands
from ckptsyncd.edge.holder import this_process
from ckptsyncd.edge.lease import ignore_sigio
from ckptsyncd.edge.ledger import Ledger, scope_of
from ckptsyncd.edge.lock import Locks, lock_root
from ckptsyncd.edge.loop import Loop
from ckptsyncd.edge.notices import Notices
from ckptsyncd.edge.scanner import Scanner
from ckptsyncd.edge.scribe import Scribe
from ckptsyncd.edge.trainer import Trainer
from ckptsyncd.edge.watcher import Watcher
from ckptsyncd.errors import AlreadyRunning, CkptsyncdError
from ckptsyncd.formats import check
from ckptsyncd.report.api import Api
from ckptsyncd.report.last_snapshot import LastSnapshot
from ckptsyncd.report.logs import Level, Logs
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.systemd import Systemd
from ckptsyncd.settings import Settings
from ckptsyncd.sources.detect import detected, small_file
from ckptsyncd.sources.open import Wanted, opened
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.open import open_store
from ckptsyncd.stores.s3.options import S3Options

#: Signals that a trainer of ours gets as well; SIGINT of a terminal reaches it by itself.
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(slots=True)
class Program:
    """Everything that runs for one watch root and one destination, wired together.

    Raises UsageError and AlreadyRunning before anything was touched in the store.
    """

    settings: Settings
    one_pass: bool = False
    has_trainer: bool = False
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)
    clock: BootClock = field(default_factory=BootClock)
    locks: Locks = field(init=False)
    ledger: Ledger = field(init=False)
    loop: Loop = field(init=False)
    scanner: Scanner = field(init=False)
    watcher: Watcher | None = None
    notices: Notices | None = None
    api: Api | None = None
    logs: Logs = field(init=False)
    daemon: DaemonView = field(init=False)
    last_snapshot: LastSnapshot = field(init=False)
    started_at: float = field(init=False)
    refusal: CkptsyncdError | None = None

    def __post_init__(self) -> None:
        """Lock, read the ledger, and put everything together; nothing is watched yet."""
        settings = self.settings
        ignore_sigio()
        self.started_at = self.clock.now().wall
        store = store_at(settings.url, settings)
        self.locks = lock_root(
            this_process(
                socket=settings.socket,
                state_dir=settings.state_dir,
                watch_root=settings.dir,
                url=settings.url,
                started_at=self.started_at,
            )
        )
        scope = scope_of(settings.dir, settings.url)
        self.ledger = Ledger(Path(settings.state_dir) / "ledger.sqlite", scope)
        disk = RealDisk(Path(settings.dir), check)
        brain = self._brain(recall({table: self.ledger.rows(table) for table in TABLES}), disk)
        hands = Hands(settings.hands, store, disk, self.inbox.put, ticks)
        self.scanner = Scanner(disk, self.inbox.put)
        self.scanner.start()
        self.daemon = DaemonView(
            pid=os.getpid(),
            started_at=self.started_at,
            watch_root=settings.dir,
            store=settings.url,
            host=brain.who.host,
            version=__version__,
            node=settings.node,
        )
        self.logs = Logs(form=settings.log_format, level=settings.log_level)
        self.last_snapshot = LastSnapshot(self.ledger.apply, self.daemon)
        taps = (self.logs.log_turn, self.last_snapshot.turn, Systemd(os.environ).turn)
        scribe = Scribe(self.ledger)
        self.loop = Loop(brain, self.clock, self.inbox, hands, self.scanner, scribe, taps)
        if self.ledger.opened:
            now = self.clock.now()
            self.logs.say("warning", "ledger.damaged", now, text=self.ledger.opened)

    def _brain(self, recalled: Recalled, disk: RealDisk) -> Brain:
        settings = self.settings
        nonce = secrets.token_hex(8)
        brain = Brain(
            policy=settings.policy(),
            who=Who(socket.gethostname(), nonce, __version__),
            random=random.SystemRandom().random,
            recalled=recalled,
            lineages=lineages(Path(settings.dir)),
            exclude=settings.exclude,
            has_trainer=self.has_trainer,
            held_pins=disk.held(),
        )
        brain.ending.one_pass = self.one_pass
        brain.ending.exit_when_drained = settings.exit_when_drained
        return brain

    def watch(self) -> None:
        """Begin to watch the root; what lies there is scanned first."""
        poll = self.settings.watch == "poll"
        self.watcher = Watcher(Path(self.settings.dir), self._seen, poll=poll)
        self.watcher.start()

    def answer(self) -> None:
        """Begin to answer on the socket; raises UsageError and AlreadyRunning."""
        self.api = Api(
            Path(self.settings.socket),
            snapshot=self.snapshot,
            post=self.inbox.put,
            now=self.clock.now,
            daemon=self.daemon,
            stop_seconds=self.settings.stop_timeout,
        )
        self.api.start()

    def listen(self) -> None:
        """Begin to poll the notice sources of this machine."""
        environment = dict(os.environ)
        wanted = Wanted(providers=self.settings.sources, notice_file=self.settings.notice_file)
        sources = opened(wanted, detected(environment, small_file), environment)
        uniform = random.SystemRandom().random
        self.notices = Notices(sources, self.inbox.put, self.clock, uniform)
        self.notices.start()

    def _seen(self, message: Message) -> None:
        if isinstance(message, RootLost) and message.present:
            try:
                self.locks.take_root()
            except AlreadyRunning as error:
                self.refusal = error
                self.stop(0.0)
        self.inbox.put(message)

    def stop(self, seconds: float) -> None:
        """Ask the brain to end within so many seconds; safe in a signal handler."""
        self.inbox.put(StopRequested(self.clock.now().boot + seconds))

    def turn(self) -> int:
        """Turn until the brain ends it, say what was left, and return the exit code."""
        code = self.loop.run()
        shown = self.loop.last()
        level: Level = "warning" if code else "info"
        text = "everything that was whole is safe"
        if shown.unsynced_bytes:
            text = f"{shown.unsynced_bytes} bytes of finished checkpoints are not in the store"
        self.logs.say(level, "daemon.stopped", self.clock.now(), exit_code=code, text=text)
        return code

    def close(self) -> None:
        """Let go of the watch, the ledger and the locks. Hands that are stuck are left behind."""
        if self.watcher is not None:
            self.watcher.stop()
        if self.notices is not None:
            self.notices.stop()
        if self.api is not None:
            self.api.close()
        self.scanner.stop(1.0)
        self.last_snapshot.keep(self.clock.now(), self.loop.last())
        self.ledger.close()
        self.locks.release()

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; safe from any thread."""
        return self.loop.shown


def run(settings: Settings, command: Sequence[str] = ()) -> int:
    """Watch and upload until told to stop; return the exit code (a trainer's own with ``command``).

    Raises UsageError and AlreadyRunning.
    """
    program = Program(settings, has_trainer=bool(command))
    codes: list[int] = []

    def ended(code: int) -> None:
        codes.append(code)
        for message in (TrainerEnded(), Overflowed(), StopRequested(float("inf"))):
            program.inbox.put(message)

    try:
        program.answer()
        program.watch()
        program.listen()
        trainer = Trainer(command, ended) if command else None
        _obey_signals(program, trainer)
        code = program.turn()
    finally:
        program.close()
    if program.refusal is not None:
        raise program.refusal
    return codes[0] if codes else code


def sync(settings: Settings) -> int:
    """Upload what is whole in one pass and return the exit code; raises as ``run`` does."""
    program = Program(settings, one_pass=True)
    try:
        _obey_signals(program, None)
        program.stop(float("inf"))
        return program.turn()
    finally:
        program.close()


def _obey_signals(program: Program, trainer: Trainer | None) -> None:
    """Let the first SIGTERM or SIGINT ask for a stop, and the second end the process at once."""
    asked: list[int] = []

    def stop(number: int, _: object) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        program.stop(program.settings.stop_timeout)

    def forward(number: int, frame: object) -> None:
        if trainer is not None:
            trainer.tell(number)
        if number == signal.SIGTERM:
            stop(number, frame)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, forward)
    if trainer is not None:
        for number in FORWARDED:
            signal.signal(number, forward)


def store_at(url: str, settings: Settings) -> Store:
    """Return the store of a URL with what the settings say about its kind; nothing is asked yet.

    What is empty is left to the SDK. UsageError where the URL is wrong or the SDK is missing.
    """
    return open_store(
        url,
        s3=S3Options(
            endpoint_url=settings.s3_endpoint or None,
            region=settings.s3_region or None,
            profile=settings.s3_profile or None,
            path_style=settings.s3_path_style or None,
            sse=settings.s3_sse or None,
            kms_key_id=settings.s3_kms_key_id or None,
            storage_class=settings.s3_storage_class or None,
            trust_size=settings.trust_size,
        ),
        gcs=GcsOptions(
            endpoint_url=settings.gcs_endpoint or None,
            anonymous=settings.gcs_anonymous,
            user_project=settings.gcs_user_project or None,
            kms_key_name=settings.gcs_kms_key_name or None,
            storage_class=settings.gcs_storage_class or None,
        ),
        azure=AzureOptions(
            endpoint_url=settings.azure_endpoint or None,
            sas_token_file=settings.azure_sas_token_file or None,
            encryption_scope=settings.azure_encryption_scope or None,
            access_tier=settings.azure_access_tier or None,
        ),
    )


def lineages(root: Path) -> dict[str, int]:
    """Return the lineage of each series that was restored into a watch root."""
    try:
        data = (root / ".ckptsyncd" / "restored.json").read_bytes()[:MAX_RECORD_BYTES]
        return {row.series: row.lineage for row in Restorations.decode(data).rows}
    except FileNotFoundError:
        return {}
