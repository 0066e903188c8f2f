"""`planrun config`"""

from __future__ import annotations

import os
from pathlib import Path

import click

from planrun.cli.options import session_dir_option, text_or_json


@click.command("config")
@session_dir_option
@text_or_json
def command(session_dir: Path | None, format: str) -> None:
    """Show every setting in force here and where it comes from. The endpoint's key is never shown.

    A flag wins over the environment, then the plan, .thclaws/settings.json, the user's settings, the default.

    \b
    planrun config
    PLANRUN_MODEL=qwen3-coder planrun config --format json
    """
    from planrun.cli.printing import complain, say, say_json
    from planrun.settings import Flags, resolve
    from planrun.views.words import one_line

    settings = resolve(Path.cwd().resolve(), Flags(session_dir=session_dir), os.environ, None)
    for warning in settings.warnings:
        complain(f"planrun: {one_line(warning, 400)}")
    rows = settings.describe()
    if format == "json":
        say_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
        return
    from json import dumps

    shown = [(name, one_line(value if isinstance(value, str) else dumps(value), 60), origin) for name, value, origin in rows]
    wide = [max(len(row[column]) for row in shown) for column in range(2)]
    say("\n".join(f"{name.ljust(wide[0])}  {value.ljust(wide[1])}  {origin}" for name, value, origin in shown))
