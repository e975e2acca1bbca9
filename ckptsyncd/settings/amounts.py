"""The kinds of value that have units: durations, sizes and moments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ckptsyncd.settings.kinds import quoted, typed, within

_UNITS_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS_BYTES = {
    "": 1, "B": 1,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_UNITS_BITS = {"kbit": 125, "Mbit": 125_000, "Gbit": 125_000_000}
#: The year 9999: no date lies beyond.
_END_OF_TIME = 253_402_300_799.0
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of seconds, or an amount with its unit (``30s``, ``2m``, ``1h``), within bounds."""

    low: float
    high: float

    def parse(self, text: str) -> float:
        """Return the seconds."""
        number, unit = _amount(text, 'a duration such as "30s" or "2m"')
        if unit and unit not in _UNITS_SECONDS:
            msg = f"unknown unit {unit}; known are {', '.join(_UNITS_SECONDS)}"
            raise ValueError(msg)
        return within(number * _UNITS_SECONDS.get(unit, 1.0), self.low, self.high)

    def take(self, value: Any) -> float:
        """Return a TOML number as seconds, or read a TOML string."""
        if isinstance(value, str):
            return self.parse(value)
        return within(float(typed(value, (int, float), "a duration")), self.low, self.high)

    def allowed(self) -> str:
        """Say the bounds with their units."""
        return f"{seconds_text(self.low)} to {seconds_text(self.high)}"

    def show(self, value: Any) -> str:
        """Return it with its unit."""
        return quoted(seconds_text(value))


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes, or an amount with its unit (``16MiB``), within bounds."""

    low: int
    high: int
    units: dict[str, int] = field(default_factory=lambda: _UNITS_BYTES)
    suffix: str = ""

    def parse(self, text: str) -> int:
        """Return the bytes."""
        bare = text.strip().removesuffix(self.suffix) if self.suffix else text
        number, unit = _amount(bare, 'a size such as "16MiB"')
        if unit not in self.units:
            known = ", ".join(word for word in self.units if word)
            msg = f"unknown unit {unit}; known are {known}"
            raise ValueError(msg)
        return int(within(number * self.units[unit], self.low, self.high))

    def take(self, value: Any) -> int:
        """Return a TOML integer as bytes, or read a TOML string."""
        if isinstance(value, str):
            return self.parse(value)
        return int(within(typed(value, int, "a size"), self.low, self.high))

    def allowed(self) -> str:
        """Say the bounds with their units."""
        return f"{bytes_text(self.low)}{self.suffix} to {bytes_text(self.high)}{self.suffix}"

    def show(self, value: Any) -> str:
        """Return it with its unit."""
        return quoted(bytes_text(value) + self.suffix)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment as RFC 3339 writes it (without a zone: UTC), or seconds since the epoch."""

    def parse(self, text: str) -> float:
        """Return the seconds since the epoch."""
        text = text.strip()
        if text.isascii() and text.isdecimal():
            return self.take(int(text))
        try:
            # Python 3.10 does not read the Z.
            return self.take(datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text)))
        except ValueError as error:
            msg = 'not a moment such as "2030-01-31T12:00:00Z"'
            raise ValueError(msg) from error

    def take(self, value: Any) -> float:
        """Return a TOML date or number as seconds since the epoch, or read a TOML string."""
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
        return within(float(typed(value, (int, float), "a moment")), 0.0, _END_OF_TIME)

    def allowed(self) -> str:
        """Say how it is written."""
        return "a date and time, in UTC if no zone is named"

    def show(self, value: Any) -> str:
        """Return it in UTC."""
        text = datetime.fromtimestamp(value, timezone.utc).isoformat()
        return quoted(text.replace("+00:00", "Z"))


def rate(low: int, high: int) -> Size:
    """Return the kind of a number of bytes in a second; bits may be said too (``800Mbit/s``)."""
    return Size(low, high, units=_UNITS_BYTES | _UNITS_BITS, suffix="/s")


def seconds_text(seconds: float) -> str:
    """Return a duration as it would be typed: in the largest unit that needs no fraction."""
    for unit in ("d", "h", "m"):
        size = _UNITS_SECONDS[unit]
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    thousandths = seconds * 1000
    if 0 < seconds < 1 and thousandths == int(thousandths):
        return f"{thousandths:.0f}ms"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds}s"


def bytes_text(count: int) -> str:
    """Return a size as it would be typed: in the largest binary unit that needs no fraction."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        size = _UNITS_BYTES[unit]
        if count >= size and count % size == 0:
            return f"{count // size}{unit}"
    return f"{count}B"


def _amount(text: str, what: str) -> tuple[float, str]:
    found = _AMOUNT.fullmatch(text)
    if not found:
        msg = f"not {what}"
        raise ValueError(msg)
    return float(found[1]), found[2]


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money, not below 0, in whatever currency the user has in mind."""

    def parse(self, text: str) -> float:
        """Return the amount."""
        try:
            amount = float(text)
        except ValueError:
            msg = "not a number"
            raise ValueError(msg) from None
        return within(amount, 0.0, 1e6)

    def take(self, value: Any) -> float:
        """Return a TOML number."""
        return within(float(typed(value, (int, float), "a number")), 0.0, 1e6)

    def allowed(self) -> str:
        """Say that it is a price."""
        return "0 to 1000000"

    def show(self, value: Any) -> str:
        """Return it as TOML says it."""
        return f"{value:g}"
