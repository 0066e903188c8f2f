"""Real tools in a temporary workspace."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toolbox import Call

from planrun.tools.base import ToolContext, ToolResult
from planrun.tools.registry import builtin_tools, parse_arguments


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    workspace = tmp_path.resolve() / "ws"
    workspace.mkdir()
    return ToolContext(workspace, workspace / ".thclaws" / "spill", env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})


@pytest.fixture
def call(ctx: ToolContext) -> Call:
    """Runs a tool as the runner does: the arguments go through JSON. `seconds` sets a deadline, `limit` the limit."""

    def run(name: str, seconds: float | None = None, limit_to: int | None = None, **arguments: Any) -> ToolResult:
        tool = next(tool for tool in builtin_tools() if tool.name == name)
        parsed = parse_arguments(tool, json.dumps(arguments))
        if isinstance(parsed, str):
            return ToolResult(parsed, "error")
        here = replace(ctx, deadline=time.monotonic() + seconds) if seconds is not None else ctx
        here = replace(here, limit=limit_to) if limit_to is not None else here
        result = tool.run(parsed, here)
        assert len(result.text) <= here.limit
        result.text.encode()
        return result

    return run
