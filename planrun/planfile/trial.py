"""Expressions tried before a run with sample values of the declared types: what can never work is found here."""

from __future__ import annotations

from collections.abc import Mapping

from planrun.core.engine import check_comparisons, compute, expect, kind_of
from planrun.core.holes import Hole, parse_condition, parse_template
from planrun.core.plan import FieldType, Json

Types = Mapping[str, FieldType]  # reference -> the declared type of its value
_SAMPLES: dict[FieldType, tuple[Json, Json]] = {
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
    hole = parse_condition(condition)
    for value in _tried(hole, types):
        expect(kind_of(value), "true or false", condition.strip())


def try_template(template: str, types: Types) -> None:
    """The same for every `${{ }}` of a template, whatever it comes to."""
    for piece in parse_template(template):
        if isinstance(piece, Hole) and not piece.alone:
            _tried(piece, types)


def _tried(hole: Hole, types: Types) -> list[Json]:
    """The values with one sample of each type, then with the other; none where the type of a reference is not known."""
    declared = [(i, types.get(token.text)) for i, token in enumerate(hole.tokens) if token.kind == "path"]
    check_comparisons(hole.tokens, {i: kind_of(_SAMPLES[kind][0]) for i, kind in declared if kind})
    if not all(kind for _, kind in declared):
        return []
    return [compute(hole, lambda path, which=which: _SAMPLES[types[path]][which]) for which in (0, 1)]  # type: ignore[misc]
