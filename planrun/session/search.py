"""Searching the archive: through the index, or by a scan where there can be none. Both find the same.

Ranked is what was found by bm25 (FTS5's), the newest first where that is equal; of a common word only the newest WINDOW hits are
ranked, as bm25 must visit each. A scan gives the newest first."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planrun.core.archive import Found, Hit, Search
from planrun.session import index, terms
from planrun.session.query import Phrase, Query, expression, parse, wanted
from planrun.session.scan import Filter, scan
from planrun.session.texts import Doc, body_at, doc_of
from planrun.session.times import span

if TYPE_CHECKING:
    from sqlite3 import Connection

WINDOW = 10_000
SNIPPET = 300  # characters
_BEFORE = 90  # of them before the match
NOTHING = "there is no word to look for in that"
_HITS = """from fts cross join doc on doc.id = fts.rowid
where fts match :query and fts.rowid between :low and :high"""
_CONDITIONS = {
    "role": "doc.role = :role",
    "step": "doc.step = :step",
    "since": "doc.timestamp >= :since",
    "before": "doc.timestamp < :before",
}
_SCOPES = {"message": "doc.level is null", "summary": "doc.level is not null"}
_PIECE = re.compile(r"(?:[0-9A-Za-z]|[^\x00-\x7f])+")
_UNSHOWN = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


def search(paths: Sequence[Path], asked: Search) -> Found:
    """What the logs at `paths`, all of one folder, hold of `asked`. Raises Unclear."""
    only = Filter.of(asked, *span(asked, time.time()))
    query = parse(asked.pattern, asked.mode)
    if query is None:
        return Found(message=NOTHING)
    if not paths:
        return Found(message="there is no session to search")
    notices: list[str] = []
    for again in (True, False):
        try:
            return _through_index(paths, query, only, asked, notices)
        except index.Unusable as error:
            notices.append(f"searched without the index: {error}")
            break
        except index.Damaged as error:
            notices.append(f"the index is made anew: {error}" if again else f"searched without the index: {error}")
        try:
            index.discard(paths[0].parent)
        except index.Unusable as error:
            notices.append(f"searched without the index: {error}")
            break
    return _by_scan(paths, query, only, asked, notices)


def _through_index(paths: Sequence[Path], query: Query, only: Filter, asked: Search, notices: list[str]) -> Found:
    with index.opened(paths[0].parent) as db:
        said = list(notices)
        for path in paths:
            try:
                index.catch_up(db, path)
            except OSError as error:
                said.append(_unreadable(path, error))
        if asked.all_sessions:
            index.forget_missing(db, {path.stem for path in paths})
        db.execute("begin")  # all that follows sees one state of the index
        return _answer(db, paths, query, only, asked, said)


def _answer(
    db: Connection, paths: Sequence[Path], query: Query, only: Filter, asked: Search, notices: list[str]
) -> Found:
    low, high = 0, (1 << 63) - 1
    if not asked.all_sessions:
        no = index.number_of(db, paths[0].stem)
        low, high = ((no or 0) << index.SHIFT, ((no or 0) + 1 << index.SHIFT) - 1)
    conditions = [sql for name, sql in _CONDITIONS.items() if getattr(only, name) is not None]
    conditions += [_SCOPES[only.scope]] if only.scope in _SCOPES else []
    where = " and ".join([_HITS, *conditions])
    values: dict[str, object] = {"query": expression(query), "low": low, "high": high, "limit": asked.limit}
    values |= {name: getattr(only, name) for name in _CONDITIONS}
    ids = [i for (i,) in db.execute(f"select fts.rowid {where} order by fts.rowid desc limit {WINDOW + 1}", values)]
    more = len(ids) > WINDOW
    if more:
        values["low"] = ids[WINDOW - 1]
    ranked = f"select doc.id, doc.offset {where} order by bm25(fts), doc.timestamp desc, doc.id desc limit :limit"
    places = db.execute(ranked, values).fetchall() if ids else []
    names = dict(db.execute("select no, name from session"))
    folder = paths[0].parent
    hits = [_hit(folder / f"{names[i >> index.SHIFT]}.jsonl", i, offset, query) for i, offset in places]
    damaged = index.damaged_lines(db)
    counted = {path.stem: damaged[path.stem] for path in paths if path.stem in damaged}
    return Found(tuple(hits), min(len(ids), WINDOW), more, _message(hits, query), (*notices, *_damage(counted)))


def _hit(path: Path, key: int, offset: int, query: Query) -> Hit:
    """The hit at a place of a log. Raises Damaged where the index is wrong about it."""
    with path.open("rb") as file:
        body = body_at(file, offset)
    doc = doc_of(body, offset) if body is not None else None
    if doc is None or doc.record != key & (1 << index.SHIFT) - 1:
        raise index.Damaged("it does not fit the logs")
    return _shown(path, doc, query)


def _by_scan(paths: Sequence[Path], query: Query, only: Filter, asked: Search, notices: list[str]) -> Found:
    found: list[tuple[Path, Doc]] = []
    damaged: dict[str, int] = {}
    for path in paths:
        try:
            found += [(path, doc) for doc in scan(path, query, only, damaged)]
        except OSError as error:
            notices.append(_unreadable(path, error))
    found.sort(key=lambda hit: (hit[1].timestamp, hit[0].stem, hit[1].record), reverse=True)
    hits = tuple(_shown(path, doc, query) for path, doc in found[: asked.limit])
    total = min(len(found), WINDOW)
    return Found(hits, total, len(found) > WINDOW, _message(hits, query), (*notices, *_damage(damaged)))


def _message(hits: Sequence[Hit], query: Query) -> str:
    """A word of advice where nothing was found."""
    if not hits and any(word.startswith(terms.MARK) for phrase in wanted(query) for word in phrase.words):
        return "AND, OR and NOT were looked for as words; with mode boolean they are operators"
    return ""


def _unreadable(path: Path, error: OSError) -> str:
    return f"session {path.stem} cannot be read: {error.strerror or error}"


def _damage(counts: dict[str, int]) -> Iterable[str]:
    for name, count in counts.items():
        lines = f"{count} lines" if count > 1 else "a line"
        yield f"{lines} of session {name} could not be read; `planrun doctor {name}` says more"


def _shown(path: Path, doc: Doc, query: Query) -> Hit:
    snippet = snippet_of(doc.text, list(wanted(query)))
    return Hit(path.stem, doc.record, doc.timestamp, doc.kind, doc.role, doc.step, doc.level, snippet)


def snippet_of(text: str, phrases: Sequence[Phrase]) -> str:
    """At most SNIPPET characters around the first match, on one line, without control characters."""
    place = min((p for p in (_find(text, phrase) for phrase in phrases) if p is not None), default=0)
    start = max(0, place - _BEFORE)
    if start:  # not in the middle of a word, where there is a blank near by
        start = next((i + 1 for i in range(start, min(start + 20, place)) if text[i].isspace()), start)
    cut = _UNSHOWN.sub(" ", text[start : start + 2 * SNIPPET]).strip()
    head = "…" if start else ""
    if len(head) + len(cut) <= SNIPPET and start + 2 * SNIPPET >= len(text):
        return head + cut
    return f"{head}{cut[: SNIPPET - len(head) - 1]}…"


def _find(text: str, phrase: Phrase) -> int | None:
    """Where a phrase begins in a text; of pairs of characters in a run, exactly, of other words in a piece, about."""
    sought, size = phrase.words, len(phrase.words)
    seen: list[tuple[str, int]] = []
    for found in _PIECE.finditer(text):
        seen += [(word, found.start() + i) for i, word in enumerate(terms.words(found[0]))]
        while len(seen) >= size:
            here = [word for word, _ in seen[:size]]
            if here[:-1] == list(sought[:-1]) and (here[-1].startswith(sought[-1]) if phrase.prefix else here[-1] == sought[-1]):
                return seen[0][1]
            del seen[0]
    return None
