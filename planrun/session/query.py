"""What somebody looks for, from the text that they type: any text, and never a piece of SQL or of FTS5's own language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, assert_never

from planrun.core.archive import Mode, Unclear
from planrun.session.terms import MARK, OPERATORS, sought

_MOST_PHRASES, _MOST_WORDS = 100, 500
_DEEPEST = 8  # brackets in brackets; the parser of FTS5 has room for a hundred symbols
_WORDS = re.compile(r'"([^"]*)"?|(\S+)')
_SYMBOLS = re.compile(r'"([^"]*)"?|([()])|([^\s()"]+)')


class Phrase(NamedTuple):
    """Words that follow each other; with `prefix` the last is the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False


class Every(NamedTuple):
    parts: tuple[Query, ...]


class Either(NamedTuple):
    parts: tuple[Query, ...]


class Without(NamedTuple):
    part: Query
    less: Query


Query = Phrase | Every | Either | Without


def parse(pattern: str, mode: Mode) -> Query | None:
    """The query; None where there is nothing in it that could be found. Raises Unclear."""
    found = _Boolean(pattern).read() if mode == "boolean" else _joined(Every, list(_plain(pattern)))
    if found is not None:
        phrases = list(_phrases(found))
        if len(phrases) > _MOST_PHRASES or sum(len(p.words) for p in phrases) > _MOST_WORDS:
            raise Unclear(f"that is too long to look for: at most {_MOST_PHRASES} words or phrases, {_MOST_WORDS} words in all")
    return found


def expression(query: Query) -> str:
    """The query in FTS5's language. A word holds letters, digits and what is beyond ASCII: nothing in it needs an escape."""
    match query:
        case Phrase(words, prefix):
            return f'"{" ".join(words)}"{" *" if prefix else ""}'
        case Every(parts):
            return f"({' AND '.join(map(expression, parts))})"
        case Either(parts):
            return f"({' OR '.join(map(expression, parts))})"
        case Without(part, less):
            return f"({expression(part)} NOT {expression(less)})"
        case _:
            assert_never(query)


def matches(query: Query, line: str) -> bool:
    """Whether a text fits the query, from its words as `terms.line` gives them."""
    match query:
        case Phrase(words, prefix):
            return f" {' '.join(words)}{'' if prefix else ' '}" in line
        case Every(parts):
            return all(matches(part, line) for part in parts)
        case Either(parts):
            return any(matches(part, line) for part in parts)
        case Without(part, less):
            return matches(part, line) and not matches(less, line)
        case _:
            assert_never(query)


def wanted(query: Query) -> Iterator[Phrase]:
    """The phrases that a text may be found for."""
    return _phrases(query, wanted_only=True)


def _phrases(query: Query, wanted_only: bool = False) -> Iterator[Phrase]:
    match query:
        case Phrase():
            yield query
        case Every(parts) | Either(parts):
            for part in parts:
                yield from _phrases(part, wanted_only)
        case Without(part, less):
            yield from _phrases(part, wanted_only)
            yield from () if wanted_only else _phrases(less)
        case _:
            assert_never(query)


def _plain(pattern: str) -> Iterator[Query]:
    """Each word between blanks; one that reads as several (`TKT-417`, `a:b`) is the phrase of them."""
    for quoted, word in _WORDS.findall(pattern):
        phrase = Phrase((f"{MARK}{word.lower()}",)) if word in OPERATORS else _phrase(quoted or word)
        if phrase is not None:
            yield phrase


def _phrase(text: str) -> Phrase | None:
    words, prefix = sought(text)
    return Phrase(words, prefix) if words else None


def _joined(kind: type[Every | Either], parts: list[Query]) -> Query | None:
    return kind(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None


class _Boolean:
    """Reads `a AND (b OR "c d") NOT e`; NOT binds closest, then AND, which may be left out, then OR."""

    def __init__(self, pattern: str) -> None:
        # Of a symbol: the operator or bracket that it is, or "" and the text to look for.
        self._symbols = [(b or (w if w in OPERATORS else ""), quoted or w) for quoted, b, w in _SYMBOLS.findall(pattern)]
        self._at = 0

    def read(self) -> Query | None:
        if not self._symbols:
            return None
        found = self._alternatives(0)
        if self._at < len(self._symbols):
            raise Unclear("there is a `)` without its `(`; put brackets that are to be found into quotes")
        return found

    def _next(self) -> str | None:
        return self._symbols[self._at][0] if self._at < len(self._symbols) else None

    def _take(self, symbol: str) -> bool:
        taken = self._next() == symbol
        self._at += taken
        return taken

    def _alternatives(self, depth: int) -> Query | None:
        parts = [self._conjunction(depth)]
        while self._take("OR"):
            parts.append(self._conjunction(depth))
        return _joined(Either, [p for p in parts if p is not None])

    def _conjunction(self, depth: int) -> Query | None:
        """The parts up to an OR, a closing bracket or the end."""
        parts: list[tuple[bool, Query | None]] = []
        while not parts or self._next() not in (None, ")", "OR"):
            if parts:
                self._take("AND")
            negated = self._take("NOT")
            parts.append((negated, self._one(depth)))
        if all(negated for negated, _ in parts):
            raise Unclear("NOT takes away from what stands beside it: `error NOT warning`")
        found = _joined(Every, [p for negated, p in parts if not negated and p is not None])
        less = _joined(Either, [p for negated, p in parts if negated and p is not None])
        return Without(found, less) if found is not None and less is not None else found

    def _one(self, depth: int) -> Query | None:
        symbol = self._next()
        if symbol == "":
            self._at += 1
            return _phrase(self._symbols[self._at - 1][1])
        if symbol != "(":
            what = f"`{symbol}`" if symbol else "the end"
            raise Unclear(f"a word, a phrase in quotes or a bracket is expected before {what}")
        if depth == _DEEPEST:
            raise Unclear(f"brackets stand in brackets more than {_DEEPEST} deep")
        self._at += 1
        found = self._alternatives(depth + 1)
        if not self._take(")"):
            raise Unclear("a `)` is missing")
        return found
