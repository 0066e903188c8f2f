"""`planrun expand`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planrun.cli.kinds import COUNT, SESSION
from planrun.cli.options import session_dir_option, text_or_json

if TYPE_CHECKING:
    from planrun.core.archive import Original


@click.command("expand")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("-s", "--session", type=SESSION, metavar="SESSION", help="The session; the newest of this directory by default.")
@click.option("-r", "--results", is_flag=True, help="Tool results too, not only their sizes.")
@click.option("--max-tokens", type=COUNT, help="Stop after about this many tokens and say how to go on.")
@session_dir_option
@text_or_json
def command(
    ids: tuple[str, ...], session: str | None, results: bool, max_tokens: int | None, session_dir: Path | None, format: str
) -> None:
    """Print originals: records by number, as they were before any compaction.

    An ID is a record's number, a range of them, a step, or the number of a compaction, which stands for all that it
    covers. SESSION:ID is of another session. A tool result is printed where its own number is given, or with --results.

    \b
    planrun expand 45 12-20
    planrun expand survey --results
    """
    from planrun.cli.archive import history_of
    from planrun.cli.printing import complain, say, say_json
    from planrun.errors import UsageError
    from planrun.views.words import block

    history = history_of(session, session_dir)
    given = history.expand(",".join(ids), results, max_tokens)
    if format == "json":
        originals = [original._asdict() for original in given.originals]
        say_json({"originals": originals, "rest": given.rest, "unknown": dict(given.unknown)})
    else:
        for original in given.originals:
            say(f"{_head(original, history.session)}\n{block(original.text)}".rstrip("\n"))
    for notice in given.notices:
        complain(notice)
    if given.rest:
        complain(f"there is more: planrun expand {given.rest}")
    if given.unknown:
        raise UsageError("; ".join(f"{name}: {why}" for name, why in given.unknown.items()))


def _head(original: Original, here: str) -> str:
    place = f"{original.record}" if original.session == here else f"{original.session}:{original.record}"
    what = " ".join(filter(None, [original.role or original.kind, original.name]))
    left_out = f"  [{original.left_out:,} characters left out; --results shows them]" if original.left_out else ""
    return f"--- {place}  {original.step or '-'}  {what}{left_out}"
