"""The decision: a state in, the next action out. Pure, total, and None exactly when there is nothing to do.

Each action leads to a state in which `decide` goes on, so a run that was cut off anywhere goes on from the log alone."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import budget, context, pressure, prompts, steps
from planrun.core.actions import Action, Answer, AskHuman, Begin, Compact, End, EndCall, Say, Settle, Skip
from planrun.core.events import Ended, Stopped
from planrun.core.expressions import ExpressionError, evaluate, test
from planrun.core.plan import Json, Step, Strategy
from planrun.core.scope import approval, scope_of, strategy_of
from planrun.core.state import State, StepState
from planrun.core.strategies import boundary
from planrun.errors import EXIT_CODES, Outcome

_PAUSES = (Outcome.NEEDS_HUMAN, Outcome.FINISHED)  # finished before its last step, as asked


def decide(state: State) -> Action | None:
    if state.plan is None or state.ended is not None:
        return None
    if state.unended:
        return EndCall(*state.unended[0])
    if state.stop is not None:
        return _cleaned_up(state, state.stop)
    if state.question is not None:
        q = state.question
        return AskHuman(q.step, q.subject, q.digest, q.text, asked=True)
    if state.current is not None:
        return steps.inside(state, state.plan.steps[state.current])
    return _tidy(state) or _between(state)


def ending(state: State, end: End) -> Ended | Stopped:
    """What is recorded where a run ends: that it stops, while commands under `finally` are due, else its end. One that waits for a
    human or was asked to stop somewhere only pauses: what `finally` would clear away is needed when it goes on."""
    code = EXIT_CODES[end.outcome] if end.exit_code is None else end.exit_code
    if state.stop is None and end.outcome not in _PAUSES and _next_command(state) is not None:
        return Stopped(end.outcome, end.reason, code)
    return Ended(end.outcome, code, end.reason, end.output, end.partial)


def _cleaned_up(state: State, stop: Stopped) -> Action:
    """The commands under `finally` that ask nobody, as long as there is time, then the end. The conversation of the step that
    was under way stays as it is."""
    if budget.grace(state) != 0:
        if state.current is not None:
            return steps.inside(state, state.need_plan().steps[state.current])
        if (step := _next_command(state)) is not None:
            return _final(state, step)
    return End(Outcome(stop.outcome), stop.reason, exit_code=stop.exit_code)


def _next_command(state: State) -> Step | None:
    return next((s for s in _due(state) if s.run is not None and s.approve is None), None)


def _due(state: State) -> Iterator[Step]:
    """The steps under `finally` that did not run to their end since the last work was done, or failed before the resume."""
    for step, now in zip(state.need_plan().steps, state.steps, strict=True):
        again = now.changed_at < state.worked or _to_repeat(state, now)
        if step.final and (again or now.status in ("todo", "in_progress")):
            yield step


def _to_repeat(state: State, now: StepState) -> bool:
    """A resume tries a failed step again."""
    return now.status == "failed" and now.changed_at < state.resumed_at


def _final(state: State, step: Step) -> Action:
    """Begin a step under `finally`. A command that a crash cut off after a stop goes on, unless work was done since."""
    now = state.step_state(step.id)
    if step.run is not None and now.status == "in_progress" and now.changed_at >= state.worked:
        return steps.inside(state, step)
    return _enter(state, step)


def _tidy(state: State) -> Action | None:
    """Close the conversation of a step that has just ended: every call answered, a last line of the runner's."""
    if not state.view or state.view[-1].step is None:
        return None
    step_id = state.view[-1].step
    calls = context.unanswered(state.view)
    now = state.step_state(step_id)
    closing = prompts.closing(step_id, now.status, now.note)
    if calls and calls[0].name in context.PINNED and not _plan_call_answered(state):
        return Answer(step_id, calls[0], "Accepted." if now.status == "done" else closing, "ok")
    if calls:
        return Answer(step_id, calls[0], prompts.NOT_RUN.format(step=step_id), "denied")
    last = context.last(state.view)
    if last is not None and last.message.role != "assistant":
        return Say(step_id, "assistant", closing)
    return None


def _plan_call_answered(state: State) -> bool:
    """Whether a result of the plan tool is among the results of the newest assistant message."""
    for entry in reversed(state.view[-1].entries):
        if entry.message.role != "tool":
            return False
        if entry.name in context.PINNED:
            return True
    return False


def _between(state: State) -> Action:
    plan = state.need_plan()
    until = state.options.get("until")
    for index in range(state.frontier, len(plan.steps)):
        step, now = plan.steps[index], state.steps[index]
        if step.final:
            break
        if isinstance(until, str) and plan.index[until] < index:
            return End(Outcome.FINISHED, f"stopped after step {until}, as asked (--until)", partial=True)
        if now.status in ("todo", "blocked"):
            return (plan.recheck == "each" and steps.recheck(state)) or _enter(state, step)
        if now.status == "failed" and step.on_failure == "stop":
            if _to_repeat(state, now):
                return _enter(state, step)
            return _wrap_up(state, step)
    return steps.recheck(state) or _wrap_up(state, None)


def _enter(state: State, step: Step) -> Action:
    """Everything that comes before an attempt: its condition, its approval, the boundary."""
    now = state.step_state(step.id)
    try:
        if step.condition is not None and not test(step.condition, scope_of(state)):
            return Skip(step.id, f"its condition is false: {step.condition}")
    except ExpressionError as error:
        return Settle(step.id, done=False, note=f"if: {error}", output=None, reason="output_invalid")
    if step.approve == "before":
        ask = approval(state, step, "before", f"Start step {step.id}?")
        if ask is not None:
            return ask
    if step.prompt is not None and not state.deferred:
        strategy: Strategy = strategy_of(state, step)
        others = tuple(s for s in state.view if s.step != step.id)
        if strategy == "summary" and (note := pressure.finished_steps(state, step, others)):
            return budget.exceeded(state, step) or note
        edits = boundary.edits(strategy, others)
        if edits:
            return Compact(step.id, strategy, "boundary", edits)
    return Begin(step.id, now.attempt + 1, now.note if now.status == "failed" else None)


def _wrap_up(state: State, failed: Step | None) -> Action:
    """Run what stands under `finally`, after the last work that was done, then end: with `failed`'s reason, or finished."""
    for step in _due(state):
        return _final(state, step)
    for step, now in zip(state.need_plan().steps, state.steps, strict=True):
        if step.final and now.status == "failed" and step.on_failure == "stop" and failed is None:
            failed = step
    if failed is not None:
        now = state.step_state(failed.id)
        return End(Outcome(now.reason or "step_failed"), f"step {failed.id} failed: {now.note}")
    return _finish(state)


def _finish(state: State) -> Action:
    scope = scope_of(state)
    output: dict[str, Json] = {}
    for name, template in state.need_plan().output:
        try:
            output[name] = evaluate(template, scope)
        except ExpressionError as error:
            return End(Outcome.OUTPUT_INVALID, f"the plan's output {name}: {error}")
    return End(Outcome.FINISHED, "every step is done", output)
