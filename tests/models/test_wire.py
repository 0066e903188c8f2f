"""One answer read into a Reply: every recorded oddity, every cut, every form."""

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core.messages import Message, ToolCall
from planrun.models.base import Reply, Usage
from planrun.models.faults import AnswerFault, Fault
from planrun.models.wire import read_reply
from planrun.testing.completions import sse

CASES = Path(__file__).parents[1] / "cases"
JSON, EVENTS = "application/json", "text/event-stream"
OK = ToolCall("w2", "Bash", '{"command": "echo ok"}')


def read(value: object, kind: str = JSON) -> Reply:
    return read_reply(kind, [value if isinstance(value, bytes) else json.dumps(value).encode()])


def fault(body: object, kind: str = JSON) -> Fault:
    with pytest.raises(AnswerFault) as caught:
        read(body, kind)
    return caught.value.fault


def both(name: str) -> list[Reply]:
    """The case read as JSON and as the stream that says the same."""
    completion = json.loads((CASES / f"{name}.response.json").read_text("utf-8"))
    return [read(completion), read_reply(EVENTS, sse(completion, pieces=5))]


def stream(*deltas: dict[str, Any], finish: str | None = "tool_calls", done: bool = True) -> list[bytes]:
    values: list[object] = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    values.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [b"data: " + json.dumps(v).encode() + b"\n\n" for v in values] + ([b"data: [DONE]\n\n"] if done else [])


def completion(message: object, finish: object = "stop", **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


# --- recorded cases -------------------------------------------------------------------------------------------------


def test_prov_01a_no_choices() -> None:
    found = fault((CASES / "PROV-01a.response.json").read_bytes())
    assert (found.kind, found.retryable, found.message) == ("server", True, "an answer without choices from m")


def test_prov_01b_an_error_in_a_200() -> None:
    found = fault((CASES / "PROV-01b.response.json").read_bytes())
    assert (found.kind, found.retryable, found.status, found.message) == ("server", True, 503, "upstream is busy")


def test_prov_01c_null_message_of_a_filter() -> None:
    for reply in both("PROV-01c"):
        assert reply.message is None
        assert reply.refusal == "content_filter: the answer of m was withheld"


def test_prov_02a_a_call_without_text() -> None:
    for reply in both("PROV-02a"):
        assert reply.message == Message("assistant", None, (ToolCall("a1", "Bash", '{"command": "true"}'),))
        assert reply.message.wire()["content"] is None


@pytest.mark.parametrize("name", ["PROV-02b", "PROV-09a", "PROV-09b", "PROV-09c", "PROV-09e"])
def test_empty_answers(name: str) -> None:
    for reply in both(name):
        assert reply.message is None
        assert reply.refusal is None
        assert reply.usage.prompt_tokens == 120


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("PROV-03a", "not valid JSON"),
        ("PROV-03b", "an array"),
        ("PROV-03c", "not null"),
        ("PROV-03e", "encoded twice"),
        ("PROV-03f", "not valid JSON"),
        ("PROV-03g", "Invalid control character"),
    ],
)
def test_prov_03_bad_arguments(name: str, why: str) -> None:
    for reply in both(name):
        assert reply.message is not None
        bad, good = reply.message.tool_calls
        assert bad.fault is not None and why in bad.fault
        assert "invalid" in json.loads(bad.arguments)
        assert good == OK


def test_prov_03d_empty_arguments_are_left_to_the_schema() -> None:
    for reply in both("PROV-03d"):
        assert reply.message is not None
        assert reply.message.tool_calls == (ToolCall("w1", "Write", "{}"), OK)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("PROV-07a", Usage()),
        ("PROV-07b", Usage()),
        ("PROV-07c", Usage(None, None, 3)),
        ("PROV-07d", Usage()),
        ("PROV-07e", Usage(120, None, 4)),
    ],
)
def test_prov_07_usage(name: str, usage: Usage) -> None:
    for reply in both(name):
        assert reply.message == Message("assistant", "hi")
        assert reply.usage == usage


