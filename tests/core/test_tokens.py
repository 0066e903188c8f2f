"""The estimate: high where it is not sure, never below what was reported, the same effort for any length of ASCII."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core.context import Entry
from planrun.core.messages import Message
from planrun.core.room import GUESS, KNOWN, models, room_of, window_of
from planrun.core.state import State
from planrun.core.tokens import calibrate, raw_tokens
from tests.core.pressing import STEP, built, state_of
from tests.strategies import PLAN

CODE = Path(raw_tokens.__code__.co_filename).read_text("utf-8")
LOG = "\n".join(
    f"2026-11-29T23:{i % 60:02d}:01Z INFO worker[{i}] GET /items/{i * 7919 % 99991} 200 id=0x{i * 2654435761 % 2**32:08x}"
    for i in range(300)
)
PROSE = "It was a bright cold day in April, and the clocks were striking thirteen. " * 60
CJK = "我们在这个项目中使用一个计划文件来描述所有的步骤，每一步都由模型或者命令完成。" * 60
KANA = "私たちはすべての手順を記述するために計画ファイルを使用します。各ステップはモデルが実行します。" * 60
TREE = "├── src\n│   ├── main.py\n│   └── util.py\n└── README.md\n" * 60
TYPESET = "The plan — a file — says “what” is done… and it’s fine. " * 60
CHECKS = "Done 😀 🎉 ok 🚀 failed ❌ passed ✅ after 12.3 s\n" * 60
# Characters a token as cl100k has them, measured once.
KINDS = {
    "code": (CODE, 3.9),
    "english": (PROSE, 4.9),
    "log": (LOG, 2.04),
    "cjk": (CJK, 1.09),
    "kana": (KANA, 1.04),
    "tree": (TREE, 2.16),
    "typeset": (TYPESET, 3.11),
    "checks": (CHECKS, 2.05),
}


@given(st.text(max_size=2000))
def test_any_text_has_an_estimate(text: str) -> None:
    found = raw_tokens(text)
    assert found >= 0 and (found > 0) == bool(text)
    assert found <= 4 * len(text) + 1
    assert found == raw_tokens(text)


@given(st.integers(1, 4000), st.sampled_from("é中한ひ😀"))
def test_what_is_not_ascii_is_never_taken_lightly(size: int, letter: str) -> None:
    least = {"é": 0.7, "😀": 2}.get(letter, 1)
    assert raw_tokens(letter * size) >= least * size


@pytest.mark.parametrize("kind", KINDS)
def test_never_far_below_before_usage_is_known_and_close_after_it(kind: str) -> None:
    text, density = KINDS[kind]
    true = len(text) / density * 20
    raw = raw_tokens(text) * 20
    assert raw >= 0.9 * true
    factor = calibrate(1.0, raw, round(true))
    assert 1.0 <= factor * raw / true <= 1.15


@given(st.floats(0.3, 4), st.floats(1, 1e6), st.integers(1, 10**6))
def test_never_below_what_was_reported(factor: float, raw: float, reported: int) -> None:
    found = calibrate(factor, raw, reported)
    assert 0.3 <= found <= 4
    if reported / raw <= 3.9:
        assert found * raw >= reported
    assert found <= max(factor, 4, 1.02 * reported / raw)


@pytest.mark.parametrize(("raw", "reported"), [(0, 10), (10, 0), (-1, 5), (10, -3)])
def test_numbers_that_make_no_sense_teach_nothing(raw: float, reported: int) -> None:
    assert calibrate(1.3, raw, reported) == 1.3


def test_a_short_first_request_proves_little() -> None:
    assert calibrate(1.0, 900, 600) > 0.85
    assert calibrate(1.0, 90_000, 60_000) < 0.70


def test_the_effort_does_not_grow_with_ascii() -> None:
    """What is looked at is a sample of one size: a change between its spots changes nothing."""
    text = "word " * 200_000
    assert raw_tokens(text) == pytest.approx(raw_tokens(text[:500_000] * 2), rel=0.05)
    at = len(text) // 2 + 3_000
    assert raw_tokens(text[:at] + "#" * 50 + text[at + 50 :]) == raw_tokens(text)


def test_a_message_counts_all_of_itself() -> None:
    arguments = json.dumps({"content": "x y " * 5_000})
    call = built(("ok",))[1].entries[1].message.tool_calls[0]
    asked = Entry(1, Message("assistant", None, (type(call)("a", "Write", arguments),)), "model")
    assert asked.raw >= raw_tokens(arguments)


# --- the window ---------------------------------------------------------------------------------------------------------


def state(model: str = "m", **settings: object) -> State:
    return State(plan=PLAN, model=model, settings=settings)  # type: ignore[arg-type]


def test_where_the_window_is_known_from() -> None:
    override = {"m": {"context": 5_000}}
    assert window_of(state(window=7_000, model_overrides=override), "m") == (7_000, "settings")
    assert window_of(state(model_overrides=override), "m") == (5_000, "settings")
    taught = State(plan=PLAN, model="m", windows={"m": 3_000}, settings={"window": 7_000})
    assert window_of(taught, "m") == (3_000, "the endpoint")
    assert window_of(State(plan=PLAN, windows={"m": 9_000}, settings={"window": 7_000}), "m") == (7_000, "settings")
    assert window_of(State(plan=PLAN, windows={"m": 9_000}), "m") == (9_000, "the endpoint")
    assert window_of(state(), "vendor/GPT-4o-mini") == (128_000, "the table of known models")
    assert window_of(state(), "qwen3-coder-480b") == (KNOWN["qwen3-coder"], "the table of known models")
    assert window_of(state(), "m") == (GUESS, "a guess")


def test_one_models_window_is_not_anothers() -> None:
    taught = State(plan=PLAN, model="a", windows={"a": 3_000}, factors={"a": 2.0})
    assert window_of(taught, "b") == (GUESS, "a guess")
    assert (window_of(taught, "a")[0], taught.factor) == (3_000, 2.0)
    assert window_of(state(window=9_000), "summariser", own=False) == (GUESS, "a guess")


def test_only_what_nobody_knows_is_a_guess() -> None:
    assert models(state("m")) == ("m",) and models(state("replay:x.jsonl")) == ()
    asked = ((state("m"), "m"), (state("gpt-5"), "gpt-5"), (state("m", window=9), "m"))
    assert [window_of(now, name)[1] == "a guess" for now, name in asked] == [True, False, False]


def test_what_is_taken_off_the_window() -> None:
    view = built(("ok",), system="rule " * 400)
    room = room_of(state_of(view, 40_000), STEP)
    assert room.fixed > 400 and room.reserve == 4_096
    assert room.budget == int(40_000 * 0.98) - room.fixed - 4_096
    small = room_of(state_of(view, 4_000), STEP)
    assert small.reserve == 1_000
    asked = room_of(state_of(view, 40_000, settings={"model_overrides": {"m": {"max_output": 9_000}}}), STEP)
    assert asked.reserve == 9_000
