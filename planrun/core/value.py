"""Values that are made by the hundred thousand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots, held so by the type checker alone: at run time `frozen` sets every field by a call, and makes
    the constructor four times as slow."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
