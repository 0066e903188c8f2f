"""Performing RunCalls and Answer: a tool call from its permission to its recorded result."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pydantic import BaseModel

from planrun.core import budget, guard, prompts, scope
from planrun.core.actions import Answer, RunCalls
from planrun.core.events import Approval, CallEnded, CallStarted, Event, LimitNeared, Said
from planrun.core.messages import CallStatus, ToolCall, well_formed
from planrun.core.room import offers
from planrun.core.state import State
from planrun.policy import permissions
from planrun.policy.permissions import Allow, Ask, Deny
from planrun.runner import hooking
from planrun.runner.commands import context_of
from planrun.runner.world import World
from planrun.tools.base import Tool, ToolContext, ToolResult
from planrun.tools.registry import parse_arguments

_SIDE_BY_SIDE = 8
_STANDS = (
    "[secret {name}] stands for a value that is never shown. Work around it: edit other text only, and in a command use the "
    "environment variable where there is one."
)


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that may run: its tool and its checked arguments."""

    call: ToolCall
    tool: Tool
    arguments: BaseModel


def run(world: World, state: State, action: RunCalls) -> Iterator[Event]:
    """Run the first call; where it is read-only, the read-only ones behind it too, side by side. Results come in call order."""
    first = _admit(world, state, action.step, action.calls[0])
    if not isinstance(first, Ready):
        yield from first
        if isinstance(first[0], Said) and first[0].status == "denied":
            yield from hooking.denied(world, state, action.step, action.calls[0], first[0].content or "")
        return
    batch = _batch(world, state, action, first)
    reasons = yield from _gated(world, state, action.step, batch)
    running = [r for r in batch if r.call.id not in reasons]
    for ready in running:
        if ready.call.id not in state.in_flight:
            yield CallStarted(ready.call.id, ready.tool.name, action.step)
    if not first.tool.read_only:
        world.log.sync()
    results: dict[str, tuple[ToolResult, float | None]] = {
        call_id: (ToolResult(f"Not allowed: a hook denied this call: {why}", "denied"), None)
        for call_id, why in reasons.items()
    }
    results |= zip((r.call.id for r in running), _results(world, state, action.step, running), strict=True)
    for ready in batch:
        poll = permissions.named(world.polling, ready.tool.name, ready.tool.subject(ready.arguments))
        yield from _recorded(state, action.step, ready.call, *results[ready.call.id], poll=poll)
    for ready in batch:
        if ready.call.id in reasons:
            yield from hooking.denied(world, state, action.step, ready.call, reasons[ready.call.id])
        else:
            yield from hooking.ran(world, state, action.step, ready.call, results[ready.call.id][0])


def _batch(world: World, state: State, action: RunCalls, first: Ready) -> list[Ready]:
    batch = [first]
    for call in action.calls[1:_SIDE_BY_SIDE] if first.tool.read_only else ():
        after = _admit(world, state, action.step, call)
        if not isinstance(after, Ready) or not after.tool.read_only:
            break
        batch.append(after)
    return batch


def _gated(world: World, state: State, step_id: str, batch: list[Ready]) -> Generator[Event, None, dict[str, str]]:
    """Ask the hooks before anything starts; returns, by call id, why a call must not run."""
    reasons: dict[str, str] = {}
    for ready in batch:
        reason = yield from hooking.may_run(world, state, step_id, ready.call)
        if reason is not None:
            reasons[ready.call.id] = reason
    return reasons


def _results(world: World, state: State, step_id: str, batch: list[Ready]) -> list[tuple[ToolResult, float]]:
    ctx = context_of(world, state, state.need_plan().step(step_id))
    return world.signals.abandonable(lambda: _side_by_side(batch, ctx))


def _side_by_side(batch: list[Ready], ctx: ToolContext) -> list[tuple[ToolResult, float]]:
    if len(batch) < 2:
        return [_timed(ready, ctx) for ready in batch]
    with ThreadPoolExecutor(len(batch)) as pool:
        return list(pool.map(lambda ready: _timed(ready, ctx), batch))


