"""planrun as a process of its own, where only a process shows what matters: pipes, signals, terminals, encodings."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic
from typing import IO, Any

import planrun

COMMAND = [sys.executable, "-m", "planrun"]
_PATIENCE = 60.0


def environ(folder: Path, **more: str) -> dict[str, str]:
    """A small environment in which planrun is importable and nothing of the developer's is seen."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONPATH": str(Path(planrun.__file__).parents[1]),
        "LANG": "C.UTF-8",
        **more,
    }


def start(folder: Path, *args: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[bytes]:
    """Its pipes are unbuffered: `readline` takes no more than a line, and `communicate` gets all the rest."""
    more.setdefault("preexec_fn", interruptible)
    return subprocess.Popen([*COMMAND, *args], cwd=folder, env=environ(folder, **(env or {})), bufsize=0, **more)


def interruptible() -> None:
    """A test run in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finished(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *args],
        cwd=folder,
        env=environ(folder, **(env or {})),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_PATIENCE,
        check=False,
    )


def until(pipe: IO[bytes] | None, text: bytes) -> None:
    """Read lines until one holds `text`. AssertionError where the stream ends before it does."""
    assert pipe is not None
    seen = b""
    while text not in (line := pipe.readline()):
        seen += line
        assert line, f"{text!r} is not in {seen!r}"


class Terminal:
    """A run on a terminal of its own: `until` reads what it shows, `type` writes to it."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self.shown = b""
        self._descriptor = descriptor

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def until(self, text: str) -> None:
        """Read on until `text` was shown. AssertionError where the run ends or a minute passes before it is."""
        wanted, limit = text.encode(), monotonic() + _PATIENCE
        while wanted not in self.shown:
            assert self._read(limit), f"{text!r} was not shown in {self.shown.decode('utf-8', 'replace')!r}"

    def rest(self) -> str:
        """Everything that was shown, once the run has ended."""
        limit = monotonic() + _PATIENCE
        while self._read(limit):
            pass
        self.process.wait(_PATIENCE)
        return self.shown.decode("utf-8", "replace")

    def _read(self, limit: float) -> bool:
        ready, _, _ = select([self._descriptor], [], [], max(0.0, limit - monotonic()))
        try:
            new = os.read(self._descriptor, 1 << 16) if ready else b""
        except OSError:  # Linux says EIO when the last writer has gone
            new = b""
        self.shown += new
        return bool(new)


@contextmanager
def on_terminal(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """planrun with stdin, stdout and stderr on a pseudo-terminal that it controls (so that ^C reaches it)."""
    mine, theirs = pty.openpty()
    shape = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}

    def enter() -> None:
        interruptible()
        os.login_tty(theirs)

    process = start(folder, *args, env={**shape, **(env or {})}, preexec_fn=enter)
    os.close(theirs)
    try:
        yield Terminal(process, mine)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(_PATIENCE)
        os.close(mine)
