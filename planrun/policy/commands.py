"""What a shell command would run, part by part: enough of the shell's grammar to see through compounds, quotes and
wrappers.

It guards against accidents, not against somebody who hides a command (a variable, a script file). Grammar:
POSIX.1-2017, XCU 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from planrun.policy.shelllex import Heredoc, Operator, Redirect, Token, Word, tokens

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "coproc"})
WRAPPERS = frozenset(
    {
        "env",
        "nohup",
        "time",
        "nice",
        "timeout",
        "stdbuf",
        "command",
        "builtin",
        "exec",
        "xargs",
        "setsid",
        "ionice",
        "chrt",
        "sudo",
        "doas",
    }
)
_FOLLOWED = frozenset({"-exec", "-execdir", "-ok", "-okdir", "foreach"})
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_DEPTH = 6
_SUFFIXES = 40


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command: its text as written, the files that it redirects output to, the variables that it assigns (`NAME=VALUE`)
    and the text that is its input. `forms` are the words, without quotes, of what it runs: itself less assignments, the
    same as plain `git COMMAND`, and what a wrapper such as `env` or `xargs` would start."""

    text: str
    forms: tuple[tuple[str, ...], ...]
    targets: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    input: str = ""


def parts(command: str) -> list[Part]:
    """Every simple command that `command` would run, those in substitutions, `sh -c` and `eval` included."""
    try:
        return list(_parts(command, 0))
    except RecursionError:
        pieces = re.split(r"[;&|\n()`$\"']+", command)  # nested beyond reason: cut at everything
        return [Part(piece.strip(), tuple(_forms(tuple(piece.split())))) for piece in pieces if piece.strip()]


def _parts(command: str, depth: int) -> Iterator[Part]:
    inner: list[str] = []
    said: list[str] = []
    reads = False
    for group in _groups(command):
        part = _part(command, group)
        if part.forms or part.targets or part.assigned:
            yield part
        inner += [nested for token in group if isinstance(token, Word | Redirect) for nested in token.nested]
        inner += [text for form in part.forms for text in _scripts(form)]
        said += [" ".join(form[1:]) for form in part.forms if form[0] in ("echo", "printf")]
        said += [_input(token) for token in group]
        reads = reads or any(_reads_input(form) for form in part.forms)
    # What goes into a shell's input is a script: a here-document, a here-string, or what `echo` wrote into the pipe.
    for text in (*inner, *(said if reads else ())):
        if depth < _DEPTH and text:
            yield from _parts(text, depth + 1)


def _groups(command: str) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens(command):
        if isinstance(token, Operator):
            yield group
            group = []
        else:
            group.append(token)
    yield group


def _part(command: str, group: list[Token]) -> Part:
    shown = [token for token in group if isinstance(token, Word | Redirect)]
    while shown and isinstance(shown[0], Word) and shown[0].value in _KEYWORDS:
        shown.pop(0)
    words = tuple(token.value for token in shown if isinstance(token, Word))
    targets = tuple(token.target for token in shown if isinstance(token, Redirect) and ">" in token.operator and token.target)
    text = command[shown[0].start : shown[-1].end].strip() if shown else ""
    assigned = tuple(takewhile(_ASSIGNMENT.match, words))
    return Part(text, tuple(_forms(words)), targets, assigned, "\n".join(filter(None, map(_input, group))))


def _forms(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words:
        return
    form = (words[0].rpartition("/")[2], *words[1:])
    yield from _plain(form)
    # Which options take a value differs from wrapper to wrapper, so every later word may be the command.
    begin = 1 if form[0] in WRAPPERS else len(form)
    if form[0] in ("find", "git"):
        begin = next((i + 1 for i, word in enumerate(form) if word in _FOLLOWED), len(form))
    for i in range(begin, min(len(form), begin + _SUFFIXES)):
        yield from _plain((form[i].rpartition("/")[2], *form[i + 1 :]))


def _plain(form: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield form
    if form[0] == "git" and form[1:2] and form[1].startswith("-"):
        yield _git(form)


def _git(form: tuple[str, ...]) -> tuple[str, ...]:
    """`git -C x push` as `git push`."""
    i = 1
    while i < len(form) and form[i].startswith("-"):
        i += 2 if form[i] in _GIT_VALUES else 1
    return ("git", *form[i:])


def _scripts(form: tuple[str, ...]) -> Iterator[str]:
    """Arguments that the command runs as shell code."""
    name = form[0]
    if name in SHELLS:
        for i, word in enumerate(form[1:-1], 1):
            if re.fullmatch(r"-[a-z]*c[a-z]*", word):
                yield form[i + 1]
    elif name in ("eval", "trap"):
        yield " ".join(form[1:] if name == "eval" else form[1:2])
    elif name == "git" and form[1:3] == ("submodule", "foreach"):
        yield " ".join(form[3:])


def _input(token: Token) -> str:
    if isinstance(token, Heredoc):
        return token.body
    return token.target if isinstance(token, Redirect) and token.operator == "<<<" else ""


def _reads_input(form: tuple[str, ...]) -> bool:
    return form[0] in SHELLS and all(word.startswith("-") and "c" not in word for word in form[1:])
