"""planrun doctor --endpoint: what is said before anything is sent, a line for each check, exit codes; never the key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from planrun.testing.server import LoopbackServer, call, error, raw, text
from tests.cli.conftest import Call, one_object

KEY = "planrun-test-KEY-123456"
Served = Callable[..., LoopbackServer]
TOOL = call("note_word", {"word": "ready"})


def checks(planrun: Call, *args: str) -> tuple[int, dict[str, tuple[str, str]], str]:
    """Exit code, status and text by check, stderr. The key is nowhere."""
    ran = planrun("doctor", "--endpoint", "--format", "json", *args)
    assert KEY not in ran.output
    rows = one_object(ran.stdout)["checks"]
    return ran.exit_code, {r["check"]: (r["status"], f"{r['message']} ({r['advice']})") for r in rows}, ran.stderr


def test_an_endpoint_that_does_all(planrun: Call, served: Served) -> None:
    server = served(text("ready"), TOOL)
    server.models = [{"id": "other"}, {"id": "test-model", "max_model_len": 200_000}]
    code, found, said = checks(planrun)
    assert code == 0
    assert {n: s for n, (s, _) in found.items()} == dict.fromkeys(
        ["reachable", "model", "reply", "streaming", "usage", "tools"], "ok"
    ) | {"window": "ok"}
    assert "128,000 tokens, by a guess; the endpoint says 200,000" in found["window"][1]
    assert (
        f"sending to {server.url}, with the key of OPENAI_API_KEY: the list of models, then two requests to test-model" in said
    )
    assert "answers of at most 256 tokens each" in said
    assert [r.path for r in server.requests] == ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]
    assert all(b["max_tokens"] == 256 and b["stream"] for b in server.bodies[1:])
    assert all(r.headers["authorization"] == f"Bearer {KEY}" for r in server.requests)


@pytest.mark.parametrize(
    ("answers", "models", "check", "status", "words"),
    [
        ([text("ready"), TOOL], None, "model", "warning", "no list of models"),
        ([text("ready"), TOOL], [{"id": "test-modal"}], "model", "warning", "is one of these meant? test-modal"),
        ([text("ready", stream=False), TOOL], None, "streaming", "warning", "in one piece"),
        ([text("ready", usage=None), TOOL], None, "usage", "warning", "count by estimate"),
        ([text(""), TOOL], None, "reply", "warning", "an empty answer"),
        ([text("ready"), text("I call note_word.")], None, "tools", "warning", "--enable-auto-tool-choice"),
        ([text("ready"), call("note_word", "{oops")], None, "tools", "warning", "do not fit"),
        ([text("ready"), TOOL], [{"id": "test-model", "meta": {"n_ctx": 4096}}], "window", "warning", "--window 4096"),
        ([text("ready"), TOOL], None, "window", "warning", "name it with --window"),
    ],
)
def test_what_is_amiss_is_a_warning_with_advice(
    planrun: Call, served: Served, answers: list[Any], models: Any, check: str, status: str, words: str
) -> None:
    served(*answers).models = models
    code, found, _ = checks(planrun)
    assert (code, found[check][0]) == (0, status)
    assert words in found[check][1]


@pytest.mark.parametrize(
    ("answer", "check", "code", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "key", 2, "set OPENAI_API_KEY"),
        (error(404, "The model test-model does not exist"), "model", 2, "name one with --model"),
        (error(400, "bad request"), "reply", 2, "bad request"),
        (error(503, "overloaded"), "reply", 75, "overloaded"),
        (raw(200, "<html><title>Login</title></html>"), "reply", 2, "isn't an OpenAI-style API"),
    ],
)
def test_what_fails_ends_it(planrun: Call, served: Served, answer: Any, check: str, code: int, words: str) -> None:
    served(answer)
    exit_code, found, _ = checks(planrun)
    assert (exit_code, found[check][0]) == (code, "failed")
    assert words in found[check][1]
    assert "tools" not in found


def test_nobody_there(planrun: Call, served: Served) -> None:
    served()
    for url in ("http://127.0.0.1:9/v1", "http://nowhere.invalid/v1"):
        code, found, _ = checks(planrun, "--base-url", url)
        assert (code, list(found)) == (75, ["reachable"])
        assert "is the address right" in found["reachable"][1]


def test_without_a_model_nothing_is_sent(planrun: Call, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    server = served()
    monkeypatch.delenv("PLANRUN_MODEL")
    ran = planrun("doctor", "--endpoint")
    assert (ran.exit_code, server.requests) == (2, [])
    assert "no model of an endpoint is named" in ran.stderr


def test_a_line_for_each_check(planrun: Call, served: Served) -> None:
    served(text("ready"), TOOL)
    lines = planrun("doctor", "--endpoint", "--model", "gpt-4o").stdout.splitlines()
    assert lines[0].startswith("ok       reachable: it answered after ")
    assert "ok       usage: " in "\n".join(lines)
    assert lines[-1].startswith("ok       window: planrun takes it for 128,000 tokens, by the table of known models")
