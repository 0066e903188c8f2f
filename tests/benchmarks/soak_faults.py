"""The soak's faults: what an endpoint, a network and a model get wrong, chosen by a seeded generator and counted."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from planrun.testing.server import Answer, call, error, events, message, raw, text

WINDOW = 14_000  # tokens that the endpoint says it takes where it refuses a request as too long

_NOTHING = {"choices": [], "model": "m"}
_ERROR = {"error": {"message": "upstream failed", "code": 502}}

# What comes instead of the right answer. The first group is tried again by the request's own retries, the second is an answer of
# the model's that the step has to cope with.
INSTEAD: dict[str, Callable[[], Answer]] = {
    "429": lambda: error(429, "slow down", headers={"retry-after-ms": "20"}),
    "429 in seconds": lambda: error(429, "slow down", headers={"Retry-After": "0.05"}),
    "429 by date": lambda: error(429, "slow down", headers={"Retry-After": "$HTTP_DATE+0"}),
    "500": lambda: error(500, "it broke"),
    "502 HTML": lambda: raw(502, "<html><h1>Bad gateway</h1></html>", {"Content-Type": "text/html"}),
    "503": lambda: error(503, "overloaded"),
    "529": lambda: error(529, "overloaded_error"),
    "reset": lambda: Answer(reset=True),
    "closed": lambda: Answer(status=0),
    "late and closed": lambda: Answer(status=0, delay=0.3),
    "malformed JSON": lambda: raw(200, '{"choices": [', {"Content-Type": "application/json"}),
    "error in a 200": lambda: raw(200, json.dumps(_ERROR), {"Content-Type": "application/json"}),
    "no choices": lambda: raw(200, json.dumps(_NOTHING), {"Content-Type": "application/json"}),
    "no choices, streamed": lambda: events(_NOTHING, "[DONE]"),
    "empty body": lambda: raw(200, "", {"Content-Type": "application/json"}),
    "null message": lambda: message(None),
    "empty text": lambda: text("  "),
    "text without a call": lambda: text("I shall go on now."),
    "unknown tool": lambda: call("RunPython", {"code": "1"}, "x1"),
    "malformed tool name": lambda: call("Bash(ls) ", {"command": "ls"}, "x2"),
    "arguments are no JSON": lambda: call("Bash", '{"command": "ls', "x3"),
    "arguments are an array": lambda: call("Read", "[1]", "x4"),
    "unknown argument": lambda: call("Read", {"file": "a", "lines": 3}, "x5"),
    "output of a wrong form": lambda: call("UpdatePlanStep", {"status": "done", "output": {"value": 7}}, "x6"),
    "another step": lambda: call("UpdatePlanStep", {"step_id": "s0x", "status": "done"}, "x7"),
    "cut call": lambda: message(
        {"role": "assistant", "content": None, "tool_calls": [_half_call()]}, "length"
    ),
}  # fmt: skip
# What happens to the right answer on its way.
ON_THE_WAY: dict[str, Callable[[Answer], Answer]] = {
    "truncated": lambda a: replace(a, cut=60),
    "truncated, then reset": lambda a: replace(a, cut=150, reset=True),
    "slow headers": lambda a: replace(a, delay=0.5),
    "slow body": lambda a: replace(a, every=0.1, pieces=5),
    "dribble": lambda a: replace(a, drip=0.001),
    "no usage": lambda a: replace(a, completion={**(a.completion or {}), "usage": None}),
    "not streamed": lambda a: replace(a, stream=False),
    "small pieces": lambda a: replace(a, pieces=40),
}
RARE = {"HTML 200": lambda: raw(200, "<html>Be right back</html>", {"Content-Type": "text/html"})}


def _half_call() -> dict[str, Any]:
    return {
        "id": "x8",
        "type": "function",
        "function": {"name": "Write", "arguments": '{"file_path": "cut.txt", "content": "ha'},
    }


@dataclass
class Faults:
    """Puts a fault in the place of `rate` of the answers (0 to 1). `counts` are those that were sent, by kind."""

    rate: float
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, body: dict[str, Any], answer: Answer) -> Answer:
        with self._lock:
            if self.chance.random() >= self.rate:
                return answer
            kind = self.chance.choice((*INSTEAD, *ON_THE_WAY, "too long", "HTML 200"))
            if kind == "too long" and len(json.dumps(body)) < WINDOW * 2:
                kind = "429"  # no endpoint says so of a request that is small
            if kind == "HTML 200" and self.chance.random() < 0.8:
                kind = "503"  # it ends a run that it meets first: the harness resumes it
            self.counts[kind] += 1
        if kind == "too long":
            return error(400, f"This model's maximum context length is {WINDOW} tokens.", "context_length_exceeded")
        if kind in RARE:
            return RARE[kind]()
        return ON_THE_WAY[kind](answer) if kind in ON_THE_WAY else INSTEAD[kind]()
