"""The preflight in its order: facts from this machine, answers of the store, judged by ``check``.

Findings come as they are made, so that whoever waits sees something.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ckptsyncd.check import bucket, documents, metadata, place, rate, root, setup, stop, store
from ckptsyncd.check.finding import Finding, failed
from ckptsyncd.core.draining.deadlines import (
    ALIBABA_SPOT,
    AWS_SPOT,
    AZURE_PREEMPT,
    GCP_PREEMPTED,
    TENCENT_SPOT,
    Allowance,
)
from ckptsyncd.core.draining.notices import Poll, Source
from ckptsyncd.core.ports import Situated, Situation, Store, Timed
from ckptsyncd.core.premises import Premises
from ckptsyncd.core.rules.residency import Residency
from ckptsyncd.destination import store_at
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.holder import Holder, this_container
from ckptsyncd.edge.lock import state_holder
from ckptsyncd.edge.premises import premises
from ckptsyncd.edge.stopping import stop_budget
from ckptsyncd.errors import CkptsyncdError, UsageError
from ckptsyncd.formats import check as check_format
from ckptsyncd.notified import wanted_of
from ckptsyncd.residence import machine_of, residency_of
from ckptsyncd.settings import Loaded, Settings
from ckptsyncd.settings.places import is_directory, nearest
from ckptsyncd.sources.detect import Surroundings, detected, small_file
from ckptsyncd.sources.open import opened as opened_sources
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.open import parse_url

#: A source that has not answered by then is told as slow (Azure's first answer may take minutes).
_POLL_SECONDS = 10.0
#: Who waits at a terminal is told so soon of a silent store; the daemon waits longer (guessed).
_SILENT_SECONDS = 15.0

_NOTICES: dict[str, tuple[Allowance, str]] = {
    "aws": (AWS_SPOT, "a spot notice of EC2"),
    "gcp": (GCP_PREEMPTED, "a preemption notice of Google"),
    "azure": (AZURE_PREEMPT, "a preemption notice of Azure"),
    "alibaba": (ALIBABA_SPOT, "a spot notice of Alibaba"),
    "tencent": (TENCENT_SPOT, "a spot notice of Tencent"),
}


@dataclass(slots=True)
class Preflight:
    """One look at everything; ``rate_seconds`` is how long uploads are measured (0: not at all)."""

    loaded: Loaded
    environment: Mapping[str, str]
    rate_seconds: float
    _here: Surroundings = field(init=False)
    _polls: dict[str, queue.SimpleQueue[Poll]] = field(init=False)

    @property
    def _settings(self) -> Settings:
        return self.loaded.settings

    def findings(self) -> Iterator[Finding]:
        """Yield every finding; raises UsageError where the settings name an unknown source."""
        settings = self._settings
        yield setup.settings(self.loaded.config_file, self.loaded.origins)
        self._here = detected(self.environment, small_file)
        self._polls = self._begin_to_poll()
        holder, is_alive = _holder(settings.state_dir)
        yield self._state(holder, is_alive=is_alive)
        polls = settings.watch == "poll"
        found = premises(settings.dir, self._target(), polls=polls)
        yield from root.root(found, polls=polls)
        read = RealDisk(Path(settings.dir), check_format).read_small
        paths = found.census.documents
        yield documents.documents(
            settings.dir, paths, lambda path: read(path, documents.MOST_BYTES)
        )
        yield from self._ears()
        pid = holder.pid if holder and is_alive else 0
        budget = stop_budget(pid, self._platform())
        yield stop.stop(budget, settings.stop_timeout, settings.kill_after)
        yield from self._store(found)

    def _state(self, holder: Holder | None, *, is_alive: bool) -> Finding:
        base = nearest(Path(self._settings.state_dir))
        writable = is_directory(base) and os.access(base, os.W_OK | os.X_OK)
        who = "" if holder is None else holder.words()
        return setup.state(
            self._settings.state_dir, is_writable=writable, holder=who, is_alive=is_alive
        )

    def _target(self) -> str:
        """Return the destination's directory, empty where it is none of this machine's."""
        to = parse_url(self._settings.url)
        return to.path if to.scheme == "file" else ""

    def _platform(self) -> str:
        known = ("kubernetes", "slurm", "runpod")
        found = next((layer for layer in known if layer in self._here.layers), "")
        return found or ("container" if this_container() else "")

    # The store ----------------------------------------------------------------------------------

    def _store(self, found: Premises) -> Iterator[Finding]:
        settings = self._settings
        try:
            opened = self._opened(settings.url)
            second = self._opened(settings.also) if settings.also else None
        except CkptsyncdError as error:
            yield failed("store", error)
            return
        made = []
        for finding in self._tried(opened, settings.url):
            made.append(finding)
            yield finding
        if self.rate_seconds and not any(finding.level == "fail" for finding in made):
            yield from self._rate(opened, found)
        if second is not None:
            for finding in self._tried(second, settings.also):
                yield replace(finding, subject=f"also: {finding.subject}")

    def _opened(self, url: str) -> Store:
        return store_at(url, self._settings, silent_seconds=_SILENT_SECONDS)

    def _tried(self, opened: Store, url: str) -> Iterator[Finding]:
        """Yield what the store is like; nothing is written where it may not lie.

        A store that cannot be used is told once, not by every question that it does not answer.
        """
        situation = opened.situation() if isinstance(opened, Situated) else None
        rules = residency_of(self._settings)
        if situation is not None and rules.has_rules:
            region = self._region(situation, rules)
            yield region
            if region.level == "fail":
                return
        policy = self._settings.policy()
        prunes = policy.retention.is_said or policy.reap
        is_usable = True
        for finding in store.store(opened, time.time(), prunes=prunes):
            is_usable &= (finding.subject, finding.level) != ("store", "fail")
            yield finding
        if situation is not None and is_usable:
            if not rules.has_rules:
                yield self._region(situation, rules)
            yield from self._of_the_bucket(situation, url)
        elif isinstance(opened, Timed) and (ahead := opened.clock_ahead_seconds()) is not None:
            yield bucket.skew(ahead, signs=_signs(url))

    def _of_the_bucket(self, situation: Situation, url: str) -> Iterator[Finding]:
        to = parse_url(url)
        if to.scheme == "file":
            return
        prefix = f"{to.path}/" if to.path else ""
        yield bucket.lifecycle(situation, prefix, keeps_parts=to.scheme in ("s3", "gs"))
        yield bucket.clock(situation, time.time, signs=_signs(url))

    def _region(self, situation: Situation, rules: Residency) -> Finding:
        machine = None
        if rules.asks_the_machine:
            machine = machine_of(self._settings, self.environment, BootClock().now())
        return place.place(situation, rules, machine)

    def _rate(self, opened: Store, found: Premises) -> list[Finding]:
        measured = rate.measure(
            opened, self._settings.hands, self.rate_seconds, time.monotonic, BytesBody
        )
        seconds, notice = self._settings.stop_timeout, "the stop timeout"
        named = (self._here.provider, *self._settings.sources)
        if cloud := next((name for name in named if name in _NOTICES), ""):
            allowance, notice = _NOTICES[cloud]
            seconds = allowance.default_seconds
        return rate.rate(measured, seconds, notice, found.census.largest_bytes)

    # Notices ------------------------------------------------------------------------------------

    def _begin_to_poll(self) -> dict[str, queue.SimpleQueue[Poll]]:
        settings = self._settings
        wanted = wanted_of(settings)
        sources = opened_sources(wanted, self._here, self.environment)
        return {source.name: _polled(source) for source in sources}

    def _ears(self) -> list[Finding]:
        """Return what was heard; all sources were asked at the same time."""
        deadline = time.monotonic() + _POLL_SECONDS
        heard: list[tuple[str, Poll]] = []
        for name, answers in self._polls.items():
            try:
                poll = answers.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                poll = Poll("unknown", reason=f"no answer within {_POLL_SECONDS:.0f} s")
            heard.append((name, poll))
        return metadata.metadata(self._here.provider, self._here.evidence, heard)


def _signs(url: str) -> bool:
    """Return whether requests are signed with this machine's time: Azure's are dated as it says."""
    return parse_url(url).scheme == "s3"


def _polled(source: Source) -> queue.SimpleQueue[Poll]:
    """Poll a source once in a thread of its own; the answer comes into the queue."""
    answers: queue.SimpleQueue[Poll] = queue.SimpleQueue()
    ask: Callable[[], None] = lambda: answers.put(source.poll(BootClock().now()))  # noqa: E731
    threading.Thread(target=ask, name=f"poll-{source.name}", daemon=True).start()
    return answers


def _holder(state_dir: str) -> tuple[Holder | None, bool]:
    try:
        return state_holder(Path(state_dir))
    except OSError:
        return None, False


def refused(error: UsageError) -> Sequence[Finding]:
    """Return the only finding where there are no settings to look with."""
    return (failed("settings", error),)
