"""Copies of frozen values with some fields changed, without running their constructor: the fold makes many of them."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")
_set = object.__setattr__


def evolve(value: T, **changes: Any) -> T:
    """`dataclasses.replace` for dataclasses without __post_init__, several times faster. Raises AttributeError for an unknown field."""
    cls = type(value)
    new = object.__new__(cls)
    slots = cls.__dict__.get("__slots__")
    if slots is None:
        fields = new.__dict__
        fields.update(value.__dict__)
        if not changes.keys() <= fields.keys():
            raise AttributeError(f"{cls.__name__} has no field {', '.join(changes.keys() - fields.keys())}")
        fields.update(changes)
        return new
    for name in slots:
        _set(new, name, changes.pop(name) if name in changes else getattr(value, name))
    if changes:
        raise AttributeError(f"{cls.__name__} has no field {', '.join(changes)}")
    return new
