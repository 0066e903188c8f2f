"""A world that a recorded session stands in for: tools, commands, checks, hooks and people answer what they answered then.

Nothing is run. What is asked to run is counted by call, so that a test can say how often each effect would have happened."""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

from planrun.core.actions import RunCommand, Verify
from planrun.core.events import Approval, CallEnded, CallStarted, Event, Hooked, Said, StepChanged
from planrun.core.messages import CallStatus, compact_json
from planrun.core.plan import Json, Step
from planrun.core.records import Record
from planrun.core.state import State
from planrun.policy.hooks import GATES, Ran
from planrun.runner.world import Answered, World
from planrun.settings import Hook
from planrun.testing.whole import Whole
from planrun.tools.base import Tool, ToolContext, ToolResult
from planrun.tools.registry import parse_arguments

_COMMANDS = ("run", "verify")
_Key = tuple[str, str]


@dataclass(slots=True)
class RecordedWorld:
    """What the records of a session hold, apart from the first `given`, which happened already. `executed` counts, by call id,
    what was asked to run since. Anything that is not on record goes to `beyond`, but for hooks, which say nothing then."""

    whole: Whole
    given: int
    beyond: Callable[[str], NoReturn]
    executed: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)  # by step under `finally`: what had no end of its own
    _final: dict[str, CallEnded] = field(default_factory=dict)
    _results: dict[_Key, list[tuple[str, ToolResult]]] = field(default_factory=lambda: defaultdict(list))
    _cut_off: dict[str, _Key] = field(default_factory=dict)  # by id: what began and has no end
    _due: set[str] = field(default_factory=set)
    _ended: dict[str, list[CallEnded]] = field(default_factory=lambda: defaultdict(list))
    _hooks: dict[_Key, list[Hooked]] = field(default_factory=lambda: defaultdict(list))
    _answers: dict[str, list[Approval]] = field(default_factory=lambda: defaultdict(list))
    _baselines: dict[str, dict[str, str]] = field(default_factory=dict)
    _files: dict[_Key, dict[str, Json]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, world: World) -> World:
        """`world` with everything that acts replaced."""
        tools = {name: replace(tool, run=partial(self._run, tool)) for name, tool in world.tools.items()}
        self._read(world)
        return replace(world, tools=tools, acts=self, human=self)

    @property
    def left(self) -> bool:
        """Whether work is on record that was not asked for yet."""
        return not self._due <= self.executed.keys()

    def _read(self, world: World) -> None:
        calls: dict[str, _Key] = {}
        records = self.whole.records
        started = {r.event.call_id: r.seq for r in records if isinstance(r.event, CallStarted)}
        again = _asked_again(records[: self.given], world)
        for position, record in enumerate(records):
            event = record.event
            if isinstance(event, Said) and event.origin == "model":
                calls.update(
                    {c.id: _key(world.tools, c.name, c.arguments) for c in event.message.tool_calls if c.id in started}
                )
            elif isinstance(event, CallEnded) and event.step in self.whole.final:
                self._final[_any_attempt(event.call_id)] = event
            if isinstance(event, StepChanged):
                self._step(event)
            elif position >= self.given or position in again:
                self._event(event, calls)
        ended = {_ends(r.event) for r in records}
        self._cut_off = {c: calls.get(c, ("", "")) for c in started if c not in ended}
        due = range(self.given + 1, self.whole.worked + 1)
        self._due = {c for c, seq in started.items() if seq in due and c not in self._cut_off}

    def _step(self, event: StepChanged) -> None:
        if event.baseline is not None:
            self._baselines[event.step] = event.baseline
        for described in (event.files or {}).values():
            self._files[event.step, str(described["path"])] = described

    def _event(self, event: Event, calls: dict[str, _Key]) -> None:
        match event:
            case Said(role="tool", tool_call_id=str(call_id)) if call_id in calls:
                content = event.content or ""
                text = content[: len(content) - event.aside]
                self._results[calls[call_id]].append((call_id, ToolResult(text, event.status or "ok")))
            case CallEnded() if event.name in _COMMANDS:
                self._ended[event.call_id].append(event)
            case Hooked():
                self._hooks[event.event, event.command].append(event)
            case Approval() if event.decision != "asked":
                self._answers[event.text].append(event)

    def _run(self, tool: Tool, arguments: Any, ctx: ToolContext) -> ToolResult:
        with self._lock:
            waiting = self._results[tool.name, _dumped(arguments)]
            if not waiting:
                self.executed.update(
                    call_id for call_id, key in self._cut_off.items() if key == (tool.name, _dumped(arguments))
                )
                self.beyond(f"a call of {tool.name} that is not on record: {_dumped(arguments)[:200]}")
            call_id, result = waiting.pop(0)
            self.executed[call_id] += 1
            return result

    def _end_of(self, call_id: str, step: str) -> CallEnded:
        """The recorded end. A command under `finally` that has none comes to what it came to in another attempt."""
        if self._ended[call_id]:
            self.executed[call_id] += 1
            return self._ended[call_id].pop(0)
        other = self._final.get(_any_attempt(call_id))
        if other is None:
            self.executed[call_id] += call_id in self._cut_off
            self.beyond(f"the command {call_id} has no end on record")
        self.again[step] += 1
        return replace(other, call_id=call_id)

    def run(self, world: World, state: State, action: RunCommand, call_id: str) -> CallEnded:
        return self._end_of(call_id, action.step)

    def judge(self, world: World, state: State, action: Verify) -> tuple[CallStatus, str, float | None]:
        ended = self._end_of(action.call_id, action.step)
        return ended.status, ended.text or "", ended.seconds

    def baseline(self, world: World, step: Step) -> dict[str, str]:
        return self._baselines.get(step.id, {})

    def describe(self, world: World, step: str, path: str) -> dict[str, Json] | None:
        return self._files.get((step, path))

    def hook(self, world: World, hook: Hook, payload: Mapping[str, Json]) -> Ran:
        event = str(payload["event"])
        waiting = self._hooks[event, hook.command]
        told = waiting.pop(0) if waiting else Hooked(event, hook.command, "ok", 0.0)
        return Ran(told, told.text if told.status == "denied" else None)

    def ask(self, question: str) -> Answered | None:
        """What a human said to this question."""
        waiting = self._answers[question]
        if not waiting:
            return None
        answer = waiting.pop(0)
        return Answered(answer.decision == "approved", answer.by)


