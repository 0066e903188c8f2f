"""Shared by the tests of the tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from planrun.tools.base import ToolResult

CASES = Path(__file__).parents[1] / "cases"
Call = Callable[..., ToolResult]


def recorded_calls(case: str) -> list[tuple[str, str]]:
    """Name and arguments of the tool calls in a recorded response."""
    body = json.loads((CASES / case).read_text("utf-8"))
    return [(c["function"]["name"], c["function"]["arguments"]) for c in body["choices"][0]["message"]["tool_calls"]]
