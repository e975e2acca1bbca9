"""The wiring: the only module that knows concrete classes. It decides nothing."""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from ckptsyncd import __version__
from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import (
    Message,
    Overflowed,
    Reconfigured,
    RootLost,
    StopRequested,
    TrainerSeen,
)
from ckptsyncd.core.moves import Move
from ckptsyncd.core.orders import BeginAnew
from ckptsyncd.core.ports import Expiring
from ckptsyncd.core.records.memory import TABLES, recall
from ckptsyncd.core.rules.room import Room
from ckptsyncd.core.sending.crew import FIRST_HANDS
from ckptsyncd.core.sharing import SharingBrain, Turns
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.wishes import Who
from ckptsyncd.destination import store_at
from ckptsyncd.edge.clock import BootClock, boot_id, monotonic, ticks
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.hands import Hands
from ckptsyncd.edge.holder import this_process
from ckptsyncd.edge.lease import ignore_sigio
from ckptsyncd.edge.ledger import Ledger, scope_of
from ckptsyncd.edge.lock import Locks, lock_root
from ckptsyncd.edge.loop import Loop, Tap
from ckptsyncd.edge.patient import PatientLedger
from ckptsyncd.edge.reaper import Reaper
from ckptsyncd.edge.restored import lineages
from ckptsyncd.edge.scanner import Scanner
from ckptsyncd.edge.scribe import Scribe
from ckptsyncd.edge.trainer import Trainer
from ckptsyncd.edge.watcher import Watcher
from ckptsyncd.edge.weigher import Weigher
from ckptsyncd.errors import AlreadyRunning, CkptsyncdError
from ckptsyncd.formats import check
from ckptsyncd.formats.listed import listed
from ckptsyncd.notified import Notified, policy_of
from ckptsyncd.outward import Outward
from ckptsyncd.report.api import Api
from ckptsyncd.report.last_snapshot import LastSnapshot
from ckptsyncd.report.latency import CommitLatency
from ckptsyncd.report.log_lines import secrets_of
from ckptsyncd.report.logs import Level, Logs
from ckptsyncd.report.metric_reads import Seen
from ckptsyncd.report.probes import Probes
from ckptsyncd.report.series_names import SeriesNames
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.systemd import Systemd
from ckptsyncd.report.waiting import ended_words
from ckptsyncd.report.web import WebServer
from ckptsyncd.residence import admitted
from ckptsyncd.settings import Reload, Settings, reloaded
from ckptsyncd.signals import obey_signals
from ckptsyncd.stores.counted import CountedStore
from ckptsyncd.tidied import Tidied, second
from ckptsyncd.whereabouts import told_of_store, usage_of

#: At the end the last words get so long to leave for webhook and trackers (guessed: a round trip).
LAST_WORDS_SECONDS = 0.3


