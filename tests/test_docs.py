"""Documentation is executed: plans validate, the quickstart and the examples run, the README's plan and commands are real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planrun import api, testing
from planrun.models.base import Reply
from planrun.planfile import load, parse
from planrun.settings import Flags, resolve
from planrun.testing.model import ScriptedModel, call, done
from tests.support import Scratch, last_user, tool_results

ROOT = Path(__file__).parents[1]
PLANS = sorted([*ROOT.glob("plans/*.yaml"), *ROOT.glob("examples/*.yaml")])


def planrun(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(ROOT), "CI": "1", **environ}
    return subprocess.run(
        [sys.executable, "-m", "planrun", *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_settings_of_the_readme_are_read(tmp_path: Path) -> None:
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    path = tmp_path / ".thclaws" / "settings.json"
    path.parent.mkdir()
    path.write_text(block, encoding="utf-8")
    found = resolve(tmp_path, Flags(), {"XDG_CONFIG_HOME": str(tmp_path / "none")}, None)
    assert {name for name, _, origin in found.describe() if origin == str(path)} >= set(
        "model base_url model_overrides permissions.allow permissions.deny hooks sandbox".split()
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
    assert "10 kinds, 85 pieces" in (tmp_path / "quickstart" / "report.txt").read_text()
    assert "number * 2" in (tmp_path / "quickstart" / "double.py").read_text()


def test_the_readme_shows_what_the_quickstart_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("```text\n")[1].split("\n```")[0].split("\n")
    shutil.copytree(ROOT / "plans", tmp_path / "plans")
    ran = planrun("run", "plans/quickstart.yaml", "--session", "demo", cwd=tmp_path)
    said = [line[9:] for line in ran.stderr.splitlines()] + ran.stdout.splitlines()
    for line in shown:
        if not re.search(r"\d[\d.]*s\b|^session ", line):  # durations differ
            assert any(s.startswith(line.removesuffix("...")) for s in said), line


def test_the_plan_in_the_readme_is_valid() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = readme.split("```yaml\n")[1].split("\n```")[0]
    assert [s.id for s in parse(text, "README.md", None).plan.steps] == ["survey", "upgrade"]


def test_the_example_of_how_to_test_a_plan_runs(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("model: m\nsteps: [{id: a, prompt: Go., output: {version: string}}]\n", encoding="utf-8")
    code = "\n".join(line[4:] for line in (testing.__doc__ or "").splitlines() if line.startswith("    "))
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    known = {"api": api, "ScriptedModel": ScriptedModel, "call": call, "done": done}
    exec(code, known | {"plan": plan, "folder": tmp_path, "environ": environ})
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "1"


def test_every_command_in_the_readme_exists(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"planrun ([a-z]+)\b(?! import)", readme)) - {"is", "runs", "plan"}:
        assert planrun(name, "--help", cwd=tmp_path).returncode == 0, name


def git(folder: Path, *arguments: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@n"}
    env |= {"GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@n"}
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=env)


def example(name: str, folder: Path) -> Scratch:
    return Scratch(folder, (ROOT / "examples" / name).read_text(encoding="utf-8"))


def test_upgrade_dependency(tmp_path: Path) -> None:
    scratch = example("upgrade-dependency.yaml", tmp_path)
    (tmp_path / "requirements.txt").write_text("acme==1.0\n")
    (tmp_path / "app.py").write_text("import acme  # 1.0\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_app.py").write_text("# a test\n")
    (tmp_path / "check.sh").write_text("grep -q 2.0 app.py || grep -q 1.0 requirements.txt\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")

    def script(body: dict[str, Any]) -> Reply:
        brief, results = last_user(body["messages"]), tool_results(body["messages"])
        if "Step survey:" in brief:
            return done(current="1.0", files=["app.py"]) if results else call("Grep", pattern="acme")
        match len(results):
            case 0:
                return call("Edit", file_path="requirements.txt", old="1.0", new="2.0")
            case 1:
                return done(version="2.0", summary="The pin moved.")  # the check says no: app.py is the old one
            case 2:
                return call("Edit", file_path="app.py", old="1.0", new="2.0")
        return done(version="2.0", summary="Pin and use moved.")

    result = scratch.run(script, api.Ask(session="s", params={"package": "acme", "test": "sh check.sh"}))
    assert result.state.ended.output == {"version": "2.0", "summary": "Pin and use moved."}
    assert "requirements.txt" in str(result.state.step_state("difference").output)


def test_docs_sweep(tmp_path: Path) -> None:
    scratch = example("docs-sweep.yaml", tmp_path)
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("Acme Cloud is [here](more/b.md).\n")
    (tmp_path / "docs" / "more" / "b.md").write_text("Welcome to Acme Cloud.\n")
    (tmp_path / "docs" / "c.md").write_text("Nothing.\n")

    def script(body: dict[str, Any]) -> Reply:
        results = tool_results(body["messages"])
        paths = ["docs/a.md", "docs/more/b.md"]
        if len(results) < len(paths):
            return call("Edit", file_path=paths[len(results)], old="Acme Cloud", new="Acme Platform")
        return done(changed=2)

    result = scratch.run(script, api.Ask(session="s", params={"old": "Acme Cloud", "new": "Acme Platform"}))
    assert result.state.ended.outcome == "finished"
    assert "Acme Platform" in (tmp_path / "docs" / "more" / "b.md").read_text()
    assert not (tmp_path / ".sweep-list.txt").exists()


def test_ci_triage(tmp_path: Path) -> None:
    scratch = example("ci-triage.yaml", tmp_path)
    (tmp_path / "build.log").write_text("ok\n" * 500 + "src/a.py:3: TypeError: no\nFAILED\n")

    def script(body: dict[str, Any]) -> Reply:
        brief, results = last_user(body["messages"]), tool_results(body["messages"])
        if not results:
            return call("Read", file_path="triage-excerpt.txt" if "Step cause:" in brief else "build.log", limit=50)
        if "Step cause:" in brief:
            assert "TypeError" in results[0]
            return done(kind="code", place="src/a.py:3", evidence="TypeError: no")
        return done(diff="--- a\n+++ b\n", why="It was wrong.")

    result = scratch.run(script, api.Ask(session="s", params={"log": "build.log"}))
    assert result.state.ended.output == {"kind": "code", "place": "src/a.py:3", "diff": "--- a\n+++ b\n"}
    assert not (tmp_path / "triage-excerpt.txt").exists()


def test_three_small_steps(tmp_path: Path) -> None:
    scratch = example("three-small-steps.yaml", tmp_path)
    (tmp_path / "notes.txt").write_text("alpha\nbravo\ncharlie\n")
    (tmp_path / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    scratch.environ["PATH"] = f"{Path(sys.executable).parent}:{scratch.environ['PATH']}"

    def script(body: dict[str, Any]) -> Reply:
        brief, results = last_user(body["messages"]), tool_results(body["messages"])
        if "Step count:" in brief:
            return done(lines=int(results[0])) if results else call("Bash", command="wc -l < notes.txt")
        if "Step summary:" in brief:
            return done() if results else call("Write", file_path="summary.txt", content="3")
        return done() if results else call("Edit", file_path="calc.py", old="a - b", new="a + b")

    result = scratch.run(script)
    assert result.state.ended.outcome == "finished"
    assert result.state.spend.requests == 6
