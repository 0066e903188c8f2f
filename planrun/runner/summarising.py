"""Performing Summarise: normal prompt, tight prompt, then the digest that needs no model. A run never fails because a summary did."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from planrun.core import context, editing, summaries
from planrun.core.actions import Summarise
from planrun.core.context import Entry
from planrun.core.edits import Insert
from planrun.core.events import Compacted, Event, Noted, Requested, Responded
from planrun.core.messages import compact_json
from planrun.core.room import model_of, window_of
from planrun.core.state import State
from planrun.core.summaries import Level
from planrun.core.tokens import raw_tokens
from planrun.errors import PlanrunError
from planrun.models.base import ModelRequest, Reply
from planrun.runner.asking import cost_of, counts_of
from planrun.runner.world import World

TIMEOUT = 120.0  # seconds for one summary
_SHARE = 0.5  # of the summariser's window that its source may take


@dataclass(frozen=True, slots=True)
class Task:
    """One summary to be made: the messages it covers, the text that is sent, the summary before it."""

    entries: tuple[Entry, ...]
    text: str
    anchor: str
    level: int
    raw: float

    @property
    def span(self) -> tuple[int, int]:
        spans = [e.span for e in self.entries]
        return min(a for a, _ in spans), max(b for _, b in spans)


def task_of(state: State, action: Summarise) -> Task:
    """What `action` covers, cut to whole turns that fit the summariser's window. By hand whole runs are summed up at once, so
    that only the beginning and the end of each tool result are given."""
    results = summaries.PREVIEW if action.trigger == "manual" else summaries.ITEM
    chosen = [e for e in context.entries(state.view) if action.first <= e.span[0] and e.span[1] <= action.last]
    chosen = [e for e in chosen if e.message.role != "system"]
    window, _ = window_of(state, summariser(state, action.step))
    text, fit = summaries.source(tuple(chosen), window * _SHARE / max(state.factor, 0.5), results)
    while fit < len(chosen) and fit > 1 and chosen[fit].message.role == "tool":
        fit -= 1  # never part a call from its results
    if fit < len(chosen):
        text, _ = summaries.source(tuple(chosen[:fit]), float("inf"), results)
    before = [e for e in context.entries(state.view) if e.note and not e.note.filler and e.note.level and e.span[1] < action.first]
    anchor = (before[-1].message.content or "") if before and action.level == 1 else ""
    entries = tuple(chosen[: max(fit, 1)])
    return Task(entries, text, anchor, action.level, sum(e.raw for e in entries))


def summariser(state: State, step_id: str) -> str:
    named = state.settings.get("summary_model")
    return named if isinstance(named, str) else model_of(state, state.need_plan().step(step_id))


def summarise(world: World, state: State, action: Summarise) -> Iterator[Event]:
    """Each attempt is on record; the last stair always succeeds."""
    task = task_of(state, action)
    text = yield from written(world, state, action, task)
    yield from committed(state, action, task, text)


def written(world: World, state: State, action: Summarise, task: Task) -> Generator[Event, None, str | None]:
    """The summary that a model writes; None where no model is to be asked, or none wrote one that can be accepted."""
    if not action.model:
        return None
    for level in summaries.levels(task.level):
        text = yield from _asked(world, state, action, task, level)
        if text is not None:
            return text
    yield Noted("summary_failed", "no model's summary was accepted; a digest stands in", action.step)
    return None


def _asked(world: World, state: State, action: Summarise, task: Task, level: Level) -> Generator[Event, None, str | None]:
    """One request for a summary; returns the accepted text, or None with the reason on record."""
    target = level.target(task.raw * state.factor)
    name = summariser(state, action.step)
    request, requested = request_of(task, target, name, action.step)
    yield requested
    world.log.sync()
    began = time.monotonic()
    try:
        with world.signals.interruptible():
            reply = world.models(name).complete(request)
    except PlanrunError as error:
        world.signals.check()
        yield Responded(None, None, round(time.monotonic() - began, 3), error=str(error), purpose="summary")
        yield _failed(action, level, task, f"{type(error).__name__}: {error}")
        return None
    price = world.prices(name)
    yield Responded(
        usage=counts_of(reply.usage),
        model=reply.model,
        seconds=round(time.monotonic() - began, 3),
        retries=reply.retries,
        finish_reason=reply.finish_reason,
        cost_usd=cost_of(reply.usage, price, requested.tokens),
        purpose="summary",
        text=text_of(reply),
    )
    why = refusal_of(reply, task, target)
    if why is None:
        return text_of(reply)
    yield _failed(action, level, task, why)
    return None


def request_of(task: Task, target: int, model: str, step: str) -> tuple[ModelRequest, Requested]:
    messages = summaries.prompt(task.text, task.anchor, target)
    body = {"model": model, "stream": True, "stream_options": {"include_usage": True}, "messages": messages}
    data = compact_json(body).encode("utf-8")
    digest = hashlib.sha256(compact_json(messages).encode("utf-8")).hexdigest()
    raw = round(raw_tokens(data.decode("utf-8")))
    return ModelRequest(data, digest, deadline=time.monotonic() + TIMEOUT), Requested(digest, raw, len(messages), raw, step, model, "summary")


def text_of(reply: Reply) -> str | None:
    return reply.message.content if reply.message is not None else None


def refusal_of(reply: Reply, task: Task, target: int) -> str | None:
    if reply.refusal:
        return f"the model declined: {reply.refusal}"
    if reply.finish_reason == "length":
        return "the answer was cut off by the output limit"
    first, last = task.span
    return summaries.refused(text_of(reply), target, task.raw, set(range(first, last + 1)))


def _failed(action: Summarise, level: Level, task: Task, why: str) -> Noted:
    first, last = task.span
    return Noted("summary", f"{level.name} summary of records {first}-{last} ({task.raw:.0f} tokens, {action.trigger}): {why}", action.step)


def committed(state: State, action: Summarise, task: Task, text: str | None) -> Iterator[Event]:
    """The compaction that puts the summary in the place of what it covers."""
    first, last = task.span
    insert = insert_of(task, text)
    after = editing.apply(state.view, (insert,), state.seq + 1)
    before_tokens, after_tokens = (round(context.raw_size(v) * state.factor) for v in (state.view, after))
    if after_tokens >= before_tokens:
        insert = Insert(f"[Records {first} to {last} left the context; ExpandHistory brings them back.]", first, last, action.level, True)
        after = editing.apply(state.view, (insert,), state.seq + 1)
        after_tokens = round(context.raw_size(after) * state.factor)
    yield Compacted(
        strategy="summary",
        trigger=action.trigger,
        edits=(insert,),
        replaces_count=len(task.entries),
        messages_before=context.count(state.view),
        messages_after=context.count(after),
        tokens_before=before_tokens,
        tokens_after=after_tokens,
        boundary=action.step if action.trigger == "boundary" else None,
    )


def insert_of(task: Task, text: str | None) -> Insert:
    """The edit that puts `text`, or without one the digest that needs no model, in the place of what `task` covers."""
    first, last = task.span
    body = text if text is not None else summaries.digest(task.entries, summaries.levels(task.level)[0].target(task.raw))
    return Insert(summaries.note(body, first, last), first, last, task.level, deterministic=text is None)
