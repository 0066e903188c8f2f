"""Performing AskModel: the request as it goes out, and the answer as it is kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from planrun.core import budget, context, pairing
from planrun.core.actions import AskModel
from planrun.core.events import Event, LimitNeared, Requested, Responded, Said
from planrun.core.messages import Message, compact_json
from planrun.core.plan import Step
from planrun.core.room import offers, tools_raw
from planrun.core.state import State
from planrun.core.tokens import raw_tokens
from planrun.errors import ContextOverflow, Interrupted, PlanrunError, ProviderError, SessionDamaged
from planrun.models.base import ModelRequest, Reply, Retry, Usage
from planrun.runner.world import Price, World
from planrun.tools.base import Tool
from planrun.tools.registry import schema


def ask(world: World, state: State, action: AskModel) -> Iterator[Event]:
    """Send what the step's context holds; record the request before it leaves, the answer before anything acts on it."""
    step = state.need_plan().step(action.step)
    wrong = pairing.faults(state.view)
    if wrong:
        raise SessionDamaged(f"these messages must not be sent: {'; '.join(wrong)}")
    name = state.model_of(step)
    request, requested = prepare(world, state, step, name)
    yield requested
    world.log.sync()
    model = world.models(name)
    left = budget.time_left(state, step)
    began = time.monotonic()
    pause = _Pause(world.on_retry)
    request = replace(request, deadline=None if left is None else began + left, on_retry=pause)
    try:
        reply = world.signals.abandonable(lambda: model.complete(request))
    except Interrupted:
        if pause.lasts:  # nothing is under way that might have to be paid for
            yield Responded(None, None, _since(began), retries=pause.sent - 1, error="interrupted in a pause before a retry")
        raise
    except PlanrunError as error:
        attempts = error.attempts if isinstance(error, ProviderError) else 1
        yield Responded(None, None, _since(began), retries=max(0, attempts - 1), error=str(error))
        if isinstance(error, ContextOverflow):
            yield window_taught(error, requested)  # the ladder goes on from there
            return
        if left is not None and _since(began) >= left:
            return  # the time limit is what ended it: the next decision says so
        raise
    yield from _kept(state, step, reply, _since(began), world.prices(name), requested.tokens)


class _Pause:
    """The pause before the newest retry: whether it lasts, and how many requests were sent before it."""

    def __init__(self, told: Callable[[Retry], None]) -> None:
        self._told = told
        self._until = 0.0
        self.sent = 0

    def __call__(self, retry: Retry) -> None:
        self._until, self.sent = time.monotonic() + retry.wait, retry.sent
        self._told(retry)

    @property
    def lasts(self) -> bool:
        return time.monotonic() < self._until


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def prepare(world: World, state: State, step: Step, model: str) -> tuple[ModelRequest, Requested]:
    """The request that `step` would send now, and the record that announces it."""
    tools, tools_digest = offered(world, step)
    head: dict[str, object] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    reserve = world.reply_reserve(model)
    if reserve is not None:
        head["max_tokens"] = reserve
    start = compact_json(head)[:-1].encode("utf-8")
    body = context.wire(state.view, b"".join((start, b',"tools":', tools, b',"messages":')), b"}")
    raw = round(context.raw_size(state.view) + tools_raw(state, step))
    digest = context.digest(state.view, tools_digest)
    named = model if model != state.model else None
    requested = Requested(digest, round(raw * state.factor), context.count(state.view), raw, step.id, named)
    return ModelRequest(body, digest), requested


def offered(world: World, step: Step) -> tuple[bytes, str]:
    """The tools of this step as JSON, and their digest. The same bytes all session long, but where a step narrows them."""
    if step.tools not in world.schemas:
        world.schemas[step.tools] = described(world.tools, step)
    return world.schemas[step.tools]


def described(tools: Mapping[str, Tool], step: Step) -> tuple[bytes, str]:
    """Those of `tools` that the step offers, as JSON, and their digest."""
    data = compact_json([schema(tool) for name, tool in tools.items() if offers(step, name)]).encode("utf-8")
    return data, hashlib.sha256(data).hexdigest()


def _kept(state: State, step: Step, reply: Reply, seconds: float, price: Price | None, estimate: int) -> Iterator[Event]:
    if reply.message is not None and reply.refusal is None:
        message = _distinct(reply.message, state)
        yield Said.of(message, "model", step.id, state.step_state(step.id).attempt)
    yield Responded(
        usage=counts_of(reply.usage),
        model=reply.model,
        seconds=seconds,
        retries=reply.retries,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        empty=reply.message is None and reply.refusal is None,
        cost_usd=cost_of(reply, price, estimate),
    )


def _distinct(message: Message, state: State) -> Message:
    """The message with call ids that are not empty and not used before in the active context."""
    taken: set[str] = set()
    calls = []
    for number, call in enumerate(message.tool_calls, 1):
        used = call.id in taken or any(call.id in s.call_ids for s in state.view)
        new = f"call_{state.seq}_{number}" if not call.id or used else call.id
        taken.add(new)
        calls.append(call if new == call.id else replace(call, id=new))
    return replace(message, tool_calls=tuple(calls))


def window_taught(error: ContextOverflow, sent: Requested) -> LimitNeared:
    """What the refusal of a request as too long teaches: the window that it names, or that it is at least smaller than this."""
    window = error.window or max(1, int(sent.tokens * 0.95))
    return LimitNeared("window", sent.tokens, window, model=sent.model, purpose=sent.purpose)


def counts_of(usage: Usage) -> dict[str, int | None] | None:
    """Usage as the log keeps it; None where the endpoint reported nothing."""
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def cost_of(reply: Reply, price: Price | None, estimate: int) -> float | None:
    """USD; what the endpoint did not count costs what we estimate. `estimate` is that of the prompt, in tokens."""
    if price is None:
        return None
    usage, said = reply.usage, reply.message or Message("assistant", reply.refusal)
    prompt = usage.prompt_tokens if usage.prompt_tokens is not None else estimate
    cached = min(usage.cached_tokens or 0, prompt)
    unseen = raw_tokens("".join([said.content or "", *(c.arguments for c in said.tool_calls)]))
    completion = usage.completion_tokens if usage.completion_tokens is not None else round(unseen)
    total = (prompt - cached) * price.input + cached * price.cached + completion * price.output
    return round(total / 1e6, 8)
