"""Where the holes of a command stand: the quotes around each, by a scan of the shell's own rules.

What holds: a command passes only if every character of it was understood the same way by POSIX sh and bash. Anything else
(backquotes and arithmetic around a value, `$'…'`, unclosed quotes, quoted here-documents with a value) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from planrun.core.shellcommand import Command
from planrun.core.shellquotes import HOLE, Form, Quoting

_DEEPEST = 24
_HEREDOC = re.compile(
    r"<<(?P<strip>-?)[ \t]*(?P<word>(?:[\w.+-]|\\[\w.+-]|'[^'\n\0]*'|\"[^\"\n\0$`\\]*\")+)(?=[\s;&|<>()]|\Z)",
    re.ASCII,
)
# Where the shell evaluates what a variable holds: as arithmetic, as a name, as code. In bounds, so that it takes no long time.
_EVALUATED = re.compile(
    r"""\$\(\((?P<a>.{0,500}?)\)\)|\$\{(?P<b>!\w+|\w+\[[^}]{0,500}|\w+:[^}=?+-][^}]{0,500}|\w+@P)"""
    r"""|\[\[\s(?P<c>[^]\n]{0,500}?\s-(?:eq|ne|lt|le|gt|ge)\s[^]]{0,500})|(?<![\w$])\w{1,99}\[(?P<d>[^]]{0,500})\]\+?="""
    r"""|\s-c\s{1,9}["']?\$\{?(?P<e>\w+)|\btrap\s{1,9}["']?\$\{?(?P<f>\w+)"""
)
_REDIRECTION = re.compile(r"<<<|>>|>&|>\||<&|<>|<|>")


@dataclass(slots=True)
class _Document:
    """A here-document whose body has not been reached yet."""

    delimiter: str
    quoted: bool
    strip: bool
    command: Command


@lru_cache(maxsize=4096)
def scan(text: str, sources: tuple[str, ...]) -> tuple[Form, ...]:
    """The form of each hole (a NUL in `text`; `sources` are their expressions, for messages); ExpressionError if refused."""
    if not sources:
        return ()
    scanner = _Scanner(text, sources)
    scanner.code("", "")
    if scanner.given and (named := scanner.given & _evaluated(text)):
        raise scanner.fail(f"the variable {min(named)} holds it, and the shell would evaluate that")
    return tuple(scanner.forms)


def _evaluated(text: str) -> set[str]:
    """The names of variables that the shell evaluates the values of."""
    parts = (part for found in _EVALUATED.finditer(text) for part in found.groups() if part)
    return {name for part in parts for name in re.findall(r"[A-Za-z_]\w*", part)}


