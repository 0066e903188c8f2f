"""The result as JSON, JUnit and Markdown: whole and well-formed whatever a model wrote."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core.fold import fold
from planrun.core.plan import Json
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import Outcome
from planrun.testing.model import done, failed
from planrun.views.junit import junit
from planrun.views.result import refused, result
from planrun.views.summary import markdown
from tests.strategies import PLAN, runs
from tests.support import Scratch

texts = st.text(st.characters(), max_size=30)
_LOG = Path("/x/s.jsonl")


def _result(records: list[Record]) -> dict[str, Json]:
    return result(fold(records, State(), lambda header: PLAN), _LOG)


def _with(text: str) -> dict[str, Json]:
    """A result in which every text is this one."""
    step: dict[str, Json] = {
        "id": text,
        "status": "failed",
        "attempts": 1,
        "turns": 2,
        "output": {text: text},
        "note": text,
    }
    numbers: dict[str, Json] = {"seconds": 1.5, "prompt_tokens": 10, "completion_tokens": 5, "cost_usd": None}
    found: dict[str, Json] = {**refused(text, 1, text), "plan": text, "session": text}
    return {**found, "steps": [step | numbers]}


@given(runs())
def test_every_run_makes_whole_documents(records: list[Record]) -> None:
    found = _result(records)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    suite = ET.fromstring(junit(found))
    assert len(suite) >= len(PLAN.steps)
    assert suite.get("tests") == str(len(suite))
    markdown(found)


@given(texts)
def test_junit_is_xml_whatever_the_text(text: str) -> None:
    case = ET.fromstring(junit(_with(text))).find("testcase")
    assert case is not None
    assert json.loads(case.findtext("system-out") or "") == _with(text)["steps"][0]["output"]
    assert case.get("name") == text or "\\u" in (case.get("name") or "")
    failure = case.find("failure")
    assert failure is not None and failure.get("type") == "failed"


@given(texts)
def test_markdown_keeps_values_as_data(text: str) -> None:
    page = markdown(_with(text))
    rows = [line for line in page.split("\n") if line.startswith("| ")]
    assert len(rows) == 2 and all(row.count("|") == 9 for row in rows)
    for line in page.split("\n"):
        assert not set(line.removeprefix("### ")) & set("<>`*_[]!\\\"'@")


def test_a_step_that_was_not_reached_is_skipped_and_the_cut_one_an_error() -> None:
    step = {"attempts": 1, "turns": 0, "output": None, "note": None, "seconds": 0.5}
    steps: list[Json] = [
        {"id": "a", "status": "done", **step, "output": {"v": 1}},
        {"id": "b", "status": "in_progress", **step},
        {"id": "c", "status": "todo", **step},
    ]
    suite = ET.fromstring(junit({**refused("budget", 3, "the limit is reached"), "plan": "p", "steps": steps}))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {"tests": "3", "failures": "0", "errors": "1", "skipped": "1", "time": "1.500"}
    error = suite.find("testcase[@name='b']/error")
    assert error is not None and (error.get("type"), error.get("message")) == ("budget", "the limit is reached")
    assert json.loads(suite.findtext("testcase[@name='a']/system-out") or "") == {"v": 1}


def test_a_run_that_was_refused_is_one_case_with_an_error() -> None:
    suite = ET.fromstring(junit(refused(Outcome.PLAN_INVALID, 2, "plan.yaml:3:1: no")))
    (case,) = suite
    error = case.find("error")
    assert error is not None and error.get("message") == "plan.yaml:3:1: no"


@pytest.mark.parametrize("good", [True, False])
def test_the_result_of_a_run(tmp_path: Path, good: bool) -> None:
    scratch = Scratch(
        tmp_path,
        "version: 1\nname: p\nsteps:\n  - {id: a, prompt: Do., output: {n: integer}}\noutput: {n: '${{ steps.a.output.n }}'}\n",
    )
    ended = scratch.run([done(n=4) if good else failed("cannot")])
    found = result(ended.state, ended.path)
    assert found["outcome"] == ("finished" if good else "step_failed")
    assert found["exit_code"] == (0 if good else 1)
    assert found["output"] == ({"n": 4} if good else None)
    (step,) = json.loads(json.dumps(found["steps"]))
    assert step["turns"] == 1 and step["prompt_tokens"] > 0 and step["cost_usd"] is None
    assert step["note"] == (None if good else "cannot")
