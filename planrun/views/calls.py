"""Calls in words: what is being run, and how it went."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

from planrun.core import names
from planrun.core.events import CallEnded, CallStarted
from planrun.core.plan import ExistsCheck, RunCheck, Step, UnchangedCheck
from planrun.core.state import State
from planrun.views.line import NORMAL, VERBOSE, Line, place, step_of
from planrun.views.words import duration, one_line

_SLOW = 5.0  # seconds from which the end of a call is worth a line
_WIDE = 120  # characters of what a call is about
_SUBJECTS = ("command", "file_path", "path", "pattern", "query", "url")


def started(event: CallStarted, state: State) -> Iterator[Line]:
    yield Line(f"{place(state, event.step)}{subject(event, state)}")
    arguments = _arguments(event.call_id, state)
    if len(arguments) > 1:
        yield Line(f"  {one_line(json.dumps(arguments, ensure_ascii=False), 600)}", "dim", VERBOSE)


def ended(event: CallEnded, state: State) -> Iterator[Line]:
    at, took = place(state, event.step), f" ({duration(event.seconds)})" if event.seconds is not None else ""
    text = one_line(event.text or "", 400)
    ok = event.status == "ok"
    if event.name in ("run", "verify"):
        what = "command" if event.name == "run" else "check"
        again = " again, at the end" if event.call_id.startswith("recheck:") else ""
        passed = "ended" if event.name == "run" else "passed"
        verdict = passed if ok else "cut off" if event.status == "interrupted" else "failed"
        said = f": {text}" if text and not ok else ""
        yield Line(f"{at}{what} {verdict}{again}{took}{said}", "plain" if ok else "bad", stays=not ok)
        if ok and text:
            yield Line(f"  {text}", "dim", VERBOSE)
    elif event.name != names.PLAN_TOOL:
        worth = not ok or (event.seconds or 0.0) >= _SLOW
        words = "ended" if ok else f"ended with {event.status}"
        yield Line(f"{at}{one_line(event.name, 40)} {words}{took}", "plain" if ok else "note", NORMAL if worth else VERBOSE)


def subject(event: CallStarted, state: State) -> str:
    """What a call is about: its tool and the argument that tells most, or the command of the plan that is run."""
    step = step_of(state, event.step)
    if step is not None and event.name == "run":
        return f"running {one_line(step.run or '', _WIDE)}"
    if step is not None and event.name == "verify":
        return f"checking {_check(event.call_id, step)}"
    arguments = _arguments(event.call_id, state)
    about = next((arguments[k] for k in _SUBJECTS if isinstance(arguments.get(k), str)), None)
    if about is None:
        about = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    return f"{one_line(event.name, 40)} {one_line(str(about), _WIDE)}".strip() or "a call"


def _check(call_id: str, step: Step) -> str:
    """The check of a call id such as `verify:STEP:ATTEMPT:POSITION` (file outputs first) or `recheck:STEP:INDEX`."""
    files = [f.path or f.name for f in step.output if f.type == "file" and f.required]
    texts = [] if call_id.startswith("recheck:") else [f"that {path} is there" for path in files]
    for check in step.verify:
        match check:
            case RunCheck(run=command):
                texts.append(one_line(command, _WIDE))
            case ExistsCheck(exists=patterns):
                texts.append(f"that {', '.join(patterns)} exists")
            case UnchangedCheck(unchanged=patterns):
                texts.append(f"that {', '.join(patterns)} is unchanged")
            case _:
                assert_never(check)
    position = call_id.rpartition(":")[2]
    known = position.isdigit() and int(position) < len(texts)
    return one_line(texts[int(position)], _WIDE) if known else "the step"


def _arguments(call_id: str, state: State) -> dict[str, object]:
    """The arguments of a call of the step under way, read from the messages of its view."""
    for segment in reversed(state.view[-1:]):
        for entry in reversed(segment.entries):
            for call in entry.message.tool_calls:
                if call.id == call_id:
                    value = json.loads(call.arguments)
                    return value if isinstance(value, dict) else {}
    return {}
