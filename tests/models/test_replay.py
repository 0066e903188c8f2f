"""Answers from a recording, and the difference where it does not fit."""

import json
from typing import Any

import pytest

from planrun.errors import ReplayMismatch
from planrun.models.base import ModelRequest
from planrun.models.replay import Recorded, ReplayModel, difference
from planrun.testing.model import say

SYSTEM = {"role": "system", "content": "be brief"}
USER = {"role": "user", "content": "one\ntwo\nthree"}


def request(digest: str, *messages: dict[str, Any]) -> ModelRequest:
    return ModelRequest(json.dumps({"messages": messages}).encode(), digest)


def test_answers_in_order() -> None:
    def never() -> list[dict[str, Any]]:
        raise AssertionError("asked for without a difference")

    model = ReplayModel([Recorded("a", say("1"), never), Recorded("b", say("2"), never)])
    assert model.complete(request("a")) == say("1")
    assert model.complete(request("b")) == say("2")
    with pytest.raises(ReplayMismatch, match="has 2 answers, and this is request 3"):
        model.complete(request("c"))


def test_the_first_difference_is_shown() -> None:
    model = ReplayModel([Recorded("a", say("1"), lambda: [SYSTEM, USER])])
    changed = USER | {"content": "one\nTWO\nthree"}
    with pytest.raises(ReplayMismatch) as caught:
        model.complete(request("x", SYSTEM, changed))
    assert str(caught.value) == (
        "request 1 is not the recorded one (- recorded, + now): message 1 (user) differs\n- two\n+ TWO"
    )
    assert caught.value.exit_code == 2


def test_differences() -> None:
    assert difference([SYSTEM], [SYSTEM, USER]).startswith("message 1 (user) is new\n+ one")
    assert difference([SYSTEM, USER], [SYSTEM]).startswith("message 1 (user) is gone\n- one")
    assert difference([SYSTEM], [SYSTEM]).startswith("the messages are the same")
    assert "system -> user" in difference([SYSTEM], [SYSTEM | {"role": "user"}])
    assert "line 4: (no such line)\n+ four" in difference([USER], [USER | {"content": USER["content"] + "\nfour"}])
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
    assert '"id":"b"' in difference([call], [call | {"tool_calls": [{"id": "b"}]}])


def test_long_lines_are_clipped_around_the_difference() -> None:
    old, new = {"role": "user", "content": "x" * 5000 + "A"}, {"role": "user", "content": "x" * 5000 + "B" * 5000}
    shown = difference([old], [new])
    assert len(shown) < 400
    assert "xA" in shown and "xB" in shown
