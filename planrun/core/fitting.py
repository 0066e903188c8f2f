"""Whether a value out of JSON is of the type that a field says, as a predicate made once for each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

Fits = Callable[[Any], bool]


def _always(_: object) -> bool:
    return True


def _is(cls: type[Any]) -> Fits:
    return lambda value: isinstance(value, cls)


_PLAIN: dict[Any, Fits] = {
    str: _is(str),
    bool: _is(bool),
    NoneType: lambda value: value is None,
    int: lambda value: type(value) is int,
    float: lambda value: type(value) in (int, float) and abs(value) < 1e300 and isfinite(value),
    Any: _always,
}


def fits(hint: Any) -> Fits:
    """The predicate of a type hint. Raises TypeError for a type that it does not know."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        known = frozenset(arguments)
        return lambda value: isinstance(value, str) and value in known
    if origin in (Union, UnionType):
        if any(get_origin(a) is list for a in arguments):  # Json, which holds itself: whatever a line holds is that
            return _always
        any_of = [fits(a) for a in arguments]
        return lambda value: any(f(value) for f in any_of)
    if origin is tuple:
        return _all(tuple, arguments[0], iter)
    if origin in (dict, Mapping):
        return _all(Mapping, arguments[1], lambda value: value.values())
    if isinstance(hint, type):
        return _is(hint)
    raise TypeError(f"there is no predicate for {hint}")


def _all(cls: type[Any], hint: Any, items: Callable[[Any], Any]) -> Fits:
    each = fits(hint)
    if each is _always:
        return _is(cls)
    return lambda value: isinstance(value, cls) and all(each(item) for item in items(value))