def _ends(event: Event) -> str | None:
    """The id of the call that this ends."""
    match event:
        case Said(role="tool", tool_call_id=call_id) | CallEnded(call_id=call_id):
            return call_id
    return None


def _any_attempt(call_id: str) -> str:
    """What the ids of a command of the plan, `run:STEP:ATTEMPT` and `verify:STEP:ATTEMPT:CHECK`, have in common."""
    return re.sub(r":\d+", "", call_id, count=1)


def _asked_again(given: Sequence[Record], world: World) -> set[int]:
    """Positions of gates whose hooks a resume asks again: what they stood before did not happen, or has to be repeated."""
    again: set[int] = set()
    for position in reversed(range(len(given))):
        event = given[position].event
        if not isinstance(event, Hooked) or event.event not in (*GATES, "session_end"):
            break
        again.add(position)
    answered = {r.event.tool_call_id for r in given if isinstance(r.event, Said)}
    started = [r.event for r in given if isinstance(r.event, CallStarted) and r.event.call_id not in answered]
    if any(e.name in world.tools and world.tools[e.name].read_only for e in started):
        gates = [p for p, r in enumerate(given) if isinstance(r.event, Hooked) and r.event.event == "pre_tool_use"]
        batch = [p for i, p in enumerate(gates) if gates[-1] - p == len(gates) - 1 - i]  # they stand side by side
        over = sum(isinstance(r.event, Said) for r in given[gates[-1] :]) if gates else 0
        again |= set(batch[over * len(world.hooks.get("pre_tool_use", ())) :])
    return again


def _key(tools: Mapping[str, Tool], name: str, arguments: str) -> _Key:
    tool = tools.get(name)
    parsed = parse_arguments(tool, arguments) if tool is not None else arguments
    return name, parsed if isinstance(parsed, str) else _dumped(parsed)


def _dumped(arguments: Any) -> str:
    return compact_json(arguments.model_dump(mode="json"))
