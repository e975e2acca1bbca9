"""How a line of the log is made: its form, and what is taken out of it before it is written."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import datetime, timezone
from typing import Any, TextIO, cast

import structlog

from ckptsyncd.core.words import duration_words, printable, redacted, size_words

_SECRET_NAME = re.compile(
    r"(?i)SECRET|TOKEN$|PASSW|CONNECTION_STRING|(ACCOUNT|STORAGE|ACCESS|API)_KEY$"
)
#: Shorter values are no secrets but flags, and hiding them would eat words (guessed).
_SHORTEST_SECRET = 8
_LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def logger(file: TextIO, form: str, level: str, secrets: Sequence[str] = ()) -> Any:
    """Return a structlog logger that writes to ``file``; no global configuration is touched.

    Every event carries ``at``, wall time in seconds; no clock is read here.
    """
    is_human = form == "human" or (form == "auto" and file.isatty())
    clean = _Cleaned(tuple(secret for secret in secrets if secret))
    ending: list[Any] = [structlog.processors.JSONRenderer()]
    if is_human:
        ending = [_in_words, structlog.dev.ConsoleRenderer(colors=file.isatty(), sort_keys=False)]
    return structlog.wrap_logger(
        structlog.WriteLogger(file),
        processors=[structlog.processors.add_log_level, _stamped, clean, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
    )


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that by their names hold secrets, longest first.

    Paths to secrets are none; a connection string hides the keys in it too.
    """
    found = {value for name, value in environ.items() if _SECRET_NAME.search(name)}
    inside = {part.partition("=")[2] for value in found for part in value.split(";") if "=" in part}
    long = {value for value in found | inside if len(value) >= _SHORTEST_SECRET}
    return tuple(sorted((v for v in long if not v.startswith("/")), key=len, reverse=True))


def adopt_libraries(log: Any) -> logging.Handler:
    """Send what libraries warn of through ``log`` and return the handler, to be removed at the end.

    Without this, Python prints their warnings as bare lines between ours.
    """
    handler = _Adopted(log)
    logging.getLogger().addHandler(handler)
    return handler


class _Adopted(logging.Handler):
    """Libraries' warnings as events of ours."""

    def __init__(self, log: Any) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.warning(
            "library.warned", at=record.created, library=record.name, text=record.getMessage()
        )


class _Cleaned:
    """Makes every text of an event printable and hides secrets in it."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets

    def __call__(self, log: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        del log, method
        return {name: self._clean(value) for name, value in event.items()}

    def _clean(self, value: Any) -> Any:
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = str(value)
        for secret in self._secrets:
            text = text.replace(secret, "[hidden]")
        return printable(redacted(text))


def _in_words(log: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Say sizes and durations as people do."""
    del log, method
    words = {"bytes": size_words, "seconds": duration_words}
    return {name: words[name](it) if name in words else it for name, it in event.items()}


def _stamped(log: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Put time, level and event first; the time is UTC to the millisecond."""
    del log, method
    at = cast("float", event.pop("at"))
    time = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")
    first = {"timestamp": time.replace("+00:00", "Z"), "level": event.pop("level")}
    return {**first, "event": event.pop("event"), **event}
