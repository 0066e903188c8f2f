"""Plan files: what a full one comes to, and every kind of fault with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from planrun.core.plan import ExistsCheck, Field, Limits, RunCheck, UnchangedCheck
from planrun.errors import Fault, PlanInvalid
from planrun.planfile import parse

CASES = Path(__file__).parent / "cases"

FULL = (CASES / "full.plan.yaml").read_text()


HEAD = """params: {p: x, n: {type: integer}}
secrets: [TOKEN]
env: [HOME]
steps:
  - {id: a, prompt: Go., output: {v: string, k: integer}}
"""


def faults_of(text: str | bytes, files: dict[str, str] | None = None) -> list[Fault]:
    with pytest.raises(PlanInvalid) as caught:
        parse(text, "p.yaml", files)
    return caught.value.faults


def step(lines: str) -> str:
    """A plan with one sound step before and the given lines as the second one; the lines begin in line 7."""
    body = "\n".join(f"    {line}" if line else "" for line in lines.split("\n"))
    return f"{HEAD}  - id: b\n{body}\n"


def test_full_plan() -> None:
    loaded = parse(FULL, "dir/p.yaml", {})
    plan = loaded.plan
    assert [s.id for s in plan.steps] == ["survey", "upgrade", "audit", "clean"]
    assert [s.final for s in plan.steps] == [False, False, False, True]
    assert plan.limits == Limits(4, 2_000_000, 5400.0, 400)
    assert plan.window == 32_768
    assert plan.params == (
        Field("package", "string", "package to move"),
        Field("fast", "boolean", required=False, default=False, has_default=True),
        Field("tag", required=False, default="1.10", has_default=True),
        Field("sizes", "array", required=False, default=[1, 2], has_default=True),
    )
    survey, upgrade, audit, clean = plan.steps
    assert survey.tools == ("Read", "Grep", "Glob", "mcp__web__get")
    assert survey.output == (
        Field("version", pattern=r"^\d+\.\d+\.\d+$"),
        Field("files", "array", items=Field("files"), max_items=200),
        Field("level", "integer", enum=(1, 2), required=False),
    )
    assert (upgrade.context, upgrade.fix, upgrade.attempts, upgrade.needs) == ("summary", 2, 2, ("survey",))
    assert upgrade.verify == (
        UnchangedCheck(("tests/**",)),
        ExistsCheck(("setup.py",)),
        RunCheck("pytest -q ${{ steps.upgrade.output.summary }}", 600.0),
        RunCheck("make"),
    )
    assert (audit.timeout, audit.on_failure, audit.approve) == (5400.0, "continue", "before")
    assert audit.verify == (RunCheck("test -s audit.json"),)
    assert audit.output == (Field("report", "file", path="audit.json"), Field("line", source="stdout"))
    assert clean.final
    assert plan.step("audit") is audit
    assert loaded.text == FULL


@pytest.mark.parametrize(
    ("lines", "line", "column", "part", "hint"),
    [
        ("prompt: Go.\npromt: x", 8, 5, "unknown key 'promt'", "did you mean prompt?"),
        ("prompt: Go.\n\u00a0tools: [Read]", 8, 5, "U+00A0 NO-BREAK SPACE", "did you mean tools?"),
        ("prompt: Go.\nprompt: x", 8, 5, "'prompt' appears twice: lines 7 and 8", ""),
        ("prompt: Go.\ncontext: compat", 8, 14, "context: expected", "did you mean compact?"),
        ("prompt: Go.\ncontext: [x]", 8, 14, "found a list", ""),
        ("prompt: Go.\nfix: two", 8, 10, "fix: expected an integer", ""),
        ("prompt: Go.\nfix: -1", 8, 10, "fix: expected at least 0", ""),
        ("prompt: Go.\ntimeout: soon", 8, 14, "timeout: expected a time", ""),
        ("prompt: Go.\ntimeout: 0", 8, 14, "more than nothing", ""),
        ("prompt: Go.\nretry: 2", 8, 12, "retry: expected keys", ""),
        ("prompt: Go.\nretry: {attempts: 0}", 8, 23, "attempts: expected at least 1", ""),
        ("prompt: Go.\nlimits: {tokens: 0}", 8, 22, "tokens: expected at least 1", ""),
        ("prompt: Go.\nlimits: {cost: 1}", 8, 14, "unknown key 'cost'", "did you mean cost_usd?"),
        ("prompt: Go.\ntools: Read", 8, 12, "tools: expected a list", ""),
        ("prompt: Go.\ntools: [Reed]", 8, 13, "unknown tool 'Reed'", "did you mean Read?"),
        ("prompt: [a]", 7, 13, "prompt: expected text, found a list", ""),
        ("prompt:", 7, 5, "prompt has no value", ""),
        ("prompt: ''", 7, 13, "prompt is empty", ""),
        ("title: T", 6, 5, "step b needs exactly one of prompt, prompt_file, run; found none", ""),
        ("prompt: Go.\nrun: ls", 6, 5, "found prompt and run", ""),
        ("run: ls\ntools: [Read]", 8, 5, "a run step has no tools", ""),
        ("run: ls\nmodel: m", 8, 5, "a run step has no model", ""),
        ("run: ls\nfix: 1", 8, 5, "a run step has no fix", ""),
        ("prompt: ${{ params.q }}", 7, 13, "params.q: there is no parameter q", ""),
        ("prompt: ${{ params.p.x }}", 7, 13, "p is of type string and has no parts", ""),
        ("prompt: ${{ steps.aa.output.v }}", 7, 13, "there is no step aa", "did you mean a?"),
        ("prompt: ${{ steps.a.output.w }}", 7, 13, "step a has no output w", "its outputs: v, k"),
        ("prompt: ${{ steps.b.output.v }}", 7, 13, "step b is this step itself", ""),
        ("prompt: ${{ env.PATH }}", 7, 13, "does not declare it", "add env: [PATH]"),
        ("prompt: ${{ env.TOKEN }}", 7, 13, "secrets are never templated", ""),
        ("prompt: ${{ vars.x }}", 7, 13, "unknown name 'vars.x'", ""),
        ("prompt: ${{ params.p", 7, 13, "is the closing }} missing?", ""),
        ("prompt: ${{ params.p | upper }}", 7, 13, "unknown filter 'upper'", ""),
        ("prompt: ${{ params.n | join }}", 7, 13, "join: expected a list", ""),
        ("prompt: Go.\nif: steps.a.output.v > 3", 8, 9, "compares text with a number", ""),
        ("prompt: Go.\nif: steps.a.output.k", 8, 9, "expected true or false", ""),
        ("prompt: Go.\nif: a and", 8, 9, "if: unknown name 'a'", ""),
        ("prompt: Go.\nif: steps.b.output.v == ''", 8, 9, "step b is this step itself", ""),
        ("prompt: Go.\nneeds: [c]", 8, 13, "needs: there is no step c", ""),
        ("prompt: Go.\nneeds: [b]", 8, 13, "step b is this step itself", ""),
        ("prompt: Go.\nenv: {A-B: x}", 8, 11, "'A-B' is not the name of an environment variable", ""),
        ("prompt: Go.\nenv: {X: '${{ params.q }}'}", 8, 14, "there is no parameter q", ""),
        ("run: ls\nenv: {BASH_ENV: '${{ params.p }}'}", 8, 21, "takes no ${{ }}", ""),
        ("run: eval ${{ params.p }}", 7, 10, "eval would evaluate the value", ""),
        ("run: sh -c 'x ${{ params.p }}'", 7, 10, "in the code that sh runs", ""),
        ("prompt: Go.\nverify: sh -c ${{ params.p }}", 8, 13, "in the code that sh runs", ""),
        ("prompt: Go.\nverify:\n  - run: echo ${{ params.q }}", 9, 14, "there is no parameter q", ""),
        (
            "prompt: Go.\nverify:\n  - {run: x, exists: y}",
            9,
            9,
            "exactly one of run, exists, unchanged, found run and exists",
            "",
        ),
        ("prompt: Go.\nverify: [{}]", 8, 14, "exactly one of run, exists, unchanged", ""),
        ("prompt: Go.\nverify: [{exists: y, timeout: 3}]", 8, 26, "timeout belongs to run", ""),
        ("prompt: Go.\nverify: [{ran: y}]", 8, 15, "unknown key 'ran'", "did you mean run?"),
        ("prompt: Go.\noutput: {f: strin}", 8, 17, "type: expected", "did you mean string?"),
        ("prompt: Go.\noutput: {f-g: string}", 8, 14, "'f-g' may have only letters", ""),
        ("prompt: Go.\noutput: {f: }", 8, 14, "f has no value", ""),
        ("prompt: Go.\noutput: {f: {pattern: '('}}", 8, 27, "not a regular expression", ""),
        ("prompt: Go.\noutput: {f: {type: integer, pattern: a}}", 8, 33, "pattern belongs to the type string", ""),
        ("prompt: Go.\noutput: {f: {type: integer, enum: [1, x]}}", 8, 43, "enum: expected an integer", ""),
        ("prompt: Go.\noutput: {f: {type: file}}", 8, 17, "needs a path", ""),
        ("prompt: Go.\noutput: {f: {type: file, path: ../x}}", 8, 36, "not a relative path", ""),
        ("prompt: Go.\noutput: {f: {type: file, path: '${{ params.q }}'}}", 8, 36, "there is no parameter q", ""),
        ("prompt: Go.\noutput: {f: {from: stdout}}", 8, 18, "from belongs to run steps", ""),
        ("prompt: Go.\noutput: {f: {min_length: 3, max_length: 2}}", 8, 30, "min_length 3 is more", ""),
        ("prompt: Go.\noutput: {f: {required: yes}}", 8, 28, "write true or false", ""),
        ("prompt_file: /etc/passwd", 7, 18, "not a relative path inside the plan's folder", ""),
        ("prompt_file: ../x", 7, 18, "not a relative path inside the plan's folder", ""),
        ("prompt: !env HOME", 7, 13, "the tag !env is not allowed", "quotes"),
        ("prompt: *x", 7, 13, "the alias *x has no anchor", ""),
        ("prompt: Go.\n? [a]\n: b", 8, 7, "a key must be text", ""),
        ("prompt: a: b", 7, 14, "mapping values", "quotes"),
        ("prompt: Go.\n\ttools: [Read]", 8, 5, "a tab", "use spaces"),
    ],
)
def test_fault(lines: str, line: int, column: int, part: str, hint: str) -> None:
    found = faults_of(step(lines))
    assert any((f.line, f.column) == (line, column) and part in f.message and hint in f.hint for f in found), found
    assert len(found) == 1 or "key" in part or "prompt_file" in lines, found


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("", 0, 0, "the file is empty"),
        ("# nothing\n", 0, 0, "the file is empty"),
        ("---\n...\n", 0, 0, "the file is empty"),
        ("just text", 1, 1, "a plan is made of keys"),
        ("- id: a", 1, 1, "a plan is made of keys"),
        ("name: x", 1, 1, "the key steps is missing"),
        ("steps: []", 1, 8, "steps: the list is empty"),
        ("steps:", 1, 1, "steps has no value"),
        ("steps: [x]", 1, 9, "expected keys with values, found 'x'"),
        ("version: 2\nsteps: [{id: a, prompt: x}]", 1, 10, "version: expected 1, found '2'"),
        ("name: a/b\nsteps: [{id: a, prompt: x}]", 1, 7, "may not hold a path"),
        ("steps: [{id: '', prompt: x}]", 1, 14, "id: ''"),
        ("steps: [{id: -a, prompt: x}]", 1, 14, "id: '-a'"),
        ("steps: [{prompt: x}]", 1, 9, "the key id is missing"),
        ("steps:\n- {id: a, prompt: x}\n- {id: a, prompt: x}", 3, 8, "the step id a appears twice: lines 2 and 3"),
        ("steps:\n- {id: a, prompt: x}\nfinally:\n- {id: a, run: x}", 4, 8, "the step id a appears twice: lines 2 and 4"),
        (
            "steps:\n- {id: a, prompt: '${{ steps.b.output.v }}'}\n- {id: b, prompt: x, output: {v: string}}",
            2,
            19,
            "step b comes later",
        ),
        ("steps: [{id: a, prompt: x}]\noutput: {v: '${{ steps.a.output.v }}'}", 2, 13, "step a has no output v"),
        ("goal: ${{ steps.a.output.v }}\nsteps: [{id: a, prompt: x, output: {v: string}}]", 1, 7, "this step itself"),
        ("env: [A]\nsecrets: [A]\nsteps: [{id: a, prompt: x}]", 1, 7, "secrets are never templated"),
        ("env: [A-B]\nsteps: [{id: a, prompt: x}]", 1, 7, "not the name of an environment variable"),
        ("params: {p: {default: x, type: integer}}\nsteps: [{id: a, prompt: x}]", 1, 23, "default: expected an integer"),
        ("params: {p: {default: x, required: true}}\nsteps: [{id: a, prompt: x}]", 1, 26, "cannot be required"),
        ("params: {p: {type: file}}\nsteps: [{id: a, prompt: x}]", 1, 20, "type: expected"),
        ("steps: [{id: a, prompt: x}]\n---\nsteps: []", 2, 1, "a second document"),
        ("name: a\x07\nsteps: []", 1, 8, "U+0007"),
        ("name: \x00\nsteps: []", 1, 7, "U+0000"),
        ("name: \ud800\nsteps: []", 1, 7, "U+D800"),
        ("steps: []\nname: a\ufeff", 2, 8, "U+FEFF"),
        ("name: &a [*a]", 1, 11, "stands inside what it names"),
        ("[" * 10_000, 1, 1001, "nested more than 64 deep"),
        ("a: " + "[" * 70 + "]" * 70, 1, 67, "nested more than 64 deep"),
    ],
)
def test_fault_of_the_whole(text: str, line: int, column: int, part: str) -> None:
    found = faults_of(text)
    assert any((f.line, f.column) == (line, column) and part in f.message for f in found), found


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = step("promt: x\nprompt: ${{ params.q }}\ntools: [Reed]") + "  - id: c\n    prompt: x\n    fix: z\nnname: x\n"
    assert [(f.line, f.column) for f in faults_of(text)] == [(7, 5), (8, 13), (9, 13), (12, 10), (13, 1)]


def test_message_is_one_line_a_fault() -> None:
    with pytest.raises(PlanInvalid) as caught:
        parse(step("promt: x\nprompt: y"), "dir/p.yaml", {})
    assert str(caught.value) == "dir/p.yaml:7:5: unknown key 'promt' (did you mean prompt?)"
