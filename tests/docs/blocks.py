"""The parts of the documentation that repeat code, each made from the code that it repeats.

In a page a block stands between ``<!-- made: NAME -->`` and ``<!-- end -->``; ``python -m
tests.docs`` writes all of them anew, and a test fails where one says something else than the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from benchmarks.results import newest, summary
from ckptsyncd import errors
from ckptsyncd.cli.program import COMMANDS
from ckptsyncd.core import messages, orders
from ckptsyncd.core.lifecycle import DAEMON_MEANING, DAEMON_MOVES, MEANING, MOVES
from ckptsyncd.core.seeing import layouts
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.report.metrics_table import METRICS
from ckptsyncd.settings import DEFINITIONS, GROUPS, Definition
from ckptsyncd.settings.sample import sample
from tests.stores.found import FOUND, Found
from tests.test_law import GUESTS, HOUSE, MAY_KNOW, PURE

ROOT = HOUSE.parent
#: Pages that nobody writes by hand.
WHOLE_FILES: dict[str, Callable[[], str]] = {"docs/ckptsyncd.toml": sample}
_BLOCK = re.compile(r"(<!-- made: (?P<name>[a-z-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def pages() -> dict[str, str]:
    """Return the path below the project and the right content of every page that repeats code."""
    found = {path: make() for path, make in WHOLE_FILES.items()}
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        text = page.read_text(encoding="utf-8")
        if _BLOCK.search(text):
            found[str(page.relative_to(ROOT))] = filled(text)
    return found


def filled(text: str) -> str:
    """Return a page with every block made anew; KeyError for a name that is no block's."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n{BLOCKS[match['name']]()}\n", text)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    cells = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(map(_cell, row)) + " |\n" for row in cells)


def states() -> str:
    """Return what each state of an edition means."""
    return table(("state", "meaning"), ((_code(n), words) for n, words in MEANING.items()))


def moves() -> str:
    """Return each state of an edition with its meaning and where it may go."""
    return _moves(MEANING, MOVES)


def daemon_moves() -> str:
    """Return each state of the daemon with its meaning and where it may go."""
    return _moves(DAEMON_MEANING, DAEMON_MOVES)


def all_orders() -> str:
    """Return every order, by whom it goes to, with its first sentence."""
    return table(
        ("to", "order", "effect"),
        [
            *_union("a hand", orders.HandOrder),
            *_union("the scanner", orders.ScannerOrder),
            *_union("the ledger", orders.LedgerOrder),
            *_rest("the loop", orders.Order, orders.HandOrder | orders.ScannerOrder),
        ],
    )


def all_messages() -> str:
    """Return every message, by whom it comes from, with its first sentence."""
    known = messages.Answer | messages.Report
    return table(
        ("from", "message", "what happened"),
        [
            *_union("a hand", messages.Answer),
            *_union("the scanner", messages.Report),
            *_rest("elsewhere", messages.Message, known),
        ],
    )


def rooms() -> str:
    """Return every room with its purpose and the rooms that it may know."""
    shown = {room: knows for room, knows in MAY_KNOW.items() if not room.startswith("__")}
    return table(
        ("room", "what it is", "may know"),
        (
            (_code(room), _purpose(room), _codes(k for k in knows - {room} if "__" not in k))
            for room, knows in shown.items()
        ),
    )


def guests() -> str:
    """Return which module may import which third-party package."""
    return table(
        ("package", "only in"),
        ((_code(name), _codes(places)) for name, places in sorted(GUESTS.items())),
    )


def pure() -> str:
    """Return what the mind may use of the standard library."""
    return _codes(name for name in PURE if name != "__future__") + "\n"


def commands() -> str:
    """Return every command with its line of the help."""
    return table(
        ("command", "does"),
        ((_code(f"ckptsyncd {name}"), entry.short_help) for name, entry in COMMANDS.items()),
    )


def all_layouts() -> str:
    """Return the built-in layouts in the order in which they are tried."""
    return table(
        ("layout", "whole by", "read from"),
        dict.fromkeys(
            (_code(made.name), _marker(made), made.read_from) for made in layouts.BUILT_IN
        ),
    )


def settings() -> str:
    """Return the tables of settings, group by group."""
    head = ("key", "flag", "default", "allowed", "meaning")
    parts = [
        f"## {group}\n\n{table(head, (_setting(it) for it in DEFINITIONS if it.group == group))}"
        for group in GROUPS
    ]
    return "\n".join(parts)


def metrics() -> str:
    """Return every metric under its exposed name."""
    return table(
        ("metric", "kind", "labels", "meaning"),
        (
            (_code(it.exposed), it.kind, ", ".join(map(_code, it.labels)), it.meaning)
            for it in METRICS
        ),
    )


