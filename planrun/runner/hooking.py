"""When hooks run, and what they are told. They run in the main thread, after all that is on record is on disk.

A step, a compaction and the end of a run have their hooks by their record, wherever it comes from (`before`, `after`); the
gates and the hooks of calls are asked for where they stand in the way."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial

from planrun.core import context
from planrun.core.actions import Compact, Summarise
from planrun.core.events import Compacted, Ended, Event, Hooked, StepChanged
from planrun.core.messages import ToolCall
from planrun.core.plan import Json
from planrun.core.state import State
from planrun.runner.world import World
from planrun.tools.base import ToolResult
from planrun.tools.registry import parse_arguments

Asked = Generator[Hooked, None, str | None]  # the records of the hooks that ran; returns why one denied


def begun(world: World, state: State) -> Iterator[Event]:
    """A run begins, or a resume."""
    yield from _fire(world, state, "session_start", {"resumed": state.resumed_at > 0})


def before(world: World, state: State, event: Event) -> Iterator[Event]:
    """The hooks that come before the record of `event`: its last record is how a session ended, so they come before that one,
    and no signal stops them (a second one ends the process)."""
    if isinstance(event, Ended):
        told: dict[str, Json] = {"outcome": str(event.outcome), "exit_code": event.exit_code, "reason": event.reason}
        yield from _fire(world, state, "session_end", told, ending=True)


def after(world: World, state: State, event: Event) -> Iterator[Event]:
    """The hooks that come after the record of `event`."""
    match event:
        case StepChanged(step, "in_progress", attempt, note):
            yield from _fire(world, state, "step_start", {"step": step, "attempt": attempt, "note": note})
        case StepChanged(step, "done" | "failed" as status, attempt, note, output, reason):
            told: dict[str, Json] = {"step": step, "attempt": attempt, "status": status, "note": note}
            yield from _fire(world, state, "step_end", {**told, "output": output, "reason": reason})
        case Compacted():
            yield from _fire(world, state, "post_compact", _compacted(event))
        case _:
            pass


def may_run(world: World, state: State, step: str, call: ToolCall) -> Asked:
    """The gate before a tool call that may run otherwise."""
    if "pre_tool_use" not in world.hooks:
        return None
    return (yield from _fire(world, state, "pre_tool_use", _call(world, step, call)))


def may_compact(world: World, state: State, action: Compact | Summarise) -> Asked:
    """The gate before the active context is cut."""
    if "pre_compact" not in world.hooks:
        return None
    told: dict[str, Json] = {
        "step": action.step,
        "strategy": action.strategy if isinstance(action, Compact) else "summary",
        "trigger": action.trigger,
        "compact_messages": context.count(state.view),
        "compact_tokens": round(context.raw_size(state.view) * state.factor),
    }
    return (yield from _fire(world, state, "pre_compact", told))


def denied(world: World, state: State, step: str, call: ToolCall, reason: str) -> Iterator[Event]:
    """A call was not permitted: by a rule, a human or a hook."""
    if "permission_denied" in world.hooks:
        yield from _fire(world, state, "permission_denied", {**_call(world, step, call), "reason": reason})


def ran(world: World, state: State, step: str, call: ToolCall, result: ToolResult) -> Iterator[Event]:
    """A tool has run, and its result is on record."""
    event = "post_tool_use" if result.status == "ok" else "post_tool_use_failure"
    if event in world.hooks:
        told = {**_call(world, step, call), "tool_status": result.status, "tool_output": result.text}
        if result.status != "ok":
            told["tool_error"] = result.text
        yield from _fire(world, state, event, told)


def _compacted(event: Compacted) -> dict[str, Json]:
    return {
        "step": event.boundary,
        "strategy": event.strategy,
        "trigger": event.trigger,
        "compact_messages": event.messages_after,
        "compact_tokens": event.tokens_after,
        "messages_before": event.messages_before,
        "tokens_before": event.tokens_before,
    }


def _call(world: World, step: str, call: ToolCall) -> dict[str, Json]:
    """The call with its arguments as the tool takes them: a spelling that only the model uses must not get past a hook."""
    arguments = parse_arguments(world.tools[call.name], call.arguments)
    given = call.arguments if isinstance(arguments, str) else arguments.model_dump(mode="json", exclude_unset=True)
    return {"step": step, "tool_call_id": call.id, "tool_name": call.name, "tool_input": given}


def _fire(world: World, state: State, event: str, told: dict[str, Json], *, ending: bool = False) -> Asked:
    """Run the hooks of `event` one after another; the first that denies is the last."""
    for hook in world.hooks.get(event, ()):
        world.log.sync()
        where = _where(world, state, told)
        payload = {"event": event, **where, **told, "step": where["step"]}
        run = partial(world.acts.hook, world, hook, payload)
        over = run() if ending else world.signals.abandonable(run)
        yield over.event
        if over.denial is not None:
            return over.denial
    return None


def _where(world: World, state: State, told: dict[str, Json]) -> dict[str, Json]:
    """What every hook is told: the session, its model, its folder, the step that is under way."""
    plan = state.need_plan()
    step_id = told.get("step") or (None if state.current is None else plan.steps[state.current].id)
    step = plan.step(step_id) if isinstance(step_id, str) else None
    where: dict[str, Json] = {
        "session_id": state.header.session if state.header else "",
        "model": state.model_of(step),
        "cwd": str(world.workspace),
        "step": step_id,
    }
    return {**where, "attempt": state.step_state(step.id).attempt} if step else where
