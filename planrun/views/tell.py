"""What a record says to somebody who watches: lines of text, each with how much it matters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from planrun.core import names
from planrun.core.budget import GRACE
from planrun.core.events import (
    Approval,
    CallEnded,
    CallStarted,
    Compacted,
    Ended,
    Hooked,
    LimitNeared,
    Noted,
    Requested,
    Responded,
    Said,
    Session,
    StepChanged,
    Stopped,
    Unknown,
)
from planrun.core.records import Record
from planrun.core.state import State
from planrun.views.calls import ended, started
from planrun.views.edits import boundary
from planrun.views.line import NORMAL, QUIET, VERBOSE, Line, place, step_of
from planrun.views.words import amount, duration, money, one_line, plural


def tell(record: Record, state: State) -> Iterator[Line]:  # noqa: C901 - a case for each event
    """The lines of a record, given the state after it. Each is on one line and free of control sequences."""
    match record.event:
        case StepChanged() as event:
            yield from _step(event, state)
        case Requested() as event:
            yield Line(f"{place(state, event.step)}waiting for {waited(event, state)}", "dim")
        case Responded() as event:
            yield from _responded(event)
        case Said() as event:
            yield from _said(event, state)
        case CallStarted() as event:
            yield from started(event, state)
        case CallEnded() as event:
            yield from ended(event, state)
        case Compacted() as event:
            yield Line(boundary(event), "note", stays=True)
        case Approval() as event:
            yield _approval(event, state)
        case LimitNeared() as event:
            yield _limit(event)
        case Stopped() as event:
            more = f", for at most {duration(GRACE)}; a second signal ends it at once" if event.outcome == "interrupted" else ""
            text = f"{one_line(event.outcome, 40)}: the commands under finally run before the end{more}"
            yield Line(text, "note", stays=True)
        case Hooked() as event:
            bad = event.status != "ok"
            text = f"hook {one_line(event.event, 40)} {one_line(event.status, 40)} after {duration(event.seconds)}"
            text += f": {one_line(event.text or event.command)}"
            yield Line(text, "bad" if bad else "dim", NORMAL if bad else VERBOSE, stays=bad)
        case Noted() as event:
            yield Line(f"{place(state, event.step)}{one_line(event.text, 400) or one_line(event.kind)}", "note", stays=True)
        case Session() as event:
            yield Line(f"the plan as it is now in {one_line(event.plan_path)} is adopted", "note", stays=True)
        case Ended():
            pass  # the end is told with the whole run in view: see `ending`
        case Unknown():
            pass
        case _:
            assert_never(record.event)


def waited(event: Requested, state: State) -> str:
    """What a request waits for: the model, which turn it is, how much was sent."""
    model = one_line(event.model or state.model or "the model", 60)
    if event.purpose != "step" or event.step is None:
        return f"{model} (a summary, {amount(event.tokens)} tokens)"
    return f"{model} (turn {state.step_state(event.step).turns + 1}, {amount(event.tokens)} tokens)"


def spent(state: State) -> str:
    spend = state.spend
    about = " (partly estimated)" if spend.estimated else ""
    cost = f", {money(spend.cost_usd)}" if spend.cost_usd is not None else ""
    return f"{plural(spend.requests, 'request')}, {plural(spend.tokens, 'token')}{about}{cost}"


def ending(ended: Ended, state: State, resume: str) -> Iterator[Line]:
    """The last lines of a run; `resume` is the command that goes on from here."""
    good = ended.outcome == "finished"
    took = f" in {duration(state.elapsed)}" if good else ""
    word = one_line(ended.outcome, 40)
    head = f"{word}{took}" if good else f"{word} (exit code {ended.exit_code})"
    reason = " ".join(filter(None, (one_line(line, 600) for line in ended.reason.splitlines()[:12])))
    yield Line(f"{head}: {reason}", "good" if good else "bad", QUIET, stays=True)
    if not good:
        yield Line(f"{duration(state.elapsed)} so far, {spent(state)}", "dim", stays=True)
    else:
        yield Line(spent(state), "dim", stays=True)
    if not good or ended.partial:
        yield Line(f"resume with: {resume}", "plain", QUIET, stays=True)


def _step(event: StepChanged, state: State) -> Iterator[Line]:
    at, step = place(state, event.step), step_of(state, event.step)
    note = one_line(event.note or "", 400)
    match event.status:
        case "in_progress":
            title = one_line(step.title) if step is not None else ""
            if event.attempt > 1:
                yield Line(f"{at}attempt {event.attempt}" + (f", after: {note}" if note else ""), "note", stays=True)
            else:
                yield Line(f"{at}started" + (f" ({title})" if title else ""))
        case "done":
            more = f": {note}" if note else ""
            yield Line(f"{at}done, {_used(event.step, state)}{more}", "good", stays=True)
        case "failed":
            yield Line(f"{at}failed, {_used(event.step, state)}: {note or event.reason}", "bad", QUIET, stays=True)
        case "skipped" | "blocked" | "todo":
            yield Line(f"{at}{event.status}" + (f": {note}" if note else ""), "note", stays=True)


def _used(step_id: str, state: State) -> str:
    now = state.step_state(step_id)
    parts = [duration(now.seconds)]
    if now.total_turns:
        parts += [plural(now.total_turns, "turn"), plural(now.spend.tokens, "token")]
    if now.spend.cost_usd:
        parts.append(money(now.spend.cost_usd))
    return ", ".join(parts)


def _responded(event: Responded) -> Iterator[Line]:
    if event.error is not None:
        tried = f" ({plural(event.retries + 1, 'request')})" if event.retries else ""
        yield Line(f"no answer after {duration(event.seconds)}{tried}: {one_line(event.error, 400)}", "bad", stays=True)
        return
    usage = event.usage or {}
    counts = ", ".join(f"{amount(v)} {k.replace('_', ' ')}" for k, v in usage.items() if v) or "no usage reported"
    yield Line(f"answer after {duration(event.seconds)}, {one_line(counts)}", "dim", VERBOSE)
    if event.refusal:
        yield Line(f"the model declined: {one_line(event.refusal, 400)}", "bad", stays=True)
    elif event.empty:
        yield Line("the answer was empty", "note")
    elif event.finish_reason == "length":
        yield Line("the answer was cut off at the output limit", "note")


def _said(event: Said, state: State) -> Iterator[Line]:
    at = place(state, event.step)
    if event.origin == "model" and (event.content or "").strip():
        yield Line(f"{at}says: {one_line(event.content or '', 400)}", "dim", VERBOSE)
    elif event.origin == "runner" and event.role == "user" and at:
        yield Line(f"{at}reminded: {one_line(event.content or '', 240)}", "note")
    elif event.role == "tool":
        ran = any(call_id == event.tool_call_id for call_id, *_ in state.unended)
        if event.status is not None and not ran and not _told(event, state):
            text = f"{at}{one_line(event.name or '', 40)} {_refusal(event)}: {one_line(event.content or '', 240)}"
            yield Line(text, "note", stays=True)
        else:
            yield Line(f"{at}{one_line(event.name or '', 40)} -> {one_line(event.content or '', 400)}", "dim", VERBOSE)


def _told(event: Said, state: State) -> bool:
    """Whether the answer repeats a failed check, which had a line of its own."""
    failure = state.step_state(event.step).failure if event.step and event.name == names.PLAN_TOOL else None
    return failure is not None and failure in (event.content or "")


def _refusal(event: Said) -> str:
    return {"denied": "denied", "interrupted": "interrupted"}.get(event.status or "", "refused")


def _approval(event: Approval, state: State) -> Line:
    text = one_line(event.text, 400)
    if event.decision == "asked":
        return Line(f"{place(state, event.step)}asks: {text}", "note")  # whoever can answer reads the question itself
    by = f" by {one_line(event.by, 60)}" if event.by else ""
    return Line(f"{place(state, event.step)}{event.decision}{by}: {text}", "note", stays=True)


def _limit(event: LimitNeared) -> Line:
    if event.limit == "window":
        return Line(
            f"the request was too long for the endpoint: its window is taken to be {amount(event.maximum)} tokens",
            "note",
            stays=True,
        )
    share = f"{event.used / event.maximum:.0%}" if event.maximum else "all"
    landing = "; the model is told to land" if event.landing else ""
    return Line(f"{share} of the limit {one_line(event.limit, 60)} is used{landing}", "note", stays=True)