@pytest.mark.parametrize(
    ("name", "safe", "said"),
    [
        ("PROV-08a", "execute_python", None),
        ("PROV-08b", "unnamed", "there is no tool ''"),
        ("PROV-08c", "functions_Bash", "there is no tool 'functions.Bash'"),
        ("PROV-08d", "my_tool_", "there is no tool 'my tool!'"),
        ("PROV-08e", "x" * 64, "there is no tool 'xxx"),
    ],
)
def test_prov_08_names(name: str, safe: str, said: str | None) -> None:
    for reply in both(name):
        assert reply.message is not None
        odd, good = reply.message.tool_calls
        assert odd.name == safe
        assert (odd.fault or "").startswith(said or "")
        assert (odd.fault is None) == (said is None)
        assert good.fault is None


def test_prov_09d_refusal() -> None:
    for reply in both("PROV-09d"):
        assert (reply.message, reply.refusal) == (None, "I can't help with that.")


def test_uni_01_half_characters() -> None:
    for reply in both("UNI-01"):
        assert reply.message is not None
        assert reply.message.content == "half \ufffd char"
        assert json.loads(reply.message.tool_calls[0].arguments) == {"file_path": "o.txt", "content": "\ufffd!"}
        json.dumps(reply.message.wire(), ensure_ascii=False).encode()


# --- forms of an answer ---------------------------------------------------------------------------------------------


def test_what_the_body_is_decides_not_its_type() -> None:
    value = completion({"role": "assistant", "content": "hi"})
    assert read(value, EVENTS).message == Message("assistant", "hi")
    assert read_reply(JSON, stream({"content": "hi"}, finish="stop")).message == Message("assistant", "hi")
    assert read_reply("", [b"\xef\xbb\xbf", *stream({"content": "hi"}, finish="stop")]).message is not None
    assert read(b"\xef\xbb\xbf \n" + json.dumps(value).encode(), "").message is not None
    assert read([value]).message is not None


@pytest.mark.parametrize(
    ("body", "kind", "wanted"),
    [
        (b"<!doctype html><title>Welcome</title>", "text/html", ("protocol", False)),
        (b"\n  <html>", EVENTS, ("protocol", False)),
        (b"", "text/html", ("protocol", False)),
        (b"", JSON, ("server", True)),
        (b"", EVENTS, ("server", True)),
        (b'{"choices": [{"mess', JSON, ("server", True)),
        (b"Hello", "text/plain", ("server", True)),
        (b"12", JSON, ("server", True)),
        (b"[]", JSON, ("server", True)),
        (b"[" * 200_000, JSON, ("server", True)),
        (b": ping\n\n: ping\n\n", EVENTS, ("connection", True)),
        (b"data: [DONE]\n\n", EVENTS, ("server", True)),
        (b"data: {not json}\n\n", EVENTS, ("server", True)),
        (b'event: error\ndata: {"message": "x"}\n\n', EVENTS, ("server", True)),
        (b"event: error\ndata: boom\n\n", EVENTS, ("server", True)),
        (b'{"error": "You have no quota", "code": 402}', JSON, ("quota", False)),
        (b'{"error": {"type": "overloaded_error", "message": "x"}}', JSON, ("server", True)),
        (b'{"error": {"message": "bad key", "code": "invalid_api_key"}}', JSON, ("auth", False)),
        (b'{"error": {"message": "nope", "type": "invalid_request_error"}}', JSON, ("refused", False)),
        (b'{"error": {"message": "m", "code": "context_length_exceeded"}}', JSON, ("overflow", False)),
        (b'{"choices": [{"error": {"code": 502, "message": "upstream"}}]}', JSON, ("server", True)),
    ],
)
def test_no_usable_answer(body: bytes, kind: str, wanted: tuple[str, bool]) -> None:
    found = fault(body, kind)
    assert (found.kind, found.retryable) == wanted
    assert found.message


