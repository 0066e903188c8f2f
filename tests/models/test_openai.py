"""One try against a real endpoint on the loopback interface."""

import json
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planrun.core.messages import Message, ToolCall
from planrun.endpoint import normalise_base_url
from planrun.errors import ConfigError, ContextOverflow, Interrupted, ProviderError
from planrun.models.base import ModelRequest, Reply
from planrun.models.faults import Failure
from planrun.models.openai import OpenAIModel
from planrun.testing.server import Answer, LoopbackServer, call, calls, error, events, message, raw, script_from, text

CASES = Path(__file__).parents[1] / "cases"
KEY = "planrun-test-KEY-123456"
BODY = {"model": "m", "messages": [{"role": "user", "content": "héllo"}]}
STREAMED = BODY | {"stream": True, "stream_options": {"include_usage": True}}


def request(body: dict[str, Any] = STREAMED, deadline: float | None = None) -> ModelRequest:
    return ModelRequest(json.dumps(body, ensure_ascii=False).encode(), "digest", deadline)


def ask(server: LoopbackServer, body: dict[str, Any] = STREAMED, **how: Any) -> Reply:
    return OpenAIModel(server.url, KEY, **how).complete(request(body))


def failure(*answers: Any, body: dict[str, Any] = STREAMED, **how: Any) -> Failure:
    with LoopbackServer(answers) as server, pytest.raises(Failure) as caught:
        ask(server, body, **how)
    assert len(server.requests) == 1
    assert KEY not in str(caught.value)
    return caught.value


def test_the_body_is_sent_as_it_is() -> None:
    with LoopbackServer([text("hi")]) as server:
        ask(server)
    (received,) = server.requests
    assert received.raw == request().body
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["content-type"] == "application/json"


def test_the_endpoint_is_not_told_what_machine_asks() -> None:
    with LoopbackServer([text("hi")]) as server:
        ask(server)
    headers = server.requests[0].headers
    assert [name for name in headers if name.lower().startswith("x-stainless-")] == ["x-stainless-raw-response"]
    assert headers["user-agent"].startswith("OpenAI/Python ")


def test_without_a_key_no_key_is_sent() -> None:
    with LoopbackServer([text("hi")]) as server:
        OpenAIModel(server.url, "").complete(request())
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("body", [BODY, STREAMED])
@pytest.mark.parametrize("stream", [True, False])
def test_either_form_answers_either_request(body: dict[str, Any], stream: bool) -> None:
    answer = call("Bash", {"command": "ls"}, id="a1", pieces=4, stream=stream)
    with LoopbackServer([answer]) as server:
        reply = ask(server, body)
    assert reply.message == Message("assistant", None, (ToolCall("a1", "Bash", '{"command":"ls"}'),))
    assert (reply.finish_reason, reply.model, reply.retries) == ("tool_calls", "test-model", 0)


def test_usage_is_asked_for_by_the_body() -> None:
    with LoopbackServer([text("hi"), text("hi")]) as server:
        assert ask(server).usage.prompt_tokens == len(request().body) // 4
        assert ask(server, BODY | {"stream": True}).usage.prompt_tokens is None


def test_one_connection_serves_all_requests() -> None:
    answers = [text("a", pieces=3), text("b", stream=False), error(500, "x"), text("c")]
    with LoopbackServer(answers) as server:
        model = OpenAIModel(server.url, KEY)
        for wanted in ("a", "b", None, "c"):
            if wanted is None:
                with pytest.raises(ProviderError):
                    model.complete(request())
            else:
                assert model.complete(request()).message == Message("assistant", wanted)
        model.close()
    assert server.connections == 1


@pytest.mark.parametrize("path", sorted(CASES.glob("*.response.json")), ids=lambda p: p.name.split(".")[0])
@pytest.mark.parametrize("stream", [True, False])
def test_recorded_responses(path: Path, stream: bool) -> None:
    with LoopbackServer(script_from(path, stream)) as server:
        if path.name.startswith(("PROV-01a", "PROV-01b")):
            with pytest.raises(Failure) as caught:
                ask(server)
            assert caught.value.fault.retryable
        else:
            reply = ask(server)
            assert reply.message is not None or reply.refusal or path.name.startswith(("PROV-02b", "PROV-09"))


def test_sec_01_the_key_is_not_repeated() -> None:
    with LoopbackServer(script_from(CASES / "SEC-01.http.json")) as server, pytest.raises(ConfigError) as caught:
        ask(server)
    assert f"the endpoint {server.url} refused the key (HTTP 401): wrong key: ***" == str(caught.value)
    assert len(server.requests) == 1


