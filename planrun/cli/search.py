"""`planrun search`"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planrun.cli.kinds import SESSION, TEXT
from planrun.cli.options import session_dir_option, text_or_json
from planrun.core.archive import DEFAULT_HITS, MODES, MOST_HITS, ROLES, SCOPES

if TYPE_CHECKING:
    from planrun.core.archive import Found, Hit


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-s", "--session", type=SESSION, metavar="SESSION", help="The session to search; the newest of this directory by default."
)
@click.option("-a", "--all-sessions", is_flag=True, help="Search every session of the folder.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="words",
    show_default=True,
    help="words: all must occur, as they are typed. boolean: AND, OR, NOT and brackets.",
)
@click.option("--scope", type=click.Choice(SCOPES), default="both", show_default=True, help="Messages, summaries, or both.")
@click.option("--role", type=click.Choice(ROLES), help="Only messages of this role.")
@click.option("--step", type=TEXT, metavar="STEP", help="Only what belongs to this step.")
@click.option("--last", metavar="AGE", help="Only what is not older: 30min, 6h, 7d, 2w, 1m (a month).")
@click.option("--since", metavar="TIME", help="From then on: a date, or an ISO 8601 time with any offset.")
@click.option("--before", metavar="TIME", help="Before then.")
@click.option(
    "--limit", type=click.IntRange(1, MOST_HITS), default=DEFAULT_HITS, show_default=True, help="How many hits to show."
)
@session_dir_option
@text_or_json
def command(
    query: tuple[str, ...],
    session: str | None,
    session_dir: Path | None,
    format: str,
    **asked: str | int | None,
) -> None:
    """Search all that was said in a session, also what its context has lost since: messages, calls, results, summaries.

    Every word of QUERY must occur; "quotes" make a phrase. The number before a hit is what `planrun expand` takes.

    \b
    planrun search TKT-417
    planrun search '"connection refused"' --last 7d --role tool
    planrun search --mode boolean 'timeout AND (proxy OR dns) NOT retry' -a
    """
    from planrun.cli.archive import history_of
    from planrun.cli.printing import complain, say, say_json
    from planrun.core.archive import Search, Unclear
    from planrun.errors import UsageError

    history = history_of(session, session_dir, any_session=bool(asked["all_sessions"]))
    try:
        found = history.search(Search(" ".join(query), **asked))  # type: ignore[arg-type]
    except Unclear as error:
        raise UsageError(str(error)) from error
    if format == "json":
        say_json(_json(found))
    else:
        for hit in found.hits:
            say(_text(hit, history.session))
        complain(_count(found))
    for notice in found.notices:
        complain(notice)


def _json(found: Found) -> dict[str, object]:
    hits = [hit._asdict() for hit in found.hits]
    return {"total": found.total, "more": found.more, "hits": hits, "message": found.message}


def _text(hit: Hit, here: str) -> str:
    place = f"{hit.record}" if hit.session == here else f"{hit.session}:{hit.record}"
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(hit.timestamp))
    what = hit.role or f"summary, level {hit.level}"
    return f"{place:>6}  {day}  {hit.step or '-':<12}  {what}\n        {hit.snippet}"


def _count(found: Found) -> str:
    if not found.total:
        return f"no hits{f': {found.message}' if found.message else ''}"
    total = f"{found.total:,}{'+' if found.more else ''} hit{'s' if found.total != 1 else ''}"
    return f"{total}, the best {len(found.hits)} are shown" if found.total > len(found.hits) else total
