"""Originals back, by every kind of id, in pieces where there is little room."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.core.archive import Expanded
from planrun.core.edits import Cut, Drop, Elide, Insert, Shorten
from planrun.core.messages import ToolCall
from planrun.session.history import History
from planrun.session.texts import newest, parse, seek
from tests.session.archives import compacted, ran, said, write

CALL = ToolCall("c1", "Bash", '{"command": "ls"}')
EVENTS = [
    said("You work.", "system", None),  # 2
    said("Do one."),
    said("I look.", "assistant", "one", (CALL,)),
    said("a.txt\nb.txt", "tool", name="Bash"),  # 5
    said("Step one is done.", "assistant"),
    compacted(Elide((5,)), boundary="two"),  # 7
    said("Do two.", step="two"),
    said("done", "assistant", "two"),
    ran("3 vulnerabilities", "audit"),  # 10
    compacted(Insert("They looked.", 3, 6, 1), Drop(8, 9), boundary="three"),
    compacted(Insert("Short.", 3, 9, 2), Shorten((4,)), Cut(3, 10)),  # 12
]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, write(tmp_path, EVENTS))


def records(given: Expanded) -> list[int]:
    return [original.record for original in given.originals]


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ("3", [3]),
        ("5", [5]),
        ("#3, 4", [3, 4]),
        ("[3,4]", [3, 4]),
        ("4 3", [4, 3]),
        ("3-5", [3, 4, 5]),
        ("3-4,4-6,3", [3, 4, 5, 6]),
        ("two", [8, 9]),
        ("audit", [10]),
        ("7", [7, 5]),
        ("11", [11, 3, 4, 5, 6, 8, 9]),
        ("12", [12, 3, 4, 5, 6, 7, 8, 9]),
        ("9-9999999999", [9, 10, 11, 12]),
        ("s:3", [3]),
        ("s:two", [8, 9]),
        ("12@8", [8, 9]),
        ("two@9", [9]),
        ("3+3", [3]),
    ],
)
def test_ids(history: History, ids: str, found: list[int]) -> None:
    given = history.expand(ids)
    assert records(given) == found
    assert (given.unknown, given.rest, given.notices) == ({}, "", ())


@pytest.mark.parametrize(
    "ids",
    ["999", "0", "20-30", "5-4", "three", "no-such-step", "other:3", "../x:3", "ä", "3;4", "1", "99999999999999999999", ":3"],
)
def test_what_is_not_there_is_told(history: History, ids: str) -> None:
    given = history.expand(f"{ids},3")
    assert list(given.unknown) == [ids]
    assert records(given) == [3]


def test_a_tool_result_is_given_where_it_is_asked_for(history: History) -> None:
    left_out = history.expand("4-5").originals[1]
    assert (left_out.text, left_out.left_out, left_out.message, left_out.name) == ("", 11, None, "Bash")
    for ids, results in (("5", False), ("4-5", True), ("7", True), ("5,4-5", False)):
        result = next(o for o in history.expand(ids, results).originals if o.record == 5)
        assert (result.text, result.role, result.name, result.step) == ("a.txt\nb.txt", "tool", "Bash", "one")
    assert history.expand("audit", results=True).originals[0].text == "3 vulnerabilities"


def test_calls_are_as_the_model_wrote_them(history: History) -> None:
    original = history.expand("4").originals[0]
    assert original.text == 'I look.\n-> Bash {"command": "ls"}'
    assert original.message is not None
    assert original.message["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'


def test_a_summary_is_given_with_what_it_covers(history: History) -> None:
    summary = history.expand("11").originals[0]
    assert (summary.kind, summary.role, summary.text, summary.step) == ("summary", None, "They looked.", "three")


def test_there_is_always_a_way_to_go_on(tmp_path: Path) -> None:
    texts = [f"<{i}>" + "x" * (i * 400) for i in range(8)]
    events = [said(text, "tool" if i == 5 else "user", "a" if i % 2 else "b", name="Read") for i, text in enumerate(texts)]
    history = History(tmp_path, write(tmp_path, [*events, compacted(Insert("s" * 3000, 2, 9, 1))]))
    for ids, wanted in (
        ("2-9", texts),
        ("a", texts[1::2]),
        ("10", ["s" * 3000, *texts]),
        ("9,8,2-4", [texts[7], texts[6], *texts[:3]]),
    ):
        pieces: dict[int, str] = {}
        rest, rounds = ids, 0
        while rest:
            given = history.expand(rest, True, 300, 1200)
            assert given.originals
            assert sum(len(o.text) for o in given.originals) <= 1200
            for original in given.originals:
                pieces[original.record] = pieces.get(original.record, "") + original.text
            rest, rounds = given.rest, rounds + 1
            assert rounds < 50
        assert list(pieces.values()) == wanted


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 9000), max_size=12), st.integers(1, 16), st.integers(1, 16), st.floats(10, 5000), st.booleans())
def test_pieces_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], first: int, last: int, room: float, results: bool
) -> None:
    folder = tmp_path_factory.mktemp("x")
    events = [said("y" * size, "tool" if size % 3 else "user", name="T") for size in sizes]
    history = History(folder, write(folder, events))
    whole = history.expand(f"{first}-{last}", results)
    pieces: dict[int, str] = {}
    rest = f"{first}-{last}"
    while rest:
        given = history.expand(rest, results, room, room * 2)
        for original in given.originals:
            pieces[original.record] = pieces.get(original.record, "") + original.text
        rest = given.rest
    assert pieces == {original.record: original.text for original in whole.originals}


def test_records_are_found_by_halving(tmp_path: Path) -> None:
    path = write(tmp_path, [said("z" * (i * 37 % 5000)) for i in range(200)])
    lines = path.read_bytes().split(b"\n")
    lines[50] = lines[50][:20]
    del lines[70:75]
    path.write_bytes(b"\n".join(lines))
    with path.open("rb") as file:
        for number in range(1, 210):
            file.seek(seek(file, number))
            body = parse(file.readline())
            kept = [n for n in range(number, 202) if n != 51 and not 71 <= n <= 75]
            assert (body["seq"] if body else None) == (kept[0] if kept else None)
    assert list(History(tmp_path, path).expand("51,72,201").unknown) == ["51", "72"]


def test_a_damaged_line_in_a_range_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, [said("a"), said("b"), said("c")])
    path.write_bytes(path.read_bytes().replace(b'"content":"b"', b'"content":"b'))
    given = History(tmp_path, path).expand("2-4")
    assert records(given) == [2, 4]
    assert given.notices == ("a line of session s could not be read",)


def test_the_newest_session_of_a_folder(tmp_path: Path) -> None:
    assert newest(tmp_path, "/w") is None
    paths = [write(tmp_path, [said("x" * 9000)], name, cwd) for name, cwd in (("b", "/w"), ("a", "/w"), ("c", "/elsewhere"))]
    (tmp_path / "d.jsonl").write_bytes(b"no session\n")
    for path, moment in zip(paths, (2.0, 1.0, 3.0), strict=True):
        *lines, last = path.read_bytes().splitlines()
        body = json.loads(last) | {"timestamp": moment}
        path.write_bytes(b"\n".join([*lines, json.dumps(body).encode()]) + b"\n{torn")
    assert newest(tmp_path, "/w") == paths[0]
    assert newest(tmp_path, "/nowhere") is None


def test_the_placeholder_of_an_elided_result_names_its_record(history: History) -> None:
    from planrun.core.context import Entry, placeholder
    from planrun.core.messages import Message

    text = placeholder(Entry(5, Message("tool", "a.txt\nb.txt", (), "c1"), "tool", "Bash"))
    found = re.search(r"id (\d+)", text)
    assert found
    assert history.expand(found[1]).originals[0].text == "a.txt\nb.txt"
