"""The sessions of a folder as rows of a table."""

from __future__ import annotations

import time

from planrun.core.plan import Json
from planrun.core.state import PlanReader
from planrun.session import progress
from planrun.session.lock import writer
from planrun.session.store import Found
from planrun.views.words import one_line


def row(found: Found, read_plan: PlanReader) -> dict[str, Json]:
    """One session; `outcome` is `running` while somebody writes it, `unfinished` where it was cut off."""
    who = writer(found.path)
    outcome = "running" if who else one_line(found.ended.outcome, 40) if found.ended else "unfinished"
    done, total, name = progress.of(found, read_plan)
    return {
        "session": found.id,
        "plan": name,
        "outcome": outcome,
        "partial": bool(found.ended and found.ended.partial) and not who,
        "writer": who,
        "done": done,
        "steps": total,
        "started": found.started,
        "touched": found.touched,
        "cwd": found.header.cwd,
        "log": str(found.path),
    }


def table(rows: list[dict[str, Json]], here: str) -> str:
    """Columns as wide as they need to be; the plan's name, which may be anything, comes last."""
    lines = [("SESSION", "OUTCOME", "STEPS", "STARTED", "PLAN")]
    for each in rows:
        steps = f"{'?' if each['done'] is None else each['done']}/{'?' if each['steps'] is None else each['steps']}"
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(float(str(each["started"]))))
        name = one_line(str(each["plan"] or "?"), 60)
        elsewhere = f"  (in {one_line(str(each['cwd']), 200)})" if each["cwd"] != here else ""
        partial = " (partial)" if each["partial"] else ""
        lines.append((str(each["session"]), f"{each['outcome']}{partial}", steps, started, f"{name}{elsewhere}"))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[4]]) for line in lines)
