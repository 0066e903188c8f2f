"""A model that says what a test tells it to, without a network.

model = ScriptedModel([call("Bash", command="ls"), done(version="2.0")])
reply = model.complete(request)
assert model.requests[0]["messages"][0]["role"] == "system"
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planrun.core.messages import Message, ToolCall, compact_json
from planrun.errors import PlanrunError
from planrun.models.base import ModelRequest, Reply, Usage

Script = Sequence[Reply | PlanrunError] | Callable[[dict[str, Any]], Reply]

_BYTES_PER_TOKEN = 4


def say(text: str, finish_reason: str = "stop") -> Reply:
    """A turn of text and no calls; blank text is an empty answer."""
    message = Message("assistant", text) if text.strip() else None
    return Reply(message, finish_reason)


def call(name: str, **arguments: Any) -> Reply:
    """A turn with one tool call: `call("Read", file_path="a.txt")`."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]], text: str | None = None) -> Reply:
    """A turn with several calls: `calls(("Read", {"file_path": "a"}), ("Read", {"file_path": "b"}))`."""
    made = tuple(ToolCall("", name, compact_json(arguments)) for name, arguments in wanted)
    return Reply(Message("assistant", text, made), "tool_calls")


def done(**output: Any) -> Reply:
    """The turn that ends a step with this output: `done(version="2.0")`."""
    return call("UpdatePlanStep", status="done", output=output)


def failed(note: str) -> Reply:
    """The turn that gives a step up."""
    return call("UpdatePlanStep", status="failed", note=note)


def refuse(text: str) -> Reply:
    """A turn in which the model declines."""
    return Reply(None, "stop", refusal=text)


class ScriptedModel:
    """Gives the scripted replies in order, or what the function makes of each request's body. An error in the script is
    raised. Calls without an id get `call_1`, `call_2`, …; with `usage`, replies that report none get an estimate. A
    request after the last reply is an AssertionError. `requests` are the decoded bodies, `sent` the ModelRequests."""

    def __init__(self, script: Script, usage: bool = True) -> None:
        self._script = script
        self._usage = usage
        self._calls = 0
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.sent: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> Reply:
        with self._lock:
            body: dict[str, Any] = json.loads(request.body)
            self.requests.append(body)
            self.sent.append(request)
            reply = self._script(body) if callable(self._script) else self._scripted(self._script)
            return self._finished(reply, request)

    def _scripted(self, script: Sequence[Reply | PlanrunError]) -> Reply:
        number = len(self.requests)
        if number > len(script):
            last = compact_json(self.requests[-1].get("messages", [])[-1:])[:500]
            raise AssertionError(f"the script has {len(script)} replies; request {number} ends with {last}")
        reply = script[number - 1]
        if isinstance(reply, PlanrunError):
            raise reply
        return reply

    def _finished(self, reply: Reply, request: ModelRequest) -> Reply:
        message = reply.message
        if message is not None and message.tool_calls:
            message = replace(message, tool_calls=tuple(map(self._named, message.tool_calls)))
        usage = reply.usage
        if self._usage and usage == Usage():
            said = len(compact_json(message.wire())) if message else 0
            usage = Usage(_tokens(len(request.body)), 0, _tokens(said))
        return replace(reply, message=message, usage=usage)

    def _named(self, wanted: ToolCall) -> ToolCall:
        self._calls += 1
        return wanted if wanted.id else replace(wanted, id=f"call_{self._calls}")


def _tokens(size: int) -> int:
    return max(1, size // _BYTES_PER_TOKEN)
