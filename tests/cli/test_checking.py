"""`validate`, `schema`, `init`, `config`: nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Call, one_object

BAD = "version: 1\nsteps:\n  - id: a\n    promt: x\n  - id: a\n    prompt: ${{ steps.z.output.f }}\n"


def test_validate_reports_every_fault_of_every_file(planrun: Call, plan: Path, project: Path) -> None:
    (project / "bad.yaml").write_text(BAD, encoding="utf-8")
    shown = planrun("validate", "bad.yaml", "plan.yaml", "gone.yaml")
    assert shown.exit_code == 2
    assert shown.stdout == "plan.yaml: ok (2 steps)\n"
    faults = shown.stderr.splitlines()
    assert sum(line.startswith("bad.yaml:") for line in faults) >= 3 and faults[-1] == "gone.yaml: no such file"
    assert any(line.startswith("bad.yaml:4:5: ") and "prompt" in line for line in faults)


def test_validate_as_json(planrun: Call, plan: Path, project: Path) -> None:
    (project / "bad.yaml").write_text(BAD, encoding="utf-8")
    shown = planrun("validate", "plan.yaml", "bad.yaml", "--format", "json")
    good, bad = one_object(shown.stdout)["plans"]
    assert good == {"plan": "plan.yaml", "outcome": "ok", "name": "commands", "steps": 2, "faults": []}
    assert bad["outcome"] == "plan_invalid" and {"message", "line", "column", "hint"} == set(bad["faults"][0])


def test_validate_needs_a_file(planrun: Call) -> None:
    assert planrun("validate").exit_code == 2


def test_schema_is_json(planrun: Call) -> None:
    assert "steps" in one_object(planrun("schema").stdout)["properties"]


def test_init_writes_a_plan_that_is_valid(planrun: Call, project: Path) -> None:
    shown = planrun("init")
    assert shown.exit_code == 0
    assert planrun("validate", "plan.yaml").stdout == "plan.yaml: ok (3 steps)\n"
    assert planrun("run", "-n", "plan.yaml", "--model", "m").exit_code == 0
    assert (project / ".gitignore").read_text(encoding="utf-8") == ".thclaws/sessions/\n.thclaws/tool-output/\n"
    json.loads((project / ".thclaws" / "settings.json").read_bytes())


def test_init_overwrites_nothing_and_says_so(planrun: Call, project: Path) -> None:
    (project / "plan.yaml").write_text("mine", encoding="utf-8")
    (project / ".gitignore").write_bytes(b"*.pyc\n.thclaws/sessions/")
    shown = planrun("init")
    assert "plan.yaml: is there already, left alone" in shown.stdout
    assert (project / "plan.yaml").read_text(encoding="utf-8") == "mine"
    assert (project / ".gitignore").read_bytes() == b"*.pyc\n.thclaws/sessions/\n.thclaws/tool-output/\n"
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    assert planrun("init").stdout.count("left alone") == 3
    assert {p: p.read_bytes() for p in project.rglob("*") if p.is_file()} == before


def test_config_tells_where_each_value_comes_from_and_never_the_key(planrun: Call, project: Path) -> None:
    (project / ".thclaws").mkdir()
    (project / ".thclaws" / "settings.json").write_text('{"planContextStrategy": "clear"}', encoding="utf-8")
    env = {
        "OPENAI_API_KEY": "planrun-test-KEY-123456",
        "OPENAI_BASE_URL": "http://user:secret-word@localhost:1/v1",
        "PLANRUN_MODEL": "m1",
    }
    found = one_object(planrun("config", "--format", "json", env=env).stdout)
    assert found["model"] == {"value": "m1", "origin": "environment PLANRUN_MODEL"}
    assert found["context"]["value"] == "clear" and found["context"]["origin"].endswith("settings.json")
    for form in ("text", "json"):
        shown = planrun("config", "--format", form, env=env)
        assert "KEY" not in shown.output.replace("OPENAI_API_KEY", "") and "secret-word" not in shown.output


def test_bad_settings_are_exit_2_with_their_place(planrun: Call, project: Path, plan: Path) -> None:
    (project / ".thclaws").mkdir()
    (project / ".thclaws" / "settings.json").write_text('{"planContextStrateg": "clear"}', encoding="utf-8")
    for args in (["config"], ["run", "plan.yaml"], ["list"]):
        shown = planrun(*args)
        assert shown.exit_code == 2 and "planContextStrategy" in shown.stderr, args
