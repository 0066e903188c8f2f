"""The full-text index of a folder of sessions: `index.sqlite` beside the logs, for its owner's eyes only.

It is derived from the logs, caught up when somebody asks (a run never waits for it), and may be deleted at any time. It holds
words and places, no texts: what is shown is read from the log. A file that is damaged, of another version or half dead is
thrown away and made anew.

Source: SQLite 3.40, FTS5 sections 4.4 (contentless tables) and 6.2 (merging); WAL mode.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from planrun.session import raw
from planrun.session.terms import indexed
from planrun.session.texts import Lines, docs

if TYPE_CHECKING:
    from sqlite3 import Connection

NAME = "index.sqlite"
SHIFT = 32  # a document's id is its session's number, then as many bits for its record's number
BUSY = 5.0  # seconds to wait for another process; one that builds lets go every BATCH bytes
BATCH = 16 << 20
_SCHEMA = 1  # goes up with every change of the tables or of what counts as a word
_TAIL = 64  # bytes before a place in a log that prove it: each line ends with the digest of the one before
# Every batch is a segment of the index; eight of them are merged at a time, not four, as merging is a fifth of the work.
_TABLES = """
create table session (no integer primary key autoincrement, name text not null unique, offset integer not null,
  record integer not null, tail blob not null, damaged integer not null);
create table doc (id integer primary key, offset integer not null, timestamp real not null,
  role text, step text, level integer);
create virtual table fts using fts5(text, content='', tokenize='ascii');
insert into fts(fts, rank) values ('hashsize', 16777216);
insert into fts(fts, rank) values ('automerge', 8);
"""
# Faults that a new file would not mend.
_ELSEWHERE = ("BUSY", "LOCKED", "CANTOPEN", "READONLY", "FULL", "IOERR", "PERM", "AUTH", "NOLFS", "PROTOCOL", "NOMEM")


class Unusable(Exception):
    """The index cannot be used now; the text says why. A scan finds the same."""


class Damaged(Exception):
    """What the file holds is not what a build would make; it is worth building it anew."""


@contextlib.contextmanager
def opened(folder: Path, busy: float = BUSY) -> Iterator[Connection]:
    """The index of a folder, made if need be; another process is waited for `busy` seconds. Raises Unusable or Damaged, whatever goes wrong with it inside the block too."""
    import sqlite3

    path = folder / NAME
    with _judged(), _held(folder, fcntl.LOCK_SH):
        if not path.exists():
            _create(path)
        with contextlib.closing(sqlite3.connect(path, timeout=busy, isolation_level=None)) as db:
            _prepare(db)
            yield db


def behind(folder: Path) -> int:
    """How many bytes of the folder's logs a search would have to catch up with. Raises Unusable or Damaged; changes nothing."""
    import sqlite3

    address = f"{(folder / NAME).absolute().as_uri()}?mode=ro"
    with _judged(), _held(folder, fcntl.LOCK_SH), contextlib.closing(sqlite3.connect(address, uri=True)) as db:
        version, verdict = (db.execute(f"pragma {name}").fetchone()[0] for name in ("user_version", "quick_check(1)"))
        if version != _SCHEMA or verdict != "ok":
            raise Damaged("it is another version's" if verdict == "ok" else verdict)
        return sum(_missing(db, path) for path in folder.glob("*.jsonl"))


def _missing(db: Connection, path: Path) -> int:
    row, size = db.execute("select offset, tail from session where name = ?", (path.stem,)).fetchone(), path.stat().st_size
    with raw.opened(path) as file:
        return size - row[0] if row is not None and _tail(file, row[0]) == row[1] else size


def _create(path: Path) -> None:
    """An empty file, readable for its owner only. It gets its name when it is closed: closing a descriptor of a database drops
    the locks that another thread has on it."""
    beside = path.with_name(f"{NAME}-{os.getpid()}-{threading.get_ident()}")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        beside.unlink()


