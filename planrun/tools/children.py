"""Starting a command in a process group of its own, and ending all that it started."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from weakref import WeakSet

MARK = "PLANRUN_COMMAND"  # the variable that names the command in the environment of everything it starts
_ROUNDS = 200  # of looking for strays: what forks while it is being killed is found in the next one
_PAUSE = 0.005  # seconds between them
_SET_DUMPABLE = 4  # of prctl(2)

# The watcher holds the read end of a pipe whose write end only planrun has: when planrun dies, however it dies, the
# pipe closes and the watcher kills the whole group, and what left it. It is forked twice, so that the command has no
# child it did not start (`wait` would hang on it), and before the mark is set, so that it does not find itself.
_GUARD = f"""exec 3<&0 <"$1"
mark={MARK}=$2
shift 2
( ( trap '' HUP INT QUIT TERM; read -r x <&3
grep -als "$mark" /proc/[0-9]*/environ | while IFS=/ read -r x x pid x; do kill -KILL "$pid"; done
kill -KILL 0 ) >/dev/null 2>&1 & )
export "$mark"
exec 3<&- "$@\""""

_lock = threading.RLock()  # re-entrant: a signal handler may call kill_all() while its own thread holds it
_live: set[int] = set()
_left: WeakSet[threading.Thread] = WeakSet()  # nobody waits for what they do: they start nothing any more


@contextmanager
def spawned(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], merge: bool, given: int | None
) -> Iterator[subprocess.Popen[bytes]]:
    """The started command, with the descriptor `given` as its input. Afterwards its whole group is dead and reaped, and on
    Linux what left the group too, unless it dropped the variable MARK; whatever was raised inside."""
    _keep_to_itself()
    source = "/dev/null" if given is None else f"/dev/fd/{given}"
    mark, before = secrets.token_hex(8), _processes()
    watched, held = os.pipe()
    try:
        with _lock:
            if threading.current_thread() in _left:
                raise RuntimeError("nobody waits for this command any more")
            process = subprocess.Popen(
                [b"/bin/sh", b"-c", _GUARD.encode(), b"planrun", *map(_encoded, (source, mark, *argv))],
                pass_fds=() if given is None else (given,),
                cwd=os.fspath(cwd),
                env={_encoded(name): _encoded(value) for name, value in env.items()},
                stdin=watched,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merge else subprocess.PIPE,
                start_new_session=True,
            )
            _live.add(process.pid)
        try:
            yield process
        finally:
            _end(process)
            _kill_strays(mark, before)
    finally:
        # An exception between fork and `try` leaves the group to the watcher, which this wakes.
        os.close(held)
        os.close(watched)


def kill_all(left: threading.Thread | None = None) -> bool:
    """KILL every live group at once; whether there was any. The thread `left` starts none any more. Safe in a signal handler."""
    with _lock:
        if left is not None:
            _left.add(left)
        groups = tuple(_live)
        for group in groups:
            kill(group, signal.SIGKILL)
    return bool(groups)


def kill(group: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says EPERM for a group of zombies
        os.killpg(group, signum)


@cache
def _keep_to_itself() -> None:
    """Let no command read this process (Linux: `cat /proc/$PPID/environ`, a debugger): its environment and its memory hold the
    endpoint's key. Commands are as readable as ever. Root can still read it, and everybody the environment of the shell that
    planrun was started from; against that only a sandbox helps."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # 3 ms that only a run with commands pays

        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def _end(process: subprocess.Popen[bytes]) -> None:
    kill(process.pid, signal.SIGKILL)
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


def _kill_strays(mark: str, before: set[int]) -> None:
    """KILL what left the group of the command (`setsid`, a daemon): it is told by the mark in its environment. Processes that were
    there `before` are not looked at: to read the environments of all takes longer than most commands."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        strays = [pid for pid in _processes() - before if wanted in _environment(pid)]
        if not strays:
            return
        for pid in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def _processes() -> set[int]:
    """All process ids; none where there is no /proc."""
    with suppress(OSError):
        return {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    return set()


def _environment(pid: int) -> bytes:
    """What the process was started with; empty for one of somebody else, a zombie, or one that is gone."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
        return file.read()
    return b""


def _encoded(text: str) -> bytes:
    """UTF-8 whatever the locale; bytes of the environment that were no UTF-8 come out as they went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
