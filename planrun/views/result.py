"""The result of a run as one JSON object: `--format json`, `--summary` and `show --format json` print the same."""

from __future__ import annotations

from pathlib import Path

from planrun.core.plan import Json
from planrun.core.state import Spend, State, StepState


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
        "output": dict(ended.output) if ended and ended.output is not None else None,
        "steps": [_step(step.id, now) for step, now in steps],
        "usage": _usage(state.spend),
        "compactions": state.compactions,
    }


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
        "output": now.output,
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
