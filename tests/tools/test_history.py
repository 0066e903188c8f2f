"""The tools of the archive, in a run: what a compaction took away can be found and read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planrun.core.messages import compact_json
from planrun.core.names import HISTORY_TOOLS
from planrun.session.history import History
from planrun.testing.model import call, calls, done
from planrun.tools.base import ToolContext, ToolResult
from planrun.tools.history import HISTORY
from planrun.tools.registry import parse_arguments, schema
from tests.runner.driving import project, step
from tests.session.archives import said, write


@pytest.fixture
def archive(ctx: ToolContext, tmp_path: Path) -> ToolContext:
    """A context with an archive of two sessions, seen from `s`."""
    write(tmp_path, [said("the needle of another session")], "other")
    path = write(
        tmp_path, [said("a needle\x1b[2J"), said("hay " * 9000, "tool", name="Bash"), said("more hay", "assistant", "two")]
    )
    return replace(ctx, history=History(tmp_path, path))


def ask(ctx: ToolContext, name: str, **arguments: Any) -> ToolResult:
    tool = next(tool for tool in HISTORY if tool.name == name)
    parsed = parse_arguments(tool, json.dumps(arguments))
    if isinstance(parsed, str):
        return ToolResult(parsed, "error")
    result = tool.run(parsed, ctx)
    assert len(result.text) <= ctx.limit
    return result


def test_they_are_cheap_and_have_no_effects() -> None:
    assert [tool.name for tool in HISTORY] == ["SearchHistory", "ExpandHistory"]
    assert tuple(tool.name for tool in HISTORY) == HISTORY_TOOLS
    assert all(tool.read_only for tool in HISTORY)
    assert len(compact_json([schema(tool) for tool in HISTORY])) <= 600
    properties = schema(HISTORY[0])["function"]["parameters"]["properties"]  # type: ignore[index]
    assert list(properties) == ["pattern", "scope", "role", "step", "last", "since", "before", "all_sessions", "limit"]


def test_a_result_that_was_elided_comes_back(tmp_path: Path) -> None:
    """Step one reads a file, the boundary elides it, step two finds the record's number in the placeholder and by a search."""
    run = project(tmp_path, step("one"), step("two"))
    original = "\n".join(f"line {i}: alpha" for i in range(200)) + "\nthe password is swordfish"
    (tmp_path / "notes.txt").write_text(original)
    seen: list[str] = []

    def model(body: dict[str, Any]) -> Any:
        texts = [m["content"] or "" for m in body["messages"]]
        seen[:] = texts
        placeholder = next((t for t in texts if t.startswith("[ToolResult elided")), None)
        if placeholder is None:
            read = any("swordfish" in t for t in texts)
            return done() if read else call("Read", file_path="notes.txt")
        if "ids=" in texts[-1] or texts[-1].startswith("#"):
            return done()
        number = placeholder.rpartition(" ")[2].rstrip("]")
        wanted = [("SearchHistory", {"pattern": "swordfish"}), ("ExpandHistory", {"ids": number})]
        return calls(*wanted)

    run.run(model)
    found, expanded = [t for t in seen if t.startswith(("1 hit", "#"))][-2:]
    assert "tool in one" in found and "the password is swordfish" in found
    assert "line 17: alpha\n" in expanded and expanded.endswith("the password is swordfish")


def test_a_search_in_one_session_and_in_all(archive: ToolContext) -> None:
    here = ask(archive, "SearchHistory", pattern="needle")
    assert (here.text.splitlines()[0], here.status) == ("1 hit", "ok")
    assert here.text.splitlines()[1].startswith("#2 user in one, ") and "\x1b" not in here.text
    assert here == ask(archive, "SearchHistory", pattern="needle")
    everywhere = ask(archive, "SearchHistory", pattern="needle", all_sessions=True).text
    assert "#2 user" in everywhere and "#other:2 user" in everywhere
    assert "another session" in ask(archive, "ExpandHistory", ids="other:2").text


def test_what_is_found_can_be_narrowed(archive: ToolContext) -> None:
    assert ask(archive, "SearchHistory", pattern="hay", limit=1).text.startswith("2 hits, the best 1;")
    assert ask(archive, "SearchHistory", pattern="hay", limit=999).status == "ok"
    assert "#4" in ask(archive, "SearchHistory", query="hay", step="two", last="1h").text
    assert ask(archive, "SearchHistory", pattern="hay OR needle", mode="boolean").text.startswith("3 hits")
    nothing = ask(archive, "SearchHistory", pattern="hay AND needle")
    assert nothing.text.startswith("0 hits") and "mode boolean" in nothing.text
    assert ask(archive, "SearchHistory", pattern="*").text == "0 hits\n[there is no word to look for in that]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "x", "last": "soon"}, "6h, 7d"),
        ({"pattern": "x", "since": "soon"}, "2026-01-31"),
        ({"pattern": "x", "scope": "all"}, "'message', 'summary' or 'both'"),
        ({"pattern": "(x", "mode": "boolean"}, "`)` is missing"),
        ({}, "pattern is missing"),
    ],
)
def test_wrong_arguments_are_explained(archive: ToolContext, arguments: dict[str, Any], said: str) -> None:
    result = ask(archive, "SearchHistory", **arguments)
    assert result.status == "error" and said in result.text


def test_originals_by_every_spelling_of_ids(archive: ToolContext) -> None:
    for ids in ("2", 2, [2], ["2", 2], "#2"):
        assert ask(archive, "ExpandHistory", ids=ids).text == "#2 user in one:\na needle"
    several = ask(archive, "ExpandHistory", ids="2-4").text
    assert "[36,000 characters left out; ask for ids=3, or with results=true]" in several
    assert ask(archive, "ExpandHistory", ids="99").status == "error"
    assert "99: there is no record 99" in ask(archive, "ExpandHistory", ids="2,99").text
    assert ask(archive, "ExpandHistory", ids="").text == "[no ids were given]"


def test_what_does_not_fit_is_given_in_pieces(archive: ToolContext) -> None:
    whole = ask(archive, "ExpandHistory", ids="3")
    assert whole.text.partition("\n")[2] == "hay " * 9000
    small = replace(archive, limit=5000)
    text, ids, rounds = "", "3,4", 0
    while ids:
        result = ask(small, "ExpandHistory", ids=ids)
        ids = result.text.partition("continue with ids=")[2].rstrip("]")
        text += result.text
        rounds += 1
    assert text.count("hay ") >= 9000 and "more hay" in text and rounds < 15


def test_without_an_archive_they_say_so(ctx: ToolContext) -> None:
    assert ask(ctx, "SearchHistory", pattern="x").status == ask(ctx, "ExpandHistory", ids="1").status == "error"
