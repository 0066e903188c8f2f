"""`planrun run`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from planrun.cli.kinds import FILE, PAIR, PATH, SESSION
from planrun.cli.options import Option, RunCommand, run_options


@click.command(
    "run",
    cls=RunCommand,
    epilog="Options also read the environment: --max-cost PLANRUN_RUN_MAX_COST and then, as most of them, PLANRUN_MAX_COST.",
)
@click.argument("plan", type=PATH)
@click.option(
    "-p",
    "--param",
    "param",
    cls=Option,
    type=PAIR,
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the plan; may be given often.",
)
@click.option("--params-file", cls=Option, type=FILE, help="Parameters from a YAML or JSON file; -p wins.")
@click.option("--session", cls=Option, type=SESSION, metavar="ID", help="Name of the new session; made of the time by default.")
@click.option("-n", "--dry-run", is_flag=True, help="Validate, show what would run, spend nothing.")
@run_options
@click.pass_context
def command(ctx: click.Context, /, plan: Path, **options: Any) -> None:
    """Validate PLAN, start a session and run it to its end.

    Progress goes to stderr, results to stdout. The session is a file in .thclaws/sessions; after a crash, a limit or
    Ctrl-C `planrun resume` goes on where it stopped.

    \b
    planrun run plan.yaml -p package=httpx --max-cost 2 --max-time 90m
    planrun run plan.yaml --format json --summary result.json
    planrun run -n plan.yaml
    """
    from planrun import api
    from planrun.cli.delivering import Shown
    from planrun.cli.driving import drive, flags_of
    from planrun.cli.params import given

    shown = Shown.of(options)
    ctx.meta["planrun.verbose"] = options["verbose"]

    def ask() -> api.Ask:
        return api.Ask(
            flags=flags_of(options),
            params=given(options["param"], options["params_file"]),
            session=options["session"],
            until=options["until"],
            approve=options["approve"],
            wait_limit=options["wait_limit"],
        )

    if options["dry_run"]:
        from planrun.cli.dryrun import dry_run

        dry_run(plan, ask, shown)
        return
    drive(ctx, shown, lambda front: api.run(plan, ask(), front, cwd=Path.cwd(), environ=os.environ))
