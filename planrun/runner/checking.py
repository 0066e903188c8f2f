"""Performing what surrounds the model: beginning and briefing a step, run commands, checks, settling."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import budget, prompts
from planrun.core.actions import Begin, Brief, RunCommand, Settle, Verify
from planrun.core.events import CallEnded, CallStarted, Event, Noted, Said, StepChanged
from planrun.core.expressions import references
from planrun.core.messages import Message
from planrun.core.plan import Json, RunCheck, Step, UnchangedCheck
from planrun.core.state import State
from planrun.core.steps import broken
from planrun.runner.world import World


def begin(world: World, state: State, action: Begin) -> Iterator[Event]:
    """Start an attempt; the first one records what the files of `unchanged` checks are like."""
    step = state.need_plan().step(action.step)
    checked = any(isinstance(c, UnchangedCheck) for c in step.verify)
    known = state.step_state(action.step).baseline
    baseline = world.acts.baseline(world, step) if checked and known is None else None
    yield StepChanged(action.step, "in_progress", action.attempt, action.note, baseline=baseline)


def brief(world: World, state: State, action: Brief) -> Iterator[Event]:
    step = state.need_plan().step(action.step)
    stale = _stale_file(world, state, step, step.prompt or "")
    if stale:
        yield StepChanged(step.id, "failed", state.step_state(step.id).attempt, stale, reason="output_invalid")
        return
    near = budget.near(state, step)
    text = action.text + prompts.LANDING.format(percent=int(near.share * 100), limit=near.name) if near else action.text
    attempt = state.step_state(step.id).attempt
    yield Said.of(Message("user", text), "user", step.id, attempt, landing=near is not None)


def _stale_file(world: World, state: State, step: Step, template: str) -> str | None:
    """What is wrong with the file outputs that `template` and the step's `env` are about to use; None where they are as recorded."""
    for path in (p for text in (template, *(v for _, v in step.env)) for p in references(text)):
        parts = path.split(".")
        if parts[0] != "steps" or len(parts) < 4:
            continue
        recorded = (state.step_state(parts[1]).files or {}).get(parts[3])
        if recorded is not None and world.acts.describe(world, parts[1], str(recorded["path"])) != recorded:
            return f"{path}: the file {recorded['path']} is not the one that step {parts[1]} left (changed or gone)"
    return None


def run_command(world: World, state: State, action: RunCommand) -> Iterator[Event]:
    """Run a run step's command. One that a crash cut off is run again, and said so: only it can tell whether it is done."""
    step = state.need_plan().step(action.step)
    attempt = state.step_state(step.id).attempt
    call_id = f"run:{step.id}:{attempt}"
    stale = _stale_file(world, state, step, step.run or "")
    if stale:
        yield StepChanged(step.id, "failed", attempt, stale, reason="output_invalid")
        return
    if action.again:
        yield Noted("rerun", f"step {step.id} was interrupted while its command ran; it is run again", step.id)
    else:
        yield CallStarted(call_id, "run", step.id)
    world.log.sync()
    yield world.acts.run(world, state, action, call_id)


def verify(world: World, state: State, action: Verify) -> Iterator[Event]:
    """Judge one check. A failed recheck fails its step: what was done is done no longer."""
    step = state.need_plan().step(action.step)
    now = state.step_state(step.id)
    command = action.check.run if isinstance(action.check, RunCheck) else ""
    stale = _stale_file(world, state, step, command) if command else None
    if stale:
        yield StepChanged(step.id, "failed", now.attempt, stale, reason="output_invalid")
        return
    yield CallStarted(action.call_id, "verify", step.id)
    status, text, seconds = world.acts.judge(world, state, action)
    yield CallEnded(action.call_id, "verify", status, seconds, step.id, text or None)
    if action.recheck and status == "error":
        note = broken(state, action, text)
        yield StepChanged(step.id, "failed", now.attempt, note, now.output, "verify_failed", files=now.files)


def settle(world: World, state: State, action: Settle) -> Iterator[Event]:
    """Record the status; a step that is done leaves its file outputs with size and digest."""
    step = state.need_plan().step(action.step)
    attempt = state.step_state(step.id).attempt
    if not action.done:
        yield StepChanged(step.id, "failed", attempt, action.note, reason=action.reason)
        return
    output: dict[str, Json] = dict(action.output or {})
    found: dict[str, dict[str, Json]] = {}
    for field in step.output:
        described = world.acts.describe(world, step.id, field.path or "") if field.type == "file" else None
        if described is not None:
            found[field.name] = described
            output[field.name] = field.path
        elif field.type == "file" and field.required:
            note = f"the file {field.path} (output {field.name}) went away while the step was being checked"
            yield StepChanged(step.id, "failed", attempt, note, reason="output_invalid")
            return
    yield StepChanged(step.id, "done", attempt, action.note, output, files=found or None)
