"""`planrun schema`"""

from __future__ import annotations

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of plan files, for the completion and checks of editors.

    \b
    planrun schema > plan.schema.json
    # first line of a plan:  # yaml-language-server: $schema=plan.schema.json
    """
    from planrun import planfile
    from planrun.cli.printing import say_json

    say_json(planfile.json_schema())
