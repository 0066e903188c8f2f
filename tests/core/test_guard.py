"""The repeat guard: what counts as the same call with the same result, and when the model is stuck."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core import guard
from planrun.core.guard import fingerprint
from planrun.core.messages import compact_json


def bash(command: str, result: str) -> str:
    return fingerprint("Bash", compact_json({"command": command}), result)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("pytest -q", "1 failed in 0.12s"), ("pytest -q", "1 failed in 1.30s")),
        (("make # attempt 1", "error"), ("make # attempt 2", "error")),
        (("echo try 1; make", "try 1\nerror"), ("echo try 2; make", "try 2\nerror")),
        (("sleep 5; cat s", "pending"), ("sleep 10; cat s", "pending")),
        (("date; cat s", "2026-01-31 10:11:12\npending"), ("date; cat s", "2026-01-31 10:12:13\npending")),
        (("curl x", "x" * 9_000 + "took 12 ms"), ("curl x", "x" * 9_000 + "took 15 ms")),
    ],
)
def test_cosmetic_differences(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert bash(*first) == bash(*second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("wc -l < n", "1"), ("wc -l < n", "2")),
        (("pytest -q", "2 failed in 0.12s"), ("pytest -q", "1 failed in 0.12s")),
        (("cat file1", "no such file"), ("cat file2", "no such file")),
        (("git log --since 2026-01-01", ""), ("git log --since 2026-01-02", "")),
        (("ls", "a" * 5_000 + "b" + "a" * 5_000), ("ls", "a" * 10_001)),
        (("ls", "a"), ("ls ", "a")),
    ],
)
def test_differences_that_count(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert bash(*first) != bash(*second)


def test_the_order_of_keys_does_not_count_but_the_tool_does() -> None:
    assert fingerprint("Grep", '{"a": 1, "b": 2}', "x") == fingerprint("Grep", '{"b":2,"a":1}', "x")
    assert fingerprint("Grep", "{}", "x") != fingerprint("Glob", "{}", "x")
    assert fingerprint("Grep", "no json", "x") == fingerprint("Grep", "no json", "x")


@given(st.lists(st.sampled_from("abcde"), max_size=12), st.integers(1, 4), st.integers(1, 6))
def test_rounds_of_a_cycle_are_counted(before: list[str], period: int, times: int) -> None:
    cycle = [f"{n}" for n in range(period)]
    assert guard.rounds((*before, *cycle * times)) == times or times < 2


@given(st.text(max_size=60), st.text(max_size=60))
def test_equal_calls_have_equal_prints(arguments: str, result: str) -> None:
    assert fingerprint("T", arguments, result) == fingerprint("T", arguments, result)
    assert fingerprint("T", arguments, result + "!") != fingerprint("T", arguments, result + "?")
