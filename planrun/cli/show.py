"""`planrun show`"""

from __future__ import annotations

from pathlib import Path

import click

from planrun.cli.kinds import SESSION
from planrun.cli.options import session_dir_option, text_or_json


@click.command("show")
@click.argument("session", required=False, type=SESSION)
@click.option("--context", "with_context", is_flag=True, help="Also how the session uses its context.")
@session_dir_option
@text_or_json
def command(session: str | None, with_context: bool, session_dir: Path | None, format: str) -> None:
    """Show how a session stands: the status of each step, its outputs, what was spent.

    A unique beginning of the name is enough; without a name it is the newest session of this directory. With
    --format json it is the object that `planrun run --format json` prints.

    \b
    planrun show
    planrun show 20260131-0915 --format json
    planrun show --context
    """
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import say, say_json
    from planrun.planfile import read_plan
    from planrun.session.following import latest
    from planrun.session.lock import writer
    from planrun.views import use as used
    from planrun.views.result import result
    from planrun.views.show import show

    path = find(session, store_of(session_dir))
    use = None
    if with_context:
        from planrun import looking  # it loads all that a run needs

        use = looking.use_of(path)
    state = use.state if use is not None else latest(path, read_plan)
    if format == "json":
        more = {"context": used.as_json(use)} if use is not None else {}
        say_json({**result(state, path), **more})
    else:
        say(show(state, path, writer(path)))
        if use is not None:
            say(f"\n{used.text(use)}")
