"""Which session a command means."""

from __future__ import annotations

import os
from pathlib import Path

from planrun.errors import UsageError
from planrun.session.store import Store
from planrun.settings import Flags, resolve


def store_of(session_dir: Path | None) -> Store:
    """The sessions that this directory's settings, or the option, point to. Raises ConfigError."""
    return Store(resolve(Path.cwd().resolve(), Flags(session_dir=session_dir), os.environ, None).session_dir)


def find(name: str | None, store: Store) -> Path:
    """The log of the session that a name or its unique beginning means; without one, this directory's newest.

    Raises UsageError."""
    if name is not None:
        return store.find(name)
    here = str(Path.cwd().resolve())
    found = [f for f in store.all() if f.header.cwd == here]
    if not found:
        raise UsageError(f"there is no session of {here} in {store.folder}; `planrun list` shows what there is")
    return found[-1].path