def test_an_error_in_the_middle_of_a_stream() -> None:
    broken = stream({"content": "Hel"})[:1] + [b'data: {"error": {"type": "overloaded_error", "message": "busy"}}\n\n']
    found = fault(b"".join(broken), EVENTS)
    assert (found.kind, found.message, found.retryable) == ("server", "busy", True)


def test_a_stream_that_breaks_off() -> None:
    whole = stream({"content": "Hello"}, finish="stop")
    assert fault(b"".join(whole[:1]), EVENTS).kind == "connection"
    assert read_reply(EVENTS, whole[:2]).message == Message("assistant", "Hello")  # finish_reason, no [DONE]
    assert read_reply(EVENTS, [whole[0], whole[2]]).message == Message("assistant", "Hello")  # [DONE], no finish_reason


def test_a_break_after_the_finish_costs_nothing() -> None:
    def chunks() -> Iterable[bytes]:
        yield from stream({"content": "Hello"}, finish="stop", done=False)
        raise AnswerFault(Fault("connection", "reset", retryable=True))

    assert read_reply(EVENTS, chunks()).message == Message("assistant", "Hello")


def test_nothing_is_read_after_done() -> None:
    def chunks() -> Iterable[bytes]:
        yield b"".join(stream({"content": "Hello"}))
        raise AssertionError

    assert read_reply(EVENTS, chunks()).finish_reason == "tool_calls"


def test_events_without_blank_lines_between_them() -> None:
    glued = b"".join(part.replace(b"\n\n", b"\n") for part in stream({"content": "a"}, {"content": "b"}))
    assert read_reply(EVENTS, [glued]).message == Message("assistant", "ab")


def test_finish_reasons_that_contradict_the_message() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    reply = read(completion({"content": "x", "tool_calls": [call]}, "stop"))
    assert reply.message is not None and len(reply.message.tool_calls) == 1
    assert read(completion({"content": None}, "tool_calls")).message is None
    assert read(completion(None, None)).message is None
    assert read(completion({"content": "x"}, 7)).finish_reason is None


def test_length_with_calls() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    reply = read(completion({"content": None, "tool_calls": [call, call]}, "length"))
    assert reply.message is not None
    assert [c.fault for c in reply.message.tool_calls] == [None, "cut off by the output limit"]


def test_filters_name_what_they_found() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "content_filter"}
    choice["content_filter_results"] = {"violence": {"filtered": True}, "hate": {"filtered": False}}
    assert read({"choices": [choice]}).refusal == "content_filter: the answer was withheld (violence)"


def test_content_in_parts_and_reasoning() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}, {"text": "b"}, "?"]
    message = {"content": parts, "reasoning_content": "hmm", "reasoning": "hmm", "thinking_blocks": [{}]}
    assert read(completion(message)).message == Message("assistant", "ab")


def test_odd_calls_are_survived() -> None:
    odd = [None, "x", {"function": None}, {"id": 7, "name": "Bash", "arguments": {"command": "ls"}}]
    reply = read(completion({"content": None, "tool_calls": odd}))
    assert reply.message is not None
    first, second, flat = reply.message.tool_calls
    assert first.name == second.name == "unnamed"
    assert flat == ToolCall("7", "Bash", '{"command":"ls"}')
    old = read(completion({"function_call": {"name": "Bash", "arguments": "{}"}}))
    assert old.message is not None and old.message.tool_calls == (ToolCall("", "Bash", "{}"),)


def test_calls_with_one_id_stay_apart() -> None:
    calls = [{"id": "a", "function": {"name": "Read", "arguments": f'{{"n": {n}'}} for n in range(2)]
    reply = read(completion({"tool_calls": calls}))
    assert reply.message is not None and len(reply.message.tool_calls) == 2


