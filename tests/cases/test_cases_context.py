"""COMP, TOK, CTX, PAIR, ARCH, RES-04, PLAN-01: what leaves the context, and what never does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from planrun.core import context, editing
from planrun.core.context import Entry, Segment, View
from planrun.core.edits import Cut, Insert
from planrun.core.messages import Message, Origin, ToolCall
from planrun.core.room import room_of
from planrun.core.strategies import ladder
from planrun.core.tokens import PER_MESSAGE, raw_tokens
from planrun.errors import ProviderError
from planrun.models.base import Reply
from planrun.testing.answers import Answer, expanded
from planrun.testing.crash import Crash
from planrun.testing.model import call, calls, done, say
from planrun.testing.server import call as send_call
from planrun.testing.server import done as send_done
from planrun.testing.server import raw
from tests.cases.cli import Ran, case, records, resume, run
from tests.cases_support import CASES
from tests.core.pressing import STEP, SUMMARY, Relieved, relieved, state_of, window_for
from tests.pairs import Wire, problems
from tests.runner.driving import Project, again, contents, ended, project, reason, step

OK, CONTEXT = ("finished", 0), ("context", 3)


def view_of(wires: list[Wire]) -> View:
    """Messages of a case as one step's history. A system message comes first where the case has none."""
    if wires[0]["role"] != "system":
        wires = [{"role": "system", "content": "s"}, *wires]
    origins: dict[str, Origin] = {"system": "runner", "user": "user", "assistant": "model", "tool": "tool"}
    names: dict[str, str] = {}
    entries = []
    for seq, wire in enumerate(wires, 1):
        made = tuple(ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in wire.get("tool_calls", ()))
        names.update({c.id: c.name for c in made})
        message = Message(wire["role"], wire["content"], made, wire.get("tool_call_id"))
        entries.append(Entry(seq, message, origins[wire["role"]], names.get(wire.get("tool_call_id", ""))))
    return (Segment(None, tuple(entries[:1])), Segment("three", tuple(entries[1:])))


def of(view: View) -> list[Wire]:
    return [m.wire() for m in context.messages(view)]


def generated(name: str) -> tuple[View, int]:
    spec = json.loads((CASES / f"{name}.gen.json").read_text("utf-8"))
    return view_of(list(_made(spec["make"]))), spec["budget_tokens"]


def _made(items: list[Any]) -> Iterator[Wire]:
    for item in items:
        if "$repeat_pairs" not in item:
            yield expanded(item)
            continue
        times, pair = item["$repeat_pairs"]
        for i in range(times):
            arguments = json.dumps(pair["args"]).replace("{i}", str(i))
            function = {"name": pair["name"], "arguments": arguments}
            yield {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"p{i}", "type": "function", "function": function}],
            }
            yield {"role": "tool", "tool_call_id": f"p{i}", "content": pair["result"].replace("{i}", str(i))}


def sendable(over: Relieved, view: View) -> None:
    """The list may be sent, has the system message and the task, and is within its budget; or the end says that it is not."""
    after = of(over.state.view)
    assert problems(after, alternate=True) == []
    assert after[:2] == of(view)[:2]
    room = room_of(over.state, STEP)
    assert over.end is not None or room.used <= room.budget


# --- pairs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, SUMMARY])
@pytest.mark.parametrize("part", range(5))
def test_pair_01_every_budget(part: int, answer: str | None) -> None:
    lines = (CASES / "PAIR-01.session.jsonl").read_text("utf-8").splitlines()
    view = view_of([r["message"] for r in map(json.loads, lines) if r["type"] == "message"])
    for budget in range(1 + part, 5001, 5):
        over = relieved(state_of(view, window_for(budget, view)), lambda _: answer)
        sendable(over, view)


@pytest.mark.parametrize("window", [2_000, 2_400, 3_000, 4_000])
def test_pair_01_in_a_run(tmp_path: Path, window: int) -> None:
    """Six turns of growing results: whatever the window, what is sent is whole."""
    turns = [call("Bash", command=f"yes 'data {n}' | head -n {60 * n + 60}") for n in range(6)]
    over = project(tmp_path, step("one"), window=window)
    seen = iter([*turns, done()])
    result = over.run(lambda body: say("no") if summarises(body) else next(seen))
    assert ended(result) == OK
    assert all(m["messages"][1] == over.messages(0)[1] for m in over.requests if not summarises(m))


