from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.tools.text import clean, clip

CASES = Path(__file__).parents[1] / "cases"
NOISE = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b]8;;http://h\x1b\\",
        "\x1bP",
        "\x9b1m",
        "\x1b",
        "\r",
        "\r\n",
        "\n",
        "\b",
        "\x07",
        "\x9c",
        "\0",
        "a",
        "é",
        "\ud83d",
        "\x90",
    ]
)


def test_recorded_terminal_output() -> None:
    lines = clean((CASES / "OUT-03.tool-output.bin").read_bytes()).split("\n")
    assert [line.rstrip() for line in lines] == ["red plain link C1", "progress 100%", "last"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://h\x1b\\x\x1b]8;;\x1b\\", "x"),
        ("\x1bPq#0;2\nmore\x1b\\x", "x"),
        ("\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
        ("\x9b31mx\x9d0;t\x9cy\x90q\x9cz", "xyz"),
        ("\x1b]0;never closed\nnext", "\nnext"),
        ("\x1bPnever closed\nnext", "\nnext"),
        ("end\x1b[3", "end"),
        ("end\x1b", "end"),
        ("\x1b\x00[31mx", "x"),
        ("\x1b(Bx\x1b7y\x1b=z", "xyz"),
        ("a\0b\x07c\x7fd\x0be", "abcde"),
        ("a\tb\r\nc\r\r\nd\r", "a\tb\nc\nd"),
        ("0%\r50%\r100%", "100%"),
        ("0%\r50%\r", "50%"),
        ("|\b/\b-\bok", "ok"),
        ("ab\b\b\b\bX", "Xb"),
        ("N\bNA\bA", "NA"),
        ("\ud83d\ude00 \ud83d", "\U0001f600 \ufffd"),
        (b"a\xffb", "a\ufffdb"),
        (b"caf\xe9 \x93quoted\x94", "caf\ufffd \ufffdquoted\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        ("é€😀".encode(), "é€😀"),
        (b"x\x9b31my\xff", "xy\ufffd"),
        (b"\x90 a letter in cp866\nnext\xff", "\ufffd a letter in cp866\nnext\ufffd"),
        ("", ""),
    ],
)
def test_clean(raw: bytes | str, expected: str) -> None:
    assert clean(raw) == expected


@given(st.one_of(st.binary(), st.text(st.characters(codec=None)), st.lists(NOISE).map("".join)))
def test_clean_leaves_no_control_and_twice_is_once(raw: bytes | str) -> None:
    text = clean(raw)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert clean(text) == text
    text.encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_clean_keeps_ordinary_text(text: str) -> None:
    assert clean(text) == text == clean(text.encode())


@pytest.mark.parametrize("piece", ["\x1bP", "\x1b]", "\x90", "\x1b[", "\x1b[1;", "\b", "a\r", "\x1b", "\x9b"])
def test_clean_is_linear(piece: str) -> None:
    start = time.process_time()
    clean(piece * 300_000)
    clean((piece * 300_000).encode("utf-8", "replace") + b"\xff")
    assert time.process_time() - start < 10


@given(st.text(max_size=2000), st.integers(0, 600), st.sampled_from(["", "whole text: .thclaws/x.txt, page it with Read"]))
def test_clip_never_exceeds_the_limit(text: str, limit: int, where: str) -> None:
    clipped = clip(text, limit, where)
    assert len(clipped) <= limit
    assert clipped == text or len(text) > limit


def test_clip_keeps_head_and_tail_and_counts() -> None:
    text = "\n".join(f"line {i}" for i in range(10_000))
    clipped = clip(text, 2000, "whole text: f.txt")
    head, tail = re.split(r"\n\[\.\.\. .*\]\n", clipped)
    counted = re.search(r"\[\.\.\. ([\d,]+) of ([\d,]+) characters left out here; whole text: f\.txt", clipped)
    assert counted
    assert int(counted[1].replace(",", "")) == len(text) - len(head) - len(tail)
    assert int(counted[2].replace(",", "")) == len(text)
    assert text.startswith(head + "\n")
    assert text.endswith("\n" + tail)


def test_clip_cuts_a_single_line_in_the_middle() -> None:
    clipped = clip("a" * 5000 + "b" * 5000, 500, "f")
    assert clipped.startswith("a" * 150)
    assert clipped.endswith("b" * 150)