@dataclass(slots=True)
class _Scanner(Quoting):
    documents: list[_Document] = field(default_factory=list)

    def code(self, close: str, inherited: str) -> None:
        """Commands up to `close`, which is taken too: ")" or nothing for the end of the text."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail("the command is nested too deeply")
        outer = self.command, self.word, self.documents
        self.command, self.word, self.documents = Command(inherited), None, []
        while self.position < len(self.text):
            if self.peek() == ")" and close:
                self.end_command(inherited)
                break
            self.piece(inherited, close)
        else:
            if close:
                raise self.fail("a parenthesis is not closed")
            self.end_command(inherited)
        if self.documents:
            raise self.fail("a here-document has no body")
        self.position += len(close)
        self.command, self.word, self.documents = outer
        self.depth -= 1

    def piece(self, inherited: str, close: str) -> None:
        """One character or one construct of unquoted text."""
        match self.peek():
            case " " | "\t":
                self.end_word()
                self.position += 1
            case "\n":
                if self.pending and not self.documents:
                    raise self.fail("a line ends inside $( ) or ( ) before the body of a here-document")
                self.end_command(inherited)
                self.position += 1
                self.bodies()
            case ";" | "&" | "|" | ")":
                self.end_command(inherited)
                self.position += 1
            case "(":
                self.parenthesis(inherited)
            case "<" | ">":
                self.redirection()
            case "#" if self.word is None:
                self.comment()
            case _:
                self.part()
        if close and self.command.name == "case":
            raise self.fail("case inside $( ) or ( ) hides where it ends")

    def part(self) -> None:
        """A part of a word."""
        match self.peek():
            case "'":
                self.single()
            case '"':
                self.double()
            case "`":
                self.backquote()
            case "$":
                self.dollar(quoted=False)
            case "\\":
                if self.peek(2) != "\\\n":
                    self.escaped()
                self.position += 2
            case "\0":
                self.place("bare")
            case char:
                self.add(char)
                self.position += 1

    def end_word(self) -> None:
        if self.word is not None:
            self.command.add(self.word)
            self.word = None

    def end_command(self, inherited: str) -> None:
        self.end_word()
        if reason := self.command.finished():
            raise self.fail(reason)
        self.given.update(self.command.read())
        self.command = Command(inherited)

    def parenthesis(self, inherited: str) -> None:
        """A subshell, the `()` of a function, or the elements of an array."""
        if self.peek(2) == "((":
            raise self.fail("(( )) is evaluated as arithmetic")
        self.end_command(inherited)
        self.position += 1
        self.code(")", inherited)

    def redirection(self) -> None:
        if self.word is not None and self.word.isdigit():
            self.word = None  # the number of a file descriptor
        self.end_word()
        if self.peek(2) in ("<(", ">("):
            reason = self.command.refusal("")
            self.position += 2
            self.code(")", reason)
            self.add("$")
        elif (here := _HEREDOC.match(self.text, self.position)) and self.peek(3) != "<<<":
            quoted = re.search(r"['\"\\]", here["word"]) is not None
            delimiter = re.sub(r"['\"\\]", "", here["word"])
            self.documents.append(_Document(delimiter, quoted, bool(here["strip"]), self.command))
            self.position = here.end()
            if self.pending and len(self.documents) == 1:
                raise self.fail("two here-documents are nested in one line")
            self.pending = True
        elif self.peek(2) == "<<" and self.peek(3) != "<<<":
            raise self.fail("the delimiter of a here-document is not a plain word")
        else:
            match = _REDIRECTION.match(self.text, self.position)
            self.position = match.end() if match else self.position + 1
            self.command.target = True

    def comment(self) -> None:
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        self.forms += ["comment"] * self.text.count(HOLE, self.position, end)
        self.position = end

    def bodies(self) -> None:
        """The bodies of the here-documents that were announced on the line that has just ended."""
        while self.documents:
            document = self.documents.pop(0)
            start = self.position
            end, after = self.find_end(document)
            body = self.text[start:end]
            if document.quoted:
                if HOLE in body:
                    raise self.fail("it is inside a here-document with a quoted delimiter")
            elif HOLE in body or "$(" in body:
                self.body(body, document.command.feeding())
            self.position = after
        self.pending = False

    def find_end(self, document: _Document) -> tuple[int, int]:
        """Where the body ends and where the text goes on, both as positions."""
        start = self.position
        while start < len(self.text):
            stop = self.text.find("\n", start)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[start:stop]
            if (line.lstrip("\t") if document.strip else line) == document.delimiter:
                return start, min(stop + 1, len(self.text))
            if line.endswith("\\") and not document.quoted:
                raise self.fail("a line of a here-document ends with \\")
            start = stop + 1
        raise self.fail(f"the here-document has no line {document.delimiter}")

    def body(self, body: str, refusal: str) -> None:
        """The body on its own: nothing in it may reach past its end."""
        inner = _Scanner(body, self.sources, 0, self.depth, list(self.forms), "", Command(refusal, ["cat"], "cat"))
        inner.given = self.given
        while inner.position < len(body):
            inner.inside()
        self.forms = inner.forms
