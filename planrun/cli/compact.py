"""`planrun compact`"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from planrun.cli.kinds import COUNT, SESSION
from planrun.cli.options import session_dir_option


@click.command("compact")
@click.argument("session", required=False, type=SESSION)
@click.option("--keep", type=COUNT, default=4, show_default=True, metavar="N", help="Messages at the end that stay.")
@click.option("--force", is_flag=True, help="Also where there are fewer than 8 messages.")
@click.option("--dry-run", is_flag=True, help="Show what would come of it; spend nothing, write nothing.")
@session_dir_option
def command(session: str | None, keep: int, force: bool, dry_run: bool, session_dir: Path | None) -> None:
    """Make the context of a stopped session smaller: its older messages become a summary.

    The system message, the first user message and that of the current step stay, and so do the newest messages. A model
    writes the summary, or a digest that needs none takes its place. `planrun expand` still gives everything back. Without
    SESSION it is the newest session of this directory; a unique beginning of the name is enough.

    \b
    planrun compact --dry-run
    planrun compact 20260131-0915 --keep 8
    """
    from planrun import manual
    from planrun.cli.finding import find, store_of
    from planrun.cli.printing import say
    from planrun.cli.watching import front
    from planrun.settings import Flags
    from planrun.views.edits import boundary
    from planrun.views.words import block

    path, wanted = find(session, store_of(session_dir)), manual.Wanted(keep, force)
    flags = Flags(session_dir=session_dir)
    act = partial(manual.compact, front=front(), flags=flags, environ=os.environ)
    found = manual.preview(path, wanted) if dry_run else act(path, wanted)
    if found.compacted is None:
        say(f"session {path.stem}: nothing was compacted: {found.why}")
        return
    went = found.compacted
    would = "would be, with a digest: " if dry_run else ""
    say(f"session {path.stem}: {would}{boundary(went)}, {went.messages_before} -> {went.messages_after} messages")
    if dry_run:
        say("\n".join(["", *map(block, found.notes), "", "nothing was written"]))