def _timed(ready: Ready, ctx: ToolContext) -> tuple[ToolResult, float]:
    began = time.monotonic()
    result = ready.tool.run(ready.arguments, ctx)
    result = replace(result, text=ctx.mask(result.text))
    return result, round(time.monotonic() - began, 3)


def _admit(world: World, state: State, step_id: str, call: ToolCall) -> Ready | list[Event]:
    """The call ready to run, or the events that answer it instead."""

    def refuse(text: str, status: CallStatus = "error") -> list[Event]:
        return list(_recorded(state, step_id, call, ToolResult(text, status), None))

    step = state.need_plan().step(step_id)
    offered = [n for n in world.tools if offers(step, n)]
    if call.name not in offered:
        why = call.fault or f"there is no tool {call.name!r}"
        return refuse(f"{why}. The tools of this step are: {', '.join(offered)}.")
    tool = world.tools[call.name]
    if call.id in state.in_flight and not tool.read_only:
        return refuse(prompts.INTERRUPTED, "interrupted")
    if call.fault:
        return refuse(f"Not run: {call.fault}.")
    arguments = parse_arguments(tool, call.arguments)
    if isinstance(arguments, str):
        return refuse(f"Not run: {arguments}")
    if not (tool.read_only or tool.pinned) and (names := world.mask.named(call.arguments)):
        return refuse(f"Not run: {_STANDS.format(name=names[0])}")
    match world.permissions.judge(tool.name, tool.subject(arguments), workspace=world.workspace):
        case Allow():
            return Ready(call, tool, arguments)
        case Deny(reason):
            return refuse(f"Not allowed: {reason}", "denied")
        case Ask(_, reason):
            return _asked(state, step_id, call, tool, arguments, reason) or Ready(call, tool, arguments)


def _asked(state: State, step_id: str, call: ToolCall, tool: Tool, arguments: BaseModel, reason: str) -> list[Event]:
    """Nothing once exactly this call was approved; else the question, or the answer where it was denied."""
    digest = scope.digest_of(call.id, tool.name, call.arguments)
    match scope.approved(state, call.id, digest):
        case True:
            return []
        case False:
            return list(_recorded(state, step_id, call, ToolResult("Not allowed: a human denied this call.", "denied"), None))
    text = f"Step {step_id} wants to call {tool.name}({tool.subject(arguments)}): {reason}"
    return [Approval("asked", call.id, step_id, digest, text)]


def answer(world: World, state: State, action: Answer) -> Iterator[Event]:
    return _recorded(state, action.step, action.call, ToolResult(action.text, action.status), None)


def _recorded(
    state: State, step_id: str, call: ToolCall, result: ToolResult, seconds: float | None, *, poll: bool = False
) -> Iterator[Event]:
    """The result as the model gets it, with the runner's remark where one is due, then the call's end."""
    step, now = state.need_plan().step(step_id), state.step_state(step_id)
    text = well_formed(result.text)
    remark = ""
    recent = (*now.recent, guard.fingerprint(call.name, call.arguments, text))
    if not poll and guard.nudged(recent):
        remark += prompts.REPEATED.format(rounds=guard.rounds(recent))
    near = budget.near(state, step)
    landing = near is not None and not now.told_landing
    if near is not None and landing:
        remark += prompts.LANDING.format(percent=int(near.share * 100), limit=near.name)
    yield Said(
        role="tool",
        content=text + remark,
        origin="tool",
        step=step_id,
        attempt=now.attempt,
        tool_call_id=call.id,
        name=call.name,
        status=None if result.status == "ok" else result.status,
        aside=len(remark),
        landing=landing,
        poll=poll,
    )
    if seconds is not None or call.id in state.in_flight:
        yield CallEnded(call.id, call.name, result.status, seconds, step_id)
    if near is not None and landing:
        yield LimitNeared(near.key, near.used, near.maximum, landing=True)
