"""Expressions tried before a run with sample values of the declared types: what can never work is found here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from planrun.core.engine import check_kinds, compute
from planrun.core.holes import ExpressionError, Hole, Token, parse_condition, parse_template
from planrun.core.operands import expect, kind_of
from planrun.core.plan import FieldType, Json

Types = Mapping[str, FieldType]  # reference -> the declared type of its value
_SOURCE = "\0"  # stands for the text of an expression in messages
_SAMPLES: dict[str, tuple[Json, Json]] = {
    "string": ("", "x"),
    "file": ("", "x"),
    "integer": (0, 1),
    "number": (0.5, 1.5),
    "boolean": (False, True),
    "array": ([], ["x"]),
    "object": ({}, {"x": 1}),
}


def try_condition(condition: str, types: Types) -> None:
    """ExpressionError where the declared types make a condition senseless."""
    for value in _tried(parse_condition(condition), types):
        expect(kind_of(value), "true or false", condition.strip())


def try_template(template: str, types: Types) -> None:
    """The same for every `${{ }}` of a template, whatever it comes to."""
    for piece in parse_template(template):
        if isinstance(piece, Hole) and not piece.alone:
            _tried(piece, types)


def _tried(hole: Hole, types: Types) -> tuple[Json, ...]:
    """The values with one sample of each type, then with the other; none where the type of a reference is not known."""
    tokens = tuple([Token("path", types.get(t.text, "")) if t.kind == "path" else t for t in hole.tokens])
    found = _values(tokens)
    if isinstance(found, str):
        raise ExpressionError(found.replace(_SOURCE, hole.source))
    return found


@lru_cache(maxsize=1024)
def _values(tokens: tuple[Token, ...]) -> tuple[Json, ...] | str:
    """The values, or what is wrong, of an expression whose references are replaced by their types: most are of few forms."""
    kinds = {i: kind_of(_SAMPLES[t.text][0]) for i, t in enumerate(tokens) if t.kind == "path" and t.text}
    hole = Hole(_SOURCE, tokens)
    try:
        check_kinds(hole, kinds)
        if Token("path", "") in tokens:
            return ()
        return tuple([compute(hole, partial(_sample, which=which)) for which in (0, 1)])
    except ExpressionError as error:
        return str(error)


def _sample(kind: str, which: int) -> Json:
    return _SAMPLES[kind][which]
