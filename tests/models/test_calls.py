"""Tool calls: safe names, JSON objects, or a fault."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.models.calls import MAX_CALLS, RawCall, safe_arguments, safe_calls, safe_name

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("my tool!", "my_tool_"), ("", "unnamed"), ("functions.Bash", "functions_Bash"), ("x" * 300, "x" * 64), ("é", "_")],
)
def test_names(name: str, wanted: str) -> None:
    assert safe_name(name) == wanted
    (made,) = safe_calls([RawCall("a", name, "{}")])
    assert made.name == wanted
    assert made.fault is not None and made.fault.startswith("there is no tool ")


@pytest.mark.parametrize("absent", [None, "", "  \n"])
def test_absent_arguments_are_an_empty_object(absent: object) -> None:
    assert safe_arguments(absent) == ("{}", None)


def test_a_good_spelling_is_kept() -> None:
    text = '{ "a" : "\\u00e9\\ud83d\\ude00", "b": 1e2, "nul": "\\u0000" }'
    assert safe_arguments(text) == (text, None)


def test_decoded_arguments_are_taken() -> None:
    assert safe_arguments({"a": "é"}) == ('{"a":"é"}', None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("null", "not null"),
        ("[1, 2]", "not an array"),
        ('"{\\"a\\": 1}"', "not a text (encoded twice)"),
        ("3", "not a number"),
        ("true", "not a boolean"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' stands twice"),
        ('{"a": 1,}', "at character 8"),
        ('{"a": "abc', "at character 6"),
        ('{"a": "x\ny"}', "Invalid control character"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("{'a': 1}", "at character 1"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"a": 1} {"b": 2}', "Extra data"),
        ("<invoke>", "not valid JSON"),
    ],
)
def test_bad_arguments(text: str, why: str) -> None:
    arguments, fault = safe_arguments(text)
    assert fault is not None and why in fault
    assert len(fault) < 400
    kept = json.loads(arguments)["invalid"]
    assert text.startswith(kept.removesuffix("…"))
    assert len(kept) <= 501


def test_half_characters_become_replacement_characters() -> None:
    arguments, fault = safe_arguments('{"content":"\\ud83d!"}')
    assert fault is None
    assert json.loads(arguments) == {"content": "\ufffd!"}
    arguments.encode()


def test_the_last_call_of_a_cut_answer_is_never_run() -> None:
    first, last = safe_calls([RawCall("a", "Bash", "{}"), RawCall("b", "Write", '{"a": 1}')], cut_off=True)
    assert first.fault is None
    assert last.fault == "cut off by the output limit"
    assert last.arguments == '{"a": 1}'


def test_more_calls_than_fit() -> None:
    made = safe_calls(RawCall(str(n), "Bash", "{}") for n in range(MAX_CALLS + 2))
    assert len(made) == MAX_CALLS
    assert made[-2].fault is None
    assert made[-1].fault == "at most 128 calls fit in one message; 2 more were left out"


@given(st.text(), st.text() | st.none() | st.dictionaries(st.text(), st.integers()), st.text())
def test_whatever_comes_can_be_sent_back(name: str, arguments: object, call_id: str) -> None:
    (made,) = safe_calls([RawCall(call_id, name, arguments)])
    assert NAME.match(made.name)
    assert isinstance(json.loads(made.arguments), dict)
    json.dumps([made.id, made.arguments, made.fault], ensure_ascii=False).encode()
