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
from planrun.core.operands import check_operands, expect, kind_of
from planrun.core.plan import Json

if TYPE_CHECKING:
    from minijinja import Environment

_FUEL = 10_000  # instructions of the engine; what a hole may hold takes far fewer
_WIDEST_INDENT = 40
_LARGEST_TEXT = 8_000_000  # characters that join may come to
_EXACT = 2**127  # the engine makes floats of larger integers


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
    except MissingValue:
        raise
    except TypeError as error:
        raise ExpressionError(f"{hole.source}: the filter {error}") from None
    except (RuntimeError, ExpressionError) as error:
        raise ExpressionError(f"{hole.source}: {_words(error)}") from None
    check_kinds(hole, {position: kind_of(value) for position, value in values.seen.items()})
    return list(found) if isinstance(found, tuple) else found


def check_kinds(hole: Hole, kinds: Mapping[int, str]) -> None:
    """ExpressionError where operands do not go together; `kinds` are those of references, by position."""
    try:
        check_operands(hole.tokens, kinds)
    except ExpressionError as error:
        raise ExpressionError(f"{hole.source}: {error}") from None


def compiled(hole: Hole) -> str:
    """The expression in the engine's own terms; ExpressionError where its grammar does not have it."""
    code = " ".join([_code(position, token) for position, token in enumerate(hole.tokens)])
    if fault := _fault(code):
        raise ExpressionError(f"{hole.source or 'an empty expression'}: {fault}")
    return code


@lru_cache(maxsize=8192)
def _fault(code: str) -> str:
    try:
        _environment().undeclared_variables_in_str(f"{{{{ {code} }}}}")
    except RuntimeError as error:
        return _words(error)
    return ""


def references_of(hole: Hole) -> tuple[str, ...]:
    """The references, in the order of the text; ExpressionError where the engine cannot read the expression."""
    if not hole.alone:
        compiled(hole)
    return hole.paths


def _code(position: int, token: Token) -> str:
    if token.kind == "path":
        return f"at[{position}]"
    if token.kind == "filter":
        return f"|{token.text}"
    return "none" if token == ("constant", "null") else token.text


def _words(error: Exception) -> str:
    """What the engine says, without its drawing of the place."""
    words = re.sub(r" \(in <\w+>:\d+\).*", "", str(getattr(error, "detail", None) or error), flags=re.DOTALL)
    return words.replace("end of variable block", "end of the expression")


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
            raise ExpressionError(f"the number {path} is too large to be computed with (alone in ${{{{ }}}} it can stand)")
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
