"""Commands of the shell in a process group of their own, with bounded memory, that never outlive planrun."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from planrun.tools.capture import Captured, Stream
from planrun.tools.environment import child_environment

__all__ = ["Captured", "Finished", "child_environment", "kill_all", "run_command", "shell"]

TERM_GRACE = 2.0  # seconds between TERM and KILL after a timeout
PIPE_GRACE = 0.5  # seconds that processes which outlive the command may still write
_POLL = 0.05
_CHUNK = 1 << 16

# The watcher holds the read end of a pipe whose write end only planrun has: when planrun dies, however it dies, the
# pipe closes and the watcher kills the whole group. It is forked twice, so that the command has no child it did not
# start (`wait` would hang on it).
_GUARD = """exec 3<&0 <"$1"
shift
( ( trap '' HUP INT QUIT TERM; read -r x <&3; kill -KILL 0 ) >/dev/null 2>&1 & )
exec 3<&- "$@\""""

_lock = threading.RLock()  # re-entrant: a signal handler may call kill_all() while its own thread holds it
_live: set[int] = set()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `exit_code` is None when a signal ended it, or the timeout (then `signal` is None too).
    `stdout` has both streams in the order of arrival where they were merged. `seconds` is monotonic time."""

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout: Captured
    stderr: Captured
    seconds: float


def shell() -> tuple[str, ...]:
    """The argv that a command is appended to: bash, which models write for, and sh where there is none at its usual
    place."""
    return ("/bin/bash", "-c") if os.path.exists("/bin/bash") else ("/bin/sh", "-c")


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
) -> Finished:
    """Run `command` to its end or for `timeout` seconds. On return no process of its group is alive, background jobs
    included.
    It has no terminal, and no input but `stdin`, which it need not read. Of each stream the first `head` and the last
    `tail` bytes are kept; a longer one is written to the file `capture` (stderr, if apart, to `capture` + `.err`) up to
    `capture.CAPTURE_LIMIT`. `prefix` is an argv put before the shell (a sandbox), `interpreter` one in the place of
    `shell()`. Raises OSError when it cannot be started, ValueError on a NUL in it; whatever a signal handler raises
    passes through, after the kill."""
    started = time.monotonic()
    argv = (*prefix, *(interpreter or shell()), command)
    with (
        _input(stdin) as given,
        _spawned(argv, cwd, env, merge, given) as process,
        selectors.DefaultSelector() as selector,
    ):
        streams = [Stream(head, tail, capture)]
        _register(selector, process.stdout, streams[0])
        if not merge:
            streams.append(Stream(head, tail, capture and capture.with_name(capture.name + ".err")))
            _register(selector, process.stderr, streams[1])
        try:
            timed_out = _run(process, selector, started + timeout, term_grace)
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


def kill_all() -> None:
    """KILL every live group at once. Safe in a signal handler."""
    with _lock:
        for group in tuple(_live):
            _kill(group, signal.SIGKILL)


@contextmanager
def _input(data: bytes | None) -> Iterator[int | None]:
    """A descriptor that reads as `data`: of a file without a name, so that nothing waits for a reader. None for no input."""
    if data is None:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


@contextmanager
def _spawned(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], merge: bool, given: int | None
) -> Iterator[subprocess.Popen[bytes]]:
    """The started command; its whole group is dead and reaped afterwards, whatever was raised inside."""
    source = "/dev/null" if given is None else f"/dev/fd/{given}"
    watched, held = os.pipe()
    try:
        process = subprocess.Popen(
            [b"/bin/sh", b"-c", _GUARD.encode(), b"planrun", *map(_encoded, (source, *argv))],
            pass_fds=() if given is None else (given,),
            cwd=os.fspath(cwd),
            env={_encoded(name): _encoded(value) for name, value in env.items()},
            stdin=watched,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge else subprocess.PIPE,
            start_new_session=True,
        )
        try:
            with _lock:
                _live.add(process.pid)
            yield process
        finally:
            _end(process)
    finally:
        # An exception between fork and `try` leaves the group to the watcher, which this wakes.
        os.close(held)
        os.close(watched)


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process.pid, signal.SIGKILL)
    with _lock:
        _live.discard(process.pid)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    # As process 1 of a container planrun inherits the orphans of the group; elsewhere init has reaped them.
    with suppress(ChildProcessError):
        for _ in range(50):
            if os.waitpid(-process.pid, os.WNOHANG)[0] == 0:
                time.sleep(0.002)


def _register(selector: selectors.BaseSelector, pipe: IO[bytes] | None, stream: Stream) -> None:
    if pipe is not None:
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe.fileno(), selectors.EVENT_READ, stream)


def _run(process: subprocess.Popen[bytes], selector: selectors.BaseSelector, deadline: float, term_grace: float) -> bool:
    """Drain the pipes until the group is dead; whether it had to be because of the deadline."""
    timed_out = not _until_exit(process, selector, deadline)
    if timed_out:
        _kill(process.pid, signal.SIGTERM)
    _settle(process, selector, term_grace if timed_out else PIPE_GRACE)
    _kill(process.pid, signal.SIGKILL)
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


def _kill(group: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says EPERM for a group of zombies
        os.killpg(group, signum)


def _encoded(text: str) -> bytes:
    """UTF-8 whatever the locale; bytes of the environment that were no UTF-8 come out as they went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
