"""`planrun resume`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from planrun.cli.kinds import SESSION, TEXT
from planrun.cli.options import Option, RunCommand, run_options


@click.command(
    "resume",
    cls=RunCommand,
    epilog="Options also read the environment: --max-cost PLANRUN_RESUME_MAX_COST and then, as most of them, PLANRUN_MAX_COST.",
)
@click.argument("session", required=False, type=SESSION)
@click.option("--from", "from", cls=Option, type=TEXT, metavar="STEP", help="Run this step and all later ones again.")
@click.option(
    "--skip", cls=Option, type=TEXT, multiple=True, metavar="STEP", help="Count this step as skipped; may be given often."
)
@click.option(
    "--rerun",
    cls=Option,
    type=TEXT,
    metavar="none|stale|STEP",
    help="none: go on with the recorded plan, though its file has changed. stale: take the plan as it is now and run again "
    "what changed in it. STEP: run this step again.",
)
@run_options
@click.pass_context
def command(ctx: click.Context, /, session: str | None, **options: Any) -> None:
    """Go on with SESSION from its log: finished steps are not run or paid for again.

    A unique beginning of the name is enough. Without a name it is the newest unfinished session of this directory.
    It runs in the directory that it was started in.

    \b
    planrun resume
    planrun resume 20260131-0915 --max-cost 5
    planrun resume --rerun stale
    """
    from planrun import api
    from planrun.cli.delivering import Shown
    from planrun.cli.driving import drive, flags_of

    ctx.meta["planrun.verbose"] = options["verbose"]
    ask = api.Ask(
        flags=flags_of(options),
        until=options["until"],
        approve=options["approve"],
        wait_limit=options["wait_limit"],
        start_from=options["from"],
        skip=options["skip"],
        rerun=options["rerun"],
    )
    drive(ctx, Shown.of(options), lambda front: api.resume(session, ask, front, cwd=Path.cwd(), environ=os.environ))
