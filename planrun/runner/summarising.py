"""Performing Summarise: normal prompt, tight prompt, then the digest that needs no model. A run never fails because a summary did.

Inside a run each attempt is an action of its own, so that limits are checked between them and a crash forgets none."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from math import inf

from planrun.core import budget, compaction, context, editing, pressure, summaries
from planrun.core.actions import Summarise
from planrun.core.context import Entry
from planrun.core.edits import Insert
from planrun.core.events import Event, Noted, Purpose, Requested, Responded
from planrun.core.messages import compact_json
from planrun.core.room import window_of
from planrun.core.state import State
from planrun.core.strategies import ladder
from planrun.core.summaries import Level
from planrun.core.tokens import raw_tokens
from planrun.errors import ContextOverflow, Interrupted, PlanrunError, ReplayMismatch
from planrun.models.base import ModelRequest, Reply
from planrun.runner.asking import cost_of, counts_of, window_taught
from planrun.runner.world import World

TIMEOUT = 120.0  # seconds for one summary
_SHARE = 0.5  # of the summariser's window that its source may take


@dataclass(frozen=True, slots=True)
class Source:
    """What one summary is made of: the messages it covers, the text that is sent, the summary before it. `raw` is the size of what it
    covers in raw tokens, `factor` what makes the step's tokens of them."""

    entries: tuple[Entry, ...]
    text: str
    anchor: str
    level: int
    raw: float
    factor: float

    @property
    def span(self) -> tuple[int, int]:
        spans = [e.span for e in self.entries]
        return min(a for a, _ in spans), max(b for _, b in spans)

    def target(self, level: Level) -> int:
        return level.target(self.raw * self.factor)


def source_of(state: State, action: Summarise) -> Source:
    """What `action` covers, cut to whole turns that fit the summariser's window. By hand whole runs are summed up at once, so
    that only the beginning and the end of each tool result are given."""
    results = summaries.PREVIEW if action.trigger == "manual" else summaries.ITEM
    name = summariser(state, action.step)
    window, _ = window_of(state, name, own=name == state.model_of(state.need_plan().step(action.step)))
    room = window * _SHARE / max(state.factors.get(name, 1.0), 0.5) if action.model else inf
    groups = _worthwhile([g.entries for g in ladder.groups(state.view) if covered(g.entries, action.first, action.last)])
    text, fit = summaries.source(groups, room, results)
    before = [e for s in state.view for e in s.summaries if e.span[1] < action.first]
    entries = tuple([e for group in groups[:fit] for e in group])
    anchor = (before[-1].message.content or "") if before else ""
    return Source(entries, text, anchor, action.level, sum(e.raw for e in entries), state.factor)


def _worthwhile(groups: list[tuple[Entry, ...]]) -> list[tuple[Entry, ...]]:
    """The groups, the first ones taken together until a note about them is smaller than they are."""
    first: tuple[Entry, ...] = ()
    for at, group in enumerate(groups):
        first += group
        if sum(e.raw for e in first) >= pressure.WORTH_RAW:
            return [first, *groups[at + 1 :]]
    return [first]


def covered(entries: tuple[Entry, ...], first: int, last: int) -> bool:
    return first <= entries[0].span[0] and entries[-1].span[1] <= last and entries[0].message.role != "system"


def summariser(state: State, step_id: str) -> str:
    """The model that writes summaries. A recording answers its own."""
    own = state.model_of(state.need_plan().step(step_id))
    named = state.settings.get("summary_model")
    return named if isinstance(named, str) and not own.startswith("replay:") else own


def summarise(world: World, state: State, action: Summarise) -> Iterator[Event]:
    """One attempt, on record whatever comes of it. The digest, the last stair, always succeeds."""
    source = source_of(state, action)
    if not action.model:
        yield from committed(state, action, source, None)
        return
    level = summaries.levels(source.level)[action.tight]
    asked = yield from _asked(world, state, action, source, level)
    # What comes of it stands in the log before what it cost: a crash between the two makes nobody ask again.
    if asked.why is None:
        yield from committed(state, action, source, text_of(asked.answer))
    else:
        yield Noted("summary", described(action, level, source, asked.why), action.step)
        if action.tight:
            yield _given_up(action)
    yield from asked.report


def written(world: World, state: State, action: Summarise, source: Source) -> Generator[Event, None, str | None]:
    """The summary that a model writes, all attempts at once; None where no model is to be asked, or none wrote one that can be
    accepted."""
    if not action.model:
        return None
    for level in summaries.levels(source.level):
        asked = yield from _asked(world, state, action, source, level)
        yield from asked.report
        if asked.why is None:
            return text_of(asked.answer)
        yield Noted("summary", described(action, level, source, asked.why), action.step)
    yield _given_up(action)
    return None


