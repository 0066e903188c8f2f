"""A session as text: how it stands, step by step, its outputs, what was spent."""

from __future__ import annotations

import json
import time
from pathlib import Path

from planrun.core.plan import Step
from planrun.core.state import State, StepState
from planrun.views.console import resume_command
from planrun.views.tell import spent
from planrun.views.words import amount, block, duration, money, one_line


def show(state: State, path: Path, writer: str | None) -> str:
    """The whole text. `writer` is whoever runs the session right now."""
    parts = ["\n".join(_head(state, path, writer)), _steps(state)]
    outputs = _outputs(state)
    if outputs:
        parts.append("Outputs\n" + "\n".join(outputs))
    parts.append(f"Spent: {spent(state)}" + (f"; {state.compactions} compactions" if state.compactions else ""))
    if writer is None and (state.ended is None or state.ended.outcome != "finished" or state.ended.partial):
        parts.append(f"Go on with: {resume_command(path, state)}")
    return "\n\n".join(part for part in parts if part)


def _head(state: State, path: Path, writer: str | None) -> list[str]:
    header, ended = state.header, state.ended
    lines = [f"Session {path.stem}: {_standing(state, writer)}"]
    if ended is not None and writer is None:
        lines.append(block(ended.reason))
    rows = [("log", str(path)), ("duration", duration(state.elapsed))]
    if state.plan is not None and header is not None:
        rows[:0] = [
            ("plan", f"{state.plan.name} ({header.plan_path})"),
            ("in", header.cwd),
            ("model", state.model or "none"),
        ]
        if header.parent:
            rows.insert(1, ("forked from", header.parent))
    if state.timestamp:
        rows.append(("last record", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.timestamp))))
    return lines + [f"  {name + ':':<13}{one_line(value, 400)}" for name, value in rows]


def _standing(state: State, writer: str | None) -> str:
    if writer is not None:
        return f"running ({writer})"
    if state.ended is None:
        return "unfinished (it was cut off)"
    return f"{one_line(state.ended.outcome, 40)} (exit code {state.ended.exit_code})"


def _steps(state: State) -> str:
    if state.plan is None:
        return ""
    rows: list[tuple[str, ...]] = [("STEP", "STATUS", "TRIES", "TURNS", "TIME", "TOKENS", "COST", "NOTE")]
    rows += [_row(step, now) for step, now in zip(state.plan.steps, state.steps, strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    return "\n".join("  ".join([*(_cell(row[i], widths[i], right=i > 1) for i in range(7)), row[7]]).rstrip() for row in rows)


def _cell(text: str, width: int, *, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _row(step: Step, now: StepState) -> tuple[str, ...]:
    started = now.attempt > 0
    return (
        one_line(step.id, 60),
        now.status,
        str(now.attempt) if started else "",
        str(now.total_turns) if now.total_turns else "",
        duration(now.seconds) if started else "",
        amount(now.spend.tokens) if now.spend.tokens else "",
        money(now.spend.cost_usd) if now.spend.cost_usd is not None else "",
        one_line(now.note or "", 100),
    )


def _outputs(state: State) -> list[str]:
    lines = []
    for name, value in ((state.ended.output if state.ended else None) or {}).items():
        lines.append(f"  {name} = {one_line(json.dumps(value, ensure_ascii=False), 200)}")
    if state.plan is None:
        return lines
    for step, now in zip(state.plan.steps, state.steps, strict=True):
        for name, value in (now.output or {}).items():
            lines.append(f"  {step.id}.{name} = {one_line(json.dumps(value, ensure_ascii=False), 200)}")
    return lines
