"""The folder for saved output: how much stays in it, and files of a moment beside. These name their process, so that what a
killed one left behind is found."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST = 1 << 30  # bytes of saved output that a workspace keeps
_NAME = re.compile(r"\.[a-z]+-(\d+)-\w+\.part(\.err)?")


def path_for(folder: Path, kind: str) -> Path:
    """A file name of this thread's own in `folder`; nothing is there."""
    path = folder / f".{kind}-{os.getpid()}-{threading.get_ident()}.part"
    with suppress(OSError):
        path.unlink()
    return path


@contextmanager
def directory(folder: Path, kind: str) -> Iterator[Path]:
    """A directory of the caller's own, gone afterwards: in `folder`, or in the system's where that one cannot be written to."""
    named = {"prefix": f".{kind}-{os.getpid()}-", "suffix": ".part"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(dir=folder, **named)
    except OSError:
        made = tempfile.mkdtemp(**named)
    try:
        yield Path(made).resolve()
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what processes that are gone have left in `folder`, as far as that can be done."""
    with suppress(OSError):
        for path in folder.glob(".*.part*"):
            named = _NAME.fullmatch(path.name)
            if named and not _alive(int(named[1])):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):
                    path.unlink()


def prune(folder: Path, most: int = MOST) -> None:
    """Remove the oldest texts that were saved in `folder` until the rest takes at most `most` bytes."""
    with suppress(OSError), os.scandir(folder) as entries:
        saved = sorted(
            (each.stat().st_mtime_ns, each.stat().st_size, each.path) for each in entries if not each.name.startswith(".")
        )
        total = sum(size for _, size, _ in saved)
        for _, size, path in saved:
            if total <= most:
                return
            os.unlink(path)
            total -= size


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
