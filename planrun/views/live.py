"""The live screen: what is done stays above, what is going on is redrawn below."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live as Region
from rich.text import Text

from planrun.core.events import CallEnded, CallStarted, Ended, Noted, Requested, Responded
from planrun.core.records import Record
from planrun.core.state import State
from planrun.models.base import Retry
from planrun.views.board import STYLES, board
from planrun.views.calls import subject
from planrun.views.console import lines, retry_text
from planrun.views.line import VERBOSE, Line
from planrun.views.screen import Screen
from planrun.views.tell import waited
from planrun.views.words import duration, one_line

_PER_SECOND = 4


class _Terminal(Console):
    """A console that never hides the cursor: a killed process cannot show it again."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Activity:
    """What is being waited for: since when (monotonic), and until when where it is the pause before a retry."""

    text: str = ""
    since: float = 0.0
    retry: Retry | None = None

    def shown(self, now: float) -> str:
        if self.retry is not None and now < self.since + self.retry.wait:
            return retry_text(self.retry, self.since + self.retry.wait - now)
        since = self.since + (self.retry.wait if self.retry is not None else 0.0)
        return f"{duration(now - since)}  {self.text}" if self.text else ""


class Live:
    """The console of a terminal. The region below is drawn by a thread of its own, from the newest state."""

    def __init__(self, screen: Screen, verbosity: int, *, colour: bool) -> None:
        self._verbosity = verbosity
        self._state = State()
        self._sent = 0
        self._activity = Activity()
        self._calls: dict[str, str] = {}
        self._began = time.monotonic()
        self._path = Path()
        self._unicode = screen.unicode
        self._console = _Terminal(
            file=screen,  # type: ignore[arg-type]
            force_terminal=True,
            no_color=not colour,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )
        self._region: Region | None = None

    def opened(self, path: Path) -> None:
        self._path = path

    def __call__(self, record: Record, state: State) -> None:
        self._follow(record, state)
        if isinstance(record.event, Ended):
            self._stop()
        elif self._region is None:
            self._began = time.monotonic() - state.elapsed
            self._start()
        for line in lines(record, state, self._path):
            if line.stays or self._verbosity >= VERBOSE:
                self._print(line)

    def on_retry(self, retry: Retry) -> None:
        self._activity = replace(self._activity, since=time.monotonic(), retry=retry)

    def notice(self, text: str) -> None:
        self._print(Line(one_line(text, 600), "note"))

    @contextmanager
    def paused(self) -> Iterator[None]:
        running = self._region is not None
        self._stop()
        try:
            yield
        finally:
            if running:
                self._start()

    def close(self) -> None:
        self._stop()

    def _follow(self, record: Record, state: State) -> None:
        now = time.monotonic()
        match record.event:
            case Requested() as event:
                self._sent = event.tokens
                self._activity = Activity(f"waiting for {waited(event, state)}", now)
            case Responded():
                self._activity = Activity()
            case CallStarted() as event:
                self._calls[event.call_id] = subject(event, state)
                self._activity = Activity(self._running(), now)
            case Noted(kind="rerun") if state.current is not None:
                command = state.need_plan().steps[state.current].run or ""
                self._activity = Activity(f"running {one_line(command)}", now)
            case CallEnded() as event:
                self._calls.pop(event.call_id, None)
                self._activity = Activity(self._running(), now) if self._calls else Activity()
        self._state = state

    def _running(self) -> str:
        first, *more = self._calls.values()
        return f"{first} (and {len(more)} more)" if more else first

    def _draw(self) -> RenderableType:
        now = time.monotonic()
        size = self._console.size
        rows = board(
            self._state,
            self._activity.shown(now),
            now - self._began,
            self._sent,
            height=size.height,
            unicode=self._unicode,
        )
        return Group(*[_cropped(text, size.width) for text in rows])

    def _start(self) -> None:
        # Nothing of ours writes to stdout while the region is up, so the streams stay as they are.
        self._region = Region(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._region.start()

    def _stop(self) -> None:
        region, self._region = self._region, None
        if region is not None:
            region.stop()

    def _print(self, line: Line) -> None:
        self._console.print(Text(line.text, style=STYLES[line.tone]))


def _cropped(text: Text, width: int) -> Text:
    text.no_wrap, text.overflow = True, "crop"
    text.truncate(max(1, width - 1), overflow="crop")
    return text
