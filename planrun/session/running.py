"""Whether somebody is writing a session right now, seen from outside."""

from __future__ import annotations

import fcntl
from pathlib import Path


def writer(path: Path) -> str | None:
    """Who holds the lock of the log at `path`, as `pid 123 on HOST`; None where nobody does."""
    try:
        who = path.with_suffix(".lock").read_text(encoding="utf-8", errors="replace").strip()
        # Only where a writer left its name is the lock tried at all: for that moment nobody else could take it.
        with path.open("rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return who or "another process"
    except OSError:
        return None
    return None
