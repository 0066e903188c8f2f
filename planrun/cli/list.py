"""`planrun list`"""

from __future__ import annotations

from pathlib import Path

import click

from planrun.cli.options import session_dir_option, text_or_json


@click.command("list")
@session_dir_option
@text_or_json
def command(session_dir: Path | None, format: str) -> None:
    """List the sessions of this project, the newest first.

    \b
    planrun list
    planrun list --format json
    """
    from planrun.cli.finding import store_of
    from planrun.cli.printing import complain, say, say_json
    from planrun.planfile import read_plan
    from planrun.views.listing import as_json, row, table
    from planrun.views.words import plural

    store = store_of(session_dir)
    found = store.all()[::-1]
    unreadable = len(list(store.folder.glob("*.jsonl"))) - len(found)
    rows = [row(f, read_plan) for f in found]
    if format == "json":
        say_json({"sessions": [as_json(r) for r in rows], "unreadable": unreadable})
    elif rows:
        say(table(rows, str(Path.cwd().resolve())))
    else:
        say(f"no sessions in {store.folder}")
    if unreadable:
        complain(f"{plural(unreadable, 'file')} in {store.folder} could not be read; `planrun show NAME` says why")
