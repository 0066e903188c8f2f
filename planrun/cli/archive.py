"""What `search` and `expand` share: which archive is meant. A search takes milliseconds: nothing heavy is imported for it."""

from __future__ import annotations

from pathlib import Path

from planrun.core.names import SESSIONS
from planrun.session.history import History
from planrun.session.texts import is_name, newest


def history_of(session: str | None, session_dir: Path | None, *, any_session: bool = False) -> History:
    """The archive, seen from a session: the one that is named (a unique beginning is enough), else the newest of this
    directory. With `any_session` there need be none. Raises UsageError."""
    here = Path.cwd().resolve()
    folder = here / (session_dir or SESSIONS)  # no settings file can say otherwise, so none is read
    log = newest(folder, str(here)) if session is None else folder / f"{session}.jsonl" if is_name(session) else None
    if log is None and session is None and any_session:
        return History(folder, None)
    if log is None or not log.is_file():
        from planrun.cli.finding import find
        from planrun.session.store import Store

        log = find(session, Store(folder))
    return History(folder, log)
