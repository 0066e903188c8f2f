"""Copies of frozen values with some fields changed, without running their constructor: the fold makes many of them."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """`dataclasses.replace` for dataclasses without slots and __post_init__, several times faster. Raises AttributeError for an
    unknown field."""
    cls = type(value)
    old = value.__dict__
    fields = {**old, **changes}
    if len(fields) != len(old):
        raise AttributeError(f"{cls.__name__} has no field {', '.join(changes.keys() - old.keys())}")
    new = object.__new__(cls)
    object.__setattr__(new, "__dict__", fields)
    return new
