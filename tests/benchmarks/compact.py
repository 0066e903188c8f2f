"""What a compaction costs for a message, beside plain passes over plain dicts and beside other libraries.

    python tests/benchmarks/compact.py [MESSAGES ...] [--rounds N]

Every round compacts the same messages in turn:

    naive      one backward pass over dicts as one would write it, pairs whole: the newest stay as they are, older results give way
               to stubs, the oldest are left out, so that a tenth of the characters stays. It looks at about half of the messages
    stubs      the same work as planrun's over dicts: every message stays, every long result gives way to a placeholder; nothing is
               counted, so there is nothing plainer
    cold       planrun's boundary compaction of all of them at once, none seen before: edits, and the view they lead to
    counted    the same with the tokens before and after, none of them known: what the record of a compaction says
    warm       the boundary that comes each time in a run: all steps but the last were compacted at their own
    langchain  trim_messages to a tenth of the tokens, by the approximate counter, where it is installed
    openhands  View and LLMSummarizingCondenser to a tenth of the messages, the model's answer at hand, where it is installed

CPU time, the best of the rounds; allocations once, without timing. Goals: `cold` within 1.5 times `naive`, no more for a message at
100,000 than 2.2 times that at 1,000, a third of `langchain`. What `cold` allocates is what it leaves: some 305 bytes for each result
that gave way (121 of the placeholder, 64 of the message, 120 of the entry), 0.145 MB per 1,000 messages here."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from planrun.core import context, editing
from planrun.core.context import Entry, Segment, View
from planrun.core.messages import Message, ToolCall
from planrun.core.strategies import boundary

Wire = dict[str, Any]
TURNS = 20  # in each step


def history(count: int) -> list[Wire]:
    """Steps of twenty turns: a call and its result, whose length is Pareto-distributed up to 20,000 characters."""
    rng = random.Random(5)
    words = "file src main def return error line test value plan step 计划".split()
    pool = " ".join(rng.choice(words) for _ in range(50_000))

    def text(length: int) -> str:
        at = rng.randrange(len(pool) - length)
        return pool[at : at + length]

    out: list[Wire] = [{"role": "system", "content": text(2_000)}, {"role": "user", "content": text(1_000)}]
    turn = 0
    while len(out) < count:
        function = {"name": "Read", "arguments": json.dumps({"path": text(30)})}
        out.append(
            {
                "role": "assistant",
                "content": text(80),
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            }
        )
        out.append(
            {"role": "tool", "tool_call_id": f"c{turn}", "content": text(min(20_000, int(rng.paretovariate(1.4) * 600)))}
        )
        turn += 1
        if turn % TURNS == 0:
            out += [{"role": "assistant", "content": "Step done."}, {"role": "user", "content": "Next: " + text(200)}]
    return out


def viewed(wires: list[Wire]) -> View:
    segments: list[Segment] = []
    entries: list[Entry] = []
    step = 0
    for seq, wire in enumerate(wires, 1):
        calls = tuple(ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in wire.get("tool_calls", ()))
        message = Message(wire["role"], wire["content"], calls, wire.get("tool_call_id"))
        if wire["role"] == "user" and entries:
            segments.append(Segment(f"s{step}" if step else None, tuple(entries)))
            entries, step = [], step + 1
        entries.append(Entry(seq, message, "model", "Read" if wire["role"] == "tool" else None))
    return (*segments, Segment(f"s{step}", tuple(entries)))


def characters(wire: Wire) -> int:
    calls = (c["function"] for c in wire.get("tool_calls", ()))
    return len(wire.get("content") or "") + sum(len(f["arguments"]) + len(f["name"]) for f in calls) + 12


def naive(wires: list[Wire], budget: int) -> list[Wire]:
    """One backward pass to `budget` characters; after half of them results are stubs. System and goal stay."""
    left = budget - sum(map(characters, wires[:2]))
    out: list[Wire] = []
    wanted: set[str] = set()
    used = 0
    for wire in reversed(wires[2:]):
        content = wire.get("content") or ""
        if wire["role"] == "tool" and used > left // 2 and len(content) > 200:
            wire = {"role": "tool", "tool_call_id": wire["tool_call_id"], "content": f"[elided {len(content)} chars]"}
        size = characters(wire)
        if used + size > left and not wanted:
            break
        used += size
        out.append(wire)
        if wire["role"] == "tool":
            wanted.add(wire["tool_call_id"])
        elif wire["role"] == "assistant":
            for call in wire.get("tool_calls", ()):
                wanted.discard(call["id"])
    out.reverse()
    return wires[:2] + out


def stubs(wires: list[Wire]) -> list[Wire]:
    """One backward pass: results longer than a placeholder give way to it, no pair is parted, all else stays."""
    out: list[Wire] = []
    wanted: set[str] = set()
    for wire in reversed(wires):
        content = wire.get("content") or ""
        if wire["role"] == "tool":
            wanted.add(wire["tool_call_id"])
            if len(content) > 90:
                wire = {
                    "role": "tool",
                    "tool_call_id": wire["tool_call_id"],
                    "content": f"[elided: Read, {len(content)} chars]",
                }
        elif wire["role"] == "assistant":
            for call in wire.get("tool_calls", ()):
                wanted.discard(call["id"])
        out.append(wire)
    out.reverse()
    return out


def boundary_of(view: View) -> View:
    return editing.apply(view, boundary.edits("compact", view), 1_000_000)


def counted(view: View) -> tuple[float, float]:
    return context.raw_size(view), context.raw_size(boundary_of(view))


def fresh(view: View) -> View:
    """The same messages, with nothing remembered about them."""
    return tuple(
        Segment(s.step, tuple([Entry(e.seq, e.message, e.origin, e.name, e.settled) for e in s.entries])) for s in view
    )


def at_a_boundary(view: View) -> View:
    """As a run has it: every step but the last was compacted when the one after it began."""
    before = boundary_of(view[:-1])
    boundary.edits("compact", before)
    return (*before, fresh(view[-1:])[0])


Case = tuple[str, Callable[[], Any], Callable[[Any], object]]


def cases(wires: list[Wire]) -> Iterator[Case]:
    view, budget = viewed(wires), sum(map(characters, wires)) // 10
    yield "naive", lambda: wires, lambda w: naive(w, budget)
    yield "stubs", lambda: wires, stubs
    yield "cold", lambda: fresh(view), boundary_of
    yield "counted", lambda: fresh(view), counted
    yield "warm", lambda: at_a_boundary(view), boundary_of
    if importlib.util.find_spec("langchain_core"):
        yield langchain(wires)
    if importlib.util.find_spec("openhands"):
        yield openhands(wires)


def langchain(wires: list[Wire]) -> Case:
    from langchain_core.messages import convert_to_messages, trim_messages  # type: ignore[import-not-found,unused-ignore]
    from langchain_core.messages.utils import count_tokens_approximately  # type: ignore[import-not-found,unused-ignore]

    made = convert_to_messages(wires)
    most = count_tokens_approximately(made) // 10

    def trim(messages: Any) -> object:
        return trim_messages(
            messages, max_tokens=most, strategy="last", token_counter=count_tokens_approximately, include_system=True
        )

    return "langchain", lambda: made, trim


def openhands(wires: list[Wire]) -> Case:
    from openhands.sdk.context.condenser import LLMSummarizingCondenser  # type: ignore[import-not-found,unused-ignore]
    from openhands.sdk.context.view import View as Events  # type: ignore[import-not-found,unused-ignore]
    from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent  # type: ignore[import-not-found,unused-ignore]
    from openhands.sdk.llm import Message as Said  # type: ignore[import-not-found,unused-ignore]
    from openhands.sdk.llm import MessageToolCall, TextContent
    from openhands.sdk.testing import TestLLM  # type: ignore[import-not-found,unused-ignore]
    from openhands.sdk.tool.builtins.finish import FinishAction, FinishObservation  # type: ignore[import-not-found,unused-ignore]

    def event(number: int, wire: Wire) -> Any:
        text = [TextContent(text=wire["content"])]
        name = {"tool_name": "finish", "tool_call_id": wire.get("tool_call_id")}
        if wire["role"] == "tool":
            told = FinishObservation.from_text(wire["content"])
            return ObservationEvent(**name, observation=told, action_id=made[-1].id)
        if "tool_calls" not in wire:
            return MessageEvent(source="user", llm_message=Said(role="user", content=text))
        name["tool_call_id"] = wire["tool_calls"][0]["id"]
        call = MessageToolCall(id=name["tool_call_id"], name="finish", arguments='{"message":"p"}', origin="completion")
        act = FinishAction(message="p")
        return ActionEvent(thought=text, action=act, **name, tool_call=call, llm_response_id=f"r{number}")

    made: list[Any] = []
    for number, wire in enumerate(wires):
        made.append(event(number, wire))

    def ready() -> Any:
        answer = Said(role="assistant", content=[TextContent(text="what was done")])
        llm = TestLLM.from_messages([answer])
        return LLMSummarizingCondenser(llm=llm, max_size=max(40, len(wires) // 5), keep_first=2)

    def condense(condenser: Any) -> object:
        events = Events()
        for event in made:
            events.append_event(event)
        return condenser.condense(events)

    return "openhands", ready, condense


def measured(case: Case, rounds: int) -> float:
    """Seconds of CPU, the best of the rounds."""
    _, prepare, act = case
    best = float("inf")
    for _ in range(rounds):
        given = prepare()
        gc.collect()  # what was made before is not this case's to go through
        began = time.process_time()
        act(given)
        best = min(best, time.process_time() - began)
    return best


def allocated(case: Case) -> float:
    """Megabytes at the peak."""
    _, prepare, act = case
    given = prepare()
    tracemalloc.start()
    act(given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for count in args.messages:
        wires = history(count)
        base = 0.0
        for case in cases(wires):
            took = measured(case, args.rounds) / len(wires) * 1e6
            base = base or took
            size = allocated(case) / len(wires) * 1_000
            print(
                f"{len(wires):>7,} messages  {case[0]:<15} {took:7.3f} us a message  {took / base:5.2f} x naive  {size:6.3f} MB per 1,000"
            )


if __name__ == "__main__":
    main()
