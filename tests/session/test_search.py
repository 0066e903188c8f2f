"""Searching: the index finds what a scan finds, any text may be looked for, and the index may be lost at any time."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planrun
from planrun.core.archive import Search, Unclear
from planrun.core.edits import Insert
from planrun.core.events import Event
from planrun.core.messages import ToolCall
from planrun.session import index, terms, times
from planrun.session.log import Clock
from planrun.session.search import WINDOW
from tests.cases_support import CASES
from tests.session.archives import append, compacted, find, numbers, said, write

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["error", "Error", "foo_bar", "TKT-417", "can't", "AND", "and", "NOT", "café", "CAFÉ", "7.12", "a:b", "量子纠缠态", "量子", "子",
             "コンピュータ", "用Python写", "한국어를", "ไทย", "ß", "İstanbul", "ﬁle", "x\u0301", "👍🏽", "✓done", "…", "\ud7ff", "\ue000and", "\0",
             "हिन्दी", "½", "ℌ", "\u200d", "a" * 40_000]
        ),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
        st.text("量子纠缠态学", max_size=5),
        st.text("ab -\"'()*", max_size=6),
    ),
    max_size=6,
).map(" ".join)  # fmt: skip
EVENTS = st.one_of(
    st.builds(said, TEXTS, st.sampled_from(["system", "user", "assistant", "tool"]), st.sampled_from(["one", "two", None])),
    st.builds(lambda text, level: compacted(Insert(text, 1, 2, level), boundary="two"), TEXTS, st.integers(0, 3)),
    st.builds(lambda text: said(None, "assistant", calls=(ToolCall("c", "Bash", json.dumps({"command": text})),)), TEXTS),
)
ASKED = st.fixed_dictionaries(
    {"mode": st.sampled_from(["words", "boolean"]), "scope": st.sampled_from(["message", "summary", "both"])},
    optional={"role": st.sampled_from(["user", "tool"]), "step": st.sampled_from(["one", "two"])},
)
PATTERNS = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: f'"{text}"'),
    st.lists(st.sampled_from(["error", "量子", "NOT", "AND", "OR", "(", ")", '"a b"', "and", "子", "*"]), max_size=7).map(
        " ".join
    ),
)
SLOW = settings(suppress_health_check=list(HealthCheck))


@SLOW
@given(
    st.lists(st.lists(EVENTS, max_size=8), min_size=1, max_size=3), st.lists(st.tuples(PATTERNS, ASKED), min_size=1, max_size=6)
)
def test_the_index_equals_a_scan(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Event]], asks: list[tuple[str, dict[str, object]]]
) -> None:
    folder = tmp_path_factory.mktemp("s")
    other = write(folder, [said("error 量子 AND", step="two")], "other")
    path = write(folder, [])
    for part in parts:
        append(path, part)
        for pattern, asked in asks:
            for where in ([path], [other, path]):
                everywhere = len(where) > 1
                try:
                    scanned = find(where, pattern, indexed=False, all_sessions=everywhere, limit=50, **asked)
                except Unclear:
                    with pytest.raises(Unclear):
                        find(where, pattern, **asked)
                    continue
                found = find(where, pattern, all_sessions=everywhere, limit=50, **asked)
                assert set(found.hits) == set(scanned.hits)
                assert found._replace(hits=()) == scanned._replace(hits=())


@given(st.text("量子纠缠态学", min_size=1, max_size=12), st.text("量子纠缠态学", min_size=1, max_size=5))
def test_signs_are_found_wherever_they_stand(text: str, sought: str) -> None:
    from planrun.session.query import matches, parse

    query = parse(sought, "words")
    assert query is not None
    assert matches(query, terms.line(f"das {text}, or")) == (sought in text)


def test_fts_01_every_query_finds_what_it_should(tmp_path: Path) -> None:
    case = json.loads((CASES / "FTS-01.queries.json").read_text(encoding="utf-8"))
    path = write(tmp_path, [said(text) for text in case["archive"]])
    for query, count in case["queries"]:
        found = find(path, query)
        assert found.total == len(found.hits) == count, query
        assert found == find(path, query), "the order is stable"
        if not query.strip(' *"'):
            assert found.message


@pytest.mark.parametrize(
    ("text", "pattern", "hit"),
    [
        ("量子纠缠态", "态", True),
        ("量子纠缠态", "子纠", True),
        ("量子纠缠态", "纠缠态", True),
        ("量子纠缠态", "量子纠缠", True),
        ("量子纠缠态", "量子纠缠态", True),
        ("量子纠缠态", "量纠", False),
        ("用Python写的", "Python写", True),
        ("用Python写的", "用Python", True),
        ("用Python写的", "写 python", True),
        ("データベースの更新", "ベース", True),
        ("ﾃﾞｰﾀﾍﾞｰｽ", "データ", True),
        ("한국어를 배우다", "한국", True),
        ("it is ok", "ok", True),
        ("plan B", "b", True),
        ("Zürich café", "zurich CAFE\u0301", True),
        ("ＦＵＬＬ width", "full", True),
        ("ship it 🚀", "🚀", True),
        ("foo_bar.baz", "bar", True),
        ("foo bar", "ba", False),
        ("one two three", '"one two"', True),
        ("one two three", '"one three"', False),
        ("one two three", "three one", True),
        ("one two three", "one four", False),
        ("miss and hit", "AND", False),
    ],
)
def test_words(tmp_path: Path, text: str, pattern: str, hit: bool) -> None:
    assert find(write(tmp_path, [said(text)]), pattern).total == hit


@pytest.mark.parametrize(
    ("pattern", "records"),
    [
        ("red AND blue", [4]),
        ("red blue", [4]),
        ("red OR blue", [2, 3, 4]),
        ("red NOT blue", [2]),
        ("NOT blue red", [2]),
        ("(red OR blue) AND NOT (green OR white)", [2, 3]),
        ('"blue red" OR white', [4]),
        ("red AND *", [2, 4]),
        ("((((((((red))))))))", [2, 4]),
        ("and", []),
    ],
)
def test_boolean(tmp_path: Path, pattern: str, records: list[int]) -> None:
    path = write(tmp_path, [said("red"), said("blue"), said("blue red white green")])
    assert numbers(find(path, pattern, mode="boolean")) == records


@pytest.mark.parametrize(
    "pattern",
    ["AND", "red OR", "NOT red", "(red", "red)", "()", "red AND OR blue", "red NOT", "(" * 9 + "red" + ")" * 9, "x " * 101],
)
def test_what_is_not_boolean_is_explained(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(Unclear):
        find(write(tmp_path, [said("red")]), pattern, mode="boolean")


def test_operators_in_mode_words_are_words_and_a_hint_says_so(tmp_path: Path) -> None:
    found = find(write(tmp_path, [said("red and blue")]), "red AND blue")
    assert (found.total, "boolean" in found.message) == (0, True)


def test_a_hit_tells_where_it_is(tmp_path: Path) -> None:
    call = ToolCall("c", "Bash", json.dumps({"command": 'grep -r "timeout" src\nls'}))
    events = [
        said("the plan", "system", None),
        said(None, "assistant", "two", (call,)),
        compacted(Insert("timeout was it", 2, 3, 2)),
    ]
    path = write(tmp_path, events)
    found = find(path, "timeout")
    by_kind = {hit.kind: hit for hit in found.hits}
    message, summary = by_kind["message"], by_kind["summary"]
    assert (message.session, message.record, message.role, message.step, message.level) == ("s", 3, "assistant", "two", None)
    assert message.snippet == 'Bash command: grep -r "timeout" src ls'
    assert (summary.record, summary.role, summary.level, summary.snippet) == (4, None, 2, "timeout was it")
    assert numbers(find(path, "timeout", scope="summary")) == [4]
    assert numbers(find(path, "timeout", scope="message")) == [3]
    assert numbers(find(path, "timeout", role="assistant", step="two")) == [3]
    assert numbers(find(path, "timeout", role="user")) == []


def test_a_notice_of_what_left_the_context_is_no_summary(tmp_path: Path) -> None:
    path = write(tmp_path, [compacted(Insert("2 earlier messages left the context", 2, 3, 0), Insert("a summary", 4, 9, 1))])
    for indexed in (True, False):
        assert find(path, "earlier messages", indexed=indexed).total == 0
        assert [hit.level for hit in find(path, "summary", indexed=indexed).hits] == [1]


def test_a_snippet_shows_the_match_and_nothing_that_moves_a_cursor(tmp_path: Path) -> None:
    text = f"{'before ' * 300}\x1b[31m the\tNEEDLE\r\n is \u202ehere {'after ' * 300}"
    hit = find(write(tmp_path, [said(text), said("量" * 4000 + "子" + "量" * 4000)]), "needle").hits[0]
    assert len(hit.snippet) <= 300
    assert "the NEEDLE is here after" in hit.snippet
    assert hit.snippet.isprintable()
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…")
    assert "量子量" in find(tmp_path / "s.jsonl", "量子").hits[0].snippet


def test_the_better_match_comes_first_and_the_newer_of_equals(tmp_path: Path) -> None:
    events = [said(f"proxy {'and other words ' * 20}"), said("proxy down"), said("proxy down"), *[said("nothing")] * 9]
    assert [hit.record for hit in find(write(tmp_path, events), "proxy").hits] == [4, 3, 2]


def test_a_common_word_is_counted_and_ranked_up_to_a_bound(tmp_path: Path) -> None:
    path = write(tmp_path, [said(f"common {i}") for i in range(WINDOW + 30)])
    found = find(path, "common", limit=3)
    assert (found.total, found.more) == (WINDOW, True)
    assert min(hit.record for hit in found.hits) > 31
    assert find(path, "common", limit=3, indexed=False)._replace(hits=()) == found._replace(hits=())


def test_what_a_search_answered_is_not_found_again(tmp_path: Path) -> None:
    """Else every search for the same would find more than the last, and nothing could tell that a model goes in circles."""
    call = ToolCall("c", "SearchHistory", '{"pattern":"needle"}')
    path = write(
        tmp_path,
        [said("a needle"), said("look", "assistant", "one", (call,)), said("#2 a needle", "tool", name="SearchHistory")],
    )
    assert numbers(find(path, "needle")) == [2]
    assert numbers(find(path, "look")) == [3]


def test_times(tmp_path: Path) -> None:
    path = write(tmp_path, [said("old"), said("new")])
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    moments = {2: 1769850000.0, 3: 1769850000.5}  # 2026-01-31 09:00:00 UTC
    body = "".join(json.dumps({**line, "timestamp": moments.get(line["seq"], line["timestamp"])}) + "\n" for line in lines)
    path.write_text(body, encoding="utf-8")
    for same in (
        "2026-01-31T09:00:00Z",
        "2026-01-31T14:30:00+05:30",
        "2026-01-31 04:00-0500",
        "2026-01-31T10:00:00+01",
        "20260131T090000Z",
    ):
        assert numbers(find(path, "old OR new", mode="boolean", since=same)) == [2, 3]
        assert numbers(find(path, "old OR new", mode="boolean", before=same)) == []
    assert numbers(find(path, "old OR new", mode="boolean", since="2026-01-31T09:00:00.2Z")) == [3]
    assert numbers(find(path, "old OR new", mode="boolean", before="2026-01-31T09:00:00.2Z")) == [2]
    assert numbers(find(path, "old OR new", mode="boolean", since="2026-01-29", before="2026-02-02")) == [2, 3]
    assert numbers(find(path, "old", before="2026-01-30")) == []


def test_ages_and_dates() -> None:
    assert [times.age(a) for a in ("30min", "6h", "7d", "2w", "1m")] == [1800, 21_600, 604_800, 1_209_600, 2_592_000]
    assert times.moment("2026-01-31") == time.mktime((2026, 1, 31, 0, 0, 0, 0, 0, -1))
    now = Clock().now()
    assert times.span(Search("x", last="1h", since="2000-01-01"), now)[0] == now - 3600
    for wrong in ("6", "h", "-6h", "6 hours", "", "9" * 9 + "h"):
        with pytest.raises(Unclear):
            times.age(wrong)
    for wrong in ("yesterday", "2026-02-30", "2026-01-31T25:00", "2026-01-31T09:00+99:00", "\0", "9" * 99):
        with pytest.raises(Unclear):
            times.moment(wrong)


def test_the_index_is_private_and_small(tmp_path: Path) -> None:
    text = " ".join(f"word{i % 977} 量子纠缠态" for i in range(40))
    path = write(tmp_path, [said(f"{i} {text}") for i in range(300)])
    find(path, "word1")
    file = tmp_path / index.NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size < 2.2 * 300 * len(text.encode()) + 50_000
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".jsonl"] == [index.NAME]


def test_only_what_was_added_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, [said("first")])
    find(path, "first")
    db = sqlite3.connect(tmp_path / index.NAME)
    before = db.execute("select no, offset from session").fetchone()
    append(path, [said("second")])
    assert numbers(find(path, "second")) == [3]
    assert before[1] < db.execute("select offset from session where no = ?", before[:1]).fetchone()[0] == path.stat().st_size
    db.close()


def test_an_unfinished_line_is_left_for_later(tmp_path: Path) -> None:
    path = write(tmp_path, [said("first"), said("second")])
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert (find(path, "second").total, find(path, "second").notices) == (0, ())
    path.write_bytes(whole[:-1])
    assert find(path, "second").total == 1
    path.write_bytes(whole)
    assert (find(path, "second").total, find(path, "second").notices) == (1, ())


def test_damaged_lines_hide_nothing_else_and_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, [said("first"), said("second"), said("third")])
    good = write(tmp_path, [said("third")], "t")
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    path.write_bytes(b"\n".join([lines[0], b"[1]", b"\xff{", *lines[1:3], lines[1], b'{"seq":true}', *lines[3:]]))
    for indexed in (True, False):
        assert numbers(find(path, "first", indexed=indexed)) == [2]
        assert numbers(find(path, "second", indexed=indexed)) == []
        everywhere = find([path, good], "third", indexed=indexed, all_sessions=True)
        assert everywhere.total == 2
        assert everywhere.notices == ("5 lines of session s could not be read; `planrun doctor s` says more",)


def _spoil(file: Path, how: str) -> None:
    match how:
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "text":
            file.write_bytes(b"this is no database, and it is longer than a header of one would be: " * 40)
        case "torn":
            file.write_bytes(file.read_bytes()[:9000])
        case "pages":
            data = bytearray(file.read_bytes())
            data[4096:] = os.urandom(len(data) - 4096)
            file.write_bytes(bytes(data))
        case _:
            with sqlite3.connect(file) as db:
                db.executescript(how)
            db.close()


SPOILT = [
    "gone", "empty", "text", "torn", "pages", "pragma user_version = 99", "drop table fts", "drop table session",
    "update doc set offset = offset + 7",
    "delete from session", "update session set offset = 5",
]  # fmt: skip


@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_index_is_made_anew(tmp_path: Path, how: str) -> None:
    path = write(tmp_path, [said(f"needle {i}") for i in range(60)])
    before = find(path, "needle", limit=50)
    _spoil(tmp_path / index.NAME, how)
    again = find(path, "needle", limit=50)
    assert again._replace(notices=()) == before
    assert len(again.notices) <= 1
    assert find(path, "needle", limit=50) == before


def test_where_there_can_be_no_index_a_scan_finds_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, [said("needle")])
    (tmp_path / index.NAME).mkdir()
    found = find(path, "needle")
    assert (found.total, len(found.notices)) == (1, 1)
    assert "without the index" in found.notices[0]


def test_a_locked_index_is_passed_by(tmp_path: Path) -> None:
    path = write(tmp_path, [said("needle")])
    find(path, "needle")
    append(path, [said("needle")])
    db = sqlite3.connect(tmp_path / index.NAME, isolation_level=None)
    db.execute("begin exclusive")
    found = find(path, "needle", busy=0.05)
    assert (found.total, [n.startswith("searched without the index") for n in found.notices]) == (2, [True])
    db.close()
    assert find(path, "needle").notices == ()


def test_an_index_that_is_deleted_while_it_is_used_is_made_anew(tmp_path: Path) -> None:
    path = write(tmp_path, [said(f"needle {i}") for i in range(20)])
    before = find(path, "needle")
    with index.opened(tmp_path) as db:
        for file in tmp_path.glob(f"{index.NAME}*"):
            file.unlink()
        assert find(path, "needle") == before
        append(path, [said("needle")])
        index.catch_up(db, path)  # of whoever had it open, and goes on with what has no name any more
    found = find(path, "needle")
    assert (found.total, found.notices) == (21, ())


def test_the_index_of_another_folder_is_made_anew(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = write(tmp_path / name, [said(f"needle of {name}")] * 3)
        assert find(path, "needle").total == 3
    (tmp_path / "a" / index.NAME).replace(tmp_path / "b" / index.NAME)
    found = find(path, "needle")
    assert (found.total, {hit.snippet for hit in found.hits}) == (3, {"needle of b"})
    assert found.notices == ("the index is made anew: most of it is of logs that are gone",)


def test_a_log_that_was_replaced_or_deleted_is_not_found_any_more(tmp_path: Path) -> None:
    kept = write(tmp_path, [said("needle")] * 9, "kept")
    path = write(tmp_path, [said("needle old")] * 3)
    assert find([kept, path], "needle", all_sessions=True).total == 12
    path.unlink()
    write(tmp_path, [said("needle new, and more than before, so that it is longer than the first one")])
    assert find([kept, path], "needle", all_sessions=True).total == 10
    assert find(path, "old").total == 0
    path.unlink()
    assert find([kept], "needle", all_sessions=True).total == 9
    kept.unlink()
    other = write(tmp_path, [said("needle")], "other")
    assert find([other], "needle", all_sessions=True).total == 1


def test_several_processes_catch_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, [said(f"needle {i} {'word ' * 50}") for i in range(2000)])
    program = (
        "import sys; from pathlib import Path\n"
        "from planrun.core.archive import Search; from planrun.session import index; from planrun.session.search import search\n"
        "index.BATCH = 20_000; sys.stdin.read()\n"
        "found = search([Path(sys.argv[1])], Search('needle 1999'))\n"
        "print(found.total, *(h.record for h in found.hits), *found.notices)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(planrun.__file__).parents[1])}
    argv = [sys.executable, "-c", program, str(path)]
    started = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    said_by = [process.stdout.read() if process.stdout else "" for process in started]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    for process in started:
        if process.stdout:
            process.stdout.close()
    assert said_by == ["1 2001\n"] * 3
    db = sqlite3.connect(tmp_path / index.NAME)
    assert db.execute("select count(*), count(distinct offset) from doc").fetchone() == (2000, 2000)
    assert db.execute("select count(*) from fts_docsize").fetchone() == (2000,)
    db.close()