def _given_up(action: Summarise) -> Noted:
    return Noted("summary_failed", "no model's summary was accepted; a digest stands in", action.step)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer to a request for a summary: `why` it is not accepted, None where it is, and what the log is told of its cost."""

    answer: Reply | PlanrunError
    why: str | None
    report: tuple[Event, ...]


def _asked(world: World, state: State, action: Summarise, source: Source, level: Level) -> Generator[Event, None, _Asked]:
    request, requested = request_of(state, action, source, level)
    yield requested
    world.log.sync()
    began = time.monotonic()
    try:
        model = world.models(summariser(state, action.step))
        answer: Reply | PlanrunError = world.signals.abandonable(lambda: model.complete(request))
    except (Interrupted, ReplayMismatch):
        raise
    except PlanrunError as error:
        answer = error
    report = responded(world, requested, summariser(state, action.step), answer, time.monotonic() - began)
    return _Asked(answer, refusal_of(answer, source, level), tuple(report))


def request_of(state: State, action: Summarise, source: Source, level: Level) -> tuple[ModelRequest, Requested]:
    step = state.need_plan().step(action.step)
    model = summariser(state, step.id)
    purpose: Purpose = "background" if action.trigger == "background" else "summary"
    messages = summaries.prompt(source.text, source.anchor, source.target(level))
    body = {"model": model, "stream": True, "stream_options": {"include_usage": True}, "messages": messages}
    data = compact_json(body).encode("utf-8")
    digest = hashlib.sha256(compact_json(messages).encode("utf-8")).hexdigest()
    raw = round(sum(raw_tokens(m["content"]) for m in messages))
    left = budget.time_left(state, step)
    deadline = time.monotonic() + (TIMEOUT if left is None else min(TIMEOUT, left))
    tokens = round(raw * state.factors.get(model, 1.0))
    named = model if model != state.model else None
    requested = Requested(digest, tokens, len(messages), raw, step.id, named, purpose)
    return ModelRequest(data, digest, deadline=deadline, purpose=purpose), requested


def responded(world: World, sent: Requested, model: str, answer: Reply | PlanrunError, seconds: float) -> Iterator[Event]:
    """What came of a request for a summary, for the record. A window that it taught is one of the summariser's."""
    if isinstance(answer, PlanrunError):
        yield Responded(None, None, round(seconds, 3), error=f"{type(answer).__name__}: {answer}", purpose=sent.purpose)
        if isinstance(answer, ContextOverflow):
            yield window_taught(answer, sent)
        return
    yield Responded(
        usage=counts_of(answer.usage),
        model=answer.model,
        seconds=round(seconds, 3),
        retries=answer.retries,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
        cost_usd=cost_of(answer, world.prices(model), sent.tokens),
        purpose=sent.purpose,
        text=text_of(answer),
    )


def text_of(answer: Reply | PlanrunError) -> str | None:
    return answer.message.content if isinstance(answer, Reply) and answer.message is not None else None


def refusal_of(answer: Reply | PlanrunError, source: Source, level: Level) -> str | None:
    """Why the answer is not accepted; None where it is."""
    if isinstance(answer, PlanrunError):
        return f"{type(answer).__name__}: {answer}"
    if answer.refusal:
        return f"the model declined: {answer.refusal}"
    if answer.finish_reason == "length":
        return "the answer was cut off by the output limit"
    first, last = source.span
    size = source.raw * source.factor
    return summaries.refused(text_of(answer), source.target(level), size, range(first, last + 1), source.factor)


def described(action: Summarise, level: Level, source: Source, why: str) -> str:
    first, last = source.span
    size = round(source.raw * source.factor)
    return f"{level.name} summary of records {first} to {last} ({action.trigger}; {size:,} tokens, at most {source.target(level):,} asked for): {why}"


def committed(state: State, action: Summarise, source: Source, text: str | None) -> Iterator[Event]:
    """The compaction that puts the summary in the place of what it covers. What would not be smaller is one line instead."""
    first, last = source.span
    insert = insert_of(source, text)
    after = editing.apply(state.view, (insert,), state.seq + 1)
    if context.raw_size(after) >= context.raw_size(state.view):
        line = f"[Records {first} to {last} left the context; ExpandHistory brings them back.]"
        insert = replace(insert, text=line, deterministic=True)
        after = editing.apply(state.view, (insert,), state.seq + 1)
    yield compaction.record(state, action, (insert,), len(source.entries), after)


def insert_of(source: Source, text: str | None) -> Insert:
    """The edit that puts `text`, or without one the digest that needs no model, in the place of what `source` covers."""
    first, last = source.span
    body = text if text is not None else summaries.digest(source.entries, source.target(summaries.levels(source.level)[0]))
    return Insert(summaries.note(body, first, last), first, last, source.level, deterministic=text is None)
