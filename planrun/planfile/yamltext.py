"""YAML text to a tree of nodes with positions: bounded, without tags, every plain scalar as the text that was written.

Built from parser events, so that nothing is ever constructed from a tag and no recursion depends on the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from planrun.errors import Fault
from planrun.planfile.nodes import Listing, Node, Plain, Scalar, Table
from planrun.planfile.report import MOST_FAULTS, more
from planrun.planfile.source import ODD, name

DEEPEST = 64
LARGEST = 50_000  # values, with every alias counted as all that it stands for
LONGEST = 1024 * 1024  # characters that all aliases together may stand for
# Say nothing new; those of other types are decided by fields.
_PAIR = re.compile(r"((?<!\\)(?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_ALLOWED_TAGS = {yaml.ScalarEvent: "str", yaml.SequenceStartEvent: "seq", yaml.MappingStartEvent: "map"}


def read(text: str) -> tuple[Node | None, list[Fault]]:
    """The tree of the first document and the faults; the tree is None where the text could not be read to its end."""
    builder = _Builder()
    try:
        for event in _events(_paired(text)):
            builder.take(event)
    except _Stop:
        return None, builder.faults
    except yaml.MarkedYAMLError as error:
        return None, [*builder.faults, _syntax_fault(error, text)]
    except yaml.YAMLError as error:
        return None, [*builder.faults, Fault(f"not YAML: {error}")]
    return builder.root, builder.faults


def _paired(text: str) -> str:
    """JSON has two escapes for a character beyond U+FFFF where YAML has one: `json.dumps` writes emoji so."""
    if not _PAIR.search(text):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text

    def joined(found: re.Match[str]) -> str:
        high, low = int(found[2], 16), int(found[3], 16)
        return f"{found[1]}\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"

    return _PAIR.sub(joined, text)


def _events(text: str) -> Iterator[yaml.Event]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, Loader=loader)


def _syntax_fault(error: yaml.MarkedYAMLError, text: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Fault(f"not YAML: {error.problem or error}")
    lines = text.split("\n")
    for number in range(mark.line, max(-1, mark.line - 3), -1):
        line = lines[number] if number < len(lines) else ""
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if "\t" in blank:
            return Fault("a tab is used to indent", number + 1, blank.index("\t") + 1, "use spaces")
        if odd := ODD.search(line):
            return Fault(
                f"the character {name(odd[0])} stands where only plain spaces can",
                number + 1,
                odd.start() + 1,
                "replace it by a space",
            )
    if error.problem and "nesting depth" in error.problem:
        return Fault(f"nested more than {DEEPEST} deep", mark.line + 1, mark.column + 1)
    what = ", ".join(part for part in (error.context, error.problem) if part)
    hint = "put text that holds ': ' into quotes" if "mapping values" in what else ""
    return Fault(f"not YAML: {what}", mark.line + 1, mark.column + 1, hint)


class _Stop(Exception):
    """Reading on makes no sense; the fault is recorded."""


@dataclass(slots=True)
class _Frame:
    node: Listing | Table
    anchor: str | None
    key: Scalar | None = None
    merges: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    root: Node | None = None
    faults: list[Fault] = field(default_factory=list)
    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)
    count: int = 0
    aliased: int = 0
    documents: int = 0

    def fault(self, message: str, line: int, column: int, hint: str = "") -> None:
        self.faults.append(Fault(message, line, column, hint))
        if len(self.faults) >= MOST_FAULTS:
            self.faults.append(more(self.faults))
            raise _Stop

    def stop(self, message: str, line: int, column: int, hint: str = "") -> None:
        self.fault(message, line, column, hint)
        raise _Stop

    def take(self, event: yaml.Event) -> None:
        mark: Any = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        match event:
            case yaml.ScalarEvent():
                self.scalar(event, line, column)
            case yaml.AliasEvent():
                self.alias(event, line, column)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self.open(event, line, column)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self.close()
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    self.stop("a second document begins here", line, column, "a plan file holds one: remove the --- line")

    def grow(self, size: int, line: int, column: int) -> None:
        self.count += size
        if self.count > LARGEST:
            self.stop(f"the file holds more than {LARGEST:,} values, aliases expanded", line, column)

    def tag(self, event: Any, line: int, column: int) -> None:
        if event.tag is not None and event.tag != f"tag:yaml.org,2002:{_ALLOWED_TAGS[type(event)]}":
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.fault(f"the tag {shown} is not allowed", line, column, "put the value into quotes if the ! belongs to it")

    def scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        if event.tag is not None:
            self.tag(event, line, column)
        self.grow(1, line, column)
        if "\0" in event.value:
            self.fault("a NUL character (\\0) can stand nowhere in it", line, column)
        text: str | None = event.value
        if event.implicit[0]:
            text = Plain(text) if text else None
        self.put(Scalar(line, column, text), event.anchor)

    def alias(self, event: yaml.AliasEvent, line: int, column: int) -> None:
        if any(frame.anchor == event.anchor for frame in self.stack):
            self.stop(f"the alias *{event.anchor} stands inside what it names", line, column)
        node = self.anchors.get(event.anchor or "")
        if node is None:
            self.fault(f"the alias *{event.anchor} has no anchor &{event.anchor} before it", line, column)
            node = Scalar(line, column, f"*{event.anchor}")
        self.grow(node.size, line, column)
        self.aliased += node.length
        if self.aliased > LONGEST:
            self.stop(f"the aliases up to here stand for more than {LONGEST:,} characters", line, column)
        if len(self.stack) + node.height > DEEPEST:
            self.stop(f"nested more than {DEEPEST} deep", line, column)
        self.put(node, None)

    def open(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent, line: int, column: int) -> None:
        self.tag(event, line, column)
        self.grow(1, line, column)
        if len(self.stack) >= DEEPEST:
            self.stop(f"nested more than {DEEPEST} deep", line, column)
        node = Listing(line, column) if isinstance(event, yaml.SequenceStartEvent) else Table(line, column)
        self.stack.append(_Frame(node, event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        for merged in frame.merges:
            self.merge(frame.node, merged)
        self.put(frame.node, frame.anchor)

    def put(self, node: Node, anchor: str | None) -> None:
        """A complete node goes where the innermost open one wants it."""
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        frame.node.size += node.size
        frame.node.length += node.length
        if frame.node.height <= node.height:
            frame.node.height = node.height + 1
        match frame.node:
            case Listing():
                frame.node.items.append(node)
            case Table():
                self.put_entry(frame, frame.node, node)

    def put_entry(self, frame: _Frame, table: Table, node: Node) -> None:
        key = frame.key
        if key is None:
            if not isinstance(node, Scalar):
                self.fault("a key must be text", node.line, node.column)
            frame.key = node if isinstance(node, Scalar) else Scalar(node.line, node.column, "")
            return
        frame.key = None
        if key.text == "<<" and isinstance(key.text, Plain):
            frame.merges.append(node)
        elif (text := key.text or "") in table.entries:
            first = table.entries[text][0]
            self.fault(f"the key {text!r} appears twice: lines {first.line} and {key.line}", key.line, key.column, "keep one")
        else:
            table.entries[text] = (key, node)

    def merge(self, table: Node, merged: Node) -> None:
        for source in merged.items if isinstance(merged, Listing) else [merged]:
            if not isinstance(source, Table):
                self.fault("<< merges mappings only", merged.line, merged.column)
            elif isinstance(table, Table):
                for key, entry in source.entries.items():
                    table.entries.setdefault(key, entry)