def test_other_choices_are_left_out() -> None:
    choices = [{"index": 1, "message": {"content": "no"}}, {"index": 0, "message": {"content": "yes"}}]
    assert read({"choices": choices}).message == Message("assistant", "yes")


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 4, 2)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 0}, Usage(9, 0, None)),
        ({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 3}, Usage(9, 3, 2)),
        ({"prompt_tokens": 9, "cached_tokens": 99}, Usage(9, None, None)),
        ({"prompt_tokens": True, "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": float("inf"), "completion_tokens": "x"}, Usage()),
        ([], Usage()),
        ("120", Usage()),
    ],
)
def test_usage(usage: object, wanted: Usage) -> None:
    assert read(completion({"content": "hi"}, usage=usage)).usage == wanted


def test_an_endless_answer_is_given_up() -> None:
    delta = b"".join(stream({"content": "x" * 2**20}, done=False)[:1])

    def chunks() -> Iterable[bytes]:
        while True:
            yield delta

    with pytest.raises(AnswerFault, match="longer than 8388608 characters"):
        read_reply(EVENTS, chunks())


# --- pieces of calls ------------------------------------------------------------------------------------------------


def piece(text: str, **more: object) -> dict[str, Any]:
    function = {"arguments": text} | ({"name": more.pop("name")} if "name" in more else {})
    return {"tool_calls": [{**more, "function": function}]}


TWO = (ToolCall("a", "Read", '{"x": 1}'), ToolCall("b", "Bash", '{"y": 2}'))


@pytest.mark.parametrize(
    "deltas",
    [
        [piece("", index=0, id="a", name="Read"), piece('{"x": 1}', index=0)]
        + [piece("", index=1, id="b", name="Bash"), piece('{"y": 2}', index=1)],
        # interleaved
        [piece('{"x"', index=0, id="a", name="Read"), piece('{"y"', index=1, id="b", name="Bash")]
        + [piece(": 1}", index=0), piece(": 2}", index=1)],
        # no index, the id only at the start
        [piece("", id="a", name="Read"), piece('{"x": 1}'), piece("", id="b", name="Bash"), piece('{"y": 2}')],
        # no index, the id repeated, the name too
        [piece('{"x": ', id="a", name="Read"), piece("1}", id="a", name="Read"), piece('{"y": 2}', id="b", name="Bash")],
        # index 0 for every call, each whole
        [piece('{"x": 1}', index=0, id="a", name="Read"), piece('{"y": 2}', index=0, id="b", name="Bash")],
        # a new id for every piece
        [piece('{"x": ', index=0, id="a", name="Read"), piece("1}", index=0, id="zz")]
        + [piece('{"y": 2}', index=1, id="b", name="Bash")],
        # names in pieces, and grown
        [piece("", index=0, id="a", name="Re"), piece("", index=0, name="ad"), piece('{"x": 1}', index=0)]
        + [piece("", index=1, id="b", name="Ba"), piece('{"y": 2}', index=1, name="Bash")],
        # the last call once more, whole
        [piece('{"x": 1}', index=0, id="a", name="Read"), piece('{"y": 2}', index=1, id="b", name="Bash")]
        + [piece('{"y": 2}', index=1, id="b", name="Bash")],
        # both in one delta
        [
            {
                "tool_calls": piece('{"x": 1}', id="a", name="Read")["tool_calls"]
                + piece('{"y": 2}', id="b", name="Bash")["tool_calls"]
            }
        ],
    ],
)
def test_ways_to_stream_two_calls(deltas: list[dict[str, Any]]) -> None:
    reply = read_reply(EVENTS, stream(*deltas))
    assert reply.message == Message("assistant", None, TWO)


def test_streamed_calls_without_ids() -> None:
    reply = read_reply(EVENTS, stream(piece('{"x": 1}', name="Read"), piece('{"y": 2}', name="Read")))
    assert reply.message is not None
    assert [c.arguments for c in reply.message.tool_calls] == ['{"x": 1}', '{"y": 2}']


