"""The `${{ }}` of a text: where each one is, what it says, and which references it makes.

What an expression means is minijinja's part (see `engine`). What may stand in one is said here, by its tokens: references
(params.NAME…, env.NAME, steps.ID.output.FIELD…), literals and lists, `== != < <= > >= in`, `and or not`, parentheses, and
five filters. Whatever else the engine could do (calls, attributes, subscripts, arithmetic, tests) never reaches it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

FILTERS = ("default", "tojson", "indent", "join", "length")
_CONSTANTS = ("true", "false", "null", "none", "True", "False", "None")
_OPERATORS = ("and", "or", "not", "in")
_INSTEAD = {"=": "==", "&": "and", "!": "not", "|": "or, or a filter behind it"}
_MOST_HOLES = 1_000  # in one text
_MOST_TOKENS = 250  # the engine's parser recurses: about 1,000 fill a stack of 256 KiB
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |\|\s*(?P<filter>\w+)
    |(?P<word>\w[\w-]*(?:\.[\w-]+)*)
    |(?P<sign>==|!=|<=|>=|\}\}|[<>(),\[\]])
    |(?P<other>\S)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)


class ExpressionError(ValueError):
    """An expression that cannot be read, or has no value; `str(error)` is for the author of the plan."""


class Token(NamedTuple):
    kind: str  # string, number, constant, path, operator, filter or sign
    text: str


@dataclass(frozen=True, slots=True)
class Hole:
    """One expression: `source` as written, without the blanks around it."""

    source: str
    tokens: tuple[Token, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The references, in the order of the text."""
        return tuple([token.text for token in self.tokens if token.kind == "path"])

    @property
    def alone(self) -> bool:
        """Whether it is one reference and nothing else, which needs no engine."""
        return len(self.tokens) == 1 and self.tokens[0].kind == "path"


@lru_cache(maxsize=8192)
def parse_template(text: str) -> tuple[str | Hole, ...]:
    """The template cut into literal text (never empty) and holes."""
    pieces: list[str | Hole] = []
    position = 0
    while (start := text.find("${{", position)) >= 0:
        if start > position:
            pieces.append(text[position:start])
        hole, position = _read(text, start + 3, "}}")
        pieces.append(hole)
        if len(pieces) > 2 * _MOST_HOLES:
            raise ExpressionError(f"the text has more than {_MOST_HOLES:,} ${{{{ }}}}{_near(text, start)}")
    if position < len(text):
        pieces.append(text[position:])
    return tuple(pieces)


@lru_cache(maxsize=8192)
def parse_condition(text: str) -> Hole:
    """The expression of a condition, written bare or wrapped in `${{ }}` as a whole."""
    if "${{" not in text:
        return _read(text, 0, "")[0]
    pieces = parse_template(text.strip())
    if len(pieces) != 1 or isinstance(pieces[0], str):
        raise ExpressionError("a condition is one expression: write it bare, or put all of it into one ${{ }}")
    return pieces[0]


def _read(text: str, start: int, close: str) -> tuple[Hole, int]:
    """The expression that begins at `start` and ends with `close` (nothing: with the text), and the position behind it."""
    tokens: list[Token] = []
    word, end = "", start
    for match in _TOKEN.finditer(text, start):
        kind, end = match.lastgroup or "end", match.end()
        word = match[kind]
        if kind == "end" or word == "}}":
            break
        try:
            tokens.append(_admit(kind, word, tokens))
        except ExpressionError as error:
            raise ExpressionError(f"{error}{_near(text, end)}") from None
        if len(tokens) > _MOST_TOKENS:
            raise ExpressionError(f"the expression has more than {_MOST_TOKENS} parts{_near(text, start)}")
    if word != close:
        missing = "the text ends (is the closing }} missing?)" if close else "}} closes nothing"
        raise ExpressionError(missing + _near(text, end))
    return Hole(text[start : end - len(close)].strip(), tuple(tokens)), end


def _near(text: str, position: int) -> str:
    around = text[max(0, position - 40) : position + 20].replace("\n", " ").strip()
    return f", at character {position} of the text, near {around!r}"


def _admit(kind: str, word: str, before: list[Token]) -> Token:
    """The token, if it may stand behind those before."""
    if kind == "word":
        kind = "constant" if word in _CONSTANTS else "operator" if word in _OPERATORS else "path"
    if kind == "other":
        instead = f" (write {_INSTEAD[word]})" if word in _INSTEAD else ""
        raise ExpressionError("the quote is not closed" if word in "'\"" else f"{word!r} cannot stand here{instead}")
    if kind == "filter" and word not in FILTERS:
        raise ExpressionError(f"unknown filter {word!r} (known: {', '.join(FILTERS)}; for a choice write or)")
    if kind == "number" and math.isinf(float(word)):
        raise ExpressionError("the number is too large")
    if kind == "path":
        _check_path(word)
    _check_order(Token(kind, word), before)
    return Token(kind, word)


def _check_order(token: Token, before: list[Token]) -> None:
    """Values and what joins them take turns. The engine would read `a (b)` as a call, `a [b]` as a part of a, `and` as a name."""
    last = before[-1] if before else Token("operator", "")
    after_value = last.kind not in ("operator", "sign") or last.text in (")", "]")
    if token.kind in ("string", "number", "constant", "path") or token.text in ("(", "["):
        if after_value and (last.kind, token.text) != ("filter", "("):
            raise ExpressionError(f"expected an operator or the end, found {token.text!r}")
    elif token.text in ("and", "or", "in") and not after_value:
        if (last.text, token.text) == ("not", "in") and len(before) > 1:
            _check_order(token, before[:-1])
            return
        raise ExpressionError(f"expected a value, found {token.text!r}")


def _check_path(word: str) -> None:
    match word.split("."):
        case ["params", _, *_] | ["env", _] | ["steps", _, "output", _, *_]:
            return
        case ["params" | "env" as root, *_]:
            raise ExpressionError(f"{word!r} is no reference: write {root}.NAME")
        case ["steps", *_]:
            raise ExpressionError(f"{word!r} is no reference: write steps.ID.output.FIELD")
    raise ExpressionError(
        f"unknown name {word!r}: an expression reads params.NAME, env.NAME or steps.ID.output.FIELD"
        ' (to have ${{ in a text, write ${{ "${{" }})'
    )
