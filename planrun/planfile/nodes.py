"""The tree of a YAML text: every value with its place (line and column from 1), `size` in values and `length` in characters of all
that is in it, and `height`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, assert_never


class Plain(str):
    """A scalar without quotes, as written; only its field's type says what it means."""

    __slots__ = ()


class Nothing:
    """Stands where a key has no value, so that only those fields accept it that say so."""

    def __repr__(self) -> str:
        return "no value"


NOTHING = Nothing()


@dataclass(slots=True)
class Scalar:
    line: int
    column: int
    text: str | None  # None: nothing is written there; Plain where it has no quotes
    size: int = 1
    height: int = 0

    @property
    def length(self) -> int:
        return len(self.text or "")


@dataclass(slots=True)
class Listing:
    line: int
    column: int
    items: list[Node] = field(default_factory=list)
    size: int = 1
    height: int = 1
    length: int = 0


@dataclass(slots=True)
class Table:
    line: int
    column: int
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1
    height: int = 1
    length: int = 0


Node = Scalar | Listing | Table


def data_of(node: Node) -> Any:
    """The tree as plain lists, dicts and texts, and NOTHING where no value is written."""
    match node:
        case Scalar():
            return NOTHING if node.text is None else node.text
        case Listing():
            return [data_of(item) for item in node.items]
        case Table():
            return {key: data_of(value) for key, (_, value) in node.entries.items()}
    assert_never(node)
