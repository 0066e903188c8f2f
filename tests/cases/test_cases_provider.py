"""PROV: odd answers of endpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from planrun.testing.server import Script, done
from tests.cases.cli import case, records, repeated, run

OK, FAILED = ("finished", 0), ("step_failed", 1)
TOOLS = "Read, Write, Edit, Glob, Grep, Ls, Bash, "


@pytest.mark.parametrize(("name", "words"), [("PROV-01a", "without choices"), ("PROV-01b", "upstream is busy")])
def test_no_choices_or_an_error_in_a_200_is_tried_again(tmp_path: Path, name: str, words: str) -> None:
    ran = run(tmp_path, f"{name}.response.json")
    assert ran.ended == OK
    assert len(ran.server.requests) == 2
    assert words in ran.err
    assert [r["retries"] for r in records(tmp_path) if r["type"] == "response"] == [1]
    assert ran.result["usage"]["requests"] == 2


def test_prov_01c_a_filter_is_no_reason_to_try_again(tmp_path: Path) -> None:
    ran = run(tmp_path, repeated("PROV-01c.response.json"))
    assert ran.ended == FAILED
    assert len(ran.server.requests) == 1
    assert "content_filter" in ran.result["reason"]


def test_prov_02a_the_key_content_is_there(tmp_path: Path) -> None:
    ran = run(tmp_path, "PROV-02a.response.json")
    assert ran.ended == OK
    assistant = next(m for m in ran.messages() if m["role"] == "assistant")
    assert assistant["content"] is None and assistant["tool_calls"][0]["id"] == "a1"


def test_prov_02b_an_empty_message_is_not_sent_back(tmp_path: Path) -> None:
    ran = run(tmp_path, "PROV-02b.response.json")
    assert ran.ended == OK
    assert ran.server.bodies[1] == ran.server.bodies[0]


REASONS = {
    "a": "not valid JSON", "b": "an array", "c": "null", "d": "content", "e": "encoded twice", "f": "not valid JSON",
    "g": "not valid JSON",
}  # fmt: skip


@pytest.mark.parametrize("letter", REASONS)
def test_prov_03_arguments_that_are_no_object_never_run(tmp_path: Path, letter: str) -> None:
    ran = run(tmp_path, f"PROV-03{letter}.response.json")
    assert ran.ended == OK
    refused, ok = ran.results()
    assert refused.startswith("Not run: ") and REASONS[letter] in refused
    assert ok == "ok"
    assert not (tmp_path / "a.txt").exists()
    first = next(m for m in ran.messages() if m.get("tool_calls"))["tool_calls"][0]
    assert first["id"] == "w1" and isinstance(json.loads(first["function"]["arguments"]), dict)


@pytest.mark.parametrize("letter", "abcde")
def test_prov_07_usage_that_is_missing_is_estimated_and_marked(tmp_path: Path, letter: str) -> None:
    ran = run(tmp_path, Script([*repeated(f"PROV-07{letter}.response.json").answers, done({})]))
    assert ran.ended == OK
    usage = ran.result["usage"]
    assert usage["prompt_tokens"] > 300 and usage["completion_tokens"] > 0
    assert usage["estimated"] == (letter != "e")


@pytest.mark.parametrize("letter", "abcde")
def test_prov_07_the_budget_works_all_the_same(tmp_path: Path, letter: str) -> None:
    ran = run(tmp_path, repeated(f"PROV-07{letter}.response.json"), "--max-tokens", "100")
    assert ran.ended == ("budget", 3)
    assert len(ran.server.requests) == 1


@pytest.mark.parametrize("letter", "abcde")
def test_prov_08_an_unknown_tool_gets_the_list(tmp_path: Path, letter: str) -> None:
    ran = run(tmp_path, f"PROV-08{letter}.response.json")
    assert ran.ended == OK
    refused, ok = ran.results()
    assert TOOLS in refused and ok == "ok"
    names = [c["function"]["name"] for m in ran.messages() for c in m.get("tool_calls", ())]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", n) for n in names)


@pytest.mark.parametrize("letter", "abce")
def test_prov_09_an_empty_answer_is_never_done(tmp_path: Path, letter: str) -> None:
    ran = run(tmp_path, repeated(f"PROV-09{letter}.response.json"))
    assert ran.ended == FAILED
    sent = [json.dumps(b) for b in ran.server.bodies]
    assert len(sent) == 5 and sent[0] == sent[1]
    assert len(set(sent)) == 4
    assert "no tool" in ran.result["reason"]


def test_prov_09d_a_refusal_fails_the_step_with_its_text(tmp_path: Path) -> None:
    ran = run(tmp_path, repeated("PROV-09d.response.json"))
    assert ran.ended == FAILED
    assert len(ran.server.requests) == 1
    refusal = json.loads(case("PROV-09d.response.json").read_text())["choices"][0]["message"]["refusal"]
    assert refusal in ran.result["reason"]
