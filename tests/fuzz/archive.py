"""The target for searches: any text is a query that FTS5 takes, and both ways of searching agree on it."""

from __future__ import annotations

import sqlite3
from functools import cache

from planrun.core.archive import MODES, Unclear
from planrun.session.query import expression, matches, parse
from planrun.session.terms import indexed, line

TEXTS = (
    "The quick brown fox AND a NOT; error 404 at a:b (c)",
    "数据库 连接失败 TKT-417 crème brûlée x",
    "and or not near \"quoted\" 'single' * ^ - + {col}: colon",
    "ไทย 한국어 日本 ☃ € 1.10 3_000 foo_bar fooBar",
    "",
)


@cache
def _database() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("create virtual table fts using fts5(text, content='', tokenize='ascii')")
    db.executemany("insert into fts(rowid, text) values (?, ?)", [(i, indexed(t)) for i, t in enumerate(TEXTS)])
    db.commit()
    return db


def query(data: bytes) -> None:
    """A query or Unclear; where the data has a NUL, what follows it is one more text to be searched."""
    pattern, _, more = data.decode("utf-8", "replace").partition("\0")
    db, texts = _database(), [*TEXTS, more]
    db.execute("insert into fts(rowid, text) values (?, ?)", (len(TEXTS), indexed(more)))
    try:
        for mode in MODES:
            try:
                found = parse(pattern, mode)
            except Unclear as error:
                assert mode == "boolean" or "too long" in str(error)
                continue
            if found is not None:
                hits = {i for (i,) in db.execute("select rowid from fts where fts match ?", (expression(found),))}
                assert hits == {i for i, text in enumerate(texts) if matches(found, line(text))}, (found, hits)
    finally:
        db.rollback()