def summarises(body: dict[str, Any]) -> bool:
    return str(body["messages"][0]["content"]).startswith("You summarise")


@pytest.mark.parametrize("budget", range(20, 900, 7))
def test_pair_02_a_group_goes_as_a_whole(budget: int) -> None:
    view = view_of(json.loads((CASES / "PAIR-02.messages.json").read_text("utf-8")))
    over = relieved(state_of(view, window_for(budget, view)))
    sendable(over, view)


def test_pair_02_dropped() -> None:
    view = view_of(json.loads((CASES / "PAIR-02.messages.json").read_text("utf-8")))
    (edit,) = ladder.drop(ladder.groups(view)[:-1], 300)
    after = of(editing.apply(view, (edit,), 99))
    assert problems(after, alternate=True) == []
    assert "tool" not in [m["role"] for m in after] and "row\\nrow" not in json.dumps(after)


def test_pair_04_under_the_budget_nothing_changes() -> None:
    wires = json.loads((CASES / "PAIR-04.messages.json").read_text("utf-8"))
    view = view_of(wires)
    over = relieved(state_of(view, window_for(100_000, view)))
    assert over.actions == [] and over.state.view is view
    assert of(over.state.view) == wires


# --- compaction ---------------------------------------------------------------------------------------------------------


def test_comp_01_a_floor_over_the_budget_stops_at_once(tmp_path: Path) -> None:
    ran = run(tmp_path, [], plan=case("COMP-01.plan.yaml"))
    assert ran.ended == CONTEXT
    assert ran.server.requests == []
    assert "300 tokens" in ran.result["reason"] and "The floor is" in ran.result["reason"]
    again_ = resume(tmp_path, [send_done({})], "--window", "32000")
    assert again_.ended == OK


def test_comp_03_a_summariser_that_always_refuses(tmp_path: Path) -> None:
    refusal = json.loads((CASES / "COMP-03.http.json").read_text("utf-8"))["replies"][0]
    asked: list[int] = []

    def script(body: dict[str, Any]) -> Answer:
        if summarises(body):
            asked.append(len(json.dumps(body)))
            return raw(refusal["status"], json.dumps(refusal["json"]))
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        results = sum("Done 40" in str(m["content"]) for m in body["messages"])
        return (
            send_done({})
            if results
            else send_call(
                "Bash", {"command": f"seq {turn} 900; echo Done $(cat n | wc -l); echo >> n"}, f"c{len(asked)}.{turn}"
            )
        )

    (tmp_path / "n").write_text("")
    (tmp_path / ".thclaws").mkdir()
    settings = {"summaryModel": "small", "modelOverrides": {"small": {"context": 8192}}}
    (tmp_path / ".thclaws" / "settings.json").write_text(json.dumps(settings))
    ran = run(tmp_path, script, "--window", "9000", "--max-turns", "60")
    assert ran.ended == OK, ran.err
    assert 1 <= len(asked) <= 3
    assert all(size < 40_000 for size in asked)
    notes = [r for r in records(tmp_path) if r["type"] == "note"]
    assert [n["kind"] for n in notes if n["kind"].startswith("summary")] == ["summary", "summary", "summary_failed"]
    assert any(r["type"] == "compaction" and r["edits"][0].get("deterministic") for r in records(tmp_path))


@dataclass
class Long(Project):
    result: Any = None


def long_step(folder: Path, script: Any, window: int = 8_000, turns: int = 40, **more: Any) -> Long:
    """A step of many turns in a small window; `script` gives the summaries."""
    plan = {"name": "p", "steps": [step("one", limits={"turns": 200})], "window": window, **more}
    over = Long(folder, json.dumps(plan))
    acts = iter([*(call("Bash", command=f"seq {n} 600") for n in range(turns)), done()])
    over.result = over.run(lambda body: script(body) if summarises(body) else next(acts))
    return over


