"""The loopback endpoint that ships with the package, seen by a plain HTTP client."""

import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planrun.testing.answers import Script, expanded
from planrun.testing.server import LoopbackServer, call, done, error, events, message, raw, script_from, text


def post(server: LoopbackServer, body: Any, times: int = 1) -> list[tuple[int, dict[str, str], bytes]]:
    with closing(http.client.HTTPConnection(server.origin.removeprefix("http://"), timeout=60)) as connection:
        found = []
        for _ in range(times):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            with closing(connection.getresponse()) as response:
                found.append((response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()))
        return found


def test_json_and_events() -> None:
    with LoopbackServer(
        [text("hello"), text("hello", pieces=2), text("hello", stream=True), text("x", stream=False)]
    ) as server:
        assert json.loads(post(server, {})[0][2])["choices"][0]["message"]["content"] == "hello"
        _, headers, streamed = post(server, {"stream": True})[0]
        assert headers["content-type"] == "text/event-stream"
        assert streamed.count(b"data: ") == 5 and b'"hel"' in streamed and streamed.endswith(b"data: [DONE]\n\n")
        assert b"usage" not in streamed
        assert post(server, {})[0][1]["content-type"] == "text/event-stream"
        assert post(server, {"stream": True})[0][1]["content-type"] == "application/json"


def test_usage_in_a_stream_is_sent_where_it_is_asked_for() -> None:
    with LoopbackServer([text("hello"), message({"content": "x"}, usage={"prompt_tokens": 7})]) as server:
        body = {"stream": True, "stream_options": {"include_usage": True}}
        (_, _, first), (_, _, second) = post(server, body, times=2)
        assert b'"prompt_tokens": ' in first and b'"prompt_tokens": 7' in second


def test_requests_are_recorded() -> None:
    with LoopbackServer([]) as server:
        post(server, {"a": 1}, times=2)
        post(server, ["not an object"])
        assert server.bodies == [{"a": 1}, {"a": 1}, {}]
        assert server.requests[0].path == "/v1/chat/completions"
        assert server.requests[0].raw == b'{"a": 1}'
        assert server.requests[0].at <= server.requests[1].at
        assert server.connections == 2


def test_after_the_script_the_step_is_ended() -> None:
    with LoopbackServer([]) as server:
        function = json.loads(post(server, {})[0][2])["choices"][0]["message"]["tool_calls"][0]["function"]
        assert function == {"name": "UpdatePlanStep", "arguments": '{"status":"done","output":{}}'}


def test_other_answers() -> None:
    answers = [error(429, "slow", headers={"Retry-After": "$HTTP_DATE+5"}), raw(200, "x", {"X-A": "b"}), events("hi", {"a": 1})]
    with LoopbackServer(answers) as server:
        slow, plain, stream = post(server, {}, times=3)
        assert slow[0] == 429 and slow[1]["retry-after"].endswith("GMT")
        assert plain[1]["x-a"] == "b" and plain[2] == b"x"
        assert stream[2] == b'data: hi\n\ndata: {"a": 1}\n\n'


def test_connections_that_break() -> None:
    for answer in (raw(0), text("x", reset=True), text("x" * 99, cut=9, stream=False), text("x" * 99, cut=9, stream=True)):
        with LoopbackServer([answer]) as server, pytest.raises((http.client.HTTPException, ConnectionError)):
            post(server, {})


def test_functions_and_their_failures() -> None:
    with LoopbackServer(lambda body: call("Echo", body)) as server:
        assert b"Echo" in post(server, {"a": 1})[0][2]
    with pytest.raises(ZeroDivisionError), LoopbackServer(lambda body: text(str(1 // 0))) as server:
        assert post(server, {})[0][0] == 500


def test_scripts() -> None:
    once, last = Script([text("a")]), Script([text("a"), text("b")], repeat_last=True)
    assert [once({}) == text("a") for _ in range(2)] == [True, False]
    assert [last({}) for _ in range(3)] == [text("a"), text("b"), text("b")]
    ring = Script([text("a"), text("b")], cycle=True)
    assert [ring({}) for _ in range(3)] == [text("a"), text("b"), text("a")]
    summary = Script([text("s")], match="summary")
    assert summary({"x": "go on"}) == done()
    assert summary({"x": "Summarise this"}) == text("s")


def test_scripts_from_files(tmp_path: Path) -> None:
    path = tmp_path / "x.http.json"
    big = {"$concat": ["<", {"$repeat": ["ab", 3]}, ">"]}
    path.write_text(
        json.dumps({"replies": [{"status": 400, "json": {"m": big}}, {"raw": "r", "close": True}], "repeat_last": True})
    )
    with LoopbackServer(script_from(path)) as server:
        assert post(server, {})[0][::2] == (400, b'{"m": "<ababab>"}')
        assert post(server, {})[0][2] == b"r"
        assert post(server, {})[0][1]["connection"] == "close"
    (tmp_path / "y.sse.txt").write_bytes(b"data: 1\r\n\r\n")
    with LoopbackServer(script_from(tmp_path / "y.sse.txt")) as server:
        assert post(server, {})[0][2] == b"data: 1\r\n\r\n"
    assert expanded([{"a": {"$repeat": ["x", 2]}}]) == [{"a": "xx"}]
