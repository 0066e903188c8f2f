"""The tree of an expression, as the parser in `grammar` builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planrun.core.plan import Json


class ExpressionError(ValueError):
    """An expression that cannot be read, or has no value; `str(error)` is for the author of the plan."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Json


@dataclass(frozen=True, slots=True)
class Path:
    """A reference: `parts` are `text` cut at its dots."""

    text: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    base: Tree
    name: str
    arguments: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Tree
    operator: str
    right: Tree


@dataclass(frozen=True, slots=True)
class Negation:
    inner: Tree


@dataclass(frozen=True, slots=True)
class Junction:
    operator: Literal["and", "or"]
    parts: tuple[Tree, ...]


Tree = Constant | Path | Filtered | Comparison | Negation | Junction


@dataclass(frozen=True, slots=True)
class Hole:
    """One `${{ expression }}` of a template; `source` is the text between the braces, stripped."""

    source: str
    tree: Tree
