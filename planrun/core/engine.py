"""What an expression comes to, by minijinja: strict, bounded, without any of its functions, tests and own filters.

A reference reaches the engine as `at[N]`, the token it is, and is looked up only when its value is needed: step ids may hold
dashes, `or` may stop before a missing value, and a thousand outputs cost nothing. A text is data there, never a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from planrun.core.holes import ExpressionError, Hole, Token
from planrun.core.messages import compact_json, well_formed
from planrun.core.plan import Json

if TYPE_CHECKING:
    from minijinja import Environment

_FUEL = 10_000  # instructions of the engine; what a hole may hold takes far fewer
_WIDEST_INDENT = 40
_LARGEST_TEXT = 8_000_000  # characters that join may come to
_EXACT = 2**127  # the engine makes floats of larger integers
_ORDER = ("<", "<=", ">", ">=")
_COMPARISONS = ("==", "!=", *_ORDER)
_NOTHING = Token("end", "")
_FILTER_KINDS = {"length": "a number", "tojson": "text", "indent": "text", "join": "text"}


class MissingValue(ExpressionError):
    """A reference that has no value; `default` right behind it answers it, everything else lets it through."""


LookUp = Callable[[str], Json]


def compute(hole: Hole, look_up: LookUp) -> Json:
    """The value of an expression. `look_up` gives the values of references and raises MissingValue."""
    if hole.alone:
        return look_up(hole.paths[0])
    code = compiled(hole)
    values = _Values(hole.tokens, look_up)
    try:
        found: Json = _environment().eval_expr(code, at=values)
    except TypeError as error:
        raise ExpressionError(f"{hole.source}: the filter {error}") from None
    except RuntimeError as error:
        raise ExpressionError(_words(hole, error)) from None
    check_comparisons(hole.tokens, {position: kind_of(value) for position, value in values.seen.items()})
    return found


@lru_cache(maxsize=8192)
def compiled(hole: Hole) -> str:
    """The expression in the engine's own terms; ExpressionError where its grammar does not have it."""
    code = " ".join(_code(position, token) for position, token in enumerate(hole.tokens))
    if not hole.alone:
        try:
            _environment().undeclared_variables_in_str(f"{{{{ {code} }}}}")
        except RuntimeError as error:
            raise ExpressionError(_words(hole, error)) from None
    return code


def _code(position: int, token: Token) -> str:
    if token.kind == "path":
        return f"at[{position}]"
    if token.kind == "filter":
        return f"|{token.text}"
    return "none" if token == ("constant", "null") else token.text


def _words(hole: Hole, error: RuntimeError) -> str:
    detail = str(getattr(error, "detail", None) or error)
    return f"{hole.source or 'an empty expression'}: {detail.replace('end of variable block', 'the end')}"


@dataclass(slots=True)
class _Values:
    """`at` of the engine: the values of the references, by the position of the token; `seen` are those it asked for."""

    tokens: tuple[Token, ...]
    look_up: LookUp
    seen: dict[int, Json] = field(default_factory=dict)

    def __getitem__(self, position: int) -> Json:
        path = self.tokens[position].text
        try:
            value = self.look_up(path)
        except MissingValue:
            if self.tokens[position + 1 : position + 2] != (("filter", "default"),):
                raise
            value = None
        if isinstance(value, str):
            value = well_formed(value)
        elif isinstance(value, int) and not -_EXACT <= value < _EXACT:
            raise ExpressionError(f"{path}: the number is too large for an expression (alone in ${{{{ }}}} it can stand)")
        self.seen[position] = value
        return value


@cache
def _environment() -> Environment:
    """One for all threads: nothing changes it, and two made in a race are alike."""
    import minijinja  # 12 ms that plans without expressions do not pay

    environment = minijinja.Environment(undefined_behavior="strict", fuel=_FUEL, debug=False, pycompat=False)
    for name in list(environment.globals):
        environment.remove_global(name)
    for own in (default, tojson, indent, join, length):
        environment.add_filter(own.__name__, own)
    return environment


def default(value: Json, instead: Json) -> Json:
    return instead if value is None else value


def tojson(value: Json, indent: Json = None) -> str:
    return compact_json(value) if indent is None else json.dumps(value, ensure_ascii=False, indent=_width(indent))


def indent(value: Json, width: Json = 4) -> str:
    expect(kind_of(value), "text", "indent")
    return re.sub(r"\n(?=[^\n])", "\n" + " " * _width(width), str(value))


def _width(value: Json) -> int:
    if type(value) is not int or not 0 <= value <= _WIDEST_INDENT:
        raise ExpressionError(f"a width is a number from 0 to {_WIDEST_INDENT}, found {str(value)[:40]}")
    return value


def join(value: Json, between: Json = "") -> str:
    expect(kind_of(between), "text", "what join puts between")
    if not isinstance(value, list):
        raise ExpressionError(f"join: expected a list, found {kind_of(value)}")
    parts = [text_of(item) for item in value]
    if sum(map(len, parts)) + len(parts) * len(str(between)) > _LARGEST_TEXT:
        raise ExpressionError(f"join: more than {_LARGEST_TEXT:,} characters")
    return str(between).join(parts)


def length(value: Json) -> int:
    if not isinstance(value, str | list | dict):
        raise ExpressionError(f"length: expected text, a list or an object, found {kind_of(value)}")
    return len(value)


def text_of(value: Json) -> str:
    return well_formed(value if isinstance(value, str) else compact_json(value))


def kind_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"


def expect(kind: str, wanted: str, where: str) -> None:
    if kind != wanted:
        hint = " (compare it with something)" if wanted == "true or false" else ""
        raise ExpressionError(f"{where}: expected {wanted}, found {kind}{hint}")


def check_comparisons(tokens: tuple[Token, ...], kinds: Mapping[int, str]) -> None:
    """ExpressionError where two operands are of kinds that cannot be compared: the engine would answer silently. `kinds` has
    those of the references that count, by position; an operand that is more than one token is believed."""
    for position, token in enumerate(tokens):
        if token.kind != "sign" or token.text not in _COMPARISONS:
            continue
        left = _operand(tokens, position, -1, kinds)
        right = _operand(tokens, position, +1, kinds)
        nulls = "null" in (left, right) and token.text not in _ORDER
        if not left or not right or nulls or (left == right and (token.text not in _ORDER or left in ("text", "a number"))):
            continue
        why = "it needs two numbers or two texts" if token.text in _ORDER else "they are never equal"
        raise ExpressionError(f"{token.text} compares {left} with {right}: {why}")


def _operand(tokens: tuple[Token, ...], position: int, step: int, kinds: Mapping[int, str]) -> str:
    """The kind of what stands beside a comparison, or nothing."""
    beside = tokens[position + step :: step] if position + step >= 0 else ()
    token, beyond = (*beside[:2], _NOTHING, _NOTHING)[:2]
    if beyond.text in _COMPARISONS and beyond.kind != "string":
        raise ExpressionError(f"write and or or between two comparisons ({beyond.text} and {tokens[position].text})")
    if token.kind == "filter":
        return _FILTER_KINDS.get(token.text, "")
    if beyond.text not in ("", "and", "or", "not", "(", ")"):
        return ""
    if token.kind == "path":
        return kinds.get(position + step, "")
    constant = "null" if token.text.lower() in ("null", "none") else "true or false"
    return {"string": "text", "number": "a number", "constant": constant}.get(token.kind, "")
