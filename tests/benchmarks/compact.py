"""What a compaction at a boundary costs for a message, against the plainest pass over plain dicts that does the same job.

    python tests/benchmarks/compact.py [MESSAGES ...] [--rounds N]

Every round compacts the same messages in turn: `naive` is one backward pass over dicts that keeps pairs whole and puts
placeholders in the place of results; `cold` is planrun's boundary compaction of all of them at once, none seen before; `warm` is
the boundary that comes each time in a run, where all steps but the last were compacted at their own. LangChain's trim_messages
(to a tenth of the tokens) runs too where it is installed. CPU time, the best of the rounds; allocations once, without timing.
Goals: `warm` within 1.5 times `naive`, no more at 100,000 messages than 2.2 times of 1,000, within 0.1 MB for 1,000 messages."""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from planrun.core import editing
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


def naive(wires: list[Wire]) -> list[Wire]:
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


def fresh(view: View) -> View:
    """The same messages, with nothing remembered about them."""
    return tuple(Segment(s.step, tuple(Entry(e.seq, e.message, e.origin, e.name, e.settled) for e in s.entries)) for s in view)


def at_a_boundary(view: View) -> View:
    """As a run has it: every step but the last was compacted when the one after it began."""
    before = boundary_of(view[:-1])
    boundary.edits("compact", before)
    return (*before, fresh(view[-1:])[0])


Case = tuple[str, Callable[[], Any], Callable[[Any], object]]


def cases(wires: list[Wire]) -> Iterator[Case]:
    view = viewed(wires)
    yield "naive", lambda: wires, naive
    yield "cold", lambda: fresh(view), boundary_of
    yield "warm", lambda: at_a_boundary(view), boundary_of
    if importlib.util.find_spec("langchain_core"):
        yield from _langchain(wires)


def _langchain(wires: list[Wire]) -> Iterator[Case]:
    from langchain_core.messages import convert_to_messages, trim_messages  # type: ignore[import-not-found,unused-ignore]
    from langchain_core.messages.utils import count_tokens_approximately  # type: ignore[import-not-found,unused-ignore]

    made = convert_to_messages(wires)
    most = count_tokens_approximately(made) // 10

    def trim(messages: Any) -> object:
        return trim_messages(
            messages, max_tokens=most, strategy="last", token_counter=count_tokens_approximately, include_system=True
        )

    yield "langchain", lambda: made, trim


def measured(case: Case, rounds: int) -> float:
    """Seconds of CPU, the best of the rounds."""
    _, prepare, act = case
    best = float("inf")
    for _ in range(rounds):
        given = prepare()
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
            base = took if case[0] == "naive" else base
            size = allocated(case) / len(wires) * 1_000
            print(
                f"{len(wires):>7,} messages  {case[0]:<15} {took:7.3f} us a message  {took / base:5.2f} x naive  {size:6.3f} MB per 1,000"
            )


if __name__ == "__main__":
    main()
