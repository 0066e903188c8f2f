"""The result of a run as one JSON object: `--format json`, `--summary` and `show --format json` print the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from planrun.core.plan import Json, Plan
from planrun.core.state import Spend, State, StepState
from planrun.masking import formats

WITHHELD = "[withheld: contains secret "
_MASKED = re.compile(r"\[secret ([\w.-]{1,100})\]")


def result(state: State, log_path: Path) -> dict[str, Json]:
    """The contract's object. What is unknown is None: the outcome of a run that goes on, a cost without prices."""
    ended, plan = state.ended, state.plan
    steps = zip(plan.steps, state.steps, strict=True) if plan else ()
    return {
        "session": state.header.session if state.header else None,
        "log": str(log_path),
        "plan": plan.name if plan else None,
        "outcome": ended.outcome if ended else None,
        "exit_code": ended.exit_code if ended else None,
        "reason": ended.reason if ended else None,
        "output": _safe(ended.output, plan) if ended else None,
        "steps": [{**_step(step.id, now), "output": _safe(now.output, plan)} for step, now in steps],
        "usage": _usage(state.spend),
        "compactions": state.compactions,
    }


def withholds(found: Mapping[str, Json]) -> bool:
    """Whether an output was left out of the result."""
    return WITHHELD in json.dumps([found["output"], found["steps"]], ensure_ascii=False)


def _safe(output: Mapping[str, Json] | None, plan: Plan | None) -> dict[str, Json] | None:
    """The fields of an output for files and logs of a CI system: one that holds a masked secret is withheld."""
    if output is None:
        return None
    known = {*(plan.secrets if plan else ()), "OPENAI_API_KEY", "base-url-password", *formats.NAMES}

    def shown(value: Json) -> Json:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        name = next((name for name in _MASKED.findall(text) if name in known), None)
        return value if name is None else f"{WITHHELD}{name}]"

    return {field: shown(value) for field, value in output.items()}


def refused(outcome: str | None, exit_code: int, reason: str) -> dict[str, Json]:
    """The same object for a run that could not be started."""
    return {
        "session": None,
        "log": None,
        "plan": None,
        "outcome": outcome,
        "exit_code": exit_code,
        "reason": reason,
        "output": None,
        "steps": None,
        "usage": None,
        "compactions": None,
    }


def _step(step_id: str, now: StepState) -> dict[str, Json]:
    return {
        "id": step_id,
        "status": now.status,
        "attempts": now.attempt,
        "turns": now.total_turns,
        "note": now.note,
        "seconds": round(now.seconds, 3),
        "prompt_tokens": now.spend.prompt_tokens,
        "completion_tokens": now.spend.completion_tokens,
        "cost_usd": _usd(now.spend.cost_usd),
    }


def _usage(spend: Spend) -> dict[str, Json]:
    return {
        "requests": spend.requests,
        "prompt_tokens": spend.prompt_tokens,
        "cached_tokens": spend.cached_tokens,
        "completion_tokens": spend.completion_tokens,
        "estimated": spend.estimated,
        "cost_usd": _usd(spend.cost_usd),
    }


def _usd(cost: float | None) -> float | None:
    """Sums of binary fractions would show as 0.30000000000000004."""
    return None if cost is None else round(cost, 8)