def test_comp_04_every_attempt_is_on_record(tmp_path: Path) -> None:
    def down(body: dict[str, Any]) -> Reply:
        raise ProviderError("internal error", status=500)

    over = long_step(tmp_path, down, window=3_500)
    assert ended(over.result) == OK
    failed = [n for n in over.of("note") if n["kind"].startswith("summary")]
    assert [n["kind"] for n in failed] == ["summary", "summary", "summary_failed"]
    for word, note in zip(("normal", "tight"), failed[:2], strict=True):
        assert (
            note["text"].startswith(word)
            and "budget" in note["text"]
            and "internal error" in note["text"]
            and "ProviderError" in note["text"]
        )
    asked = [r for r in over.of("request") if r.get("purpose") == "summary"]
    answered = [r for r in over.of("response") if r.get("purpose") == "summary"]
    assert len(asked) == len(answered) == 2 and all("internal error" in r["error"] for r in answered)
    fallback = next(r for r in over.of("compaction") if r["strategy"] == "summary")
    assert fallback["edits"][0]["deterministic"] and fallback["tokens_after"] < fallback["tokens_before"]


def test_comp_05_one_giant_result() -> None:
    view, budget = generated("COMP-05")
    over = relieved(state_of(view, window_for(budget, view)))
    sendable(over, view)
    assert over.end is None and over.asked == 0
    after = of(over.state.view)
    assert [m["role"] for m in after] == ["system", "user", "assistant", "tool"]
    assert after[:3] == of(view)[:3]


