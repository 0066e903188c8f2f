from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.building import all_tools
from planrun.core.names import TOOLS
from planrun.tools.base import Tool
from planrun.tools.registry import builtin_tools, parse_arguments, schema


def tool(name: str) -> Tool:
    return next(tool for tool in builtin_tools() if tool.name == name)


def test_order_and_effects() -> None:
    assert [tool.name for tool in builtin_tools()] == ["Read", "Write", "Edit", "Glob", "Grep", "Ls", "Bash"]
    assert tuple(tool.name for tool in all_tools()) == TOOLS
    assert [tool.name for tool in builtin_tools() if tool.read_only] == ["Read", "Glob", "Grep", "Ls"]


def test_schemas_are_small_and_plain() -> None:
    text = json.dumps([schema(tool) for tool in builtin_tools()], separators=(",", ":"))
    assert len(text) <= 2000
    assert '"title"' not in text
    assert '"default"' not in text
    edit = schema(tool("Edit"))["function"]
    assert isinstance(edit, dict)
    assert list(edit["parameters"]["properties"]) == ["file_path", "old", "new", "all"]
    assert edit["parameters"]["required"] == ["file_path", "old", "new"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("Read", '{"file_path": "a", "lines": 3}', "there is no argument lines"),
        ("Read", "", "file_path is missing. It takes: file_path (string, required), offset (integer), limit (integer)"),
        ("Read", '{"file_path": ', "not valid JSON"),
        ("Read", "[]", "not a JSON object"),
        ("Read", "null", "not a JSON object"),
        ("Read", '"{\\"file_path\\": \\"a\\"}"', "not a JSON object"),
        ("Read", '{"file_path": null}', "file_path: "),
        ("Bash", '{"command": "x", "timeout": 0}', "timeout: "),
        ("Read", "[" * 100_000, "not valid JSON"),
    ],
)
def test_errors_tell_what_is_expected(name: str, arguments: str, said: str) -> None:
    parsed = parse_arguments(tool(name), arguments)
    assert isinstance(parsed, str)
    assert said in parsed
    assert len(parsed) < 1000


@pytest.mark.parametrize(
    ("name", "arguments", "subject"),
    [
        ("Read", '{"path": "a", "offset": "3", "limit": null}', "a"),
        ("Edit", '{"file_path": "b", "old_string": "x", "new_string": "y", "replace_all": "true"}', "b"),
        ("Ls", "", "."),
        ("Bash", '{"command": "ls", "timeout": 1e999}', "ls"),
        ("Write", '{"file_path": "c", "content": "\\ud83d"}', "c"),
    ],
)
def test_aliases_and_subjects(name: str, arguments: str, subject: str) -> None:
    parsed = parse_arguments(tool(name), arguments)
    assert not isinstance(parsed, str), parsed
    assert tool(name).subject(parsed) == subject


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters(codec=None)),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


@given(st.one_of(st.text(st.characters(codec=None)), JSON.map(json.dumps)), st.sampled_from(builtin_tools()))
def test_nothing_breaks_it(arguments: str, tool: Tool) -> None:
    parsed = parse_arguments(tool, arguments)
    if isinstance(parsed, str):
        parsed.encode("utf-8")
