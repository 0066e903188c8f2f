from __future__ import annotations

import os
import re
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planrun.tools import editing
from planrun.tools.editing import NoEdit

MOST = 1 << 20


def edit(content: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int, int]:
    found = editing.edit(content.encode(), old.encode(), new.encode(), everywhere=everywhere, most=MOST)
    return found.content.decode(), found.count, found.first


def normal(text: str) -> str:
    return re.sub("\r\n|\r", "\n", text)


WORD = st.text("ab ", max_size=4)
NEWLINE = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.lists(st.tuples(WORD, NEWLINE), max_size=8)


def joined(lines: list[tuple[str, str]]) -> str:
    return "".join(text + newline for text, newline in lines)


@given(LINES, WORD, LINES, st.text("xy\n", max_size=6))
def test_untouched_lines_keep_their_bytes(
    before: list[tuple[str, str]], tail: str, after: list[tuple[str, str]], new: str
) -> None:
    content = joined(before) + "OLD" + tail + "\r\n" + joined(after)
    edited = edit(content, "OLD", new, everywhere=False)[0]
    assert edited.startswith(joined(before))
    assert edited.endswith(tail + "\r\n" + joined(after))
    assert edited == joined(before) + new.replace("\n", "\r\n") + tail + "\r\n" + joined(after)


@given(st.text("ab\n", max_size=30), st.text("ab\n", max_size=6), st.data())
def test_normalised_result_is_a_plain_replacement(text: str, new: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text)))
    old = text[begin : data.draw(st.integers(begin, len(text)))]
    assume(old and old != new)
    count = text.count("\n")
    styles = iter(data.draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=count, max_size=count)))
    content = re.sub("\n", lambda _: next(styles), text)
    assert normal(edit(content, old, new, everywhere=True)[0]) == text.replace(old, new)


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]), st.data())
def test_one_style_stays_one_style(lines: list[str], newline: str, data: st.DataObject) -> None:
    content = newline.join(lines) + newline
    old = data.draw(st.sampled_from(lines)) + "\n"
    new = data.draw(st.text("xyz\n", max_size=8))
    result = edit(content, old, new, everywhere=True)[0]
    assert result == normal(content).replace(old, new).replace("\n", newline)


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\n"),
        ("a\r\nb\r\n", "a\n", "a\nx\ny\n", "a\r\nx\r\ny\r\n" + "b\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\n"),
        ("a", "a", "b\nc", "b\nc"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("x\r\ny\nz", "y\n", "", "x\r\nz"),
    ],
)
def test_newlines(content: str, old: str, new: str, expected: str) -> None:
    assert edit(content, old, new, everywhere=False)[0] == expected


def test_everywhere_counts() -> None:
    assert edit("a\na\nb\n", "a", "cc", everywhere=True) == ("cc\ncc\nb\n", 2, 1)


@pytest.mark.parametrize(
    ("content", "old", "new", "said"),
    [
        ("a", "", "b", "old is empty"),
        ("a", "a", "a", "the same"),
        ("a\nb\na\n", "a", "c", "2 times (lines 1, 3)"),
        ("def f():\n    return 1\n", "def f():\nreturn 1\n", "x", "Only the white space differs at lines 1-2"),
        ("def total(items):\n    pass\n", "def totl(items):", "x", "most similar text is at line 1:\ndef total(items):"),
        ("abc\n", "zzzzzz", "x", "nor anything similar"),
        ("", "zzzzzz", "x", "nor anything similar"),
        ("x", "\n\n", "y", "not found"),
    ],
)
def test_what_is_wrong_is_said(content: str, old: str, new: str, said: str) -> None:
    with pytest.raises(NoEdit, match=re.escape(said)):
        edit(content, old, new, everywhere=False)


def test_searching_the_nearest_is_bounded() -> None:
    content = "\n".join("abcdefghij" * 30 + str(i) for i in range(20_000))
    with pytest.raises(NoEdit):
        edit(content, "abcdefghi_" * 200, "x", everywhere=False)


def slow(content: str, old: str, new: str) -> str:
    """The definition: line by line with the styles in a list."""
    styles = re.findall("\r\n|\r|\n", content)
    text, done, parts = normal(content), 0, []
    while (place := text.find(old, done)) >= 0:
        before = len(os.path.commonprefix([old, new]))  # noqa: RUF071 - characters are meant
        after = len(os.path.commonprefix([old[before:][::-1], new[before:][::-1]]))  # noqa: RUF071 - characters are meant
        at = text.count("\n", 0, place + before)
        lost = old.count("\n", before, len(old) - after)
        near = at + lost - 1 if lost else min(at, len(styles) - 1)
        own = iter(styles[at : at + lost])
        parts.append((place, [next(own, styles[near]) for _ in range(new.count("\n", before, len(new) - after))], at, lost))
        done = place + len(old)
    for _, gained, at, lost in reversed(parts):
        styles[at : at + lost] = gained
    rest = iter(styles)
    return re.sub("\n", lambda _: next(rest), text.replace(old, new))


@given(LINES, st.text("ab\n", min_size=1, max_size=3), st.text("ab\n", max_size=4))
def test_mixed_newlines_as_defined(lines: list[tuple[str, str]], old: str, new: str) -> None:
    content = joined([*lines, ("", "\r\n"), (old.replace("\n", ""), "\n")])
    assume(old != new and old in normal(content))
    assert edit(content, old, new, everywhere=True)[0] == slow(content, old, new)


def test_a_result_beyond_the_limit_is_refused() -> None:
    with pytest.raises(NoEdit, match="would be larger than 1 MiB"):
        edit("x\n" * 1000, "x", "y" * 2000, everywhere=True)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r\n\n"])
def test_memory_is_a_few_times_the_content(newline: str) -> None:
    content = ("x" + newline) * ((1 << 16) // (1 + len(newline)))
    tracemalloc.start()
    try:
        editing.edit(content.encode(), b"x", b"yz", everywhere=True, most=MOST)
        with pytest.raises(NoEdit):
            editing.edit(content.encode(), b"q\n" * 20_000, b"yz", everywhere=True, most=MOST)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(content) + (1 << 20)
    finally:
        tracemalloc.stop()