def discard(folder: Path) -> None:
    """Delete the index, a link in its place too, unless another process is using it. Raises Unusable."""
    try:
        with _held(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for suffix in ("-wal", "-shm", "-journal", ""):
                (folder / f"{NAME}{suffix}").unlink(missing_ok=True)
    except BlockingIOError as error:
        raise Unusable("it is damaged, and another process is using it") from error
    except OSError as error:
        raise Unusable(f"it is damaged and cannot be deleted: {error.strerror or error}") from error


@contextlib.contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    """A lock on the folder: nobody deletes the index while somebody has it open."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, how)
        if (folder / NAME).exists() and not (folder / NAME).is_file():
            raise OSError("there is something else in its place")
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def _judged() -> Iterator[None]:
    """What goes wrong inside, as Unusable or Damaged."""
    import sqlite3

    try:
        yield
    except OSError as error:
        raise Unusable(f"{error.strerror or error}") from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or ""
        elsewhere = name.removeprefix("SQLITE_").startswith(_ELSEWHERE)
        raise (Unusable if elsewhere else Damaged)(str(error)) from error


def _prepare(db: Connection) -> None:
    (version,) = db.execute("pragma user_version").fetchone()
    if version == _SCHEMA:
        db.execute("pragma synchronous=normal")
        return
    with contextlib.suppress(db.OperationalError):  # another process does it at this moment
        db.execute("pragma page_size=8192")  # twice the default: fewer pages to write while it is built
        db.execute("pragma journal_mode=wal")
    db.execute("pragma synchronous=normal")
    with _writing(db):
        (version,) = db.execute("pragma user_version").fetchone()
        if version == 0 and not db.execute("select 1 from sqlite_master").fetchone():
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"pragma user_version={_SCHEMA}")
        elif version != _SCHEMA:
            raise Damaged("it is another version's")


@contextlib.contextmanager
def _writing(db: Connection) -> Iterator[None]:
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise
    db.execute("commit")


def number_of(db: Connection, name: str) -> int | None:
    row = db.execute("select no from session where name = ?", (name,)).fetchone()
    return row[0] if row else None


def catch_up(db: Connection, path: Path) -> None:
    """Index what the log at `path` grew by. Raises OSError where the log cannot be read."""
    with raw.opened(path) as file:
        while not _current(db, file, path.stem):
            with _writing(db):
                if not _batch(db, file, path.stem):
                    return


def _current(db: Connection, file: BinaryIO, name: str) -> bool:
    row = db.execute("select offset, tail from session where name = ?", (name,)).fetchone()
    size = os.fstat(file.fileno()).st_size
    return bool(row == (size, _tail(file, size)))


def _tail(file: BinaryIO, offset: int) -> bytes:
    return os.pread(file.fileno(), min(offset, _TAIL), max(0, offset - _TAIL))


def _batch(db: Connection, file: BinaryIO, name: str) -> bool:
    """Index the next lines. False where there are none."""
    row = db.execute("select no, offset, record, tail, damaged from session where name = ?", (name,)).fetchone()
    if row is not None and _tail(file, row[1]) != row[3]:
        _forget(db, row[0])
        row = None
    if row is None:
        made = db.execute("insert into session (name, offset, record, tail, damaged) values (?, 0, 0, x'', 0)", (name,))
        row = (made.lastrowid, 0, 0, b"", 0)
    no, start, record, _, damaged = row
    lines = Lines(file, start, record, texts_only=True)
    places, texts = [], []
    for doc in docs(lines):
        key = no << SHIFT | doc.record
        places.append((key, doc.offset, doc.timestamp, doc.role, doc.step, doc.level))
        texts.append((key, indexed(doc.text)))
        if lines.offset - start >= BATCH:
            break
    db.executemany("insert into doc values (?, ?, ?, ?, ?, ?)", places)
    db.executemany("insert into fts (rowid, text) values (?, ?)", texts)
    db.execute(
        "update session set offset = ?, record = ?, tail = ?, damaged = ? where no = ?",
        (lines.offset, lines.record, _tail(file, lines.offset), damaged + lines.damaged, no),
    )
    return bool(lines.offset > start)


def forget_missing(db: Connection, names: set[str]) -> None:
    """Forget the sessions whose logs are gone."""
    gone = [no for no, name in db.execute("select no, name from session").fetchall() if name not in names]
    if gone:
        with _writing(db):
            for no in gone:
                _forget(db, no)


def _forget(db: Connection, no: int) -> None:
    """Nothing of a session is found any more. Its words stay, as nothing can be deleted from a contentless table, until most of
    the index is such."""
    db.execute("delete from doc where id between ? and ?", (no << SHIFT, (no + 1 << SHIFT) - 1))
    db.execute("delete from session where no = ?", (no,))
    (live,) = db.execute("select count(*) from doc").fetchone()
    (held,) = db.execute("select count(*) from fts_docsize").fetchone()
    if held > 2 * live:
        raise Damaged("most of it is of logs that are gone")


def damaged_lines(db: Connection) -> dict[str, int]:
    return dict(db.execute("select name, damaged from session where damaged > 0 order by name"))
