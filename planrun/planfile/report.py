"""Faults with their places, and which parts of a plan are too damaged to be checked further."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from planrun.errors import Fault
from planrun.planfile.nodes import Listing, Node, Scalar, Table
from planrun.planfile.source import ODD, name

Path = tuple[str | int, ...]


MOST_FAULTS = 100


class TooManyFaults(Exception):
    """Enough is recorded; to look on would only take time."""


def more(faults: Iterable[Fault]) -> Fault:
    """What stands behind the last of too many."""
    line, column = max((fault.line, fault.column) for fault in faults)
    return Fault(f"there are more faults than these {MOST_FAULTS}", line, column)


@dataclass(slots=True)
class Report:
    """Its methods that report raise TooManyFaults behind the hundredth."""

    root: Node
    faults: list[Fault] = field(default_factory=list)
    damaged: set[Path] = field(default_factory=set)

    def at(self, path: Path, message: str, hint: str = "") -> None:
        """A fault at the value of `path`, or as near as the file goes."""
        node, key = self.find(path)
        place: Scalar | Node = key if key is not None and isinstance(node, Scalar) and node.text is None else node
        self._add(Fault(message, place.line, place.column, hint))

    def key(self, path: Path, message: str, hint: str = "") -> None:
        """A fault at the key that `path` ends with."""
        node, key = self.find(path)
        place = node if key is None else key
        self._add(Fault(message, place.line, place.column, hint))

    def _add(self, fault: Fault) -> None:
        self.faults.append(fault)
        if len(self.faults) >= MOST_FAULTS:
            self.faults.append(more(self.faults))
            raise TooManyFaults

    def line(self, path: Path) -> int:
        return self.find(path)[0].line

    def find(self, path: Path) -> tuple[Node, Scalar | None]:
        """The value at `path` and its key. Steps of the path that the file does not have (a shorthand) are passed over."""
        node, key = self.root, None
        for part in path:
            if isinstance(node, Table) and isinstance(part, str) and part in node.entries:
                key, node = node.entries[part]
            elif isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
                key, node = None, node.items[part]
        return node, key


def spelled(word: str) -> str:
    """The word in quotes, with the name of the first character in it that cannot be seen."""
    odd = ODD.search(word)
    shown = repr(word if len(word) <= 60 else word[:60] + "…")
    return f"{shown} (with {name(odd[0])})" if odd else shown
