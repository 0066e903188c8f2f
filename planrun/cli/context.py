"""`planrun context`"""

from __future__ import annotations

import os
from pathlib import Path

import click

from planrun.cli.kinds import COUNT, SESSION, TEXT
from planrun.cli.options import session_dir_option, text_or_json


@click.command("context")
@click.argument("session", required=False, type=SESSION)
@click.option("--step", type=TEXT, metavar="ID", help="The last request of this step.")
@click.option("--turn", type=COUNT, metavar="N", help="Request number N of the session, summaries not counted.")
@session_dir_option
@text_or_json
@click.pass_context
def command(
    ctx: click.Context, session: str | None, step: str | None, turn: int | None, session_dir: Path | None, format: str
) -> None:
    """Print the exact messages that the model saw, or would see next, and what they take of its window.

    They are rebuilt from the log and proved: their digest must be the one that was recorded before they were sent, or else
    the exit code is 5. Without --step or --turn it is the next request. Without SESSION it is the newest session of this
    directory; a unique beginning of the name is enough.

    \b
    planrun context
    planrun context 20260131-0915 --step survey
    planrun context 20260131-0915 --turn 12 --format json
    """
    from planrun import looking
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import complain, say, say_json
    from planrun.errors import EXIT_CODES, Outcome, UsageError
    from planrun.settings import Flags
    from planrun.views.context import as_json, proof, text

    if step is not None and turn is not None:
        raise UsageError("--step and --turn name two requests: give one of them")
    path = find(session, store_of(session_dir))
    if step is None and turn is None:
        seen = looking.upcoming(path, Flags(session_dir=session_dir), os.environ)
    else:
        seen = looking.sent(path, turn=turn, step=step)
    if format == "json":
        say_json(as_json(seen))
    else:
        say(text(seen))
    if seen.proved is False:
        complain(f"planrun: {proof(seen)}")
        ctx.exit(EXIT_CODES[Outcome.SESSION_DAMAGED])
