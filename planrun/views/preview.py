"""What a run would do: the steps in order, each with its boundary, checks, limits and the size of its first request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import assert_never

from planrun.core import prompts
from planrun.core.budget import limits_in_force
from planrun.core.context import Segment
from planrun.core.plan import Check, ExistsCheck, Json, Limits, RunCheck, Step, Strategy, UnchangedCheck
from planrun.core.room import tools_raw
from planrun.core.scope import strategy_of
from planrun.core.state import State
from planrun.core.tokens import PER_MESSAGE, raw_tokens
from planrun.views.words import amount, duration, money, one_line, plural


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is ahead for a step. `context` is the strategy before it, `tokens` the size of its first request, to which what is left
    of earlier steps comes where it `carries` that; a command has none of them."""

    step: Step
    context: Strategy | None = None
    tokens: int | None = None
    carries: bool | None = None


def prospects(state: State) -> list[Prospect]:
    """One for each step; `state` holds the plan and nothing done."""
    found: list[Prospect] = []
    fresh = True
    for step in state.need_plan().steps:
        if step.prompt is None:
            found.append(Prospect(step))
            continue
        strategy = strategy_of(state, step)
        alone = fresh or strategy == "clear"
        size = round(_first_request(state, step, alone) + tools_raw(state, step))
        found.append(Prospect(step, strategy, size, not alone))
        fresh = False
    return found


def _first_request(state: State, step: Step, alone: bool) -> float:
    """Tokens of the system prompt and the step's own message, its references as they are written."""
    before = state if alone else replace(state, view=(Segment("earlier"),))
    brief = prompts.brief(before, step, step.prompt or "")
    return raw_tokens(prompts.system(state)) + raw_tokens(brief) + 2 * PER_MESSAGE


def as_json(state: State) -> dict[str, Json]:
    plan = state.need_plan()
    return {
        "plan": plan.name,
        "goal": plan.goal,
        "model": state.model or None,
        "limits": asdict(limits_in_force(state)),
        "params": dict(state.header.params) if state.header else {},
        "recheck": plan.recheck,
        "steps": [_step(p) for p in prospects(state)],
    }


def _step(ahead: Prospect) -> dict[str, Json]:
    step = ahead.step
    return {
        "id": step.id,
        "title": step.title or None,
        "kind": "run" if step.run is not None else "prompt",
        "command": step.run,
        "context": ahead.context,
        "model": step.model,
        "tools": list(step.tools) if step.tools is not None else None,
        "checks": [_check(c) for c in step.verify],
        "outputs": [f.name for f in step.output],
        "fix": step.fix,
        "attempts": step.attempts,
        "limits": asdict(step.limits),
        "timeout": step.timeout,
        "if": step.condition,
        "on_failure": step.on_failure,
        "approve": step.approve,
        "finally": step.final,
        "first_request_tokens": ahead.tokens,
        "carries_history": ahead.carries,
    }


def _check(check: Check) -> str:
    match check:
        case RunCheck(run=command):
            return f"run: {command.strip()}"
        case ExistsCheck(exists=patterns):
            return f"exists: {', '.join(patterns)}"
        case UnchangedCheck(unchanged=patterns):
            return f"unchanged: {', '.join(patterns)}"
        case _:
            assert_never(check)


def text(state: State) -> str:
    """The preview for a person."""
    plan = state.need_plan()
    lines = [
        f"plan {one_line(plan.name)}: {plural(len(plan.steps), 'step')}, valid; nothing was run",
        f"goal: {one_line(plan.goal)}",
        f"model: {state.model or 'none needed'}; limits: {_limit_words(limits_in_force(state)) or 'none'}",
    ]
    lines += [f"param {name} = {one_line(str(value))}" for name, value in (state.header.params if state.header else {}).items()]
    for number, ahead in enumerate(prospects(state), 1):
        lines += ["", *_lines(number, ahead)]
    return "\n".join(lines)


def _lines(number: int, ahead: Prospect) -> list[str]:
    step = ahead.step
    title = f"  {one_line(step.title)}" if step.title else ""
    lines = [f"{number}. {step.id}{' (finally)' if step.final else ''}{title}"]
    if step.run is not None:
        lines.append(f"   command: {one_line(step.run)}")
    else:
        more = " plus what the boundary leaves of earlier steps" if ahead.carries else ""
        lines.append(f"   context: {ahead.context}; first request about {amount(ahead.tokens or 0)} tokens{more}")
        lines.append(f"   tools: {'all' if step.tools is None else ', '.join(step.tools) or 'none'}")
    lines += [f"   check: {one_line(_check(c))}" for c in step.verify]
    return lines + [f"   {words}" for words in _settings(step)]


def _settings(step: Step) -> list[str]:
    """What a step says beyond the usual."""
    tries = [f"{step.attempts} attempts"] * (step.attempts != 1) + [f"{step.fix} fixes"] * (step.fix > 0)
    timeout = f"timeout {duration(step.timeout)}" if step.timeout is not None else ""
    said = {
        "outputs": ", ".join(f.name for f in step.output),
        "tries": ", ".join(tries),
        "limits": ", ".join(filter(None, (_limit_words(step.limits), timeout))),
        "model": step.model,
        "if": one_line(step.condition or ""),
        "approve": step.approve,
        "on failure": "continue" if step.on_failure == "continue" else "",
    }
    return [f"{name}: {value}" for name, value in said.items() if value]


def _limit_words(limits: Limits) -> str:
    words: tuple[tuple[float | None, Callable[[float], str]], ...] = (
        (limits.cost_usd, money),
        (limits.tokens, lambda n: f"{amount(n)} tokens"),
        (limits.time, duration),
        (limits.turns, lambda n: f"{amount(n)} turns"),
    )
    return ", ".join(say(number) for number, say in words if number is not None)
