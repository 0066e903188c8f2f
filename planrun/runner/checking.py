"""Performing what surrounds the model: beginning and briefing a step, run commands, checks, settling."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from planrun.core import budget, outputs, prompts
from planrun.core.actions import Begin, Brief, FileOutput, RunCommand, Settle, Verify
from planrun.core.events import CallEnded, CallStarted, Event, Noted, Said, StepChanged
from planrun.core.expressions import references
from planrun.core.messages import CallStatus, Message
from planrun.core.plan import ExistsCheck, Json, RunCheck, Step, UnchangedCheck
from planrun.core.state import State
from planrun.core.steps import broken
from planrun.runner import files
from planrun.runner.commands import RUN_TIMEOUT, STOPPED_TIMEOUT, VERIFY_TIMEOUT, execute, how_it_ended
from planrun.runner.world import World
from planrun.tools.process import Finished

SHOWN = 2_000  # characters of a check's output that the model gets
KEPT = 4_000  # characters of a run step's output that the log keeps


def begin(world: World, state: State, action: Begin) -> Iterator[Event]:
    """Start an attempt; the first one records what the files of `unchanged` checks are like."""
    step = state.need_plan().step(action.step)
    patterns = [p for c in step.verify if isinstance(c, UnchangedCheck) for p in c.unchanged]
    known = state.step_state(action.step).baseline
    baseline = files.digests(world.workspace, patterns) if patterns and known is None else None
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
        if recorded is not None and files.describe(world.workspace, str(recorded["path"])) != recorded:
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
    usual = RUN_TIMEOUT if state.stop is None else STOPPED_TIMEOUT
    with tempfile.TemporaryDirectory(prefix="planrun-", ignore_cleanup_errors=True) as folder:
        extra = Path(folder).resolve() / "output"
        extra.touch()
        values = {**dict(action.values), "PLANRUN_OUTPUT": str(extra)}
        finished, cut_off = execute(world, state, step, action.command, values, step.timeout or usual, "command")
        written, faults = files.left_in(extra)
    if cut_off:
        yield CallEnded(call_id, "run", "interrupted", round(finished.seconds, 3), step.id)
    else:
        yield _ran(step, call_id, finished, written, faults)


def _ran(step: Step, call_id: str, finished: Finished, written: str, faults: tuple[str, ...]) -> CallEnded:
    stdout = finished.stdout.text(1 << 20)
    shown = "\n".join(filter(None, (finished.stdout.text(KEPT).strip(), finished.stderr.text(KEPT).strip())))
    seconds = round(finished.seconds, 3)
    if finished.exit_code != 0:
        status: CallStatus = "timeout" if finished.timed_out else "error"
        text = f"`{_one_line(step.run or '')}` {how_it_ended(finished)}; expected exit code 0.\n{shown or '(no output)'}"
        return CallEnded(call_id, "run", status, seconds, step.id, text)
    fields = tuple(f for f in step.output if f.type != "file")
    if not faults:
        output, faults = outputs.from_run(fields, stdout, written)
    return CallEnded(call_id, "run", "ok", seconds, step.id, shown, None if faults else output, faults)


def _one_line(command: str) -> str:
    first, *rest = command.strip().split("\n")
    return first[:120] + ("…" if rest or len(first) > 120 else "")


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
    status, text, seconds = _judge(world, state, step, action)
    yield CallEnded(action.call_id, "verify", status, seconds, step.id, text or None)
    if action.recheck and status == "error":
        note = broken(state, action, text)
        yield StepChanged(step.id, "failed", now.attempt, note, now.output, "verify_failed", files=now.files)


def _judge(world: World, state: State, step: Step, action: Verify) -> tuple[CallStatus, str, float | None]:
    """`interrupted` where a limit of the run cut the check off: then it says nothing."""
    match action.check:
        case RunCheck(timeout=timeout):
            world.log.sync()
            finished, cut_off = execute(
                world, state, step, action.command, dict(action.values), timeout or VERIFY_TIMEOUT, "check"
            )
            if cut_off or finished.exit_code == 0:
                return "interrupted" if cut_off else "ok", "", round(finished.seconds, 3)
            said = finished.stdout.text(SHOWN).strip()
            what = f"`{_one_line(action.shown)}` {how_it_ended(finished)}; expected exit code 0"
            text = f"{said}\n({what})" if said else what
            return "error", text, round(finished.seconds, 3)
        case ExistsCheck(patterns):
            missing = [p for p in patterns if not files.matches(world.workspace, [p])]
            return (
                "error" if missing else "ok",
                "".join(f"expected a file that matches {p}, found none. " for p in missing),
                None,
            )
        case UnchangedCheck(patterns):
            before = state.step_state(step.id).baseline or {}
            change = files.difference(before, files.digests(world.workspace, list(patterns)), list(patterns))
            return (
                "error" if change else "ok",
                f"expected no change to {', '.join(patterns)}; found: {change}" if change else "",
                None,
            )
        case FileOutput(field):
            found = files.describe(world.workspace, field.path or "")
            return (
                "ok" if found else "error",
                "" if found else f"expected the file {field.path} (output {field.name}), found none",
                None,
            )


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
        described = files.describe(world.workspace, field.path or "") if field.type == "file" else None
        if described is not None:
            found[field.name] = described
            output[field.name] = field.path
        elif field.type == "file" and field.required:
            note = f"the file {field.path} (output {field.name}) went away while the step was being checked"
            yield StepChanged(step.id, "failed", attempt, note, reason="output_invalid")
            return
    yield StepChanged(step.id, "done", attempt, action.note, output, files=found or None)
