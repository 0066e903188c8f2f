"""Lint, format, types and import contracts are part of the tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = {
    "lint": ["-m", "ruff", "check", "."],
    "format": ["-m", "ruff", "format", "--check", "."],
    "types": ["-m", "mypy"],
    "imports": ["-c", "from importlinter.cli import lint_imports_command as c; c()"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_quality(check: str) -> None:
    done = subprocess.run([sys.executable, *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_no_file_and_no_function_is_too_long() -> None:
    """250 lines, and 40 with the docstring aside."""
    assert [found for path in sorted((ROOT / "planrun").rglob("*.py")) for found in _too_long(path)] == []


def _too_long(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > 250:
        yield f"{path}: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            head = node.body[0].lineno - node.lineno
            if (size := head + (node.end_lineno or 0) - first.lineno + 1) > 40:
                yield f"{path}:{node.lineno}: {node.name} has {size} lines"
