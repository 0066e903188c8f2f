"""What a loopback endpoint answers: short forms for tests, and scripts read from files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planrun.core.messages import compact_json

MODEL = "test-model"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. Either `completion` (sent as JSON, or as events where the request asks for a stream) or `body`.

    `stream` forces one or the other. `pieces`: into how many deltas text and arguments are cut. `delay`: seconds before
    the status line. `drip`: seconds between single bytes of the body, `every`: between events. `cut`: the connection is
    closed after that many bytes of the body. `reset`: it ends with RST, after `cut` bytes or before anything is sent.
    `hang`: after the body (or `cut` bytes of it) nothing more is sent, and the connection stays open. `close`: no
    keep-alive, no length. `status=0`: the connection is closed without an answer. Header values `$HTTP_DATE+n` become
    the date n seconds ahead. Usage that is left open is estimated at four bytes a token.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    completion: dict[str, Any] | None = None
    body: bytes = b""
    stream: bool | None = None
    pieces: int = 1
    delay: float = 0.0
    drip: float = 0.0
    every: float = 0.0
    cut: int | None = None
    reset: bool = False
    hang: bool = False
    close: bool = False


def text(content: str, finish_reason: str = "stop", **how: Any) -> Answer:
    """`text("hello", pieces=3, delay=0.1)`"""
    return message({"role": "assistant", "content": content}, finish_reason, **how)


def call(name: str, arguments: dict[str, Any] | str, id: str = "call_1", **how: Any) -> Answer:
    """`call("Bash", {"command": "ls"}, id="a1")`; a string is sent as the arguments' text as it is."""
    return calls([(name, arguments, id)], **how)


def calls(wanted: Sequence[tuple[str, dict[str, Any] | str, str]], content: str | None = None, **how: Any) -> Answer:
    """`calls([("Read", {"file_path": "a"}, "r1"), ("Bash", {"command": "ls"}, "b1")])`"""
    made = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": args if isinstance(args, str) else compact_json(args)},
        }
        for name, args, call_id in wanted
    ]
    return message({"role": "assistant", "content": content, "tool_calls": made}, "tool_calls", **how)


def done(output: dict[str, Any] | None = None, id: str = "fb1", **how: Any) -> Answer:
    """The call that ends a step: `done({"version": "2.0"})`."""
    return call("UpdatePlanStep", {"status": "done", "output": output or {}}, id, **how)


def message(wire: dict[str, Any] | None, finish_reason: str | None = "stop", usage: Any = ..., **how: Any) -> Answer:
    """A completion around any message; `usage=None` reports none."""
    completion = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": wire, "finish_reason": finish_reason}],
        "usage": usage,
    }
    return Answer(completion=completion, **how)


def error(status: int, message: str, code: str | None = None, type: str | None = None, **how: Any) -> Answer:
    """`error(429, "slow down", headers={"Retry-After": "3"})`"""
    return raw(status, json.dumps({"error": {"message": message, "type": type, "code": code}}), **how)


def raw(status: int, body: str | bytes = b"", headers: Mapping[str, str] | None = None, **how: Any) -> Answer:
    """Any answer: `raw(502, "<h1>Bad gateway</h1>", {"Content-Type": "text/html"})`."""
    return Answer(status=status, body=body.encode() if isinstance(body, str) else body, headers=headers or {}, **how)


def events(*datas: object, **how: Any) -> Answer:
    """A stream of exactly these events: strings as they are, anything else as JSON; nothing is added at the end."""
    lines = "".join(f"data: {d if isinstance(d, str) else json.dumps(d)}\n\n" for d in datas)
    return raw(200, lines, {"Content-Type": "text/event-stream"}, **how)


class Script:
    """Answers in order, then `fallback`. `repeat_last` and `cycle` go on instead; with `match`, requests without the
    word get the fallback and do not count."""

    def __init__(
        self,
        answers: Iterable[Answer],
        *,
        repeat_last: bool = False,
        cycle: bool = False,
        match: str = "",
        fallback: Callable[[dict[str, Any]], Answer] = lambda body: done(),
    ) -> None:
        self.answers = list(answers)
        self._repeat_last, self._cycle, self._match, self._fallback = repeat_last, cycle, match, fallback
        self._next = 0
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Answer:
        with self._lock:
            # "summary" stands in requests as "Summary", "summaries", "summarise".
            if self._match and self._match.lower()[1:6] not in compact_json(body).lower():
                return self._fallback(body)
            if self._next < len(self.answers):
                self._next += 1
                return self.answers[self._next - 1]
            if self._cycle and self.answers:
                self._next = 1
                return self.answers[0]
            return self.answers[-1] if self._repeat_last and self.answers else self._fallback(body)


def script_from(path: str | Path, stream: bool = False) -> Script:
    """A script from a file: `*.http.json` (`replies` with status, headers, json or raw, delay_s, drip, close),
    `*.response.json` (one completion) or `*.sse.txt` (one raw stream). Completions are sent exactly as they stand
    there, as JSON; with `stream` they become events where the request asks for it."""
    path = Path(path)
    if path.name.endswith(".sse.txt"):
        return Script([raw(200, path.read_bytes(), {"Content-Type": "text/event-stream"}, close=True)])
    data = expanded(json.loads(path.read_text("utf-8")))
    if "replies" not in data:
        data = {"replies": [{"json": data}]}
    return Script(
        [_answer(reply, stream) for reply in data["replies"]],
        repeat_last=bool(data.get("repeat_last")),
        cycle=bool(data.get("cycle")),
        match=data.get("match", ""),
    )


def expanded(value: Any) -> Any:
    """`{"$repeat": [text, n]}` and `{"$concat": [...]}` replaced by the text that they stand for."""
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        repeated, times = value["$repeat"]
        return expanded(repeated) * times
    if "$concat" in value:
        return "".join(expanded(item) for item in value["$concat"])
    return {key: expanded(item) for key, item in value.items()}


def _answer(reply: dict[str, Any], stream: bool) -> Answer:
    how: dict[str, Any] = {
        "delay": reply.get("delay_s", 0.0),
        "drip": reply.get("drip", {}).get("byte_every_s", 0.0),
        "close": bool(reply.get("close")),
    }
    status, headers = reply.get("status", 200), reply.get("headers", {})
    if "raw" in reply:
        return raw(status, reply["raw"], headers, **how)
    content = reply.get("json")
    if content is None:
        return done(**how)
    if stream and status == 200 and isinstance(content.get("choices"), list):
        return Answer(headers=headers, completion=content, **how)
    return raw(status, json.dumps(content), headers, **how)
