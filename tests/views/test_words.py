"""Numbers and texts in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.views.words import amount, block, duration, money, one_line, plural


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0s"), (0.44, "0.4s"), (12.4, "12s"), (59.7, "1m"), (185, "3m05s"), (3599.7, "1h"), (7620, "2h07m")],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(("cost", "shown"), [(None, "unknown"), (0.0, "$0.00"), (0.0123, "$0.0123"), (3.456, "$3.46")])
def test_money(cost: float | None, shown: str) -> None:
    assert money(cost) == shown


def test_counts() -> None:
    assert (amount(4210), plural(1, "turn"), plural(1200, "token")) == ("4,210", "1 turn", "1,200 tokens")


@given(st.text(max_size=400), st.integers(4, 200))
def test_a_line_is_one_line_within_its_limit_and_harmless(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.splitlines() in ([], [line])
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line)


@given(st.text(max_size=400))
def test_a_block_moves_no_cursor(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in block(text))
