"""Searching the archive: through the index, or by a scan where there can be none. Both find the same.

What was found is ranked by bm25 (FTS5's), the newest first where that is equal; of a common word only the newest WINDOW hits
are ranked, as bm25 must visit each. A scan gives the newest first."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planrun.core.archive import Found, Hit, Search
from planrun.session import index, terms
from planrun.session.query import Phrase, Query, expression, parse, wanted
from planrun.session.raw import opened
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
_SCOPES = {"both": (), "message": ("doc.level is null",), "summary": ("doc.level is not null",)}
_PIECE = re.compile(r"(?:[0-9A-Za-z]|[^\x00-\x7f])+")
_UNSHOWN = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


def search(paths: Sequence[Path], asked: Search, *, indexed: bool = True, busy: float = index.BUSY) -> Found:
    """What the logs at `paths`, all of one folder, hold of `asked`: all of them, or the only one. Raises Unclear."""
    only = Filter.of(asked, *span(asked, time.time()))
    query = parse(asked.pattern, asked.mode)
    if query is None:
        return Found(message=NOTHING)
    if not paths:
        return Found(message="there is no session to search")
    ask = _Ask(tuple(paths), asked, query, only, [], busy)
    found = _through_index(ask) if indexed else None
    return found if found is not None else _by_scan(ask)


class _Ask(NamedTuple):
    """A search as it is carried out; `notices` grow on the way."""

    paths: tuple[Path, ...]
    asked: Search
    query: Query
    only: Filter
    notices: list[str]
    busy: float

    @property
    def folder(self) -> Path:
        return self.paths[0].parent

    def found(self, hits: Sequence[Hit], total: int, damaged: Mapping[str, int]) -> Found:
        names = [path.stem for path in self.paths if path.stem in damaged]
        notices = (*self.notices, *(_damage(name, damaged[name]) for name in names))
        return Found(tuple(hits), min(total, WINDOW), total > WINDOW, _advice(hits, self.query), notices)


def _through_index(ask: _Ask) -> Found | None:
    """None where there can be no index just now. A damaged one is made anew."""
    for again in (True, False):
        try:
            with index.opened(ask.folder, ask.busy) as db:
                _catch_up(db, ask)
                db.execute("begin")  # all that follows sees one state of the index
                return _answer(db, ask)
        except index.Unusable as error:
            ask.notices.append(f"searched without the index: {error}")
            return None
        except index.Damaged as error:
            ask.notices.append(f"the index {'is made anew' if again else 'was not used'}: {error}")
        try:
            index.discard(ask.folder)
        except index.Unusable as error:
            ask.notices.append(f"searched without the index: {error}")
            return None
    return None


def _catch_up(db: Connection, ask: _Ask) -> None:
    if ask.asked.all_sessions:
        index.forget_missing(db, {path.stem for path in ask.paths})
    for path in ask.paths:
        try:
            index.catch_up(db, path)
        except OSError as error:
            ask.notices.append(_unreadable(path, error))


def _answer(db: Connection, ask: _Ask) -> Found:
    low, high = 0, (1 << 63) - 1
    if not ask.asked.all_sessions:
        no = index.number_of(db, ask.paths[0].stem) or 0
        low, high = no << index.SHIFT, (no + 1 << index.SHIFT) - 1
    conditions = [sql for name, sql in _CONDITIONS.items() if getattr(ask.only, name) is not None]
    where = " and ".join([_HITS, *conditions, *_SCOPES[ask.only.scope]])
    values: dict[str, object] = {name: getattr(ask.only, name) for name in _CONDITIONS}
    values |= {"query": expression(ask.query), "low": low, "high": high, "limit": ask.asked.limit}
    ids = [i for (i,) in db.execute(f"select fts.rowid {where} order by fts.rowid desc limit {WINDOW + 1}", values)]
    if len(ids) > WINDOW:
        values["low"] = ids[WINDOW - 1]
    ranked = f"select doc.id, doc.offset {where} order by bm25(fts), doc.timestamp desc, doc.id desc limit :limit"
    places = db.execute(ranked, values).fetchall() if ids else []
    names = dict(db.execute("select no, name from session"))
    hits = [_hit(ask.folder / f"{names[i >> index.SHIFT]}.jsonl", i, offset, ask.query) for i, offset in places]
    return ask.found(hits, len(ids), index.damaged_lines(db))


def _hit(path: Path, key: int, offset: int, query: Query) -> Hit:
    """The hit at a place of a log. Raises Damaged where the index is wrong about it."""
    with opened(path) as file:
        body = body_at(file, offset)
    doc = doc_of(body, offset) if body is not None else None
    if doc is None or doc.record != key & (1 << index.SHIFT) - 1:
        raise index.Damaged("it does not fit the logs")
    return _shown(path, doc, query)


def _by_scan(ask: _Ask) -> Found:
    found: list[tuple[Path, Doc]] = []
    damaged: dict[str, int] = {}
    for path in ask.paths:
        try:
            found += [(path, doc) for doc in scan(path, ask.query, ask.only, damaged)]
        except OSError as error:
            ask.notices.append(_unreadable(path, error))
    found.sort(key=lambda hit: (hit[1].timestamp, hit[0].stem, hit[1].record), reverse=True)
    return ask.found([_shown(path, doc, ask.query) for path, doc in found[: ask.asked.limit]], len(found), damaged)


def _advice(hits: Sequence[Hit], query: Query) -> str:
    """A word of it where nothing was found."""
    if not hits and any(word.startswith(terms.MARK) for phrase in wanted(query) for word in phrase.words):
        return "AND, OR and NOT were looked for as words; with mode boolean they are operators"
    return ""


def _unreadable(path: Path, error: OSError) -> str:
    return f"session {path.stem} cannot be read: {error.strerror or error}"


def _damage(name: str, count: int) -> str:
    lines = f"{count} lines" if count > 1 else "a line"
    return f"{lines} of session {name} could not be read; `planrun doctor {name}` says more"


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
            *first, last = (word for word, _ in seen[:size])
            if first == list(sought[:-1]) and (last == sought[-1] or (phrase.prefix and last.startswith(sought[-1]))):
                return seen[0][1]
            del seen[0]
    return None
