"""Quotes, expansions and values inside the words of a command: the part of the scan that code and here-documents share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from planrun.core.holes import ExpressionError
from planrun.core.shellcommand import Command

Form = Literal["bare", "double", "single", "comment"]

HOLE = "\0"
_LONGEST_WORD = 4096
_ADVICE = 'give the step env: {NAME: ${{ ... }}} and write "$NAME" yourself'
_ARITHMETIC = re.compile(r"\$\(\([\w\s+*/%<>=!&|^~?:,$-]*\)\)")
_PARAMETER = re.compile(r"\$\{[^}'\"\\`$\0]*\}")
_NAME = re.compile(r"\$(?:\w+|[@*#?$!-])", re.ASCII)
_BACKQUOTED = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_UNDECIDED = {
    "((": "arithmetic $(( )) with quotes or values in it is not followed",
    "{": "${ } with quotes, values or expansions in it is not followed",
    "[": "$[ ] is evaluated as arithmetic by bash",
    "'": "$'...' means different things to sh and bash",
}


@dataclass(slots=True)
class Quoting(ABC):
    """Reads `text` from `position`. Each value (a NUL) gets its form; `word` is the word under way without its quotes."""

    text: str
    sources: tuple[str, ...]
    position: int = 0
    depth: int = 0
    forms: list[Form] = field(default_factory=list)
    word: str | None = None
    command: Command = field(default_factory=Command)
    given: set[str] = field(default_factory=set)  # the variables that a value is put into, or input that may be one
    pending: bool = False  # the body of a here-document begins at the end of this line

    @abstractmethod
    def code(self, close: str, inherited: str) -> None:
        """Reads commands up to `close`."""

    def fail(self, why: str) -> ExpressionError:
        source = self.sources[min(len(self.forms), len(self.sources) - 1)]
        return ExpressionError(f"${{{{ {source} }}}} cannot be put into this command safely: {why}; {_ADVICE}")

    def peek(self, count: int = 1) -> str:
        return self.text[self.position : self.position + count]

    def add(self, text: str) -> None:
        word = self.word or ""
        self.word = word + text if len(word) < _LONGEST_WORD else word  # what matters of a word is at its beginning

    def place(self, form: Form) -> None:
        """Takes the hole at the position, standing in the word under way."""
        before = self.text[self.position - 1 : self.position]
        if form in ("bare", "double") and before in ("$", "\\"):
            raise self.fail(f"there is a {before} right before it")
        if reason := self.command.refusal(self.word or ""):
            raise self.fail(reason)
        self.given.update(self.command.assigned(self.word or ""))
        self.forms.append(form)
        self.add("$")
        self.position += 1

    def escaped(self) -> None:
        char = self.peek(2)[1:]
        if char == HOLE:
            raise self.fail("there is a \\ right before it")
        self.add(char)

    def single(self) -> None:
        self.position += 1
        self.add("")
        while (char := self.peek()) != "'":
            if not char:
                raise self.fail("a ' is not closed")
            if char == HOLE:
                self.place("single")
            elif char == "\n" and self.pending:
                raise self.fail("a line ends inside quotes before the body of a here-document")
            else:
                self.add(char)
                self.position += 1
        self.position += 1

    def double(self) -> None:
        self.position += 1
        self.add("")
        while self.peek() != '"':
            if not self.peek():
                raise self.fail('a " is not closed')
            self.inside()
        self.position += 1

    def inside(self) -> None:
        """One character or construct where double quotes rule: in them, and in a here-document."""
        match self.peek():
            case "\\":
                self.escaped()
                self.position += 2
            case "$":
                self.dollar(quoted=True)
            case "`":
                self.backquote()
            case "\0":
                self.place("double")
            case "\n" if self.pending:
                raise self.fail("a line ends inside quotes before the body of a here-document")
            case char:
                self.add(char)
                self.position += 1

    def backquote(self) -> None:
        match = _BACKQUOTED.match(self.text, self.position)
        if match is None or HOLE in match[0]:
            raise self.fail("it is inside backquotes (write $( ) instead)" if match else "a ` is not closed")
        self.take(match)

    def take(self, expansion: re.Match[str]) -> None:
        """Goes past an expansion that holds no value."""
        if self.pending and "\n" in expansion[0]:
            raise self.fail("a line ends inside an expansion before the body of a here-document")
        self.add("$")
        self.position = expansion.end()

    def dollar(self, *, quoted: bool) -> None:
        for pattern in (_ARITHMETIC, _PARAMETER, _NAME):
            if match := pattern.match(self.text, self.position):
                self.take(match)
                return
        following = self.peek(3)[1:]
        for sign, why in _UNDECIDED.items():
            if following.startswith(sign) and not (sign == "'" and quoted):
                raise self.fail(why)
        if following.startswith("("):
            reason = self.command.refusal(self.word or "")
            self.position += 2
            self.code(")", reason)
            self.add("$")
        else:
            self.add("$")
            self.position += 1