def test_a_whole_message_in_the_last_chunk_is_not_doubled() -> None:
    chunks = stream({"content": "hi"}, finish="stop", done=False)
    last = {"choices": [{"delta": {}, "message": {"content": "hi"}, "finish_reason": "stop"}]}
    assert read_reply(EVENTS, [*chunks, b"data: " + json.dumps(last).encode() + b"\n\n"]).message == Message("assistant", "hi")
    assert read_reply(EVENTS, [b"data: " + json.dumps(last).encode() + b"\n\n"]).message == Message("assistant", "hi")


def test_half_characters_in_two_pieces_are_joined() -> None:
    assert read_reply(EVENTS, stream({"content": "\ud83d"}, {"content": "\ude00"})).message == Message("assistant", "😀")


def test_usage_may_come_anywhere() -> None:
    for at in range(3):
        chunks = stream({"content": "a"}, {"content": "b"}, done=False)
        chunks.insert(at, b'data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}\n\n')
        assert read_reply(EVENTS, chunks).usage == Usage(5, None, 1)
    groq = b'data: {"choices": [], "x_groq": {"usage": {"prompt_tokens": 5}}}\n\n'
    assert read_reply(EVENTS, [*stream({"content": "a"}, done=False), groq]).usage == Usage(5)


# --- properties -----------------------------------------------------------------------------------------------------

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["Read", "Bash", "UpdatePlanStep"]),
        st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=3),
    ),
    max_size=3,
)


@given(st.text(max_size=30), CALLS, st.integers(1, 9), st.booleans(), st.lists(st.integers(0, 4000), max_size=30))
def test_any_pieces_and_any_cuts_say_the_same(
    text: str, calls: list[tuple[str, dict[str, str]]], pieces: int, ascii: bool, places: list[int]
) -> None:
    wire = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=ascii)}}
        for n, (name, args) in enumerate(calls)
    ]
    whole = completion({"role": "assistant", "content": text, "tool_calls": wire}, "stop", usage={"prompt_tokens": 3})
    data = b"".join(sse(whole, pieces))
    marks = sorted({min(p, len(data)) for p in places} | {0, len(data)})
    chunks = [data[a:b] for a, b in pairwise(marks)]
    assert read_reply(EVENTS, chunks) == read(whole)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "delta", "content", "tool_calls", "function", "name", "arguments", "id"])
            | st.sampled_from(
                ["index", "usage", "prompt_tokens", "error", "code", "type", "finish_reason", "refusal", "model"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(VALUES, st.booleans())
def test_any_json_gives_a_reply_or_a_fault(value: object, streamed: bool) -> None:
    data = json.dumps(value).encode()
    for body in (data, json.dumps({"choices": [{"message": value, "delta": value}], "usage": value}).encode()):
        try:
            reply = read_reply(EVENTS if streamed else JSON, [b"data: " + body + b"\n\ndata: [DONE]\n\n" if streamed else body])
        except AnswerFault as error:
            assert error.fault.message
            continue
        if reply.message is not None:
            json.dumps(reply.message.wire(), ensure_ascii=False).encode()


@given(st.binary(max_size=200), st.sampled_from([JSON, EVENTS, "text/html", ""]))
def test_any_bytes_give_a_reply_or_a_fault(body: bytes, kind: str) -> None:
    try:
        read_reply(kind, [body])
    except AnswerFault as error:
        assert error.fault.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>a</think>b", "b"),
        ("\n<think>\n\n</think>\n\nb", "b"),
        ("<think>a</think> <think>c</think>b", "b"),
        ("<thought>a</thought>b", "b"),
        ("<think>a", None),
        ("<think></think>", None),
        ("b <think>a</think>", "b <think>a</think>"),
        ("<thinker>a</thinker>", "<thinker>a</thinker>"),
        ("<think>a</thought>b", None),
    ],
)
def test_thoughts_in_the_text(text: str, said: str | None) -> None:
    for reply in (read(completion({"content": text})), read_reply(EVENTS, sse(completion({"content": text}), pieces=5))):
        assert (reply.message and reply.message.content) == said
