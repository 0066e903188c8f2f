"""Documentation is executed: plans validate, the quickstart and the examples run, the README's plan and commands are real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planrun.planfile import load

ROOT = Path(__file__).parents[1]
PLANS = sorted([*ROOT.glob("plans/*.yaml"), *ROOT.glob("examples/*.yaml")])


def planrun(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(ROOT), "CI": "1", **environ}
    return subprocess.run(
        [sys.executable, "-m", "planrun", *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.name)
def test_every_plan_is_valid(path: Path) -> None:
    assert load(path).plan.steps


def test_quickstart(tmp_path: Path) -> None:
    """The recorded session answers, real tools work on real files, a check fails once, both boundaries show."""
    shutil.copytree(ROOT / "plans", tmp_path / "plans")
    ran = planrun("run", "plans/quickstart.yaml", "--format", "json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["outcome"] == "finished"
    assert [s["status"] for s in result["steps"]] == ["done"] * 5
    for shown in ("check failed", "check passed", ": compact, ", ": clear, "):
        assert shown in ran.stderr, shown
    assert "3 kinds, 12 pieces" in (tmp_path / "quickstart" / "report.txt").read_text()
    assert "number * 2" in (tmp_path / "quickstart" / "double.py").read_text()
