"""What is asked for most costs least: help and version load nothing that they do not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import planrun

HEAVY = ("openai", "pydantic", "rich", "sqlite3", "minijinja", "jsonlines", "httpx", "yaml", "tenacity", "planrun.api")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["resume", "--help"], ["rnu"]])
def test_help_and_version_load_none_of_the_heavy_modules(args: list[str]) -> None:
    program = (
        "import sys\n"
        "from planrun.cli.main import main\n"
        f"try: main({args!r})\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert loaded.isdisjoint(HEAVY)


def test_a_run_of_commands_loads_no_provider(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "pathlib.Path('p.yaml').write_text('version: 1\\nsteps: [{id: a, run: echo hi}]\\n')\n"
        "from planrun.cli.main import main\n"
        "try: main(['run', 'p.yaml'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "print('LOADED', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(planrun.__file__).parents[1])},
    )
    assert set(done.stdout.split("LOADED")[1].split()).isdisjoint({"openai", "rich", "sqlite3", "httpx"})
