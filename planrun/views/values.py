"""A value that a session left, by its name."""

from __future__ import annotations

from planrun.core.plan import Json
from planrun.core.state import State
from planrun.errors import UsageError


def value_of(state: State, name: str | None) -> Json:
    """The plan's output, or with a name `STEP.FIELD`, `STEP`, or one of the plan's outputs.

    Raises UsageError, naming what there is."""
    plan_output = state.ended.output if state.ended is not None else None
    left = _left(state)
    if name is None:
        if plan_output is None:
            raise UsageError(f"the plan has no output yet; there is: {_listed(left, {})}")
        return plan_output
    step, dot, field = name.partition(".")
    if dot and field in left.get(step, {}):
        return left[step][field]
    if not dot and step in left:
        return left[step]
    if name in (plan_output or {}):
        return (plan_output or {})[name]
    raise UsageError(f"there is no output {name!r}; there is: {_listed(left, plan_output or {})}")


def _left(state: State) -> dict[str, dict[str, Json]]:
    if state.plan is None:
        return {}
    return {s.id: now.output for s, now in zip(state.plan.steps, state.steps, strict=True) if now.output is not None}


def _listed(left: dict[str, dict[str, Json]], plan_output: dict[str, Json]) -> str:
    names = [*plan_output, *(f"{step}.{field}" for step, fields in left.items() for field in fields)]
    return ", ".join(names) or "nothing"
