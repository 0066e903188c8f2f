"""`planrun validate`"""

from __future__ import annotations

from pathlib import Path

import click

from planrun.cli.kinds import PATH
from planrun.cli.options import text_or_json


@click.command("validate")
@click.argument("plans", nargs=-1, required=True, type=PATH, metavar="PLAN...")
@text_or_json
@click.pass_context
def command(ctx: click.Context, plans: tuple[Path, ...], format: str) -> None:
    """Check plan files; nothing is run and nothing is spent.

    Every fault of every file is reported with its place. The exit code is 2 where any file has one.

    \b
    planrun validate plans/*.yaml
    """
    from planrun import planfile
    from planrun.cli.printing import complain, say, say_json
    from planrun.core.plan import Json
    from planrun.errors import Outcome, PlanInvalid, named
    from planrun.views.words import block, plural

    rows: list[Json] = []
    for path in plans:
        try:
            plan = planfile.load(path).plan
        except PlanInvalid as error:
            faults: list[Json] = [
                {"message": f.message, "line": f.line or None, "column": f.column or None, "hint": f.hint or None}
                for f in error.faults
            ]
            rows.append(
                {
                    "plan": str(path),
                    "outcome": Outcome.PLAN_INVALID.value,
                    "name": None,
                    "steps": None,
                    "faults": faults,
                }
            )
            complain(block(str(error)))
        else:
            rows.append({"plan": str(path), "outcome": "ok", "name": plan.name, "steps": len(plan.steps), "faults": []})
            if format == "text":
                say(f"{named(str(path))}: ok ({plural(len(plan.steps), 'step')})")
    if format == "json":
        say_json({"plans": rows})
    ctx.exit(0 if all(isinstance(r, dict) and r["outcome"] == "ok" for r in rows) else 2)
