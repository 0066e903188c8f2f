"""`planrun run`: what is printed where, in each form, for each kind of end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from planrun.testing.server import LoopbackServer, call, done, error, text
from tests.cli.conftest import PROMPT, Call, one_object

KEYS = {"session", "log", "plan", "outcome", "exit_code", "reason", "output", "steps", "usage", "compactions"}
STEP_KEYS = {
    "id", "status", "attempts", "turns", "output", "note", "seconds", "prompt_tokens", "completion_tokens", "cost_usd",
}  # fmt: skip
Served = Callable[..., LoopbackServer]


def test_text_prints_the_plans_outputs_and_nothing_else_on_stdout(planrun: Call, plan: Path) -> None:
    shown = planrun("run", "plan.yaml")
    assert shown.exit_code == 0
    assert shown.stdout == "said: hello\nlines:\n  a b\n  c\n"
    assert "[1/2] first: running echo ${{ params.word }}" in shown.stderr
    assert "finished in " in shown.stderr and "resume with" not in shown.stderr


def test_json_prints_the_contracts_object(planrun: Call, plan: Path, project: Path) -> None:
    found = one_object(planrun("run", "plan.yaml", "--format", "json", "--session", "s1").stdout)
    assert set(found) == KEYS
    assert [set(step) for step in found["steps"]] == [STEP_KEYS, STEP_KEYS]
    assert (found["session"], found["plan"], found["outcome"], found["exit_code"]) == ("s1", "commands", "finished", 0)
    assert found["log"] == str(project.resolve() / ".thclaws" / "sessions" / "s1.jsonl")
    assert found["output"] == {"said": "hello", "lines": "a b\nc"}
    assert found["steps"][0]["output"] == {"said": "hello"}
    assert found["usage"]["cost_usd"] is None and found["usage"]["requests"] == 0


def test_jsonl_prints_the_bytes_of_the_log(planrun: Call, plan: Path, project: Path) -> None:
    shown = planrun("run", "plan.yaml", "--format", "jsonl", "--session", "s1")
    assert shown.stdout_bytes == (project / ".thclaws" / "sessions" / "s1.jsonl").read_bytes()


def test_jsonl_of_a_resume_prints_only_what_is_new(planrun: Call, plan: Path, project: Path) -> None:
    planrun("run", "plan.yaml", "--session", "s1", "--until", "first")
    log = project / ".thclaws" / "sessions" / "s1.jsonl"
    before = log.read_bytes()
    shown = planrun("resume", "s1", "--format", "jsonl")
    assert shown.exit_code == 0
    assert before + shown.stdout_bytes == log.read_bytes()


def test_quiet_says_only_how_it_ended(planrun: Call, plan: Path) -> None:
    shown = planrun("run", "plan.yaml", "-q")
    assert [line.split(" in ")[0] for line in shown.stderr.splitlines()] == ["finished"]


def test_a_failed_step_is_exit_1_and_says_how_to_go_on(planrun: Call, plan: Path) -> None:
    plan.write_text("version: 1\nsteps: [{id: a, run: 'echo why; exit 3'}]\n", encoding="utf-8")
    shown = planrun("run", "plan.yaml", "-q", "--session", "s1")
    assert shown.exit_code == 1
    failed, ended, resume = shown.stderr.splitlines()
    assert failed.startswith("[1/1] a: failed") and "exited with 3" in failed and "why" in failed
    assert ended.startswith("step_failed (exit code 1): ")
    assert resume == "resume with: planrun resume s1"


def test_the_way_to_resume_names_another_session_folder(planrun: Call, plan: Path, tmp_path: Path) -> None:
    shown = planrun("run", "plan.yaml", "--until", "first", "--session", "s1", "--session-dir", str(tmp_path / "my logs"))
    assert f"resume with: planrun resume s1 --session-dir '{tmp_path / 'my logs'}'" in shown.stderr


def test_a_model_run_shows_what_is_waited_for_and_each_retry(planrun: Call, served: Served) -> None:
    served(
        error(429, "Rate limit: slow down", headers={"Retry-After": "0"}),
        text("I think."),
        call("Bash", {"command": "exit 4"}),
        done({"word": 3}),
    )
    shown = planrun("run", "ask.yaml", "-v")
    assert shown.exit_code == 0, shown.stderr
    lines = [line[9:] for line in shown.stderr.splitlines()]
    started = next(i for i, line in enumerate(lines) if line.startswith("[1/1] one: waiting for test-model (turn 1, "))
    assert lines[started - 1] == "[1/1] one: started (Say it)"
    assert lines[started + 1].startswith("retry 1 of ") and lines[started + 1].endswith("Rate limit: slow down")
    assert "[1/1] one: says: I think." in lines
    assert any(line.startswith("[1/1] one: reminded: ") for line in lines)
    assert "[1/1] one: Bash exit 4" in lines
    assert any(line.startswith("[1/1] one: UpdatePlanStep refused: ") for line in lines)
    assert any(line.startswith("[1/1] one: done, ") for line in lines)


def test_text_of_a_model_cannot_move_the_cursor(planrun: Call, served: Served) -> None:
    served(text("\x1b[2J\x1b]0;mine\x07\x9bKrewritten\rover"), done({"word": "\x1b[1Aup\x07"}))
    shown = planrun("run", "ask.yaml", "-v")
    assert shown.exit_code == 0, shown.stderr
    assert not set(shown.stderr) & set("\x1b\x07\x9b\r") and "[1/1] one: says: " in shown.stderr


def test_a_provider_that_fails_is_exit_75_in_the_servers_words(planrun: Call, served: Served) -> None:
    served(error(401, "Incorrect key planrun-test-KEY-123456"))
    shown = planrun("run", "ask.yaml", "--format", "json")
    found = one_object(shown.stdout)
    assert (shown.exit_code, found["outcome"]) == (2, "config")
    assert "Incorrect key" in found["reason"]
    assert "KEY-123456" not in shown.stdout + shown.stderr


def test_an_error_before_a_session_is_one_object_and_a_summary_too(planrun: Call, project: Path) -> None:
    (project / "bad.yaml").write_text("version: 1\nsteps: []\n", encoding="utf-8")
    shown = planrun("run", "bad.yaml", "--format", "json", "--summary", "out/s.json")
    found = one_object(shown.stdout)
    assert found == json.loads((project / "out" / "s.json").read_bytes())
    assert shown.exit_code == found["exit_code"] == 2
    assert found["outcome"] == "plan_invalid" and "bad.yaml" in found["reason"]
    assert all(found[key] is None for key in KEYS - {"outcome", "exit_code", "reason"})
    assert shown.stderr.startswith("bad.yaml:2:")
    assert not (project / ".thclaws").exists()


def test_wrong_arguments_are_one_object_too(planrun: Call, plan: Path) -> None:
    for args in (["--max-tokens", "many"], ["--until", "nope"], ["-p", "word"], ["--nope"]):
        shown = planrun("run", "plan.yaml", "--format", "json", *args)
        assert (shown.exit_code, one_object(shown.stdout)["outcome"]) == (2, "usage"), args
        assert shown.stderr


def test_no_model_is_a_config_error(planrun: Call, project: Path) -> None:
    (project / "ask.yaml").write_text(PROMPT, encoding="utf-8")
    shown = planrun("run", "ask.yaml", "--format", "json")
    assert (shown.exit_code, one_object(shown.stdout)["outcome"]) == (2, "config")


def test_nobody_to_answer_is_exit_4(planrun: Call, plan: Path) -> None:
    plan.write_text("version: 1\nsteps: [{id: a, run: echo, approve: before}]\n", encoding="utf-8")
    assert planrun("run", "plan.yaml", "--session", "s1", input="y\n").exit_code == 4
    shown = planrun("resume", "s1", "--approve", "all")
    assert shown.exit_code == 0 and "approved by --approve all" in shown.stderr


def test_summary_and_junit_are_written(planrun: Call, plan: Path, project: Path) -> None:
    shown = planrun("run", "plan.yaml", "--summary", "s.json", "--junit", "deep/j.xml", "--format", "json")
    assert json.loads((project / "s.json").read_bytes()) == one_object(shown.stdout)
    suite = ET.parse(project / "deep" / "j.xml").getroot()
    assert (suite.tag, suite.get("name"), suite.get("tests")) == ("testsuite", "commands", "2")


def test_a_result_file_that_cannot_be_written_is_refused_before_anything_runs(planrun: Call, plan: Path, project: Path) -> None:
    (project / "folder").mkdir()
    shown = planrun("run", "plan.yaml", "--junit", "plan.yaml/j.xml")
    assert shown.exit_code == 2 and "--junit" in shown.stderr
    assert not (project / ".thclaws").exists()


def test_a_ci_job_gets_a_table(planrun: Call, plan: Path, project: Path) -> None:
    page = project / "page.md"
    page.write_text("before\n", encoding="utf-8")
    assert planrun("run", "plan.yaml", env={"GITHUB_STEP_SUMMARY": str(page)}).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("before\n### commands")


def test_options_read_the_environment_the_commands_own_first(planrun: Call, plan: Path) -> None:
    env = {
        "PLANRUN_FORMAT": "json",
        "PLANRUN_RUN_FORMAT": "jsonl",
        "PLANRUN_RUN_SESSION": "mine",
        "PLANRUN_UNTIL": "first",
    }
    shown = planrun("run", "plan.yaml", env=env)
    assert json.loads(shown.stdout.splitlines()[0])["session"] == "mine"
    assert one_object(planrun("run", "plan.yaml", env={"PLANRUN_FORMAT": "json"}).stdout)["outcome"] == "finished"
    assert planrun("run", "plan.yaml", "--format", "text", env={"PLANRUN_FORMAT": "json"}).stdout.startswith("said: ")


def test_limits_take_the_spellings_of_plans(planrun: Call, plan: Path) -> None:
    shown = planrun(
        "run", "plan.yaml", "--max-time", "1h30m", "--max-tokens", "2_000", "--max-cost", "1.5", "--max-turns", "7",
        "-n", "--format", "json",
    )  # fmt: skip
    assert one_object(shown.stdout)["limits"] == {"cost_usd": 1.5, "tokens": 2000, "time": 5400.0, "turns": 7}
    for option in ("--max-time", "--max-tokens", "--max-cost", "--window"):
        assert planrun("run", "plan.yaml", option, "-3").exit_code == 2


def test_parameters_come_from_a_file_and_p_wins(planrun: Call, plan: Path, project: Path) -> None:
    (project / "params.yaml").write_text("word: 1.10\n", encoding="utf-8")
    assert planrun("run", "plan.yaml", "--params-file", "params.yaml").stdout.startswith("said: 1.10\n")
    (project / "params.json").write_text('{"word": "json"}', encoding="utf-8")
    assert planrun("run", "plan.yaml", "--params-file", "params.json").stdout.startswith("said: json\n")
    shown = planrun("run", "plan.yaml", "--params-file", "params.yaml", "-p", "word=a=b")
    assert shown.stdout.startswith("said: a=b\n")
    (project / "list.yaml").write_text("- a\n", encoding="utf-8")
    for bad in ("list.yaml", "none.yaml"):
        assert planrun("run", "plan.yaml", "--params-file", bad).exit_code == 2


def test_typed_parameters_of_a_file(planrun: Call, project: Path) -> None:
    (project / "typed.yaml").write_text(
        "version: 1\nparams:\n  n: {type: integer}\n  on: {type: boolean}\n"
        "  names: {type: array, items: {type: string}}\n  sizes: {type: array, items: {type: integer}}\n"
        "steps: [{id: a, run: echo}]\n"
        "output: {n: '${{ params.n }}', on: '${{ params.on }}',"
        " names: '${{ params.names }}', sizes: '${{ params.sizes }}'}\n",
        encoding="utf-8",
    )
    (project / "p.yaml").write_text("n: 7\non: true\nnames: [a, b]\nsizes: [1, 2]\n", encoding="utf-8")
    shown = planrun("run", "typed.yaml", "--params-file", "p.yaml", "--format", "json")
    assert one_object(shown.stdout)["output"] == {"n": 7, "on": True, "names": ["a", "b"], "sizes": [1, 2]}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_dry_run_shows_the_plan_and_does_nothing(planrun: Call, served: Served, project: Path, form: str) -> None:
    server = served(
        plan=PROMPT
        + "  - {id: two, context: clear, prompt: 'Use ${{ steps.one.output.word }}', tools: [Read], verify: make}\n"
        + "  - {id: three, prompt: Go., retry: {attempts: 2}, fix: 1, timeout: 5m}\n"
        + "  - {id: four, run: make, if: params.x}\nparams: {x: {type: boolean, default: true}}\n"
    )
    shown = planrun("run", "ask.yaml", "-n", "--format", form)
    assert shown.exit_code == 0, shown.stderr
    assert server.requests == [] and not (project / ".thclaws").exists()
    if form == "json":
        steps = one_object(shown.stdout)["steps"]
        assert [s["context"] for s in steps] == ["compact", "clear", "compact", None]
        assert [s["carries_history"] for s in steps] == [False, False, True, None]
        assert 0 < steps[1]["first_request_tokens"] < steps[0]["first_request_tokens"] < 2000
    else:
        assert "check: run: make" in shown.stdout
        assert "tries: 2 attempts, 1 fixes" in shown.stdout


def test_the_size_that_a_dry_run_tells_is_the_size_that_is_sent(planrun: Call, served: Served, project: Path) -> None:
    server = served(done({"word": "w"}))
    told = one_object(planrun("run", "ask.yaml", "-n", "--format", "json").stdout)["steps"][0]["first_request_tokens"]
    planrun("run", "ask.yaml", "--session", "s1")
    assert len(server.requests) == 1
    log = (project / ".thclaws" / "sessions" / "s1.jsonl").read_text(encoding="utf-8").splitlines()
    sent = next(r for r in map(json.loads, log) if r["type"] == "request")["tokens"]
    assert abs(told - sent) <= 3
