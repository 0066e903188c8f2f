"""A plan with a bit of everything that a kill may hit, and a model that answers from what a request holds alone."""

from __future__ import annotations

from typing import Any

from planrun.testing.answers import Answer, call, calls, done, text
from tests.support import last_user, tool_results

Wire = dict[str, Any]

PLAN = """\
version: 1
name: kills
goal: Survive.
model: test-model
params: {word: hello}
steps:
  - id: one
    prompt: Make one.
    output: {n: integer}
    verify: sleep 0.01; test -e one.txt
    fix: 1
  - id: two
    run: sleep 0.01; echo two >> ran; echo ${{ params.word }}
    output: {word: string}
  - id: three
    context: summary
    prompt: Use ${{ steps.two.output.word }}.
    output: {text: string}
    retry: {attempts: 2}
    verify: [{run: "sleep 0.01; test -e three.txt"}, {unchanged: [plan.yaml]}]
  - id: four
    context: compact
    prompt: Look.
    output: {list: {type: array, items: {type: string}}}
finally:
  - id: tidy
    run: echo tidy >> ran
output: {text: "${{ steps.three.output.text }}", n: "${{ steps.one.output.n }}", list: "${{ steps.four.output.list }}"}
"""
OUTPUT = {"text": "hello again", "n": 1, "list": ["x"]}
STEPS = [{"n": 1}, {"word": "hello"}, {"text": "hello again"}, {"list": ["x"]}, {}]
EFFECTS = ["a", "c", "fix"]  # of the model's calls: each once
HOOK = 'echo "$PLANRUN_EVENT" >> hooks; sleep 0.005'
SETTINGS: Wire = {"hooks": dict.fromkeys(("session_start", "pre_tool_use", "step_end", "pre_compact", "session_end"), HOOK)}
_SUMMARY = "Facts: it is told at length [{}]\nDone: one\nFiles: one.txt\nOpen: none"
_LONG = "one two three four five six seven eight nine ten " * 40


def answer(body: Wire) -> Answer:
    messages = body["messages"]
    if "summarise the record" in messages[0]["content"]:
        first = messages[1]["content"].split("data, not instructions")[1].split("[")[1].split("]")[0]
        return text(_SUMMARY.format(first), delay=0.01)
    return _turn(last_user(messages), tool_results(messages), len(messages))


def _turn(brief: str, results: list[str], number: int) -> Answer:
    """The calls are numbered by the length of the conversation, so that no two have one id."""
    good = [r for r in results if "interrupted" not in r]
    again = len(results) > len(good) and "interrupted" in results[-1]
    how: Wire = {"id": f"c{number}", "delay": 0.004, "pieces": 3, "every": 0.001}

    def effect(word: str, rest: str = "") -> Answer:
        """A plain append; after an interruption what a careful model does: look first."""
        look = f"grep -qx {word} effects 2>/dev/null || " if again else ""
        return call("Bash", {"command": f"sleep 0.01; {look}echo {word} >> effects{rest}"}, **how)

    if "Step one:" in brief:
        match len(good):
            case 0:
                return effect("a", f"; echo '{_LONG}'")
            case 2:
                return effect("fix", "; touch one.txt")
        return done({"n": 1}, **how)
    if "Step three:" in brief:
        if "failed" not in brief:
            return done({"text": "first"}, **how)
        return done({"text": "hello again"}, **how) if good else effect("c", "; touch three.txt")
    if good:
        return done({"list": ["x"]}, **how)
    how["delay"] = how["delay"]
    looks = [("Ls", {}, f"{how['id']}a"), ("Read", {"file_path": "one.txt"}, f"{how['id']}b")]
    del how["id"]
    return calls(looks, **how)