def exit_codes() -> str:
    """Return the exit codes: a row for each class of error."""
    kinds = sorted(_errors(), key=lambda kind: (kind.exit_code, kind.__name__))
    return table(
        ("code", "meaning", "hint"),
        [
            ("0", "done", ""),
            ("1", "unexpected: a bug, or the machine refused something", CkptsyncdError.hint),
            *((str(kind.exit_code), _first_line(kind), kind.hint) for kind in kinds),
            ("130", "interrupted from the keyboard", ""),
        ],
    )


def s3_servers() -> str:
    """Return what the probe found on each S3-compatible server."""
    head = ("server", "small files", "pieces", "whole", "create-only", "compare-and-set",
            "abandon", "seen", "beside")  # fmt: skip
    return table(head, (_s3_server(found) for found in FOUND))


def _s3_server(found: Found) -> tuple[str, ...]:
    creates = ("no", "put" if found.creates else "finish", "yes")[found.creates + found.finishes]
    return (
        found.server,
        *(check or "-" for check in (found.files, found.pieces, found.whole)),
        creates,
        {"as told": "yes", "bare": "yes, without quotes"}.get(found.matches, "no"),
        "yes" if found.abandons else "no",
        "in every test run" if found.fixture else "by hand",
        found.note,
    )


def measured() -> str:
    """Return the table of the newest results under ``benchmarks/results``."""
    found = newest()
    if found is None:
        return "Nothing was measured yet.\n"
    lines = summary(found)
    load = f"load {found.machine['load before']} to {found.machine['load after']}"
    cores = f"{found.machine['cores']} cores of an {found.machine['processor']}"
    page = f"[all of it](benchmarks/results/{found.date}.md)"
    return "\n".join([*lines, "", f"Measured {found.date}, {cores}, {load} ({page}).", ""])


BLOCKS: dict[str, Callable[[], str]] = {
    "benchmarks": measured,
    "commands": commands,
    "daemon-moves": daemon_moves,
    "exit-codes": exit_codes,
    "guests": guests,
    "layouts": all_layouts,
    "messages": all_messages,
    "metrics": metrics,
    "moves": moves,
    "orders": all_orders,
    "pure": pure,
    "rooms": rooms,
    "compatible-servers": s3_servers,
    "settings": settings,
    "states": states,
}


def _moves(meaning: Mapping[Any, str], legal: Mapping[Any, frozenset[Any]]) -> str:
    return table(
        ("state", "meaning", "may become"),
        ((_code(n), words, _codes(legal[n], meaning)) for n, words in meaning.items()),
    )


def _union(where: str, union: Any) -> list[tuple[str, ...]]:
    return [(where, _code(kind.__name__), _first_line(kind)) for kind in get_args(union)]


def _rest(where: str, union: Any, known: Any) -> list[tuple[str, ...]]:
    """Return the members of a union that are in no other list."""
    listed = {*get_args(known), *get_args(orders.LedgerOrder)}
    rest = [kind for kind in get_args(union) if kind not in listed]
    return [(where, _code(kind.__name__), _first_line(kind)) for kind in rest]


def _purpose(room: str) -> str:
    module = HOUSE / room / "__init__.py"
    text = (module if module.exists() else HOUSE / f"{room}.py").read_text(encoding="utf-8")
    return _sentence(text.partition('"""')[2].partition('"""')[0])


def _setting(made: Definition) -> tuple[str, ...]:
    default = _code(made.default_text()) if made.default_text() else ""
    flag = _code(made.flag) if made.flag else "in a file"
    return (_code(made.name), flag, default, made.kind.allowed(), made.help)


def _marker(made: layouts.Layout) -> str:
    """Return the file that the framework writes last, as a person would write its name."""
    last = [mark.path.replace("\\", "").replace(".+", "*") for mark in made.markers if mark.seals]
    if last:
        return " or ".join(map(_code, last))
    return "quiet, of all ranks" if made.ranked else "rename, format, shape or quiet"


def _errors() -> list[type[CkptsyncdError]]:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    return [kind for kind in found if issubclass(kind, CkptsyncdError) and kind.exit_code > 1]


def _first_line(kind: type | ModuleType) -> str:
    return _sentence(inspect.getdoc(kind) or "")


def _sentence(text: str) -> str:
    """Return the first paragraph on one line, without its full stop."""
    first = " ".join(text.strip().partition("\n\n")[0].split())
    return first.rstrip(".").replace("``", "`")


def _codes(names: Iterable[str], order: Iterable[str] = ()) -> str:
    rank = {name: index for index, name in enumerate(order)}
    return ", ".join(_code(name) for name in sorted(names, key=lambda n: (rank.get(n, 0), n)))


def _code(text: str) -> str:
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write() -> list[str]:
    """Write every page that repeats code; return the paths of those that changed."""
    changed = []
    for path, text in pages().items():
        page = Path(ROOT, path)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