@pytest.mark.parametrize("size", [399, 400, 401, 405, 420, 500])
def test_comp_05_what_is_cut_is_never_longer(size: int) -> None:
    view = view_of([{"role": "user", "content": "go"}, *pair("x " * (size // 2) + "y" * (size % 2))])
    for keep in (400, size - 1, size, size + 1):
        after = editing.apply(view, (Cut(4, keep),))
        text = of(after)[-1]["content"]
        assert len(text) <= max(size, 0)
        assert text == of(view)[-1]["content"] or len(text) == keep


def pair(result: str) -> list[Wire]:
    function = {"name": "Bash", "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]


def test_comp_05_several_large_results_of_one_turn() -> None:
    made = [{"id": f"c{n}", "type": "function", "function": {"name": "Bash", "arguments": "{}"}} for n in range(4)]
    wires = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": made}]
    wires += [{"role": "tool", "tool_call_id": f"c{n}", "content": "some words here " * 500} for n in range(4)]
    view = view_of(wires)
    over = relieved(state_of(view, window_for(4_000, view)))
    sendable(over, view)
    assert over.end is None and len(of(over.state.view)) == len(wires) + 1


def test_comp_05_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("line of log text\n" * 15_000)
    over = project(tmp_path, step("one", "Look at the log."), window=6_500)
    assert ended(over.run([call("Bash", command="cat big.log"), done()])) == OK
    assert over.of("request")[1]["tokens"] <= 6_500
    assert over.messages()[:2] == over.messages(0)[:2]
    assert "tool-output" in contents(over.messages(), "tool")[0]


def test_comp_06_the_task_stays_first() -> None:
    view, budget = generated("COMP-06")
    (edit,) = ladder.drop(ladder.groups(view)[:-1], context.raw_size(view) - budget)
    assert isinstance(edit, Insert)
    after = of(editing.apply(view, (edit,), 99))
    gone = len(of(view)) - len([m for m in after if m in of(view)])
    notes = [m for m in after if "left the context" in str(m["content"])]
    assert after[:2] == of(view)[:2] and after[1]["content"].startswith("ORIGINAL TASK")
    assert len(notes) == 1 and notes[0]["content"].startswith(f"[{gone} earlier messages, records 3 to {gone + 2}, ")
    assert problems(after, alternate=True) == []
    over = relieved(state_of(view, window_for(budget, view)))
    sendable(over, view)
    assert sum(e.covers for e in context.entries(over.state.view)) == context.count(view)


def test_comp_06_in_a_run_nothing_is_lost(tmp_path: Path) -> None:
    over = long_step(tmp_path, lambda body: say("No."), window=3_000, goal="ORIGINAL TASK: count the rows")
    assert ended(over.result) == OK
    assert over.result.state.compactions > 3
    for request in over.requests:
        if not summarises(request):
            assert request["messages"][1]["content"].startswith("Goal: ORIGINAL TASK")
    said = [r for r in over.of("message") if r["role"] == "tool"]
    assert len(said) == 41 and all(f"{n}\n" in said[n]["content"] for n in range(40))


BOUNDARY = (step("a"), step("b"), step("c"))


@pytest.mark.parametrize("strategy", ["compact", "clear", "summary"])
def test_comp_09_the_first_request_after_a_kill_is_the_one_that_was_due(tmp_path: Path, strategy: str) -> None:
    def script(body: dict[str, Any]) -> Reply:
        if summarises(body):
            return say(SUMMARY)
        said = [m for m in body["messages"] if m["role"] == "tool"]
        fresh = body["messages"][-1]["role"] == "user"
        return call("Bash", command=f"seq {len(said)} 400") if fresh else done()

    control = project(tmp_path / "control", *BOUNDARY, context=strategy)
    assert ended(control.run(script)) == OK
    compaction = max(r["seq"] for r in control.of("compaction"))
    due = next(r for r in control.of("request") if r["seq"] > compaction and r.get("purpose") is None)
    for at in range(compaction, due["seq"] + 1):
        killed = project(tmp_path / str(at), *BOUNDARY, context=strategy)
        with pytest.raises(Crash):
            killed.run(script, crash=(at, "after"))
        assert ended(killed.resume(script, again())) == OK
        first = next(r for r in killed.requests if not summarises(r))
        assert first == next(
            r for r in reversed(control.requests) if len(r["messages"]) == len(first["messages"]) and r == first
        )


# --- tokens -------------------------------------------------------------------------------------------------------------


def test_tok_01_estimates() -> None:
    for row in json.loads((CASES / "TOK-01.texts.json").read_text("utf-8")):
        text = row["text"]
        assert row["min"] <= raw_tokens(text) <= row.get("max", 10**9), text[:40]
        said = Entry(1, Message("tool", text, (), "c"), "tool")
        asked = Entry(1, Message("assistant", None, (ToolCall("c", "T", text),)), "model")
        assert abs(said.raw - asked.raw) <= PER_MESSAGE + 2
        assert said.raw >= raw_tokens(text)


def test_tok_02_special_tokens_are_text(tmp_path: Path) -> None:
    text = (CASES / "TOK-02.text.txt").read_text("utf-8")
    assert raw_tokens(text) > 0
    (tmp_path / "t.txt").write_text(text)
    ran = run(tmp_path, [send_call("Bash", {"command": "cat t.txt"}), send_done({})])
    assert ran.ended == OK
    assert ran.results() == [text.strip("\n")]


# --- errors about the context -------------------------------------------------------------------------------------------

ERRORS = json.loads((CASES / "CTX-01.errors.json").read_text("utf-8"))


def failing_once(folder: Path, row: dict[str, Any], *args: str) -> Ran:
    """A run whose fifth request is answered with this error, whatever is asked next with the end of the step."""
    asked: list[int] = []

    def script(body: dict[str, Any]) -> Answer:
        asked.append(1)
        if len(asked) < 5:
            return send_call("Bash", {"command": f"seq {len(asked)} 2000"}, f"c{len(asked)}")
        return raw(row["status"], json.dumps(row["body"])) if len(asked) == 5 else send_done({})

    return run(folder, script, *args)


@pytest.mark.parametrize(
    "row", [r for r in ERRORS if r["want"] == "overflow"], ids=lambda r: r["body"]["error"]["message"][:20]
)
def test_ctx_01_overflow_is_compacted_once_and_sent_again(tmp_path: Path, row: dict[str, Any]) -> None:
    ran = failing_once(tmp_path, row)
    assert ran.ended == OK
    sizes = [len(r.raw) for r in ran.server.requests]
    assert len(sizes) == 6 and sizes[5] < sizes[4]
    compactions = [r for r in records(tmp_path) if r["type"] == "compaction"]
    assert compactions and {r["trigger"] for r in compactions} == {"overflow"}
    assert ran.result["steps"][0]["turns"] == 5


@pytest.mark.parametrize("row", [r for r in ERRORS if r["want"] == "other"], ids=lambda r: r["body"]["error"]["message"][:20])
def test_ctx_01_another_refusal_is_not_tried_again(tmp_path: Path, row: dict[str, Any]) -> None:
    ran = failing_once(tmp_path, row)
    assert ran.ended[1] in (2, 75)
    assert len(ran.server.requests) == 5
    assert not [r for r in records(tmp_path) if r["type"] == "compaction"]


@pytest.mark.parametrize("row", [r for r in ERRORS if r["want"] == "rate"], ids=["minute", "limit"])
def test_ctx_01_a_rate_limit_is_waited_for(tmp_path: Path, row: dict[str, Any]) -> None:
    ran = failing_once(tmp_path, json.loads(json.dumps(row).replace("in 12 s", "in 1 s")))
    assert ran.ended == OK
    assert not [r for r in records(tmp_path) if r["type"] == "compaction"]
    refused, again = (r.raw for r in ran.server.requests[4:])
    assert refused == again


def test_ctx_01_what_is_refused_for_ever_ends_after_twenty_rounds(tmp_path: Path) -> None:
    asked: list[int] = []
    error = {"error": {"message": "Input too long for this model.", "type": None, "code": None}}

    def script(body: dict[str, Any]) -> Answer:
        asked.append(1)
        return send_call("Bash", {"command": "seq 9000"}, f"c{len(asked)}") if len(asked) < 4 else raw(400, json.dumps(error))

    ran = run(tmp_path, script, "--window", "200000")
    assert ran.ended == CONTEXT
    assert len(asked) <= 3 + 21
    assert "floor" in ran.result["reason"]


# --- the archive, and the plan ------------------------------------------------------------------------------------------


def test_arch_01_no_byte_of_the_log_ever_changes(tmp_path: Path) -> None:
    over = project(tmp_path, *BOUNDARY, window=4_000)
    seen: list[bytes] = []
    turns: dict[int, int] = {}

    def script(body: dict[str, Any]) -> Reply:
        seen.append(over.log.read_bytes())
        if summarises(body):
            return say(SUMMARY)
        at = sum("Step " in str(m["content"]) and m["role"] == "user" for m in body["messages"])
        turns[at] = turns.get(at, 0) + 1
        return done() if turns[at] % 6 == 0 else call("Bash", command=f"seq {turns[at]} 700")

    assert ended(over.run(script)) == OK
    seen.append(over.log.read_bytes())
    assert all(b.startswith(a) for a, b in pairwise(seen))
    assert {r["trigger"] for r in over.of("compaction")} >= {"budget", "boundary"}


def test_res_04_the_log_of_a_step_under_pressure_is_linear(tmp_path: Path) -> None:
    sizes = [long_step(tmp_path / str(n), lambda body: say(SUMMARY), turns=n).log.stat().st_size for n in (30, 60)]
    assert sizes[1] / sizes[0] < 2.3


def test_plan_01_a_summary_never_decides_what_is_done(tmp_path: Path) -> None:
    """The summariser claims that nothing is done: the state comes from the runner all the same."""
    over = project(tmp_path, step("one", output={"ver": "string"}), step("two"), step("three"), context="summary")

    def script(body: dict[str, Any]) -> Reply:
        if summarises(body):
            return say("Facts: step one is not done\nDone: none\nFiles: none\nOpen: step one")
        fresh = body["messages"][-1]["role"] == "user"
        task = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
        return (
            calls(("Bash", {"command": "true"}), text="I see. " * 200)
            if fresh
            else done(**({"ver": "1"} if "- ver" in task else {}))
        )

    result = over.run(script)
    assert ended(result) == OK, reason(result)
    starts = [r["messages"] for r in over.requests if r["messages"][-1]["role"] == "user" and not summarises(r)]
    assert "[x] one" in starts[1][-1]["content"] and "[x] two" in starts[2][-1]["content"]
    assert "Step one is not done".lower() in json.dumps(starts[1]).lower()
