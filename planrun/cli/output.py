"""`planrun output`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planrun.cli.kinds import SESSION, TEXT
from planrun.cli.options import session_dir_option


@click.command("output")
@click.argument("session", required=False, type=SESSION)
@click.argument("name", required=False, type=TEXT, metavar="[STEP.FIELD]")
@session_dir_option
def command(session: str | None, name: str | None, session_dir: Path | None) -> None:
    """Print a value that SESSION left: a string exactly as it is, anything else as JSON.

    Without STEP.FIELD it is the plan's whole output; STEP alone is all that this step left, FIELD alone one of the
    plan's outputs. Without SESSION it is the newest session of this directory.

    \b
    planrun output 20260131-0915 survey.version
    planrun output 20260131-0915 survey
    """
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import raw
    from planrun.core.messages import compact_json
    from planrun.planfile import read_plan
    from planrun.session.following import latest
    from planrun.views.values import value_of
    from planrun.views.words import block

    value = value_of(latest(find(session, store_of(session_dir)), read_plan), name)
    if not isinstance(value, str):
        raw(f"{compact_json(value)}\n".encode())
    elif sys.stdout is not None and sys.stdout.isatty():
        raw(f"{block(value)}\n".encode())
    else:
        raw(value.encode("utf-8", "backslashreplace"))
