"""The plan tool as data. It is judged by the core and answered by the runner; it never runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from planrun.core import names
from planrun.tools.base import Tool, ToolContext, ToolResult


class UpdatePlanStep(BaseModel):
    """The shape that is offered to the model; what it really sends is judged in `core.plantool`. `step_id` is accepted there
    and left out here: the current step is the only right value, and small models invent others."""

    status: Literal["done", "failed"]
    output: dict[str, Any] | None = None
    note: str | None = None


def _never(arguments: UpdatePlanStep, context: ToolContext) -> ToolResult:
    raise AssertionError("the plan tool is answered by the runner")


PLAN_TOOL = Tool(
    names.PLAN_TOOL, "End the current step: done with its output, or failed with a note.", UpdatePlanStep, _never, pinned=True
)