@dataclass(slots=True)
class Program:
    """Everything that runs for one watch root and one destination, wired together.

    Raises UsageError, AlreadyRunning and PolicyRefused before anything went to the store.
    """

    settings: Settings
    one_pass: bool = False
    has_trainer: bool = False
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)
    clock: BootClock = field(default_factory=BootClock)
    locks: Locks = field(init=False)
    ledger: PatientLedger = field(init=False)
    loop: Loop = field(init=False)
    scanner: Scanner = field(init=False)
    watcher: Watcher | None = None
    weigher: Weigher = field(init=False)
    notified: Notified = field(init=False)
    outward: Outward = field(init=False)
    api: Api | None = None
    web: WebServer | None = None
    store: CountedStore = field(init=False)
    disk: RealDisk = field(init=False)
    logs: Logs = field(init=False)
    library_log: logging.Handler = field(init=False)
    systemd: Systemd = field(init=False)
    probes: Probes = field(init=False)
    latency: CommitLatency = field(init=False)
    names: SeriesNames = field(default_factory=SeriesNames)
    turns: Turns = field(default_factory=Turns)
    weakness: str = ""
    doubt: str = ""
    daemon: DaemonView = field(init=False)
    last_snapshot: LastSnapshot = field(init=False)
    started_at: float = field(init=False)
    refusal: CkptsyncdError | None = None
    reloading: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Lock, read the ledger, and put everything together; nothing is watched yet."""
        settings = self.settings
        ignore_sigio()
        self.started_at = self.clock.now().wall
        rules = (settings, os.environ, self.clock.now, self._refused)
        self.store = CountedStore(admitted(store_at(settings.url, settings), *rules), ticks)
        also = second(*rules)
        self.locks = lock_root(
            this_process(
                socket=settings.socket,
                state_dir=settings.state_dir,
                watch_root=settings.dir,
                url=settings.url,
                started_at=self.started_at,
            ),
            is_shared=settings.shared_root,
        )
        scope = scope_of(settings.dir, settings.url)
        self.ledger = PatientLedger(Ledger(Path(settings.state_dir) / "ledger.sqlite", scope))
        room = Room(settings.pins_floor_bytes, settings.pins_most_bytes)
        self.disk = disk = RealDisk(Path(settings.dir), check, lists=listed, room=room)
        self.weigher = Weigher(disk.weigh, self.inbox.put)
        brain = self._brain(disk)
        first = min(settings.hands, FIRST_HANDS)
        hands = Hands(first, self.store, disk, self.inbox.put, ticks, settings.nice)
        self.scanner = Scanner(disk, self.inbox.put)
        self.scanner.start()
        self.daemon = self._view(brain.who.host)
        scribe, taps = Scribe(self.ledger), (*self._taps(), hands.turn)
        self.loop = Loop(brain, self.clock, self.inbox, hands, self.scanner, scribe, taps)
        tidied = Tidied(self.store, self.inbox.put, also, brain.who.nonce)
        self.loop.doers = {**self.notified.doers(), **tidied.doers(), BeginAnew: self._begin_anew}
        self.loop.overslept = self.notified.wake
        doubts = {"ledger.damaged": self.ledger.opened, "restored.unreadable": self.doubt}
        for event, text in doubts.items():
            if text:
                self.logs.say("warning", event, self.clock.now(), text=text)

    def _view(self, host: str) -> DaemonView:
        settings = self.settings
        return DaemonView(
            pid=os.getpid(),
            started_at=self.started_at,
            watch_root=settings.dir,
            store=settings.url,
            host=host,
            version=__version__,
            node=settings.node,
        )

    def _refused(self, error: CkptsyncdError) -> None:
        """End the program for this reason; safe from any thread."""
        self.refusal = error
        self.stop(0.0)

    def _taps(self) -> tuple[Tap, ...]:
        settings = self.settings
        hidden = (*secrets_of(os.environ), settings.webhook, settings.heartbeat_url)
        self.logs = Logs(form=settings.log_format, level=settings.log_level, secrets=hidden)
        self.library_log = self.logs.adopt_libraries()
        self.last_snapshot = LastSnapshot(self.ledger.apply, self.daemon)
        self.systemd = Systemd(os.environ, self.store.progress)
        self.probes = Probes(self.clock.now, settings.synced_seconds)
        self.latency = CommitLatency()
        reports = (self.logs, self.last_snapshot, self.systemd, self.probes, self.latency)
        self.notified = Notified(settings, os.environ, self.inbox.put, self.clock, self.logs)
        self.outward = Outward(settings, self.clock, self.logs, self.daemon, self.latency)
        return (*(report.turn for report in reports), self._warn_of_lock, *self.outward.taps)

    def _warn_of_lock(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Say once that a second daemon could not be kept away; known only once the root is."""
        del moves, snapshot
        if self.locks.weakness != self.weakness:
            self.weakness = self.locks.weakness
            self.logs.say("warning", "lock.weak", now, text=self.weakness)

    def _brain(self, disk: RealDisk) -> Brain:
        settings = self.settings
        nonce = secrets.token_hex(8)
        found, self.doubt = lineages(disk)
        kind = partial(SharingBrain, turns=self.turns) if settings.shared_root else Brain
        brain = kind(
            policy=policy_of(settings, os.environ, has_child=self.has_trainer),
            who=Who(socket.gethostname(), nonce, __version__, boot_id()),
            random=random.SystemRandom().random,
            recalled=recall({table: self.ledger.rows(table) for table in TABLES}),
            lineages=found,
            exclude=settings.exclude,
            layouts=settings.layout,
            has_trainer=self.has_trainer,
            held_pins=disk.held(),
        )
        brain.ending.one_pass = self.one_pass
        brain.ending.exit_when_drained = settings.exit_when_drained
        return brain

    def _begin_anew(self, order: BeginAnew) -> None:
        """Have another mind, with what ledger and disk say now."""
        self.loop.brain = self._brain(self.disk)
        for message in (*order.kept, Overflowed()):
            self.inbox.put(message)

    def watch(self) -> None:
        """Begin to watch the root; what lies there is listed as soon as that is so."""
        polls = self.settings.watch == "poll"
        self.watcher = Watcher(Path(self.settings.dir), self._seen, poll=polls)
        self.watcher.start()
        self.loop.brain.eyes.await_watches(self.clock.now().boot)
        self.weigher.start()

    def answer(self) -> None:
        """Begin to answer on the socket; raises UsageError and AlreadyRunning."""
        self.api = Api(
            Path(self.settings.socket),
            snapshot=self.snapshot,
            post=self.inbox.put,
            now=self.clock.now,
            daemon=self.daemon,
            stop_seconds=self.settings.stop_timeout,
            probe=self.probes.ask,
            store=lambda: told_of_store(self.store, self.settings),
        )
        self.api.start()

    def serve(self) -> None:
        """Begin to serve metrics and probes where a port is set; raises UsageError."""
        if (port := self.settings.metrics_port) is None:
            return
        from ckptsyncd.report.metrics import pages  # noqa: PLC0415 - only where it is served

        served = pages(self._look, self.probes)
        self.web = WebServer(self.settings.metrics_host, port, served, self.clock.now)
        self.web.start()

    def _look(self) -> Seen:
        """Return what a scrape reads; safe from any thread."""
        store = self.store.inner
        return Seen(
            snapshot=self.loop.shown,
            daemon=self.daemon,
            now=self.clock.now().wall,
            calls=self.store.calls(),
            behind=self.probes.behind(),
            latency=self.latency.histogram,
            credentials_expire_at=(
                store.credentials_expire_at() if isinstance(store, Expiring) else None
            ),
            longest_hold_seconds=self.disk.longest_hold_seconds,
            usage=usage_of(self.store, self.settings),
            names=self.names,
        )

    def reload(self, read: Callable[[], Settings]) -> None:
        """Let other settings hold, as far as they can while it runs, and say what cannot.

        May be called from several threads; whatever happens, the service manager hears its end.
        """
        with self.reloading:
            self.systemd.reloading(monotonic())
            try:
                self._take(reloaded(self.settings, read()))
            except CkptsyncdError as error:
                now = self.clock.now()
                self.logs.say("error", "settings.refused", now, text=str(error), hint=error.hint)
            finally:
                self.systemd.ready()

    def _take(self, new: Reload) -> None:
        now = self.clock.now()
        self.settings = new.settings
        self.logs.set_level(new.settings.log_level)
        self.probes.synced_seconds = new.settings.synced_seconds
        policy = policy_of(new.settings, os.environ, has_child=self.has_trainer)
        self.inbox.put(Reconfigured(policy))
        self.logs.say("info", "settings.reloaded", now, changed=", ".join(new.changed))
        for name in new.kept:
            reason = "it is part of what was opened at the start; restart to change it"
            self.logs.say("warning", "settings.kept", now, setting=name, reason=reason)

    def listen(self) -> None:
        """Begin to poll the notice sources of this machine."""
        self.notified.listen()

    def _seen(self, message: Message) -> None:
        if isinstance(message, RootLost) and message.present:
            try:
                self.locks.take_root()
            except AlreadyRunning as error:
                self._refused(error)
        self.inbox.put(message)

    def stop(self, seconds: float) -> None:
        """Ask the brain to end within so many seconds; safe in a signal handler."""
        self.inbox.put(StopRequested(self.clock.now().boot + seconds))

    def stop_as_asked(self) -> None:
        """Ask the brain to end as on SIGTERM."""
        self.stop(self.settings.stop_timeout)

    def turn(self) -> int:
        """Turn until the brain ends it, say what was left, and return the exit code."""
        code = self.loop.run()
        shown = self.loop.last()
        text = ended_words(shown, code)
        self.systemd.stopping()
        level: Level = "warning" if code else "info"
        self.logs.say(level, "daemon.stopped", self.clock.now(), exit_code=code, text=text)
        self.refusal = self.refusal or self.loop.brain.ending.refused
        return code

    def close(self) -> None:
        """Let go of the watch, the ledger and the locks. Hands that are stuck are left behind."""
        if self.watcher is not None:
            self.watcher.stop()
        self.weigher.stop()
        self.notified.close()
        self.outward.close(LAST_WORDS_SECONDS)
        for server in (self.api, self.web):
            if server is not None:
                server.close()
        self.scanner.stop(1.0)
        self.last_snapshot.keep(self.clock.now(), self.loop.last())
        self.ledger.close(self.loop.scribe.kept)
        self.locks.release()
        logging.getLogger().removeHandler(self.library_log)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; safe from any thread."""
        return self.loop.shown


def run(
    settings: Settings,
    command: Sequence[str] = (),
    read_again: Callable[[], Settings] | None = None,
) -> int:
    """Watch and upload until told to stop; return the exit code (a trainer's own with ``command``).

    ``read_again`` reads the settings anew on SIGHUP. Raises UsageError and AlreadyRunning.
    """
    program = Program(settings, has_trainer=bool(command))
    codes: list[int] = []

    def ended(code: int) -> None:
        codes.append(code)
        for message in (TrainerSeen(is_alive=False), Overflowed(), StopRequested(float("inf"))):
            program.inbox.put(message)

    if os.getpid() == 1:
        Reaper().start()
    try:
        program.answer()
        program.serve()
        program.watch()
        program.listen()
        trainer = program.notified.trainer = Trainer(command, ended) if command else None
        reload = None if read_again is None else partial(program.reload, read_again)
        obey_signals(program.stop_as_asked, trainer, reload)
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
        obey_signals(program.stop_as_asked)
        program.stop(float("inf"))
        code = program.turn()
    finally:
        program.close()
    if program.refusal is not None:
        raise program.refusal
    return code
