"""A recorded session as a model: every session log is its own cassette."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from planrun.core import context, room
from planrun.core.events import LimitNeared, Purpose, Requested, Responded, Said
from planrun.core.messages import Message
from planrun.core.records import Record
from planrun.core.state import PlanReader, State
from planrun.errors import ConfigError, ContextOverflow, PlanrunError, ProviderError
from planrun.models.base import Reply, Usage
from planrun.models.replay import Accepts, Recorded, ReplayModel
from planrun.session.following import follow
from planrun.session.store import records

Messages = Callable[[int], list[dict[str, Any]]]  # those that the request of a record carried, in wire form


def replay_of(path: Path, replies: int, read_plan: PlanReader) -> ReplayModel:
    """Answers from the log at `path`. Raises ConfigError where there is no such file, SessionDamaged where it cannot be read as a log."""
    if not path.is_file():
        raise ConfigError(f"there is no recording {path}; `model: replay:FILE` names a session log, beside the plan")
    return replay(records(path), replies, partial(_messages, path, read_plan))


def replay(recording: Iterable[Record], replies: int, messages: Messages, **more: Accepts) -> ReplayModel:
    """Answers from the records of a session, in their order; the first `replies` answers to steps, and the summaries before the last
    of them, were given before. `more` is for the ReplayModel."""
    exchanges = list(_exchanges(recording))
    steps = [e for e in exchanges if e.request.purpose == "step" and e.replayed]
    given = [at for at, e in enumerate(steps, 1) if e.error is None][:replies]
    skipped = given[-1] if given else 0
    last = steps[skipped - 1].over if skipped else 0
    rest = [e for e in exchanges if e.request.purpose != "step" and e.replayed and (e.over is None or e.over > (last or 0))]
    summaries = [_recorded_summary(e, steps[skipped:]) for e in rest]
    return ReplayModel([_recorded(e, messages) for e in steps[skipped:]], summaries, **more)


def window_of(path: Path, read_plan: PlanReader) -> int | None:
    """The window that the recorded run began with: a replay has to leave out what that one did. None where nothing says."""
    if not path.is_file():
        return None
    first = next((state for _, state in follow(path, read_plan)), State())
    return room.window_of(first, first.model)[0] if first.header else None


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request at its record, and what has come of it by the record `over`."""

    seq: int
    request: Requested
    said: Message | None = None
    report: Responded | None = None
    window: float | None = None  # taught by the error
    over: int | None = None

    @property
    def error(self) -> PlanrunError | None:
        if self.report is None or self.report.error is None:
            return None
        return ProviderError(self.report.error) if self.window is None else ContextOverflow(self.report.error, int(self.window))

    @property
    def replayed(self) -> bool:
        """Errors count where the run went on with them: that a request was too long, that there was no summary. So does an answer
        whose report a crash cut off, and a summary beside the run that never came."""
        if self.request.purpose == "background":
            return True
        if self.report is None:
            return self.said is not None
        return self.error is None or self.window is not None or self.request.purpose == "summary"


def _exchanges(recording: Iterable[Record]) -> Iterator[_Exchange]:
    """In the order of the requests but for those beside the run, which come when they are over."""
    under_way: dict[bool, _Exchange] = {}  # beside the run or not
    done: _Exchange | None = None
    for record in recording:
        match record.event:
            case LimitNeared(limit="window", maximum=window) if done is not None:
                done = replace(done, window=window)
            case Requested() as event:
                yield from _given(done, under_way.pop(_beside(event.purpose), None))
                done = None
                under_way[_beside(event.purpose)] = _Exchange(record.seq, event)
            case Said(origin="model") as event if False in under_way:
                under_way[False] = replace(under_way[False], said=event.message, over=record.seq)
            case Responded() as event if _beside(event.purpose) in under_way:
                yield from _given(done)
                done = replace(under_way.pop(_beside(event.purpose)), report=event, over=record.seq)
    yield from _given(done, *under_way.values())


def _beside(purpose: Purpose) -> bool:
    return purpose == "background"


def _given(*exchanges: _Exchange | None) -> Iterator[_Exchange]:
    return (e for e in exchanges if e is not None)


def _recorded(exchange: _Exchange, messages: Messages) -> Recorded:
    reply = exchange.error or _reply(exchange.said, exchange.report)
    return Recorded(exchange.request.digest, reply, partial(messages, exchange.seq), seq=exchange.seq)


def _recorded_summary(exchange: _Exchange, steps: list[_Exchange]) -> Recorded:
    text = exchange.report.text if exchange.report else None
    said = exchange.said or (Message("assistant", text) if text is not None else None)
    after = None if exchange.over is None else sum(1 for s in steps if s.over is not None and s.over < exchange.over)
    answer = exchange.error or _reply(said, exchange.report)
    return Recorded(exchange.request.digest, answer, after=after, seq=exchange.seq, purpose=exchange.request.purpose)


def _reply(said: Message | None, report: Responded | None) -> Reply:
    if report is None:
        return Reply(said)
    usage = report.usage or {}
    counts = Usage(usage.get("prompt_tokens"), usage.get("cached_tokens"), usage.get("completion_tokens"))
    return Reply(said, report.finish_reason, report.refusal, counts, report.model, report.retries)


def _messages(path: Path, read_plan: PlanReader, seq: int) -> list[dict[str, Any]]:
    """Folded anew when somebody asks."""
    before = State()
    for record, state in follow(path, read_plan):
        if record.seq == seq:
            break
        before = state
    return [m.wire() for m in context.messages(before.view)]
