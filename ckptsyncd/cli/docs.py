"""The pages of the documentation that repeat code: made from it, so that they cannot drift.

``python -m ckptsyncd.cli.docs DIRECTORY`` writes them; a test compares them with what lies there.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from ckptsyncd import errors
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.settings import DEFINITIONS, GROUPS, Definition

_MADE = "<!-- Made by 'python -m ckptsyncd.cli.docs docs'; do not edit. -->\n"


def pages() -> dict[str, str]:
    """Return the name and content of every page that is made from code."""
    return {"settings.md": settings_page(), "exit-codes.md": exit_codes_page()}


def settings_page() -> str:
    """Return the tables of settings: key, flag, variable, default, what is allowed, meaning."""
    head = (
        f"# Settings\n\n{_MADE}\n"
        "A flag wins over a variable, a variable over the config file, the file over the default.\n"
        "The file is TOML: `--config FILE`, else `CKPTSYNCD_CONFIG`, else"
        " `/etc/ckptsyncd/ckptsyncd.toml` if it exists.\n"
        "`ckptsyncd config --sample` prints one that explains every key,"
        " `ckptsyncd config --show` what holds and where it was said.\n"
        "An empty variable or text counts as not said.\n"
        "Durations are `500ms`, `30s`, `2m`, `1h`, `1d` or a number of seconds; sizes are `16MiB`,"
        " `16MB` or a number of bytes.\n"
        "Lists are arrays in the file, a flag given several times, commas in a variable.\n"
    )
    parts = [head]
    for group in GROUPS:
        parts.append(f"\n## {group}\n\n{_row('key', 'flag', 'default', 'allowed', 'meaning')}")
        parts.append(_row("---", "---", "---", "---", "---"))
        parts += [_setting(made) for made in DEFINITIONS if made.group == group]
    parts.append(
        "\nThe variable of a key is `CKPTSYNCD_` and the key in capitals: `CKPTSYNCD_HANDS`.\n"
    )
    return "".join(parts)


def exit_codes_page() -> str:
    """Return the table of exit codes: one row for each class of error."""
    head = (
        f"# Exit codes\n\n{_MADE}\n"
        "An error is two lines on stderr, `error: ...` and `hint: ...`, and one of these codes.\n"
        "`ckptsyncd run -- CMD` exits with the trainer's own code"
        " (128 + n where signal n ended it).\n\n"
    )
    parts = [
        head,
        _row("code", "meaning", "hint"),
        _row("---", "---", "---"),
        _row("0", "done", ""),
        _row("1", "unexpected: a bug, or the machine refused something", CkptsyncdError.hint),
    ]
    parts += [
        _row(str(kind.exit_code), _first_line(kind), kind.hint)
        for kind in sorted(_kinds(), key=lambda kind: kind.exit_code)
    ]
    parts.append(_row("130", "interrupted from the keyboard", ""))
    return "".join(parts)


def main() -> None:
    """Write every page into the directory named on the command line."""
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")


def _setting(made: Definition) -> str:
    flag = f"`{made.flag}`"
    default = f"`{made.default_text()}`" if made.default_text() else ""
    return _row(f"`{made.name}`", flag, default, made.kind.allowed(), made.help)


def _kinds() -> list[type[CkptsyncdError]]:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    return [kind for kind in found if issubclass(kind, CkptsyncdError) and kind.exit_code > 1]


def _first_line(kind: type[CkptsyncdError]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].rstrip(".")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    main()
