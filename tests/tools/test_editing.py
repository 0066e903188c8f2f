from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planrun.tools.editing import NoEdit, edit, normal

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
    edited = edit(content, "OLD", new, everywhere=False).content
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
    assert normal(edit(content, old, new, everywhere=True).content) == text.replace(old, new)


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]), st.data())
def test_one_style_stays_one_style(lines: list[str], newline: str, data: st.DataObject) -> None:
    content = newline.join(lines) + newline
    old = data.draw(st.sampled_from(lines)) + "\n"
    new = data.draw(st.text("xyz\n", max_size=8))
    result = edit(content, old, new, everywhere=True).content
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
    assert edit(content, old, new, everywhere=False).content == expected


def test_everywhere_counts() -> None:
    edited = edit("a\na\nb\n", "a", "cc", everywhere=True)
    assert (edited.content, edited.count, edited.first) == ("cc\ncc\nb\n", 2, 1)


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
