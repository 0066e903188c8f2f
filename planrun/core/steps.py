"""What to do while a step is under way, and the checks of steps that have ended."""

from __future__ import annotations

from collections import ChainMap

from planrun.core import budget, context, guard, names, plantool, pressure, prompts
from planrun.core.actions import (
    Action,
    Answer,
    AskModel,
    Begin,
    Brief,
    FileOutput,
    RunCalls,
    RunCommand,
    Say,
    Settle,
    Verify,
)
from planrun.core.events import FailureReason
from planrun.core.expressions import ExpressionError, Scope, for_shell, render, render_quoting
from planrun.core.messages import ToolCall
from planrun.core.plan import Check, Json, RunCheck, Step
from planrun.core.plantool import Claimed, GaveUp, Refused
from planrun.core.scope import approval, scope_of
from planrun.core.state import State, StepState

TURNS = 50  # an attempt's default
NUDGES = 3


def inside(state: State, step: Step) -> Action:
    now = state.step_state(step.id)
    if step.timeout is not None and now.attempt_seconds >= step.timeout - budget.TICK:
        return fail(state, step, "step_failed", f"it took longer than its timeout of {step.timeout:g} s")
    return _run_step(state, step, now) if step.run is not None else _prompt_step(state, step, now)


def fail(state: State, step: Step, reason: FailureReason, note: str, *, again: bool = True) -> Action:
    """The attempt failed: begin a fresh one while the step has tries left, else the step has failed."""
    now = state.step_state(step.id)
    if again and now.tries < step.attempts:
        return Begin(step.id, now.attempt + 1, note)
    return Settle(step.id, done=False, note=note, output=None, reason=reason)


def _run_step(state: State, step: Step, now: StepState) -> Action:
    if now.ran is None:
        stop = _no_time(state, step, "command")
        if stop is not None:
            return stop
        try:
            command, values = for_shell(step.run or "", scope_of(state))
            _check_env(state, step)
        except ExpressionError as error:
            return fail(state, step, "output_invalid", str(error), again=False)
        call_id = f"run:{step.id}:{now.attempt}"
        return RunCommand(step.id, command, tuple(values.items()), again=call_id in state.in_flight)
    if now.ran.status != "ok":
        return fail(state, step, "step_failed", _tail(now.ran.text or now.ran.status))
    if now.ran.faults:
        return fail(state, step, "output_invalid", "; ".join(now.ran.faults))
    failed = next((c for c in now.checks if not c.ok), None)
    if failed is not None:
        return fail(state, step, "verify_failed", failed.text)
    return _conclude(state, step, now.ran.output or {}, None)


def _no_time(state: State, step: Step, doing: budget.Work) -> Action | None:
    """What comes instead of a command for which there is no time left. Under `finally` only the step itself fails."""
    stop = budget.exceeded(state, step, doing)
    return fail(state, step, "step_failed", stop.reason, again=False) if stop is not None and budget.exempt(step) else stop


def _check_env(state: State, step: Step) -> None:
    """Raises ExpressionError where the step's `env` has no value, before anything of the step runs."""
    for name, value in step.env:
        try:
            render(value, scope_of(state))
        except ExpressionError as error:
            raise ExpressionError(f"env {name}: {error}") from error


def _tail(text: str, limit: int = 600) -> str:
    return text if len(text) <= limit else "…" + text[-limit:]


def _conclude(state: State, step: Step, output: dict[str, Json], note: str | None) -> Action:
    """The work is claimed to be done: check it, have it approved, settle it."""
    now = state.step_state(step.id)
    checks = checks_of(step)
    if len(now.checks) < len(checks):
        position = len(now.checks)
        stop = _no_time(state, step, "check")
        if stop is not None:
            return stop
        return _verify(state, step, checks[position], f"verify:{step.id}:{now.attempt}:{position}", output, recheck=False)
    if step.approve == "after":
        ask = approval(state, step, "after", f"Accept step {step.id}?")
        if ask is not None:
            return ask
    return Settle(step.id, done=True, note=note, output=output, reason=None)


def checks_of(step: Step) -> tuple[Check | FileOutput, ...]:
    files = tuple(FileOutput(f) for f in step.output if f.type == "file" and f.required)
    return (*files, *step.verify)


def _verify(
    state: State, step: Step, check: Check | FileOutput, call_id: str, output: dict[str, Json], *, recheck: bool
) -> Action:
    if not isinstance(check, RunCheck):
        return Verify(step.id, call_id, check, "", (), "", recheck)
    scope = scope_of(state)
    own = Scope(scope.params, ChainMap({step.id: output}, scope.outputs), scope.env)  # type: ignore[arg-type]
    try:
        command, values = for_shell(check.run, own)
        shown = render(check.run, own)
    except ExpressionError as error:
        return fail(state, step, "output_invalid", f"verify: {error}", again=False)
    return Verify(step.id, call_id, check, command, tuple(values.items()), shown, recheck)


