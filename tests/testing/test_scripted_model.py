"""The scripted model that ships with the package."""

import json

import pytest

from planrun.errors import ProviderError
from planrun.models.base import ModelRequest, Usage
from planrun.testing.model import ScriptedModel, call, calls, done, failed, refuse, say

REQUEST = ModelRequest(json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode(), "d")


def test_replies_in_order_with_ids_of_their_own() -> None:
    model = ScriptedModel([call("Read", file_path="a"), calls(("Ls", {}), ("Bash", {"command": "ls"})), done(v="1")])
    ids = [
        [c.id for c in (reply.message.tool_calls if reply.message else ())]
        for reply in (model.complete(REQUEST) for _ in range(3))
    ]
    assert ids == [["call_1"], ["call_2", "call_3"], ["call_4"]]
    assert model.requests[0]["messages"][0]["content"] == "hi"
    assert model.sent[2] is REQUEST


def test_short_forms() -> None:
    assert say(" ").message is None
    assert refuse("no").refusal == "no"
    assert done(v="1").message.tool_calls[0].arguments == '{"status":"done","output":{"v":"1"}}'  # type: ignore[union-attr]
    assert failed("why").message.tool_calls[0].arguments == '{"status":"failed","note":"why"}'  # type: ignore[union-attr]


def test_usage_is_estimated_unless_it_is_not_wanted() -> None:
    assert ScriptedModel([say("hello")]).complete(REQUEST).usage.prompt_tokens == len(REQUEST.body) // 4
    assert ScriptedModel([say("hello")], usage=False).complete(REQUEST).usage == Usage()


def test_functions_errors_and_the_end_of_the_script() -> None:
    assert ScriptedModel(lambda body: say(body["messages"][0]["content"])).complete(REQUEST).message.content == "hi"  # type: ignore[union-attr]
    model = ScriptedModel([ProviderError("down")])
    with pytest.raises(ProviderError, match="down"):
        model.complete(REQUEST)
    with pytest.raises(AssertionError, match="the script has 1 replies; request 2 ends with"):
        model.complete(REQUEST)
