"""Kinds of values, and the comparisons that the engine answers silently though no author can mean them."""

from __future__ import annotations

from collections.abc import Mapping

from planrun.core.holes import ExpressionError, Token
from planrun.core.plan import Json

_ORDER = ("<", "<=", ">", ">=")
_COMPARISONS = ("==", "!=", *_ORDER)
_NOTHING = Token("", "")
_FILTER_KINDS = {"length": "a number", "tojson": "text", "indent": "text", "join": "text"}


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


def check_operands(tokens: tuple[Token, ...], kinds: Mapping[int, str]) -> None:
    """ExpressionError where an operand is of a kind that the engine answers silently and no author means: a text against a
    number, a text as true or false. `kinds` has those of the references that count, by position; an operand of more than one
    token is believed."""
    for position, token in enumerate(tokens):
        if token.kind == "operator":
            for step in {"and": (-1, 1), "or": (-1, 1), "not": (1,)}.get(token.text, ()):
                expect(_operand(tokens, position, step, kinds) or "true or false", "true or false", token.text)
        elif token.kind == "sign" and token.text in _COMPARISONS:
            if position > 1 and tokens[position - 2].text in _COMPARISONS and tokens[position - 2].kind == "sign":
                raise ExpressionError(f"write and or or between two comparisons, at {token.text}")
            before = tokens[position - 1]
            left = _FILTER_KINDS.get(before.text, "") if before.kind == "filter" else _operand(tokens, position, -1, kinds)
            _comparable(token.text, left, _operand(tokens, position, 1, kinds))


def _comparable(sign: str, left: str, right: str) -> None:
    ordered = sign in _ORDER
    if not left or not right or (not ordered and (left == right or "null" in (left, right))):
        return
    if not ordered or left != right or left not in ("text", "a number"):
        why = "it needs two numbers or two texts" if ordered else "they are never equal"
        raise ExpressionError(f"{sign} compares {left} with {right}: {why}")


def _operand(tokens: tuple[Token, ...], position: int, step: int, kinds: Mapping[int, str]) -> str:
    """The kind of the one token that is all of an operand, or nothing."""
    beside = tokens[position + step :: step] if position + step >= 0 else ()
    token, beyond = (*beside[:2], _NOTHING, _NOTHING)[:2]
    if beyond.text not in ("", "and", "or", "not", "(", ")") or beyond.kind == "string":
        return ""
    if token.kind == "path":
        return kinds.get(position + step, "")
    constant = "null" if token.text in ("null", "none", "None") else "true or false"
    return {"string": "text", "number": "a number", "constant": constant}.get(token.kind, "")