def recheck(state: State) -> Action | None:
    """Every verify of the steps that are done, once more, before the run may count as finished."""
    plan = state.need_plan()
    if plan.recheck == "off":
        return None
    position = 0
    for step, now in zip(plan.steps, state.steps, strict=True):
        if now.status != "done" or step.final:
            continue
        for index, check in enumerate(step.verify):
            if position == state.rechecked:
                again = _verify(state, step, check, f"recheck:{step.id}:{index}", now.output or {}, recheck=True)
                return budget.exceeded(state, step, "check") or again
            position += 1
    return None


def _prompt_step(state: State, step: Step, now: StepState) -> Action:
    try:
        if not state.view:
            return Say(step.id, "system", prompts.system(state))
        if not now.briefed:
            _check_env(state, step)
            return Brief(step.id, prompts.brief(state, step, render_quoting(step.prompt or "", scope_of(state))))
    except ExpressionError as error:
        return fail(state, step, "output_invalid", f"the prompt: {error}", again=False)
    calls = context.unanswered(state.view)
    if calls:
        return _calls(state, step, now, calls)
    return (
        _lost(state, step, now)
        or _nudge(state, step, now)
        or budget.exceeded(state, step)
        or pressure.relieve(state, step)
        or AskModel(step.id)
    )


def _calls(state: State, step: Step, now: StepState, calls: tuple[ToolCall, ...]) -> Action:
    call = calls[0]
    if now.fixes > step.fix or _gave_up(state, step):
        return Answer(step.id, call, prompts.NOT_RUN.format(step=step.id), "denied")
    if call.name != names.PLAN_TOOL:
        plain = next((i for i, c in enumerate(calls) if c.name == names.PLAN_TOOL), len(calls))
        return RunCalls(step.id, calls[:plain])
    others = state.need_plan().index
    match plantool.judge(call, step, others):
        case Refused(text):
            return Answer(step.id, call, text, "error")
        case GaveUp():
            return Answer(step.id, call, "Recorded.", "ok")
        case Claimed(output, note):
            failed = next((c for c in now.checks if not c.ok), None)
            if failed is not None:
                return Answer(step.id, call, prompts.check_failed(failed.text, step.fix - now.fixes - 1), "error")
            return _conclude(state, step, output, note)


def _judged(state: State, step: Step) -> plantool.Judgement | None:
    """What the answered plan calls of the last turn came to: giving up counts wherever it stands, else the last one does."""
    waiting = {c.id for c in context.unanswered(state.view)}
    for entry in reversed(state.view[-1].entries if state.view else ()):
        if entry.message.role != "assistant":
            continue
        calls = [c for c in entry.message.tool_calls if c.name == names.PLAN_TOOL and c.id not in waiting]
        others = state.need_plan().index
        verdicts = [plantool.judge(c, step, others) for c in calls]
        return next((v for v in verdicts if isinstance(v, GaveUp)), verdicts[-1] if verdicts else None)
    return None


def _gave_up(state: State, step: Step) -> bool:
    return isinstance(_judged(state, step), GaveUp)


def _lost(state: State, step: Step, now: StepState) -> Action | None:
    """The attempt is over without success: say why, or None where it may go on."""
    if now.fixes > step.fix:
        return fail(state, step, "verify_failed", now.failure or "its check failed")
    judged = _judged(state, step)
    if isinstance(judged, GaveUp):
        said = f"\nIts check had said: {now.failure}" if now.failure else ""
        return fail(state, step, "step_failed", judged.note + said)
    if now.refusal:
        return fail(state, step, "step_failed", f"the model declined: {now.refusal}", again=False)
    bad_output = isinstance(judged, Refused) and judged.output
    if guard.stuck(now.recent, warned=now.warned):
        note = f"the same calls came {guard.rounds(now.recent)} times with the same results"
        return fail(state, step, "output_invalid" if bad_output else "stuck", note)
    most = step.limits.turns or TURNS
    if now.turns >= most:
        return fail(state, step, "output_invalid" if bad_output else "turn_limit", f"no result after {most} turns")
    return None


def _nudge(state: State, step: Step, now: StepState) -> Action | None:
    """A turn without a tool call gets a reminder; an empty answer is asked for once more first."""
    last = context.last(state.view)
    spoke = last is not None and last.message.role == "assistant"
    silent = now.empties > (now.nudges == 0)
    if not spoke and not silent:
        return None
    if now.nudges >= NUDGES:
        return fail(state, step, "step_failed", f"the model called no tool, also after {NUDGES} reminders")
    if not spoke:  # a user message may follow only an assistant's
        return Say(step.id, "assistant", prompts.NO_ANSWER)
    return Say(step.id, "user", prompts.nudge(now.nudges + 1, step))


def broken(state: State, verify: Verify, text: str) -> str:
    """The note for a step whose check had passed and fails now: what failed, and which steps came since."""
    plan = state.need_plan()
    since = [s.id for s in plan.steps[plan.index[verify.step] + 1 :] if state.step_state(s.id).status in ("done", "failed")]
    return f"its check passed when the step was done and fails now. Steps since: {', '.join(since) or 'none'}. {text}"
