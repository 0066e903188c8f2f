"""The result as a Markdown table, for the summary page of a CI job."""

from __future__ import annotations

import re

from planrun.core.plan import Json
from planrun.views.inert import inert
from planrun.views.words import amount, duration, money

_MARKUP = re.compile(r"[^\w\s,;%]|_")
_LONGEST = 200


def markdown(result: dict[str, Json]) -> str:
    """A heading, the reason and a row for each step. What the result holds stands in it as data, never as markup."""
    outcome = _data(result["outcome"] or "unfinished")
    lines = [f"### {_data(result['plan'] or 'planrun')}: {outcome}", "", _data(result["reason"] or ""), ""]
    steps = result["steps"]
    rows = [s for s in steps if isinstance(s, dict)] if isinstance(steps, list) else []
    if rows:
        lines += [
            "| step | status | attempts | turns | time | tokens | cost | note |",
            "|---|---|--:|--:|--:|--:|--:|---|",
        ]
        lines += [_row(step) for step in rows]
        lines.append("")
    usage = result["usage"]
    if isinstance(usage, dict):
        lines += [_usage(usage, result), ""]
    return "\n".join(lines) + "\n"


def _row(step: dict[str, Json]) -> str:
    cells = [
        _data(step["id"]),
        _data(step["status"]),
        str(step["attempts"]),
        str(step["turns"]),
        duration(_number(step["seconds"])),
        amount(_number(step["prompt_tokens"]) + _number(step["completion_tokens"])),
        _data(money(_cost(step["cost_usd"]))),
        _data(step["note"] or ""),
    ]
    return f"| {' | '.join(cells)} |"


def _usage(usage: dict[str, Json], result: dict[str, Json]) -> str:
    tokens = amount(_number(usage["prompt_tokens"]) + _number(usage["completion_tokens"]))
    about = " (partly estimated)" if usage["estimated"] else ""
    cost = _data(money(_cost(usage["cost_usd"])))
    return f"{usage['requests']} requests, {tokens} tokens{about}, cost {cost}. Session {_data(result['session'] or '')}."


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _cost(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _data(value: Json) -> str:
    """One line of text in which all characters that Markdown or HTML could read as their own are references."""
    text = inert(" ".join(str(value).split()))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)
