"""What ``run --restore`` does before it watches: bring back what a new machine does not have."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

import click

from ckptsyncd.cli.arriving import Arriving
from ckptsyncd.cli.bars import Bars
from ckptsyncd.cli.restore import summary
from ckptsyncd.core.words import printable
from ckptsyncd.destination import store_at
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.edge.holder import this_process
from ckptsyncd.edge.lock import lock_root
from ckptsyncd.errors import NoCheckpoint
from ckptsyncd.recover.comeback import come_back
from ckptsyncd.report.systemd import Systemd
from ckptsyncd.residence import guarded
from ckptsyncd.settings import Settings
from ckptsyncd.signals import held_stops, hold_stops


def restored_first(settings: Settings) -> None:
    """Restore into an empty watch root, with its lock held; do nothing where it is not empty.

    Where nothing was ever committed it goes on: a fresh start is right. Raises AlreadyRunning,
    NothingVerifies (checkpoints exist and none is whole: the trainer must not start), and all that
    a restore raises. A signal ends the process; what was fetched is kept for the next start. The
    service manager is asked to wait as long as bytes arrive.
    After it, signals are held again.
    """
    for number in held_stops():
        os._exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _frame: os._exit(128 + caught))
    locks = lock_root(
        this_process(
            socket=settings.socket,
            state_dir=settings.state_dir,
            watch_root=settings.dir,
            url=settings.url,
            started_at=time.time(),
        )
    )
    bars = Bars(sys.stderr, is_terminal=sys.stderr.isatty())
    target = Path(settings.dir)
    try:
        with closing(bars):
            opened = store_at(settings.url, settings)
            store = guarded(opened, settings, os.environ, BootClock().now, lambda _error: None)
            results = come_back(store, target, Arriving(bars, Systemd(os.environ)))
    except NoCheckpoint as error:
        click.echo(f"{error}: starting from scratch", err=True)
        return
    finally:
        locks.release()
        hold_stops()
    for result in results:
        for line in summary(result, target):
            click.echo(printable(line), err=True)
        for text in result.warnings:
            click.echo(f"warning: {printable(text)}", err=True)
