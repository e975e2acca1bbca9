"""What survives a restart: rows of text in one small SQLite file, readable by its owner only.

The mind orders what to remember and forget and never reads the rows again before the next start.
Rows belong to a scope (one watch root with one destination), so a ledger that meets another pair
shows it nothing. A file that cannot be trusted is set aside and a new one begun: everything in the
ledger can be found out again from the store, only more slowly.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ckptsyncd.core.orders import Forget, ForgetBelow, LedgerOrder, Remember

#: Raised with every change of the tables below; a newer file than ours is set aside.
SCHEMA_VERSION = 1
#: Marks the file as ours ("ckpt").
_APPLICATION = 0x636B7074
_CREATE = """
CREATE TABLE IF NOT EXISTS rows (
    scope BLOB NOT NULL, tab BLOB NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (scope, tab, key)
) WITHOUT ROWID
"""
_PUT = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)"
_DROP = "DELETE FROM rows WHERE scope = ? AND tab = ? AND key = ?"
_DROP_BELOW = "DELETE FROM rows WHERE scope = ? AND tab = ? AND key >= ? AND substr(key, 1, ?) = ?"
_ALL = (
    "SELECT CAST(scope AS BLOB), CAST(tab AS BLOB), CAST(key AS BLOB), CAST(value AS BLOB), sum"
    " FROM rows"
)
_SUMS = "SELECT CAST(key AS BLOB), CAST(value AS BLOB), sum FROM rows"
_READ = (
    "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM rows"
    " WHERE scope = ? AND tab = ? ORDER BY key"
)
_SCOPES = "SELECT DISTINCT CAST(scope AS BLOB) FROM rows ORDER BY scope"
#: Another process may read (status); it is never waited for longer (guessed).
_BUSY_SECONDS = 1.0

#: SQLite's words and what the system would have said; its error codes need Python 3.11.
_MEANING = (
    ("disk is full", errno.ENOSPC),
    ("locked", errno.EBUSY),
    ("busy", errno.EBUSY),
    ("readonly", errno.EROFS),
    ("unable to open", errno.EACCES),
)

#: What SQLite (and ``_check``) says of a file that cannot be trusted.
_DAMAGE = ("malformed", "not a database", "encrypted", "unsupported file format")

_T = TypeVar("_T")


def scope_of(watch_root: str, url: str) -> str:
    """Name the pair of a watch root and a destination, the same for every spelling of the path."""
    return f"{os.path.realpath(watch_root)} -> {url.rstrip('/')}"


class Ledger:
    """An open ledger. ``opened`` says what was wrong with the file found, or is empty.

    Every method raises OSError, ENOSPC among them, and nothing else; a failed ``apply`` changed
    nothing and may be ordered again. Threads take turns, and so wait for each other's fsync.
    """

    def __init__(self, path: Path, scope: str, *, read_only: bool = False) -> None:
        """Open or create the file with mode 0600 in a directory that is created with 0700.

        With ``read_only`` the file must exist, may be in use by a daemon, and no row is changed.
        Where the disk is full the rows are kept in memory: better forgetful than not running.
        """
        self._path = path
        self._scope = _blob(scope)
        self._turn = threading.Lock()
        self.opened = ""
        self._file: os.stat_result | None = None
        if read_only:
            self._db = _as_system(lambda: _connect_to_read(path))
        else:
            self._db = self._open_or_forget()

    def rows(self, table: str) -> list[tuple[str, str]]:
        """Return all rows of a table as (key, value), sorted by key's bytes."""
        wanted = (self._scope, _blob(table))
        with self._turn:
            found = _as_system(lambda: self._db.execute(_READ, wanted).fetchall())
        return [(_text(key), _text(value)) for key, value in found]

    def scopes(self) -> list[str]:
        """Return every scope that has rows."""
        found = _as_system(lambda: self._db.execute(_SCOPES).fetchall())
        return [_text(scope) for (scope,) in found]

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Carry out all orders in one transaction, in their order, or none of them.

        Afterwards they survive the death of this process; if any of them is durable, all of them
        survive a power cut too. Where somebody removed the file this fails once: the next time
        there is a new one, with every row.
        """
        if orders:
            durable = any(isinstance(order, Remember) and order.durable for order in orders)
            with self._turn:
                if self._is_removed():
                    self._begin_anew()
                _as_system(lambda: self._apply(orders, "FULL" if durable else "NORMAL"))

    def close(self) -> None:
        """Close the file; what is in the write-ahead log is folded back into it."""
        with self._turn:
            _as_system(self._db.close)

    def _is_removed(self) -> bool:
        """Return whether what we write into has no name any more, or is not what has the name."""
        if self._file is None:
            return False
        try:
            return not os.path.samestat(self._path.stat(), self._file)
        except FileNotFoundError:
            return True

    def _begin_anew(self) -> None:
        """Write a new file with the rows of the one that nobody can find again; always raises."""
        _as_system(lambda: self._go_on_with(_connect_to_memory()))
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._open()
        _as_system(lambda: self._go_on_with(fresh))
        self._file = self._path.stat()
        raise OSError(errno.ENOENT, "its file was removed; there is a new one, with every row")

    def _go_on_with(self, fresh: sqlite3.Connection) -> None:
        """Write every row into another database, and use that from now on."""
        with _transaction(fresh):
            fresh.executemany(_PUT, self._db.execute(_ALL).fetchall())
        self._db.close()
        self._db = fresh

    def _apply(self, orders: Sequence[LedgerOrder], synchronous: str) -> None:
        self._db.execute(f"PRAGMA synchronous = {synchronous}")
        with _transaction(self._db):
            for order in orders:
                if isinstance(order, ForgetBelow):
                    self._forget_below(order)
                else:
                    self._change(order)

    def _change(self, order: Remember | Forget) -> None:
        key = _blob(order.key)
        row = (self._scope, _blob(order.table), key)
        if isinstance(order, Forget):
            self._db.execute(_DROP, row)
        else:
            value = _blob(order.value)
            self._db.execute(_PUT, (*row, value, _sum(key, value)))

    def _forget_below(self, order: ForgetBelow) -> None:
        prefix = _blob(order.prefix)
        for table in order.tables:
            row = (self._scope, _blob(table), prefix, len(prefix), prefix)
            self._db.execute(_DROP_BELOW, row)

    def _open_or_forget(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = self._open()
            self._file = self._path.stat()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.opened = f"{self.opened} the ledger has no room and is kept in memory".strip()
            return _as_system(_connect_to_memory)
        return opened

    def _open(self) -> sqlite3.Connection:
        """Return a connection to a file that was checked; sets a bad one aside first."""
        try:
            return _connect_to_write(self._path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise _system_error(error) from error
            aside = _set_aside(self._path)
            self.opened = f"the ledger was unusable ({error}) and is now {aside}; began a new one"
        return _as_system(lambda: _connect_to_write(self._path))


def _connect_to_write(path: Path) -> sqlite3.Connection:
    """Connect, check the whole file and create what is missing; raises sqlite3.DatabaseError."""
    # The file is made before SQLite sees it: its log files inherit this mode, whatever the umask.
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(number, 0o600)
        is_new = not os.fstat(number).st_size
    finally:
        os.close(number)
    if is_new:
        _keep_names(path)
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _check(db)
        _prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _keep_names(path: Path) -> None:
    """Let the names that lead to a new file survive a power cut, as far as we may sync them."""
    for directory in path.absolute().parents:
        with contextlib.suppress(PermissionError):
            number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with contextlib.suppress(OSError):  # not every file system syncs directories
                    os.fsync(number)
            finally:
                os.close(number)


def _connect_to_memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _prepare(db)
    return db


def _check(db: sqlite3.Connection) -> None:
    """Raise DatabaseError where the file is damaged, foreign, or newer than this program."""
    (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if verdict != "ok":
        msg = f"malformed: {verdict}"
    elif version > SCHEMA_VERSION:
        msg = f"not a database of this version: its schema is {version}, ours {SCHEMA_VERSION}"
    elif tables and application != _APPLICATION:
        msg = "not a database of ckptsyncd"
    elif tables and any(_sum(key, value) != told for key, value, told in db.execute(_SUMS)):
        msg = "malformed: a row's checksum is wrong"
    else:
        return
    raise sqlite3.DatabaseError(msg)


def _sum(key: bytes, value: bytes) -> int:
    """SQLite checks its own structure only: a flipped bit in a value would be believed."""
    return zlib.crc32(value, zlib.crc32(key))


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    with _transaction(db):
        db.execute(_CREATE)
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Connect without the right to write; also where not even the log's index can be made."""
    plain = path.absolute().as_uri() + "?mode=ro"
    try:
        return _readable(plain)
    except sqlite3.OperationalError:
        # A closed ledger in a directory that we may not write into: nothing is in its log.
        if path.with_name(path.name + "-wal").exists():
            raise
        return _readable(plain + "&immutable=1")


def _readable(address: str) -> sqlite3.Connection:
    db = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
    try:
        db.execute("SELECT count(*) FROM rows").fetchone()
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk may have rolled back already, and then there is nothing to roll back.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _set_aside(path: Path) -> Path:
    """Rename the file and its log to the next free ``.damaged-<n>`` and return the new name."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return any(word in str(error) for word in _DAMAGE)


def _as_system(action: Callable[[], _T]) -> _T:
    """Do it; what SQLite raises comes out as OSError."""
    try:
        return action()
    except sqlite3.Error as error:
        raise _system_error(error) from error


def _system_error(error: sqlite3.Error) -> OSError:
    text = str(error)
    number = next((number for word, number in _MEANING if word in text), errno.EIO)
    return OSError(number, f"ledger: {text}")


def _blob(text: str) -> bytes:
    """Names may carry bytes that are no UTF-8, which SQLite's text would refuse."""
    return text.encode("utf-8", "surrogateescape")


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogateescape")
