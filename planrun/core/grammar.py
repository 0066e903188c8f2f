"""The little language between `${{` and `}}`: its tokens, its tree, and the parser.

    expression  ::=  conjunction ("or" conjunction)*
    conjunction ::=  negation ("and" negation)*
    negation    ::=  "not" negation  |  comparison
    comparison  ::=  operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") operand]
    operand     ::=  primary ("|" filter ["(" literals ")"])*
    primary     ::=  literal  |  path  |  "(" expression ")"
    path        ::=  params.NAME…  |  env.NAME  |  steps.ID.output.FIELD…

There are no calls, no arithmetic, no attributes and no variables beside those three roots, so an expression cannot do
anything but read. A parser of our own, because a step id may hold a dash, a comparison of a text with a number must be
an error (template engines answer it), and the bytes of a prompt must not depend on the version of a library.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Literal

from planrun.core.plan import Json
from planrun.core.syntax import Comparison, Constant, ExpressionError, Filtered, Hole, Junction, Negation, Path, Tree

_DEEPEST = 32
_LONGEST_NUMBER = 300
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<word>\w[\w-]*(?:\.[\w-]+)*)
    |(?P<sign>==|!=|<=|>=|&&|\}\}|[<>|(),\[\]!=&])
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_CONSTANTS: dict[str, Json] = {"true": True, "false": False, "null": None, "none": None}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_INSTEAD = {"=": "==", "&": "and", "&&": "and", "!": "not", "True": "true", "False": "false", "None": "null"}
FILTERS = {"default": (1, 1), "tojson": (0, 1), "indent": (0, 1), "join": (0, 1), "length": (0, 0)}


@lru_cache(maxsize=8192)
def parse_template(text: str) -> tuple[str | Hole, ...]:
    """The template cut into literal text (never empty) and holes."""
    pieces: list[str | Hole] = []
    position = 0
    while (start := text.find("${{", position)) >= 0:
        if start > position:
            pieces.append(text[position:start])
        parser = _Parser(text, start + 3, "}}")
        tree = parser.whole()
        pieces.append(Hole(text[start + 3 : parser.position - 2].strip(), tree))
        position = parser.position
    if position < len(text):
        pieces.append(text[position:])
    return tuple(pieces)


@lru_cache(maxsize=8192)
def parse_condition(text: str) -> Tree:
    """The tree of a condition, written bare or wrapped in `${{ }}` as a whole."""
    if "${{" not in text:
        return _Parser(text, 0, "").whole()
    pieces = parse_template(text.strip())
    if len(pieces) != 1 or isinstance(pieces[0], str):
        raise ExpressionError("a condition is one expression: write it bare, or put all of it into one ${{ }}")
    return pieces[0].tree


class _Parser:
    """Reads one expression that begins at `position` of `text` and ends with `close` (nothing: with the text); afterwards
    `position` is behind it."""

    def __init__(self, text: str, position: int, close: str) -> None:
        self.text = text
        self.close = close
        self.position = position
        self.kind = self.token = ""
        self.depth = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            raise self.error("the quote is not closed" if rest[0] in "'\"" else f"{rest[0]!r} cannot stand here")
        self.kind = str(match.lastgroup)
        self.token = match[self.kind]
        self.position = match.end()

    def error(self, what: str) -> ExpressionError:
        around = self.text[max(0, self.position - 40) : self.position + 20].replace("\n", " ")
        return ExpressionError(f"{what}, at character {self.position} of the text, near {around.strip()!r}")

    def expected(self, what: str) -> ExpressionError:
        if self.kind == "end":
            closing = " (is the closing }} missing?)" if self.close else ""
            return self.error(f"expected {what}, but the text ends{closing}")
        instead = _INSTEAD.get(self.token)
        return self.error(f"expected {what}, found {self.token!r}" + (f" (write {instead})" if instead else ""))

    def take(self, token: str) -> bool:
        if self.kind in ("sign", "word") and self.token == token:
            self.advance()
            return True
        return False

    def whole(self) -> Tree:
        tree = self.junction("or")
        if self.kind != ("sign" if self.close else "end") or self.token != self.close:
            raise self.expected(self.close or "the end of the condition")
        return tree

    def junction(self, operator: Literal["and", "or"]) -> Tree:
        parts = [self.operand_of(operator)]
        while self.take(operator):
            parts.append(self.operand_of(operator))
        return parts[0] if len(parts) == 1 else Junction(operator, tuple(parts))

    def operand_of(self, operator: str) -> Tree:
        return self.junction("and") if operator == "or" else self.negation()

    def negation(self) -> Tree:
        negative = False
        found = False
        while self.take("not"):
            found, negative = True, not negative
        tree = self.comparison()
        if not found:
            return tree
        return Negation(tree) if negative else Negation(Negation(tree))

    def comparison(self) -> Tree:
        left = self.operand()
        negated = self.token == "not" and self.take("not")  # only `in` may follow: `a not b` is refused below
        if self.token not in _COMPARISONS or self.kind == "string" or (negated and self.token != "in"):
            if negated:
                raise self.expected("in")
            return left
        operator = self.token
        self.advance()
        tree = Comparison(left, operator, self.operand())
        if self.kind != "string" and self.token in _COMPARISONS:
            raise self.expected("and or or between two comparisons")
        return Negation(tree) if negated else tree

    def operand(self) -> Tree:
        tree = self.primary()
        for _ in range(_DEEPEST):
            if not self.take("|"):
                return tree
            name = self.token
            if self.kind != "word" or name not in FILTERS:
                known = ", ".join(FILTERS)
                hint = "; for a choice write or" if name == "|" else ""
                raise self.error(f"unknown filter {name!r} (known: {known}{hint})")
            self.advance()
            tree = Filtered(tree, name, self.arguments(name))
        raise self.error("too many filters")

    def arguments(self, name: str) -> tuple[Json, ...]:
        found: list[Json] = self.listing(")") if self.take("(") else []
        least, most = FILTERS[name]
        if not least <= len(found) <= most:
            raise self.error(f"the filter {name} takes {least if least == most else f'{least} to {most}'} arguments")
        return tuple(found)

    def listing(self, close: str) -> list[Json]:
        values: list[Json] = []
        while not self.take(close):
            if values and not self.take(","):
                raise self.expected(f", or {close}")
            values.append(self.literal())
        return values

    def nested(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("too deeply nested")

    def literal(self) -> Json:
        kind, token = self.kind, self.token
        if kind == "sign" and token == "[":
            self.nested()
            self.advance()
            values = self.listing("]")
            self.depth -= 1
            return values
        if kind not in ("string", "number") and token not in _CONSTANTS:
            raise self.expected("a literal")
        value = _CONSTANTS[token] if kind == "word" else _unquote(token) if kind == "string" else self.number(token)
        self.advance()
        return value

    def number(self, token: str) -> Json:
        if len(token) > _LONGEST_NUMBER:
            raise self.error("the number is too long")
        value = float(token)
        if math.isinf(value):
            raise self.error("the number is too large")
        return int(token) if token.lstrip("-").isdigit() else value

    def primary(self) -> Tree:
        if self.take("("):
            self.nested()
            tree = self.junction("or")
            if not self.take(")"):
                raise self.expected(")")
            self.depth -= 1
            return tree
        if self.kind == "word" and self.token not in (*_CONSTANTS, "and", "or", "in"):
            path = self.path()
            self.advance()
            return path
        return Constant(self.literal())

    def path(self) -> Path:
        match self.token.split("."):
            case ["params", _, *_] | ["env", _] | ["steps", _, "output", _, *_] as parts:
                return Path(self.token, tuple(parts))
            case ["params" | "env" as root, *_]:
                raise self.error(f"{self.token!r} is no reference: write {root}.NAME")
            case ["steps", *_]:
                raise self.error(f"{self.token!r} is no reference: write steps.ID.output.FIELD")
        if self.token in _INSTEAD:
            raise self.expected("a value")
        raise self.error(
            f"unknown name {self.token!r}: an expression reads params.NAME, env.NAME or steps.ID.output.FIELD"
            + (' (to have ${{ in the text, write ${{ "${{" }})' if self.close else "")
        )


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), token[1:-1], flags=re.DOTALL)
