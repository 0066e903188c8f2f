"""What is asked for most costs least: a command loads nothing that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import planrun

HEAVY = {"openai", "pydantic", "rich", "sqlite3", "minijinja", "jsonlines", "httpx2", "yaml", "tenacity", "planrun.api"}
PLAN = "version: 1\nsteps: [{id: a, run: echo hi}]\n"


def loaded(folder: Path, *args: str, code: int = 0) -> set[str]:
    """The modules that a command which ends with `code` loads in a process of its own."""
    program = (
        "import sys\n"
        "from planrun.cli.main import main\n"
        f"try: main({args!r})\n"
        "except SystemExit as stop:\n"
        "    print('LOADED', *sys.modules)\n"
        "    raise\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(planrun.__file__).parents[1])},
    )
    assert done.returncode == code, done.stderr
    return set(done.stdout.split("LOADED")[1].split())


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["resume", "--help"], ["rnu"]])
def test_help_and_version_load_none_of_the_heavy_modules(args: list[str], tmp_path: Path) -> None:
    assert loaded(tmp_path, *args, code=2 if args == ["rnu"] else 0).isdisjoint(HEAVY)


def test_a_run_of_commands_loads_no_provider_and_who_looks_on_loads_no_runner(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PLAN)
    assert loaded(tmp_path, "run", "p.yaml").isdisjoint({"openai", "rich", "sqlite3", "httpx2", "jsonlines"})
    for look in ("list", "show", "output"):
        assert loaded(tmp_path, look).isdisjoint({"openai", "planrun.api", "planrun.runner.loop", "planrun.tools.registry"}), (
            look
        )
