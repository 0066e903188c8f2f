"""Tokens of a shell command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECT = re.compile(r"\d*(?:<<<|<<-?|<>|<&|>>|>\||>&|&>>|&>|<(?!\()|>(?!\())")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&|;&|;;|[;&|\n()]")
_PLAIN = re.compile(r"[^\s\\'\"`$;&|()<>]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Operator:
    """What ends a simple command."""

    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word without its quotes, and the commands that it substitutes."""

    value: str
    start: int
    end: int
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection; `target` is empty where it copies a descriptor or opens a here-document."""

    operator: str
    target: str
    start: int
    end: int
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The lines of a here-document."""

    body: str
    end: int


Token = Operator | Word | Redirect | Heredoc


def tokens(source: str) -> Iterator[Token]:
    """The tokens of `source`; whatever is not closed ends with it."""
    return _Lexer(source).tokens()


class _Lexer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._waiting: list[str] = []  # delimiters of here-documents whose lines come after this line
        self._nested: list[str] = []

    def tokens(self) -> Iterator[Token]:
        while self._at < len(self._source):
            if self._match(_BLANK) or self._match(_COMMENT):
                continue
            if operator := self._match(_REDIRECT):
                yield self._redirect(operator)
            elif operator := self._match(_OPERATOR):
                if operator == "\n":
                    yield from self._heredocs()
                yield Operator(operator, self._at)
            else:
                yield self._word()

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._source, self._at)
        if found:
            self._at = found.end()
        return found[0] if found else ""

    def _redirect(self, operator: str) -> Token:
        start = self._at - len(operator)
        operator = operator.lstrip("0123456789")
        self._match(_BLANK)
        word = self._word()
        if operator in ("<<", "<<-"):
            self._waiting.append(word.value)
            return Redirect(operator, "", start, word.end)
        copied = operator in (">&", "<&") and re.fullmatch(r"\d*-?", word.value)
        return Redirect(operator, "" if copied else word.value, start, word.end, word.nested)

    def _heredocs(self) -> Iterator[Heredoc]:
        for delimiter in self._waiting:
            end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(self._source, self._at)
            stop = end.start() if end else len(self._source)
            body, self._at = self._source[self._at : stop], end.end() if end else stop
            yield Heredoc(body, self._at)
        self._waiting.clear()

    def _word(self) -> Word:
        start, self._nested = self._at, []
        value: list[str] = []
        while self._at < len(self._source):
            if plain := self._match(_PLAIN):
                value.append(plain)
            elif (piece := self._piece(self._source[self._at], "")) is not None:
                value.append(piece)
            else:
                break
        if self._at == start:  # a stray character; never stand still
            self._at += 1
        return Word("".join(value), start, self._at, tuple(self._nested))

    def _piece(self, character: str, inside: str) -> str | None:
        """The value of what begins here: a quote, an escape, a substitution; None at the end of the word (or of the
        double quotes)."""
        following = self._source[self._at + 1 : self._at + 2]
        match character:
            case "\\":
                return self._escape(following, inside)
            case "'" if not inside:
                return self._until("'", 1, escapes=False)
            case '"' if not inside:
                return self._double()
            case "`":
                code = self._until("`", 1)
                self._nested.append(code.replace("\\`", "`"))
                return f"`{code}`"
            case "$":
                return self._dollar(following, inside)
            case "<" | ">" if following == "(" and not inside:
                return self._substitution()
        return self._one() if inside else None

    def _escape(self, following: str, inside: str) -> str:
        self._at = min(self._at + 2, len(self._source))
        if following == "\n":
            return ""
        return following if not inside or following in '$`"\\' else "\\" + following

    def _one(self) -> str:
        self._at += 1
        return self._source[self._at - 1]

    def _until(self, closing: str, skip: int, escapes: bool = True) -> str:
        """The text up to `closing`, after `skip` opening characters; moves behind it."""
        begin = self._at + skip
        end = begin
        while end < len(self._source) and self._source[end] != closing:
            end += 2 if escapes and self._source[end] == "\\" else 1
        self._at = min(end + 1, len(self._source))
        return self._source[begin:end]

    def _double(self) -> str:
        self._at += 1
        value: list[str] = []
        while self._at < len(self._source) and self._source[self._at] != '"':
            value.append(self._piece(self._source[self._at], '"') or "")
        self._at += 1
        return "".join(value)

    def _dollar(self, following: str, inside: str) -> str:
        if following == "(":
            return self._substitution()
        if following == "'" and not inside:
            return _ANSI.sub(_ansi, self._until("'", 2))
        if following == '"' and not inside:
            self._at += 1
            return self._double()
        if following == "{":
            begin = self._at
            text = self._until("}", 2)
            self._nested += [
                nested for code in re.findall(r"\$\((.*)\)|`([^`]*)`", text, re.DOTALL) for nested in code if nested
            ]
            return self._source[begin : self._at]
        return self._one()

    def _substitution(self) -> str:
        """`$(…)` or `<(…)`: its end is found by reading it as a command up to the parenthesis that is not its own."""
        begin = self._at
        inner = _Lexer(self._source)
        inner._at = begin + 2
        depth = 1
        end = len(self._source)
        for token in inner.tokens():
            if isinstance(token, Operator):
                depth += {"(": 1, ")": -1}.get(token.text, 0)
                if depth == 0:
                    end = token.end
                    break
        self._at = end
        self._nested.append(self._source[begin + 2 : end].removesuffix(")"))
        return self._source[begin:end]


def _ansi(found: re.Match[str]) -> str:
    if digits := found[1] or found[2]:
        return chr(int(digits, 16))
    return chr(int(found[3], 8) & 0xFF) if found[3] else _ESCAPES.get(found[4], found[4])