def test_cfg_01_a_web_page() -> None:
    with LoopbackServer(script_from(CASES / "CFG-01.http.json")) as server, pytest.raises(ConfigError) as caught:
        ask(server)
    assert str(caught.value) == f"endpoint isn't an OpenAI-style API: {server.url} (it says: Welcome)"
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/chat/completions", ""])
def test_cfg_01_paths(end: str) -> None:
    with LoopbackServer([text("hi")]) as server:
        url, _ = normalise_base_url(server.origin + end)
        OpenAIModel(url, KEY).complete(request())
    assert server.requests[0].path == ("/v1" if end else "") + "/chat/completions"


def test_cfg_01_without_v1_the_hint_is_given() -> None:
    page = raw(404, "404 page not found", {"Content-Type": "text/plain"})
    with LoopbackServer([page]) as server, pytest.raises(ConfigError, match="its base url may lack /v1"):
        OpenAIModel(server.origin, KEY).complete(request())


def test_credentials_of_the_address() -> None:
    with LoopbackServer([raw(404), text("hi")]) as server:
        host = server.origin.removeprefix("http://")
        model = OpenAIModel(f"http://me:pw@{host}/v1", "")
        with pytest.raises(ConfigError) as caught:
            model.complete(request())
        model.complete(request())
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("key", ["a\nb", "ключ", "a\x00"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(ConfigError, match="characters that no header can carry"):
        OpenAIModel("http://127.0.0.1:1/v1", key)


def test_overflow_teaches_the_window() -> None:
    answer = error(400, "maximum context length is 8192 tokens", code="context_length_exceeded")
    with LoopbackServer([answer]) as server, pytest.raises(ContextOverflow) as caught:
        ask(server)
    assert caught.value.window == 8192


def test_stream_options_that_are_refused() -> None:
    failed = failure(error(400, "Unrecognized request argument supplied: stream_options", type="invalid_request_error"))
    assert (failed.kind, failed.fault.retryable) == ("refused", False)
    assert str(failed).startswith("the endpoint refuses streamed answers: Unrecognized")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (raw(502, "<h1>Bad gateway</h1>", {"Content-Type": "text/html"}), "server"),
        (raw(200, '{"choices": [{', {"Content-Type": "application/json"}), "server"),
        (raw(200, "", {"Content-Type": "application/json"}), "server"),
        (raw(200, "{}", {"Content-Encoding": "gzip"}), "connection"),
        (text("hello", cut=40), "connection"),
        (text("hello", cut=40, stream=False), "connection"),
        (text("hello", cut=0), "connection"),
        (text("hello", reset=True), "connection"),
        (text("hello", cut=30, reset=True), "connection"),
        (raw(0), "connection"),
        (events({"choices": [{"delta": {"content": "x"}}]}, close=True), "connection"),
        (events({"error": {"type": "overloaded_error", "message": "busy"}}), "server"),
    ],
)
def test_broken_answers_may_be_asked_again(answer: Any, kind: str) -> None:
    failed = failure(answer)
    assert (failed.kind, failed.fault.retryable) == (kind, True)
    assert str(failed)


@pytest.mark.parametrize("status", [200, 404, 405])
def test_a_page_is_no_api_at_first_and_a_fault_that_passes_once_it_has_answered(status: int) -> None:
    page = raw(status, "<html><title>Down for maintenance</title></html>", {"Content-Type": "text/html"})
    with LoopbackServer([page, text("hello"), page, text("again")]) as server:
        model = OpenAIModel(server.url, KEY)
        with pytest.raises(ConfigError, match="isn't an OpenAI-style API.*Down for maintenance"):
            model.complete(request())
        assert model.complete(request()).message == Message("assistant", "hello")
        with pytest.raises(Failure, match="no answer of the API's: Down for maintenance") as caught:
            model.complete(request())
        assert (caught.value.kind, caught.value.fault.retryable) == ("server", True)
        assert model.complete(request()).message == Message("assistant", "again")
        model.close()


def test_an_unknown_host_and_a_closed_port() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        for url in (f"http://127.0.0.1:{unused.getsockname()[1]}/v1", "http://no-such-host.invalid/v1"):
            with pytest.raises(Failure) as caught:
                OpenAIModel(url, KEY).complete(request())
            assert (caught.value.kind, caught.value.fault.retryable) == ("connection", True)
            assert url in str(caught.value)


def test_silence_before_and_inside_an_answer() -> None:
    for answer in (text("x", delay=9), text("x" * 99, cut=0, hang=True), text("x" * 99, cut=60, hang=True)):
        failed = failure(answer, read_timeout=0.1)
        assert (failed.kind, failed.fault.retryable) == ("timeout", True)


