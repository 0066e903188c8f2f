"""A recorded session as a model: every session log is its own cassette."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from planrun.core import context
from planrun.core.events import Requested, Responded, Said
from planrun.core.fold import fold
from planrun.core.messages import Message
from planrun.core.state import PlanReader, State
from planrun.errors import ConfigError
from planrun.models.base import Model, Reply, Usage
from planrun.models.replay import Recorded, ReplayModel
from planrun.session.store import records


def replay_of(path: Path, replies: int, read_plan: PlanReader) -> Model:
    """Answers from the log at `path`, in their order; the first `replies` answers to steps, and what lies between them, were
    given before. Raises ConfigError where there is no such file, SessionDamaged where it cannot be read as a log."""
    if not path.is_file():
        raise ConfigError(f"there is no recording {path}; `model: replay:FILE` names a session log, beside the plan")
    answered = [e for e in _exchanges(path) if e.answered]
    steps = [at for at, e in enumerate(answered, 1) if e.request.purpose == "step"]
    given = steps[min(replies, len(steps)) - 1] if replies and steps else 0
    return ReplayModel([_recorded(path, e, read_plan) for e in answered[given:]])


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request at its record, and what has come of it."""

    seq: int
    request: Requested
    said: Message | None = None
    report: Responded | None = None

    @property
    def answered(self) -> bool:
        """Not where it failed, or was cut off. An answer whose report a crash cut off was in force all the same."""
        return self.said is not None if self.report is None else self.report.error is None


def _exchanges(path: Path) -> Iterator[_Exchange]:
    exchange: _Exchange | None = None
    for record in records(path):
        match record.event:
            case Requested() as event:
                if exchange is not None:
                    yield exchange
                exchange = _Exchange(record.seq, event)
            case Said(origin="model") as event if exchange is not None:
                exchange = replace(exchange, said=event.message)
            case Responded() as event if exchange is not None:
                yield replace(exchange, report=event)
                exchange = None
    if exchange is not None:
        yield exchange


def _recorded(path: Path, exchange: _Exchange, read_plan: PlanReader) -> Recorded:
    messages = partial(_messages, path, exchange.seq, read_plan)
    return Recorded(exchange.request.digest, _reply(exchange.said, exchange.report), messages)


def _reply(said: Message | None, report: Responded | None) -> Reply:
    if report is None:
        return Reply(said)
    usage = report.usage or {}
    counts = Usage(usage.get("prompt_tokens"), usage.get("cached_tokens"), usage.get("completion_tokens"))
    return Reply(said, report.finish_reason, report.refusal, counts, report.model, report.retries)


def _messages(path: Path, seq: int, read_plan: PlanReader) -> list[dict[str, Any]]:
    """The messages that the request of record `seq` carried, folded anew when somebody asks."""
    before = takewhile(lambda record: record.seq < seq, records(path))
    return [m.wire() for m in context.messages(fold(before, State(), read_plan).view)]
