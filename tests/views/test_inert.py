"""Text of others is shown as data: on terminals, in the logs of CI systems, in documents."""

from __future__ import annotations

import json
import re
from io import StringIO
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.views.inert import inert
from planrun.views.junit import junit
from planrun.views.result import refused
from planrun.views.screen import Screen
from planrun.views.summary import markdown
from planrun.views.words import block, one_line

NASTY = [
    "::error::x", "  ::set-output name=a::b", "a\n::add-mask::b", "##vso[task.complete]", "x ##[command]", "##teamcity[a]",
    "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x\x1b\\\\y", "a\rb", "a\bb", "\x9b31m", "\u202egnp.exe", "a\u200bb\u2028c", "\U000e0041",
    "\x00", "]]>&lt;<b>", "| a | b |\n```", "${{ x }} {% y %} %s {0.__class__}", "<|im_end|>", "\ufffe",
]  # fmt: skip
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u2028]")
_COMMAND = re.compile(r"^\s*::|##(\[|vso\[|teamcity\[)", re.MULTILINE)


def checked(text: str) -> None:
    assert not _RAW.search(text)
    assert not _COMMAND.search(text)


@pytest.mark.parametrize("value", NASTY)
def test_nothing_that_is_printed_acts(value: str) -> None:
    for text in (value, block(value), one_line(value), json.dumps({"a": value}, ensure_ascii=False)):
        out = StringIO()
        Screen(out).line(text)
        checked(out.getvalue())


@given(st.text(st.sampled_from('#[:vso \n\x1b\x9b\u202e\\\\"a')) | st.text())
def test_json_stays_the_same_json(value: str) -> None:
    safe = inert(json.dumps({"a": value}, ensure_ascii=False, indent=2))
    checked(safe)
    assert json.loads(safe) == {"a": value}
    assert inert(safe) == safe


@pytest.mark.parametrize("value", NASTY)
def test_documents_hold_it_as_data(value: str) -> None:
    step = {"id": "a", "status": "failed", "attempts": 1, "turns": 1, "output": {"o": value}, "note": value, "seconds": 1.0}
    step |= {"prompt_tokens": 1, "completion_tokens": 1, "cost_usd": None}
    found = {**refused("step_failed", 1, value), "plan": value, "steps": [step]}
    case = fromstring(junit(found)).find("testcase")
    assert case is not None
    assert json.loads(case.findtext("system-out") or "") == {"o": value}
    text = markdown(found)
    checked(text)
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 3
