"""Who watches what is done to a session by hand: lines on stderr, no live screen."""

from __future__ import annotations

from planrun.cli.printing import complain
from planrun.core.events import Hooked, Noted, Requested, Responded
from planrun.core.records import Record
from planrun.core.state import State
from planrun.front import Front
from planrun.models.base import Retry
from planrun.views.console import retry_text
from planrun.views.line import NORMAL
from planrun.views.tell import tell
from planrun.views.words import one_line


def front() -> Front:
    return Front(observers=(_told,), on_retry=_retried, notice=_noticed)


def _told(record: Record, state: State) -> None:
    """What is waited for and what went wrong. What came of it is the command's own to say."""
    match record.event:
        case Requested() | Responded() | Hooked() | Noted(kind="sealed" | "deferred" | "summary_failed"):
            for line in tell(record, state):
                if line.level <= NORMAL:
                    complain(line.text)


def _retried(retry: Retry) -> None:
    complain(retry_text(retry, retry.wait))


def _noticed(text: str) -> None:
    complain(f"planrun: {one_line(text, 600)}")
