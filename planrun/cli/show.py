"""`planrun show`"""

from __future__ import annotations

from pathlib import Path

import click

from planrun.cli.options import session_dir as session_dir_option
from planrun.cli.options import text_or_json


@click.command("show")
@click.argument("session", required=False)
@session_dir_option
@text_or_json
def command(session: str | None, session_dir: Path | None, format: str) -> None:
    """Show how a session stands: the status of each step, its outputs, what was spent.

    A unique beginning of the name is enough; without a name it is the newest session of this directory. With
    --format json it is the object that `planrun run --format json` prints.

    \b
    planrun show
    planrun show 20260131-0915 --format json
    """
    from planrun import api
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import say, say_json
    from planrun.session.running import writer
    from planrun.views.result import result
    from planrun.views.show import show

    path = find(session, store_of(session_dir))
    state = api.load(path)
    if format == "json":
        say_json(result(state, path))
    else:
        say(show(state, path, writer(path)))