def test_a_dribbling_answer_is_read() -> None:
    with LoopbackServer([text("hé😀", drip=0.0002)]) as server:
        assert ask(server).message == Message("assistant", "hé😀")


def test_a_dribbling_answer_is_given_up_at_the_deadline() -> None:
    start = time.monotonic()
    failed = failure(text("x" * 1000, drip=0.02), read_timeout=60.0, total_timeout=2.0)
    assert (failed.kind, failed.fault.retryable) == ("timeout", True)
    with LoopbackServer([text("x" * 1000, drip=0.02)]) as server, pytest.raises(Failure) as caught:
        OpenAIModel(server.url, KEY).complete(request(deadline=time.monotonic() + 2))
    assert (caught.value.kind, caught.value.fault.retryable) == ("timeout", False)
    assert time.monotonic() - start < 60


def test_headers_and_refusals_that_come_byte_by_byte_are_given_up_at_the_deadline() -> None:
    """Never silent for as long as the read timeout, and never done."""
    for start in (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=_dribble, args=(listener, start), daemon=True).start()
            model = OpenAIModel(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", KEY)
            began = time.monotonic()
            with pytest.raises(Failure) as caught:
                model.complete(request(deadline=began + 1))
            assert caught.value.fault.retryable
            assert time.monotonic() - began < 60


def _dribble(listener: socket.socket, start: bytes) -> None:
    connection, _ = listener.accept()
    with connection, suppress(OSError):
        connection.sendall(start)
        while True:  # until the other side hangs up
            connection.sendall(b"x")
            time.sleep(0.01)


def test_certificates_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent.pem")
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        OpenAIModel("https://127.0.0.1:9/v1", KEY).complete(request())


def test_no_request_is_sent_after_the_deadline() -> None:
    with LoopbackServer([]) as server, pytest.raises(Failure, match="no time is left"):
        OpenAIModel(server.url, KEY).complete(request(deadline=time.monotonic() - 1))
    assert server.requests == []


def test_a_line_that_stays_open_after_done() -> None:
    start = time.monotonic()
    with LoopbackServer([text("hi", hang=True), text("again")]) as server:
        model = OpenAIModel(server.url, KEY)
        assert model.complete(request()).message == Message("assistant", "hi")
        assert time.monotonic() - start < 60
        assert model.complete(request()).message == Message("assistant", "again")


def test_keep_alive_comments_and_many_calls() -> None:
    wanted = [("Read", {"n": n}, f"r{n}") for n in range(40)]
    with LoopbackServer([calls(wanted, pieces=3), raw(200, ": wait\n\n" * 50 + "data: [DONE]\n\n")]) as server:
        reply = ask(server)
        assert reply.message is not None
        assert [c.id for c in reply.message.tool_calls] == [f"r{n}" for n in range(40)]
        with pytest.raises(Failure, match="without choices"):
            ask(server)


def test_threads_share_a_model() -> None:
    with LoopbackServer(lambda body: text(body["messages"][0]["content"], delay=0.02)) as server:
        model = OpenAIModel(server.url, KEY)
        found: list[bool] = []

        def one(n: int) -> None:
            reply = model.complete(request({"messages": [{"role": "user", "content": str(n)}]}))
            found.append(reply.message == Message("assistant", str(n)))

        threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 12


def test_an_interrupt_passes_through_and_closes_the_connection() -> None:
    def stop(signum: int, frame: object) -> None:
        raise Interrupted(signum)

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident or 0, signal.SIGUSR1))
    try:
        answers = iter([text("first"), text("x" * 50, cut=80, hang=True), text("again")])

        def script(body: object) -> Answer:
            if len(server.requests) == 2:  # so that the signal meets the read
                timer.start()
            return next(answers)

        with LoopbackServer(script) as server:
            model = OpenAIModel(server.url, KEY)
            model.complete(request())
            start = time.monotonic()
            with pytest.raises(Interrupted):
                model.complete(request())
            assert time.monotonic() - start < 60
            assert model.complete(request()).message == Message("assistant", "again")
        assert server.connections == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_error_of_the_project_passes_through() -> None:
    class Stop:
        """A request whose body raises: stands for a handler that fires while the request is sent."""

        def __iter__(self) -> Any:
            raise Interrupted(15)

    with LoopbackServer([]) as server, pytest.raises(Interrupted):
        OpenAIModel(server.url, KEY).complete(ModelRequest(Stop(), "d"))  # type: ignore[arg-type]


def test_usage_null_and_a_filter() -> None:
    with LoopbackServer([message(None, "content_filter", usage=None)]) as server:
        reply = ask(server)
    assert (reply.message, reply.refusal) == (None, "content_filter: the answer of test-model was withheld")
