"""Kinds of values in expressions: what may be compared with what, checked on values and, before a run, on declared types."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from planrun.core.grammar import parse_condition, parse_template
from planrun.core.plan import FieldType, Json
from planrun.core.syntax import Comparison, Constant, ExpressionError, Filtered, Hole, Junction, Negation, Path, Tree

UNKNOWN = ""
KINDS: dict[FieldType, str] = {
    "string": "text",
    "file": "text",
    "integer": "a number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


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
    """ExpressionError unless `kind` is the wanted one or not known."""
    if kind not in (wanted, UNKNOWN):
        hint = " (compare it with something)" if wanted == "true or false" else ""
        raise ExpressionError(f"{where}: expected {wanted}, found {kind}{hint}")


def compare(sign: str, left: Json, right: Json) -> bool:
    _comparable(sign, kind_of(left), kind_of(right))
    if sign == "in":
        return left in right  # type: ignore[operator]  # _comparable has seen to it
    return _ORDER[sign](left, right)


def _comparable(sign: str, left: str, right: str) -> None:
    if UNKNOWN in (left, right):
        return
    if sign == "in":
        if right == "a list" or left == right == "text" or (left == "text" and right == "an object"):
            return
        raise ExpressionError(f"in needs a list, an object or a text on its right, found {left} in {right}")
    if sign in ("==", "!="):
        if left == right or "null" in (left, right):
            return
        raise ExpressionError(f"{sign} compares {left} with {right}: they are never equal")
    if left != right or left not in ("text", "a number"):
        raise ExpressionError(f"{sign} compares {left} with {right}: it needs two numbers or two texts")


def check_condition(condition: str, kinds: Mapping[str, str]) -> None:
    """ExpressionError where the declared types make a condition senseless. `kinds` has the kind of each known path."""
    expect(_infer(parse_condition(condition), kinds), "true or false", condition.strip())


def check_template(template: str, kinds: Mapping[str, str]) -> None:
    """The same for every `${{ }}` of a template, whatever it comes to."""
    for piece in parse_template(template):
        if isinstance(piece, Hole):
            _infer(piece.tree, kinds)


def _infer(tree: Tree, kinds: Mapping[str, str]) -> str:
    match tree:
        case Constant(value):
            return kind_of(value)
        case Path(text):
            return kinds.get(text, UNKNOWN)
        case Filtered(base, name, arguments):
            return _infer_filter(name, _infer(base, kinds), arguments)
        case Comparison(left, sign, right):
            _comparable(sign, _infer(left, kinds), _infer(right, kinds))
        case Negation(inner):
            expect(_infer(inner, kinds), "true or false", "not")
        case Junction(sign, parts):
            for part in parts:
                expect(_infer(part, kinds), "true or false", sign)
        case _:
            assert_never(tree)
    return "true or false"


def _infer_filter(name: str, kind: str, arguments: tuple[Json, ...]) -> str:
    if name == "default":
        return kind if kind_of(arguments[0]) == kind else UNKNOWN
    if name == "length":
        if kind in ("a number", "true or false", "null"):
            raise ExpressionError(f"length needs text, a list or an object, found {kind}")
        return "a number"
    if name in ("join", "indent"):
        expect(kind, "a list" if name == "join" else "text", name)
    return "text"
