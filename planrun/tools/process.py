"""Commands of the shell in a process group of their own, with bounded memory, that never outlive planrun."""

from __future__ import annotations

import errno
import fcntl
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from planrun.masking.masker import NOTHING, Masker
from planrun.tools.capture import Captured, Stream
from planrun.tools.children import kill, kill_all, spawned

__all__ = ["Captured", "Finished", "kill_all", "run_command", "shell"]

TERM_GRACE = 2.0  # seconds between TERM and KILL after a timeout
PIPE_GRACE = 0.5  # seconds that processes which outlive the command may still write
_POLL = 0.05
_CHUNK = 1 << 16
_OWN = 10  # descriptors below it are those of the shell that begins a command
_WHY = {
    errno.E2BIG: "it is too long for the system, or its environment is: put it into a file and run that",
    errno.EAGAIN: "no more processes can be started (a limit of the user or of the machine)",
    errno.ENOMEM: "there is no memory for another process",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open on this machine",
}


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `exit_code` is None when a signal ended it, or the timeout (then `signal` is None too).
    `stdout` has both streams in the order of arrival where they were merged. `seconds` is monotonic time. `fault` says why
    it could not be started."""

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    seconds: float = 0.0
    fault: str = ""


def shell() -> tuple[str, ...]:
    """The argv that a command is appended to: bash, which models write for, and sh where there is none at its usual
    place."""
    return ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", "--")


def run_command(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    capture: Path | None = None,
    head: int = 1 << 19,
    tail: int = 1 << 19,
    prefix: tuple[str, ...] = (),
    merge: bool = True,
    term_grace: float = TERM_GRACE,
    stdin: bytes | None = None,
    interpreter: tuple[str, ...] | None = None,
    mask: Masker = NOTHING,
) -> Finished:
    """Run `command` to its end or for `timeout` seconds. On return nothing that it started is alive (see `spawned`).
    It has no terminal, and no input but `stdin`, which it need not read. Of each stream the first `head` and the last
    `tail` bytes are kept; a longer one is written to the file `capture` (stderr, if apart, to `capture` + `.err`) up to
    `capture.CAPTURE_LIMIT`. `prefix` is an argv put before the shell (a sandbox), `interpreter` one in the place of
    `shell()`; `mask` is for what the command prints. Nothing is raised for what the command or the system does; whatever a signal handler raises passes
    through, after the kill."""
    started = time.monotonic()
    argv = (*prefix, *(interpreter or shell()), command)
    if any("\0" in text for text in (*argv, *env, *env.values())):
        return Finished(fault="there is a NUL character in it or in its environment")
    streams = [Stream(head, tail, capture, mask)]
    if not merge:
        streams.append(Stream(head, tail, capture and capture.with_name(capture.name + ".err"), mask))
    try:
        with _input(stdin) as given, spawned(argv, cwd, env, merge, given) as process:
            timed_out = _attend(process, streams, started + timeout, term_grace)
    except OSError as error:
        return Finished(fault=_why(error, cwd))
    finally:
        captured = [stream.close() for stream in streams]
    code = None if timed_out else process.returncode
    return Finished(
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=timed_out,
        stdout=captured[0],
        stderr=captured[-1] if not merge else Captured(),
        seconds=time.monotonic() - started,
    )


def _why(error: OSError, cwd: Path) -> str:
    """Why a command could not be started, in words."""
    if not cwd.is_dir():
        return f"the working directory {cwd} is not there any more"
    return _WHY.get(error.errno or 0, str(error))


@contextmanager
def _input(data: bytes | None) -> Iterator[int | None]:
    """A descriptor that reads as `data`: of a file without a name, so that nothing waits for a reader. None for no input."""
    if data is None:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        above = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _OWN)
        try:
            yield above
        finally:
            os.close(above)


def _attend(process: subprocess.Popen[bytes], streams: list[Stream], deadline: float, term_grace: float) -> bool:
    """Drain the pipes until the group is dead; whether it had to be because of the deadline."""
    with selectors.DefaultSelector() as selector:
        for pipe, stream in zip((process.stdout, process.stderr), streams, strict=False):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe.fileno(), selectors.EVENT_READ, stream)
        timed_out = not _until_exit(process, selector, deadline)
        if timed_out:
            kill(process.pid, signal.SIGTERM)
        _settle(process, selector, term_grace if timed_out else PIPE_GRACE)
        kill(process.pid, signal.SIGKILL)
        _settle(process, selector, PIPE_GRACE)
    return timed_out


def _until_exit(process: subprocess.Popen[bytes], selector: selectors.BaseSelector, end: float) -> bool:
    """Drain the pipes until the command itself is over: True; False when the time is."""
    while process.poll() is None:
        left = end - time.monotonic()
        if left <= 0:
            return False
        if selector.get_map():
            _read(selector, min(left, _POLL))
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(left)
    return True


def _settle(process: subprocess.Popen[bytes], selector: selectors.BaseSelector, grace: float) -> None:
    """Drain until the command is over and every pipe is closed, for at most `grace` seconds."""
    end = time.monotonic() + grace
    while (left := end - time.monotonic()) > 0:
        if selector.get_map():
            _read(selector, min(left, _POLL))
        elif process.poll() is not None:
            return
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(left)


def _read(selector: selectors.BaseSelector, wait: float) -> None:
    for key, _ in selector.select(wait):
        with suppress(BlockingIOError):
            chunk = os.read(key.fd, _CHUNK)
            if chunk:
                key.data.feed(chunk)
            else:
                selector.unregister(key.fd)
