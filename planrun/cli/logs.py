"""`planrun logs`"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planrun.cli.kinds import SESSION
from planrun.cli.options import session_dir_option

if TYPE_CHECKING:
    from planrun.core.records import Record

_PAUSE = 0.2  # seconds between two looks at a growing log


@click.command("logs")
@click.argument("session", required=False, type=SESSION)
@click.option("-f", "--follow", is_flag=True, help="Go on with new records until the run ends.")
@click.option("--format", type=click.Choice(["text", "jsonl"]), default="text", show_default=True, help="jsonl: the raw lines.")
@session_dir_option
def command(session: str | None, follow: bool, format: str, session_dir: Path | None) -> None:
    """Print the records of a session, one line each: number, local time, step, type, what happened.

    A unique beginning of the name is enough; without a name it is the newest session of this directory.

    \b
    planrun logs -f
    planrun logs 20260131-0915 --format jsonl | jq .type
    """
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import complain, raw
    from planrun.core.events import Ended
    from planrun.views.logs import log_line

    path = find(session, store_of(session_dir))
    record = None
    for record, line in read(path, follow):
        text = line if format == "jsonl" else f"{log_line(record)}\n".encode()
        if not raw(text):
            return
    if follow and not (record is not None and isinstance(record.event, Ended)):
        complain(f"nobody is running session {path.stem}; `planrun resume {path.stem}` goes on with it")


def read(path: Path, follow: bool) -> Iterator[tuple[Record, bytes]]:
    """Every record with its line. Following ends with the run: its end is the last record, or nobody writes any more.

    Raises SessionDamaged."""
    from planrun.core.events import Ended
    from planrun.errors import SessionDamaged
    from planrun.session.lock import writer
    from planrun.session.raw import opened
    from planrun.session.reader import Reader

    try:
        with opened(path) as file:
            reader = Reader(file, path)
            while True:
                writing = follow and writer(path) is not None  # asked first: what was written until then is read below
                ended, start = False, reader.offset
                for record in reader:
                    line = os.pread(file.fileno(), reader.offset - start, start)
                    ended, start = isinstance(record.event, Ended), reader.offset
                    yield record, line
                if ended or not writing:
                    return
                time.sleep(_PAUSE)
    except OSError as error:
        raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error
