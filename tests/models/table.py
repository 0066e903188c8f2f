"""What endpoints answer, and what a run makes of it: one row for each kind of fault. Data only; `test_table` drives it.

A row's answers are followed by the call that ends the step. `then` is what the fault leads to:

again    the request is sent once more, with a pause; `says` stands in the reason of that retry
asks     the same messages are sent once more, as an answer without text and calls is (no pause: the endpoint is well)
nudge    the model is reminded to call a tool
told     the call is not run and the model reads why: `says` stands in its result
runs     the answer is used as it is; the step goes on (`says` stands in the last request)
shorter  the messages are made shorter, then sent again
ends     the run ends: outcome, exit code, `says` in its reason
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from planrun.testing.server import Answer, call, calls, error, events, message, raw, text

Then = Literal["again", "asks", "nudge", "told", "runs", "shorter", "ends"]
JSON, EVENTS, HTML = ({"Content-Type": t} for t in ("application/json", "text/event-stream", "text/html"))


@dataclass(frozen=True)
class Row:
    name: str
    answer: Answer | tuple[Answer, ...]
    then: Then
    says: str = ""
    ended: tuple[str, int] = ("finished", 0)
    requests: int = field(default=0)  # 0: as many as there are answers, and the one that ends the step

    @property
    def answers(self) -> tuple[Answer, ...]:
        return self.answer if isinstance(self.answer, tuple) else (self.answer,)


def ends(name: str, answer: Answer, says: str, *ended: Any) -> Row:
    return Row(name, answer, "ends", says, ended, 1)


def used_up(name: str, answer: Answer, says: str) -> Row:
    """Sent as often as configured (6), then given up."""
    return Row(name, (answer,) * 6, "ends", says, ("provider", 75), 6)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def function(name: object, arguments: object, id: object = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def wire(*listed: object, content: object = None, finish: str | None = "tool_calls", **more: Any) -> Answer:
    return message({"role": "assistant", "content": content, "tool_calls": list(listed)}, finish, **more)


def body(value: object, status: int = 200, **headers: str) -> Answer:
    return raw(status, json.dumps(value), {**JSON, **headers})


def say(**usage: Any) -> Answer:
    return message({"role": "assistant", "content": "hm"}, usage=usage["usage"])


def stream(*parts: str, **how: Any) -> Answer:
    return raw(200, "".join(parts), EVENTS, close=True, **how)


WRITE = '{"file_path": "x", "content": "y"}'
LS = function("Ls", "{}")
HI = "data: " + json.dumps(delta(content="hi")) + "\n\n"
STOP = "data: " + json.dumps(delta("stop")) + "\n\n"
DONE = "data: [DONE]\n\n"
CHUNKS = [delta(role="assistant", tool_calls=[{"index": 0, **LS}]), delta("tool_calls")]
CALL = "".join(f"data: {json.dumps(c)}\n\n" for c in CHUNKS)
FAR = "Fri, 31 Dec 2100 23:59:59 GMT"
PAST = "Fri, 31 Dec 1999 23:59:59 GMT"
CONFIG, PROVIDER, FAILED = ("config", 2), ("provider", 75), ("step_failed", 1)
TPM = "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 9000, reduce your message size"


MUCH = call("Bash", {"command": "seq 9999"})


def wait(status: int, value: str, name: str = "Retry-After") -> Answer:
    return error(status, "slow down", headers={name: value})


ANSWERS = [
    Row("choices are empty", body({"choices": [], "model": "m"}), "again", "without choices from m"),
    Row("choices are null", body({"choices": None}), "again", "without choices"),
    Row("no choices at all", body({}), "again", "without choices"),
    Row("a null message", message(None), "asks"),
    Row("a null message, no finish", message(None, None), "asks"),
    Row("empty text", text(""), "asks"),
    Row("white space", text(" \n\t\u00a0 "), "asks"),
    Row("null text", message({"role": "assistant", "content": None}), "asks"),
    Row("empty twice", (text(""), text("")), "nudge"),
    Row("only text", text("I will think about it."), "nudge"),
    Row("text cut by length", text("I will th", "length"), "nudge"),
    Row("nothing but a length", text("", "length"), "asks"),
    Row("parts of text", message({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, stream=False), "nudge", "hi"),
    Row("parts without text", message({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}, stream=False), "asks"),
    Row("reasoning_content only", message({"role": "assistant", "content": None, "reasoning_content": "hm"}), "asks"),
    Row("reasoning only", message({"role": "assistant", "content": "", "reasoning": "hm"}), "asks"),
    Row("a thought only", text("<think>hm</think>\n"), "asks"),
    Row("a thought that was cut", text("<think>hm", "length"), "asks"),
    Row("a thought and text", text("\n<think>hm</think>\n\nSo be it."), "nudge", '"So be it."'),
    Row("a thought and calls", wire(LS, content="<think>hm</think>"), "runs", '"content": null'),
    Row("reasoning and calls", message({"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [LS]}), "runs"),
    ends("a refusal", message({"role": "assistant", "content": None, "refusal": "I will not."}), "I will not.", *FAILED),
    ends("a filter", text("", "content_filter"), "content_filter", *FAILED),
    ends("a filter with text", text("I can", "content_filter"), "content_filter: I can", *FAILED),
    Row("choices of another index first", body({"choices": [{"index": 1, "message": {"content": "no"}}, {"index": 0, "message": {"tool_calls": [LS]}}]}), "runs"),
    Row("finish stop with calls", wire(LS, finish="stop"), "runs"),
    Row("finish null with calls", wire(LS, finish=None), "runs"),
    Row("finish of no known kind", wire(LS, finish="eos"), "runs"),
    Row("finish tool_calls without calls", text("", "tool_calls"), "asks"),
    Row("finish tool_calls with text", text("hi", "tool_calls"), "nudge"),
    Row("legacy function_call", message({"role": "assistant", "content": None, "function_call": {"name": "Ls", "arguments": "{}"}}, "function_call"), "runs"),
    Row("no usage", say(usage=None), "nudge"),
    Row("usage of zeros", say(usage={"prompt_tokens": 0, "completion_tokens": 0}), "nudge"),
    Row("usage as texts", say(usage={"prompt_tokens": "120", "completion_tokens": "many"}), "nudge"),
    Row("usage below zero", say(usage={"prompt_tokens": -5, "completion_tokens": -1}), "nudge"),
    Row("usage in fractions", say(usage={"prompt_tokens": 12.5, "completion_tokens": 1e400}), "nudge"),
    Row("usage as a list", say(usage=[1, 2]), "nudge"),
    Row("usage that is absurd", say(usage={"prompt_tokens": 1e15, "completion_tokens": 10**30}), "nudge"),
    Row("an error object in a 200", body({"error": {"message": "upstream is busy", "code": 503}}), "again", "upstream is busy"),
    Row("an error text in a 200", body({"error": "overloaded"}), "again", "overloaded"),
    ends("a bad key in a 200", body({"error": {"message": "no", "code": "invalid_api_key"}}), "refused the key", *CONFIG),
    ends("HTML in a 200", raw(200, "<!doctype html><html><title>Sign in</title></html>", HTML), "it says: Sign in", *CONFIG),
    Row("an empty body", raw(200, "", JSON), "again", "an empty answer"),
    Row("JSON that is a list", body([]), "again", "not an object"),
    Row("JSON that is a text", body("hi"), "again", "not an object"),
    Row("JSON that is cut", raw(200, '{"choices": [{"mess', JSON), "again", "not JSON"),
    Row("no JSON", raw(200, "upstream connect error", {"Content-Type": "text/plain"}), "again", "upstream connect error"),
    Row("bytes that are no UTF-8", raw(200, b'{"choices": [{"message": {"content": "a\xff\xfeb"}, "finish_reason": "stop"}]}', JSON), "nudge"),
    Row("a length that is too long", raw(200, "{}", {**JSON, "Content-Length": "999"}, close=True), "again"),
    Row("broken gzip", raw(200, gzip.compress(b"{}" * 99)[:-30] + b"x" * 30, {**JSON, "Content-Encoding": "gzip"}), "again"),
    Row("no gzip at all", raw(200, "{}", {**JSON, "Content-Encoding": "gzip"}), "again"),
]  # fmt: skip

CALLS = [
    Row("arguments that are no JSON", wire(function("Write", "file_path=x")), "told", "not valid JSON"),
    Row("arguments in an array", wire(function("Write", f"[{WRITE}]")), "told", "an array"),
    Row("arguments encoded twice", wire(function("Write", json.dumps(WRITE))), "told", "encoded twice"),
    Row("a key that stands twice", wire(function("Write", '{"file_path": "x", "file_path": "y"}')), "told", "stands twice"),
    Row("a comma too many", wire(function("Write", '{"file_path": "x", "content": "y",}')), "told", "not valid JSON"),
    Row("arguments with NaN", wire(function("Bash", '{"command": "ls", "timeout": NaN}')), "told", "NaN is not a JSON number"),
    Row("arguments that are null", wire(function("Write", "null")), "told", "null"),
    Row("arguments that are a number", wire(function("Write", "7")), "told", "a number"),
    Row("arguments that are empty", wire(function("Write", "")), "told", "file_path"),
    Row("arguments that are left out", wire({"id": "c1", "type": "function", "function": {"name": "Ls"}}), "runs"),
    Row("arguments as an object", wire(function("Ls", {"path": "."})), "runs"),
    Row("huge arguments", wire(function("Read", json.dumps({"file_path": "x" * 300_000}))), "told"),
    Row("huge broken arguments", wire(function("Write", "x" * 300_000)), "told", "not valid JSON"),
    Row("a number of 5,000 digits", wire(function("Bash", '{"command": "ls", "timeout": ' + "9" * 5000 + "}")), "told"),
    Row("nested 100,000 deep", wire(function("Write", "[" * 100_000)), "told", "nested too deeply"),
    Row("a call cut by length", wire(function("Write", WRITE), finish="length"), "told", "cut off by the output limit"),
    Row("a call cut in the middle", wire(function("Write", WRITE[:20]), finish="length"), "told", "cut off by the output limit"),
    Row("an unknown tool", wire(function("execute_python", "{}")), "told", "The tools of this step are: Read"),
    Row("a name with a prefix", wire(function("functions.Ls", "{}")), "told", "no tool 'functions.Ls'"),
    Row("a name with spaces", wire(function(" my tool ", "{}")), "told", "no tool ' my tool '"),
    Row("an empty name", wire(function("", "{}")), "told", "no tool ''"),
    Row("a null name", wire(function(None, "{}")), "told", "no tool ''"),
    Row("a name of 300 characters", wire(function("x" * 300, "{}")), "told", "no tool 'xxx"),
    Row("one id twice", wire(LS, function("Glob", '{"pattern": "*"}')), "runs"),
    Row("an empty id", wire(function("Ls", "{}", "")), "runs"),
    Row("a null id", wire(function("Ls", "{}", None)), "runs"),
    Row("a number as id", wire(function("Ls", "{}", 7)), "runs"),
    Row("an id of 300 characters", wire(function("Ls", "{}", "i" * 300)), "runs"),
    Row("an id of odd characters", wire(function("Ls", "{}", "a b\n\ud800|é")), "runs"),
    Row("two calls, one wrong", wire(function("Nope", "{}", "a"), function("Bash", '{"command": "echo fine"}', "b")), "runs", "fine"),
    Row("a call that is null", wire(None, stream=False), "asks"),
    Row("calls that are no list", message({"role": "assistant", "content": None, "tool_calls": LS}, stream=False), "runs"),
    Row("500 calls", calls([("Ls", {"path": f"d{n}"}, f"c{n}") for n in range(500)]), "told", "more were left out"),
    Row("an unclosed plan call", wire(function("UpdatePlanStep", '{"status": "done"')), "told", "Nothing changed"),
]  # fmt: skip

STREAMS = [
    Row("no DONE but a finish", stream(CALL), "runs"),
    Row("no finish but a DONE", stream(HI, DONE), "nudge"),
    Row("neither finish nor DONE", stream(HI), "again", "broke off"),
    Row("nothing but DONE", stream(DONE), "again", "without choices"),
    Row("nothing at all", stream(""), "again", "an empty answer"),
    Row("only comments", stream(": ping\n\n" * 9), "again", "broke off"),
    Row("comments between", stream(": ping\n\n", CALL.replace("\n\n", "\n\n: ping\n\n"), DONE), "runs"),
    Row("CRLF", stream((CALL + DONE).replace("\n", "\r\n")), "runs"),
    Row("CR", stream((CALL + DONE).replace("\n", "\r")), "runs"),
    Row("data in several lines", stream("".join("data: " + json.dumps(c, indent=1).replace("\n", "\ndata: ") + "\n\n" for c in CHUNKS)), "runs"),
    Row("no blank lines", stream((CALL + DONE).replace("\n\n", "\n")), "runs"),
    Row("other event names", stream("event: message\nid: 1\nretry: 9\n" + CALL, DONE), "runs"),
    Row("an error in the middle", stream(HI, 'data: {"error": {"message": "overloaded", "type": "overloaded_error"}}\n\n'), "again", "overloaded"),
    Row("an error event", stream(HI, "event: error\ndata: upstream died\n\n"), "again", "upstream died"),
    Row("a piece that is no JSON", stream(HI, "data: {oops\n\n", DONE), "again", "not JSON"),
    Row("usage in the last chunk", stream(CALL, 'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}\n\n', DONE), "runs"),
    Row("usage null in each chunk", events(*({**c, "usage": None} for c in CHUNKS), "[DONE]"), "runs"),
    Row("a line that stays open", stream(CALL, DONE, hang=True), "runs"),
    Row("bytes one by one", call("Ls", {}, drip=0.0001), "runs"),
    Row("cut in the middle", call("Ls", {}, cut=90), "again"),
    Row("reset in the middle", call("Ls", {}, cut=90, reset=True), "again"),
    Row("silent in the middle", call("Ls", {}, cut=90, hang=True), "again", "silent for too long"),
    Row("bytes that are no UTF-8, streamed", raw(200, HI.encode().replace(b"hi", b"\xff\xfe") + (STOP + DONE).encode(), EVENTS), "nudge"),
]  # fmt: skip

STATUSES = [
    Row("400", error(400, "no such parameter"), "ends", "no such parameter", PROVIDER, 1),
    ends("401", error(401, "bad key"), "refused the key (HTTP 401): bad key", *CONFIG),
    ends("403", error(403, "not for you"), "refused the key (HTTP 403): not for you", *CONFIG),
    ends("403 in HTML", raw(403, "<h1>Forbidden</h1>", HTML), "Forbidden", *CONFIG),
    ends("404 of a model", error(404, "model m does not exist", "model_not_found"), "refused the model", *CONFIG),
    ends("404 of a page", raw(404, "404 page not found"), "isn't an OpenAI-style API", *CONFIG),
    ends("405", raw(405), "isn't an OpenAI-style API", *CONFIG),
    Row("408", error(408, "too slow"), "again", "too slow"),
    Row("409", error(409, "conflict"), "again", "conflict"),
    Row("413", (MUCH, error(413, "too large")), "shorter"),
    Row("413 for a rate that one request is over", (MUCH, error(413, TPM, "rate_limit_exceeded")), "shorter"),
    ends("413 that nothing makes shorter", error(413, "too large"), "the context does not fit", "context", 3),
    ends("422", error(422, "field required"), "field required", *PROVIDER),
    Row("429", error(429, "slow down"), "again", "slow down"),
    ends("429 for a quota", error(429, "no credit", "insufficient_quota"), "no credit (HTTP 429)", *PROVIDER),
    ends("402", error(402, "pay first"), "pay first (HTTP 402)", *PROVIDER),
    *(Row(f"{s}", error(s, "oops"), "again", "oops") for s in (425, 500, 502, 503, 504, 520, 524, 529)),
    Row("502 in HTML", raw(502, "<html><h1>Bad gateway</h1></html>", HTML), "again", "Bad gateway"),
    Row("503 without a text", raw(503), "again", "HTTP 503 without a text"),
    Row("500 with half a body", raw(500, '{"error": {"mess', {**JSON, "Content-Length": "99"}, close=True), "again"),
    Row("500 in broken gzip", raw(500, "{}", {**JSON, "Content-Encoding": "gzip"}), "again", "HTTP 500"),
    used_up("500 for ever", error(500, "oops"), "oops (HTTP 500), after 6 requests"),
    used_up("429 for ever", error(429, "slow down"), "slow down (HTTP 429), after 6 requests"),
    Row("too long", (MUCH, error(400, "prompt is too long: 9120 tokens > 8192 maximum")), "shorter"),
    ends("301", raw(301, "", {"Location": "/elsewhere"}), "it says: HTTP 301, moved to /elsewhere", *CONFIG),
    ends("302 to a page", raw(302, "", {"Location": "https://login.invalid/?token=abc"}), "moved to https://login.invalid/?token=***", *CONFIG),
    ends("307", raw(307, "", {"Location": "/v2/chat/completions"}), "moved to /v2/chat/completions", *CONFIG),
    ends("300 without a place", raw(300), "isn't an OpenAI-style API", *CONFIG),
    Row("204", raw(204), "again", "an empty answer"),
]  # fmt: skip

WAITS = [
    Row("Retry-After in seconds", wait(429, "7"), "again", "slow down"),
    Row("Retry-After as a date", wait(429, "$HTTP_DATE+30"), "again", "slow down"),
    Row("Retry-After in ms", wait(429, "1500", "retry-after-ms"), "again", "slow down"),
    Row("Retry-After of the past", wait(429, PAST), "again", "slow down"),
    Row("Retry-After below zero", wait(429, "-5"), "again", "slow down"),
    Row("Retry-After that is a text", wait(429, "soon"), "again", "slow down"),
    Row("Retry-After that is empty", wait(503, ""), "again", "slow down"),
    ends("Retry-After of a year", wait(429, "31536000"), "asks to wait 31536000 s", *PROVIDER),
    ends("Retry-After in 2100", wait(503, FAR), "asks to wait", *PROVIDER),
    ends("Retry-After without end", wait(429, "9" * 400), "asks to wait for good", *PROVIDER),
    Row("x-ratelimit-reset in seconds", wait(429, "12", "x-ratelimit-reset"), "again"),
    Row("x-ratelimit-reset as a duration", wait(429, "6s", "x-ratelimit-reset-tokens"), "again"),
    ends("x-ratelimit-reset in 2100", wait(429, "4133980799", "x-ratelimit-reset"), "asks to wait", *PROVIDER),
    Row("try again in", error(429, "try again in 20s"), "again", "try again in 20s"),
]  # fmt: skip

CONNECTIONS = [
    Row("reset before the headers", text("x", reset=True), "again"),
    Row("closed before the headers", raw(0), "again"),
    Row("reset in the body", text("hello", cut=20, stream=False, reset=True), "again"),
    Row("closed in the body", text("hello", cut=20, stream=False), "again"),
    Row("closed before the body", text("hello", cut=0), "again"),
    Row("silent before the headers", text("x", delay=9), "again", "silent for too long"),
    Row("silent before the body", text("x", cut=0, hang=True), "again", "silent for too long"),
    used_up("closed for ever", raw(0), "after 6 requests"),
]

TABLE = [*ANSWERS, *CALLS, *STREAMS, *STATUSES, *WAITS, *CONNECTIONS]
