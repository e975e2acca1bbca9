"""``ckptsyncd check``: would it work here? Every line says what to do."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import click

from ckptsyncd.check.finding import Finding, exit_code, worst
from ckptsyncd.cli.command import Command
from ckptsyncd.cli.dead import remains
from ckptsyncd.cli.find import asked, meant
from ckptsyncd.cli.options import settings_options
from ckptsyncd.cli.preflight import Preflight, refused
from ckptsyncd.core.words import printable, redacted
from ckptsyncd.errors import DaemonUnreachable, UsageError
from ckptsyncd.settings import Loaded, load

_TONES = {"ok": "green", "warn": "yellow", "fail": "red"}
_SUBJECT = 16


@click.command(
    "check",
    cls=Command,
    short_help="Say what would keep checkpoints from being safe.",
    examples=(
        "ckptsyncd check /data/run s3://bucket/run",
        "ckptsyncd check --config ckptsyncd.toml --json",
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--seconds", type=click.FloatRange(0, 60), default=3.0, show_default=True,
    help="Measure uploads for so long; 0: send nothing but small records.",
)  # fmt: skip
@settings_options
@click.pass_context
def command(
    context: click.Context, /, config: str | None, *, as_json: bool, seconds: float, **flags: Any
) -> None:
    """Look at everything that 'run' would use, without a daemon, and say what to do about it.

    Records of its own are written below the destination's prefix and removed again (a directory
    keeps an empty lock file); nothing else is touched. Without DIR and URL the daemon of this
    machine is looked after.

    Exit code: that of the worst line. 0: nothing fails; 2: settings or this machine; 5: the store;
    7: a rule of yours, or one of the bucket's.
    """
    findings: list[Finding] = []
    for finding in _found(flags, config, seconds):
        findings.append(finding)
        if not as_json:
            _show(finding)
    if as_json:
        click.echo(json.dumps(document(findings), indent=2))
    else:
        click.echo(_summary(findings))
    context.exit(exit_code(findings))


def document(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the findings as JSON has them."""
    rows = list(findings)
    return {
        "exit_code": exit_code(rows),
        "worst": worst(rows),
        "findings": [_clean(asdict(row)) for row in rows],
    }


def _found(flags: Mapping[str, Any], config: str | None, seconds: float) -> Iterable[Finding]:
    try:
        loaded = _loaded(flags, config)
        yield from Preflight(loaded, dict(os.environ), seconds).findings()
    except UsageError as error:
        yield from refused(error)


def _loaded(flags: Mapping[str, Any], config: str | None) -> Loaded:
    """Return the settings; where nobody names DIR and URL, those of the daemon that is meant."""
    try:
        return load(flags, os.environ, config)
    except UsageError:
        named = flags.get("dir") or flags.get("url")
        known = {} if named else _of_daemon(flags.get("socket"), config)
        if not known:
            raise
    return load({**flags, **known}, os.environ, config)


def _of_daemon(socket: str | None, config: str | None) -> dict[str, str]:
    """Return where the daemon of this machine works, alive or dead; nothing where there is none."""
    found = meant(socket, config)
    try:
        told = asked(found)
    except DaemonUnreachable:
        left = remains(found)
        if left is None:
            return {}
        told = left.document
    daemon = told.get("daemon")
    if not isinstance(daemon, dict) or not (daemon.get("watch_root") and daemon.get("store")):
        return {}
    return {"dir": str(daemon["watch_root"]), "url": str(daemon["store"])}


def _show(finding: Finding) -> None:
    colour = None if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else False
    level = click.style(f"{finding.level:<4}", fg=_TONES[finding.level])
    text = printable(redacted(finding.text))
    click.echo(f"{level}  {finding.subject:<{_SUBJECT}}  {text}", color=colour)
    if finding.hint and finding.level != "ok":
        click.echo(f"{'':<{_SUBJECT + 6}}  -> {printable(finding.hint)}")


def _summary(findings: Iterable[Finding]) -> str:
    count = Counter(finding.level for finding in findings)
    return f"{count['ok']} ok, {count['warn']} to look at, {count['fail']} failing"


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: redacted(value) if isinstance(value, str) else value for name, value in row.items()
    }
