"""What a run would do: the steps in order, each with its boundary, checks, limits and the size of its first request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import assert_never

from planrun.core import prompts
from planrun.core.budget import limits_in_force
from planrun.core.context import Segment
from planrun.core.plan import Check, ExistsCheck, Json, RunCheck, Step, UnchangedCheck
from planrun.core.scope import strategy_of
from planrun.core.state import State
from planrun.core.tokens import PER_MESSAGE, raw_tokens
from planrun.views.words import amount, duration, money, one_line, plural


def preview(state: State, tool_tokens: Callable[[Step], float]) -> dict[str, Json]:
    """`state` holds the plan and nothing done; `tool_tokens` says what the tools of a step take in a request."""
    plan = state.need_plan()
    steps: list[Json] = []
    fresh = True
    for step in plan.steps:
        strategy = strategy_of(state, step) if step.prompt is not None else None
        steps.append(_step(state, step, strategy, fresh or strategy == "clear", tool_tokens))
        fresh = fresh and step.prompt is None
    return {
        "plan": plan.name,
        "goal": plan.goal,
        "model": state.model or None,
        "limits": asdict(limits_in_force(state)),
        "params": dict(state.header.params) if state.header else {},
        "recheck": plan.recheck,
        "steps": steps,
    }


def _step(state: State, step: Step, strategy: str | None, fresh: bool, tool_tokens: Callable[[Step], float]) -> dict[str, Json]:
    tokens = None if step.prompt is None else round(_first_request(state, step, fresh) + tool_tokens(step))
    return {
        "id": step.id,
        "title": step.title or None,
        "kind": "run" if step.run is not None else "prompt",
        "command": step.run,
        "context": strategy,
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
        "first_request_tokens": tokens,
        "carries_history": None if tokens is None else not fresh,
    }


def _first_request(state: State, step: Step, fresh: bool) -> float:
    """Tokens of the system prompt and the step's own message, its references as they are written."""
    before = state if fresh else replace(state, view=(Segment("earlier"),))
    brief = prompts.brief(before, step, step.prompt or "")
    return raw_tokens(prompts.system(state)) + raw_tokens(brief) + 2 * PER_MESSAGE


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


def text(found: dict[str, Json]) -> str:
    """The preview for a person."""
    steps = [s for s in found["steps"] if isinstance(s, dict)] if isinstance(found["steps"], list) else []
    lines = [f"plan {one_line(str(found['plan']))}: {plural(len(steps), 'step')}, valid; nothing was run"]
    lines.append(f"goal: {one_line(str(found['goal']))}")
    lines.append(f"model: {found['model'] or 'none needed'}; limits: {_limit_words(found['limits']) or 'none'}")
    for name, value in found["params"].items() if isinstance(found["params"], dict) else ():
        lines.append(f"param {name} = {one_line(str(value))}")
    for number, step in enumerate(steps, 1):
        lines += ["", *_lines(number, step)]
    return "\n".join(lines)


def _lines(number: int, step: dict[str, Json]) -> list[str]:
    title = f"  {one_line(str(step['title']))}" if step["title"] else ""
    lines = [f"{number}. {step['id']}{' (finally)' if step['finally'] else ''}{title}"]
    if step["kind"] == "run":
        lines.append(f"   command: {one_line(str(step['command']))}")
    else:
        more = " plus what the boundary leaves of earlier steps" if step["carries_history"] else ""
        size = amount(_float(step["first_request_tokens"]))
        lines.append(f"   context: {step['context']}; first request about {size} tokens{more}")
        tools = step["tools"]
        lines.append(f"   tools: {', '.join(map(str, tools)) or 'none' if isinstance(tools, list) else 'all'}")
    lines += [f"   check: {one_line(str(c))}" for c in (step["checks"] if isinstance(step["checks"], list) else ())]
    lines += [f"   {words}" for words in _settings(step)]
    return lines


def _settings(step: dict[str, Json]) -> list[str]:
    """What a step says beyond the usual."""
    words = []
    if isinstance(step["outputs"], list) and step["outputs"]:
        words.append(f"outputs: {', '.join(map(str, step['outputs']))}")
    tries = [f"{step['attempts']} attempts"] * (step["attempts"] != 1) + [f"{step['fix']} fixes"] * bool(step["fix"])
    if tries:
        words.append(f"tries: {', '.join(tries)}")
    limits = _limit_words(step["limits"])
    if step["timeout"] is not None:
        limits = ", ".join(filter(None, [limits, f"timeout {duration(_float(step['timeout']))}"]))
    words += [f"limits: {limits}"] * bool(limits)
    words += [f"model: {step['model']}"] * bool(step["model"])
    words += [f"if: {one_line(str(step['if']))}"] * bool(step["if"])
    words += [f"approve: {step['approve']}"] * bool(step["approve"])
    words += ["on failure: continue"] * (step["on_failure"] == "continue")
    return words


def _limit_words(limits: Json) -> str:
    if not isinstance(limits, dict):
        return ""
    found = {name: _float(value) for name, value in limits.items() if value is not None}
    words: dict[str, Callable[[float], str]] = {
        "cost_usd": money,
        "tokens": lambda n: f"{amount(n)} tokens",
        "time": duration,
        "turns": lambda n: f"{amount(n)} turns",
    }
    return ", ".join(say(found[name]) for name, say in words.items() if name in found)


def _float(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
