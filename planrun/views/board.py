"""The rows below the live lines: the plan's steps with their marks, what is going on, what was used."""

from __future__ import annotations

from rich.text import Text

from planrun.core.plan import Step
from planrun.core.room import A_GUESS, window_of
from planrun.core.state import State, StepState
from planrun.views.line import Tone
from planrun.views.words import amount, duration, money, one_line, plural

STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "red", "dim": "dim", "note": "cyan"}
_MARKS = {
    "todo": ("\N{MIDDLE DOT}", ".", "dim"),
    "in_progress": ("\N{BLACK RIGHT-POINTING SMALL TRIANGLE}", ">", "bold"),
    "done": ("\N{CHECK MARK}", "x", "green"),
    "failed": ("\N{BALLOT X}", "!", "red"),
    "skipped": ("-", "-", "dim"),
    "blocked": ("?", "?", "dim"),
}
_MOST = 12  # steps shown at once
_OTHERS = 4  # rows that are no steps: two tallies, what is going on, what was used


def board(state: State, activity: str, elapsed: float, sent: int, *, height: int, unicode: bool) -> list[Text]:
    """The rows for a terminal of this height; each is one line, however wide."""
    if state.plan is None:
        return [Text(activity)]
    steps = list(zip(state.plan.steps, state.steps, strict=True))
    room = max(1, min(_MOST, height - _OTHERS - 1, len(steps)))
    at = state.current if state.current is not None else min(state.frontier, len(steps) - 1)
    first = max(0, min(at - room // 2, len(steps) - room))
    rows = [_tally(steps[:first], "earlier")] if first else []
    rows += [_row(step, now, unicode) for step, now in steps[first : first + room]]
    rows += [_tally(steps[first + room :], "more")] if first + room < len(steps) else []
    rows.append(Text(f"  {activity}" if activity else "", style="cyan"))
    rows.append(_used(state, elapsed, sent))
    return rows


def _row(step: Step, now: StepState, unicode: bool) -> Text:
    fancy, plain, style = _MARKS[now.status]
    row = Text(f"{fancy if unicode else plain} {step.id}", style=style)
    if now.status == "in_progress":
        turns = [plural(now.turns, "turn")] if now.turns else []
        attempt = [f"attempt {now.attempt}"] if now.attempt > 1 else []
        row.append("".join(f"  {part}" for part in (*turns, *attempt)), style="not bold")
    elif now.status in ("done", "failed"):
        row.append(f"  {duration(now.seconds)}", style="dim")
    if step.title:
        row.append(f"  {one_line(step.title)}", style="not bold dim")
    return row


def _tally(steps: list[tuple[Step, StepState]], word: str) -> Text:
    counts: dict[str, int] = {}
    for _, now in steps:
        counts[now.status] = counts.get(now.status, 0) + 1
    return Text(f"  ({len(steps)} {word}: {', '.join(f'{n} {status}' for status, n in counts.items())})", style="dim")


def _used(state: State, elapsed: float, sent: int) -> Text:
    spend = state.spend
    parts = [duration(elapsed), f"{amount(spend.tokens)} tokens" + (" (estimated)" if spend.estimated else "")]
    if spend.cost_usd is not None:
        parts.append(money(spend.cost_usd))
    if sent:
        window, origin = window_of(state, state.asks)
        parts.append(f"context {amount(sent)}" + (f" of {amount(window)} ({sent / window:.0%})" if origin != A_GUESS else ""))
    return Text("  " + ", ".join(parts), style="dim")
