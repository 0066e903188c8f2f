"""`planrun fork`"""

from __future__ import annotations

import os
from pathlib import Path

import click

from planrun.cli.kinds import SESSION
from planrun.cli.options import session_dir_option


@click.command("fork")
@click.argument("old", required=False, type=SESSION, metavar="[SESSION]")
@click.option("--session", type=SESSION, metavar="ID", help="Name of the new session; made of the time by default.")
@session_dir_option
def command(old: str | None, session: str | None, session_dir: Path | None) -> None:
    """Start a new session that goes on from a summary of SESSION, and print its name.

    It has the same plan, parameters, settings and model; finished steps stay finished, with their outputs. Nothing is run
    until it is resumed, and SESSION is left as it is. Without SESSION it is the newest session of this directory; a unique
    beginning of the name is enough.

    \b
    planrun fork 20260131-0915
    planrun resume "$(planrun fork 20260131-0915)"
    """
    from planrun import forking
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import complain, say
    from planrun.cli.watching import front
    from planrun.settings import Flags
    from planrun.views.console import resume_command

    path = find(old, store_of(session_dir))
    new, state = forking.fork(path, session, front(), flags=Flags(session_dir=session_dir), environ=os.environ)
    say(new.stem)
    complain(f"go on with: {resume_command(new, state)}")
