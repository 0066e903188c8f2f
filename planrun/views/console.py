"""Progress on stderr: a live screen on a terminal, plain lines everywhere else."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TextIO

from planrun.core.events import Ended, Noted, Session, StepChanged
from planrun.core.names import SESSIONS
from planrun.core.records import Record
from planrun.core.state import State
from planrun.models.base import Retry
from planrun.views.line import NORMAL, QUIET, Line
from planrun.views.screen import Screen
from planrun.views.tell import ending, tell
from planrun.views.words import duration, one_line

_TOLD_ALWAYS = (Session, Noted, StepChanged, Ended)  # events that may have a line even where only the end is asked for


class Console(Protocol):
    """Whoever shows a run. It observes every record; `close` leaves the terminal as it was found."""

    def opened(self, path: Path) -> None: ...

    def __call__(self, record: Record, state: State) -> None: ...

    def on_retry(self, retry: Retry) -> None: ...

    def notice(self, text: str) -> None: ...

    def paused(self) -> AbstractContextManager[None]: ...

    def close(self) -> None: ...


def console(stream: TextIO | None, environ: Mapping[str, str], verbosity: int) -> Console:
    """The console for this stream: live only on a terminal that can do it, with nobody's CI around."""
    screen = Screen(stream)
    if verbosity > QUIET and screen.isatty() and not environ.get("CI") and environ.get("TERM", "dumb") != "dumb":
        from planrun.views.live import Live

        return Live(screen, verbosity, colour=not environ.get("NO_COLOR"))
    return Plain(screen, verbosity)


class Plain:
    """One line for each event of interest, with the local time; nothing is ever overwritten."""

    def __init__(self, screen: Screen, verbosity: int) -> None:
        self._screen, self._verbosity = screen, verbosity
        self._path = Path()

    def opened(self, path: Path) -> None:
        self._path = path

    def __call__(self, record: Record, state: State) -> None:
        if self._verbosity <= QUIET and not isinstance(record.event, _TOLD_ALWAYS):
            return
        for line in lines(record, state, self._path):
            if line.level <= self._verbosity:
                self._print(line.text, record.timestamp)

    def on_retry(self, retry: Retry) -> None:
        if self._verbosity >= NORMAL:
            self._print(retry_text(retry, retry.wait), time.time())

    def notice(self, text: str) -> None:
        self._print(one_line(text, 600), time.time())

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        self._screen.flush()

    def _print(self, text: str, timestamp: float) -> None:
        clock = time.strftime("%H:%M:%S ", time.localtime(timestamp)) if self._verbosity > QUIET else ""
        self._screen.line(f"{clock}{text}")


def lines(record: Record, state: State, path: Path) -> Iterator[Line]:
    """What a record of the log at `path` says, the beginning and the end of the run included."""
    match record.event:
        case Session(session=name) if record.seq == 1:
            plan, cwd = one_line(state.need_plan().name), Path(record.event.cwd)
            shown = path.relative_to(cwd) if path.is_relative_to(cwd) else path
            yield Line(f"session {name} of plan {plan}, log in {one_line(str(shown), 400)}", "dim", stays=True)
        case Noted(kind="resumed", text=text):
            plan = one_line(state.need_plan().name)
            yield Line(f"session {path.stem} of plan {plan}: {one_line(text)}", "dim", stays=True)
        case Ended() as event:
            yield from ending(event, state, resume_command(path, state))
        case _:
            yield from tell(record, state)


def resume_command(path: Path, state: State) -> str:
    """The command that goes on with the session from its own working directory."""
    command = f"planrun resume {path.stem}"
    home = Path(state.header.cwd) if state.header else Path()
    if path.parent.resolve() != (home / SESSIONS).resolve():
        command += f" --session-dir {shlex.quote(str(path.parent))}"
    return command


def retry_text(retry: Retry, left: float) -> str:
    """`retry 2 of 6 in 4s: Rate limit reached …`, or what the run is parked for and how long."""
    wait, reason = duration(max(0.0, left)), one_line(retry.reason, 300)
    if retry.left is not None:
        return f"parked, next request in {wait} ({duration(max(0.0, retry.left))} of --wait-limit left then): {reason}"
    return f"retry {retry.attempt} of {retry.attempts - 1} in {wait}: {reason}"
