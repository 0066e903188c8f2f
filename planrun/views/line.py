"""A line of progress, and the place in the plan that it speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planrun.core.plan import Step
from planrun.core.state import State

Tone = Literal["plain", "good", "bad", "dim", "note"]
QUIET, NORMAL, VERBOSE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Line:
    """Shown from verbosity `level` on; `stays` where a live screen keeps it once the moment has passed."""

    text: str
    tone: Tone = "plain"
    level: int = NORMAL
    stays: bool = False


def place(state: State, step_id: str | None) -> str:
    """`[2/3] upgrade: `, or nothing where it belongs to no step of the plan."""
    at = state.plan.index.get(step_id) if state.plan and step_id else None
    return "" if state.plan is None or at is None else f"[{at + 1}/{len(state.plan.steps)}] {step_id}: "


def step_of(state: State, step_id: str | None) -> Step | None:
    at = state.plan.index.get(step_id) if state.plan and step_id else None
    return state.plan.steps[at] if state.plan and at is not None else None
