"""Which parts of a command change the folder of the records, by whatever road.

What is known to write counts with every path of the folder. Any other program that is given one is taken for a writer too, unless
it is known to read; only the saved output of tools may be handed to every program. Code on the command line, or in a
here-document, counts by what stands in it. A script in a file is not looked into.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

from planrun.core.names import FOLDER
from planrun.policy.commands import WRAPPERS, Part

_CHANGES = frozenset("tee rm rmdir mv touch mkdir ln truncate chmod chown shred unlink".split())
_COPIES = frozenset({"cp", "install", "rsync"})
_UPROOTS = frozenset({"rm", "mv", "chmod", "chown", "shred"})  # what they do to a folder they do to all that is in it
_READS = frozenset(
    "cat tac ls head tail less more grep egrep fgrep zgrep rg ag wc nl stat file du df diff cmp comm test [ [[ echo printf jq yq "
    "cd pushd popd pwd realpath readlink basename dirname sha1sum sha256sum md5sum cksum shasum tree od xxd hexdump strings cut "
    "sort uniq tr column fold find sed tar zip cp install rsync planrun true false : exit return if case while until".split()
)
_GIT_READS = frozenset(
    "status diff log show ls-files ls-tree grep blame add check-ignore rev-parse cat-file commit tag branch config".split()
)
_NAMES = frozenset({"for", "select", "export", "declare", "typeset", "local", "readonly", "set", "read"})  # words for variables
_CODE = re.compile(
    r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|Rscript|osascript|[gmn]?awk|sqlite)[0-9.]*|n?vim?|ex|ed|patch|expect"
)
_MENTION = re.compile(rf"(?<![\w.-]){re.escape(FOLDER)}(?![\w-]|\.\w)")
_SAVED = re.compile(rf"{re.escape(FOLDER)}/tool-output/[\w.-]")
_PATHLIKE = re.compile(r"[^\s'\"(){},;]+")
_LEFT_OUT = re.compile(r"--?(?:[\w-]*(?:exclude|ignore|skip|omit)[\w-]*|x|e|I|not|path|wholename)|!")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_MOST, _LONGEST = 64, 4096  # forms of a word with braces, characters of a path
_SAMPLES = ("settings.json", "session.jsonl", "sessions", FOLDER)  # names that a pattern for `find` is tried on


def writers(found: list[Part], workspace: Path | None) -> Iterator[Part]:
    """The parts that change something in the folder; `workspace` is where the command runs."""
    look = _Look(workspace)
    for part in found:
        if look.writes(part):
            yield part
        look.follow(part)


class _Look:
    """Looks at one part after the other, and remembers where the command went and which variables hold the folder's name."""

    def __init__(self, workspace: Path | None) -> None:
        self._workspace = workspace
        self._inside = False
        self._variables: set[str] = set()
        self._links: dict[str, bool] = {}  # what was found out about words: a wrapper's come many times

    def follow(self, part: Part) -> None:
        for assigned in part.assigned:
            name, _, value = assigned.partition("=")
            if self._names(value):
                self._variables.add(name.rstrip("+"))
        for form in part.forms:
            if form[0] in ("cd", "pushd"):
                there = [word for word in form[1:] if not word.startswith("-")]
                up = any(word.startswith(("/", "~")) or ".." in word.split("/") for word in there)
                self._inside = any(map(self._within, there)) or (self._inside and not up and bool(there))
            elif form[0] in _NAMES and any(map(self._names, form[1:])):
                self._variables |= {word.partition("=")[0] for word in form[1:] if word.partition("=")[0].isidentifier()}

    def writes(self, part: Part) -> bool:
        if any(self._within(target) or (self._inside and not target.startswith("/")) for target in part.targets):
            return True
        wrapped = bool(part.forms) and part.forms[0][0] in WRAPPERS
        reads = wrapped and any(form[0] in _READS or form[0] == "git" for form in part.forms)
        # Behind a wrapper every word may be the program, so all words are looked at once, in the wrapper's own form.
        return any(self._changes(form, part.input, known=wrapped and (at > 0 or reads)) for at, form in enumerate(part.forms))

    def _changes(self, form: tuple[str, ...], given: str, *, known: bool) -> bool:
        """`known`: what is no known writer is no program but a word behind one such as `timeout`."""
        name, words = form[0], form[1:]
        touched = _touched(form)
        if any(map(self._within, touched)) or (self._inside and any(not word.startswith(("/", "-")) for word in touched)):
            return True
        if self._uproots(name, words):
            return True
        if _CODE.fullmatch(name):
            return self._inside or any(_mentions(word) or self._holds(word) for word in (*words, given))
        if name == "git":
            return self._git(words, given)
        if name in _READS or name in _NAMES or touched or (known and "-C" not in words):
            return False
        return self._inside or any(map(self._given, _not_left_out(words)))

    def _git(self, words: tuple[str, ...], given: str) -> bool:
        at = next(
            (i for i, (before, word) in enumerate(pairwise(("", *words))) if word[:1] != "-" and before not in ("-C", "-c")),
            None,
        )
        command, rest = (words[at], words[at + 1 :]) if at is not None else ("", ())
        if command in _GIT_READS:
            return False
        flags = "".join(word[1:] for word in rest if re.fullmatch(r"-[A-Za-z]+", word))
        sweeps = (command == "clean" and "f" in flags and set(flags) & set("dxX")) or (
            command == "stash" and (set(flags) & set("ua") or {"--all", "--include-untracked"} & set(rest))
        )
        if sweeps and not any(FOLDER in word for word in rest):
            return True
        return self._inside or _mentions(given) or any(map(self._given, _not_left_out(words)))

    def _uproots(self, name: str, words: tuple[str, ...]) -> bool:
        """Whether it changes a folder that the records' own folder lies in."""
        if name in _UPROOTS:
            named = (
                words[:-1] if name == "mv" else words if any(re.match(r"-\w*[rR]|--recursive", word) for word in words) else ()
            )
            return any(self._above(word) for word in named if not word.startswith("-"))
        if name == "find" and _deletes(words) and not any(map(_mentions, words)):
            patterns = [pattern for option, pattern in pairwise(words) if option in ("-name", "-iname", "-path")]
            hit = any(fnmatch.fnmatchcase(sample, pattern) for pattern in patterns for sample in _SAMPLES)
            start = words[0] if not words[0].startswith("-") else "."
            return self._above(start) and (hit or not patterns)
        return name == "rsync" and any(w.startswith("--del") for w in words) and self._above(words[-1]) and not _excluded(words)

    def _above(self, word: str) -> bool:
        home = str(self._workspace or "/workspace")
        plain = re.sub(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|~\+)(?=/|$)", home, word)
        path = os.path.normpath(os.path.join(home, plain))
        return f"{home}/".startswith(f"{path.rstrip('/')}/")

    def _given(self, word: str) -> bool:
        """Whether a word that may be a path, alone or behind an option, leads there; saved output aside."""
        path = _PATHLIKE.fullmatch(word) is not None
        return self._holds(word) or (path and not _SAVED.search(word) and (_mentions(word) or self._linked(word)))

    def _names(self, word: str) -> bool:
        return _mentions(word) or self._within(word)

    def _within(self, word: str) -> bool:
        """Whether a word of a known writer leads there, or may."""
        forms = list(_expanded(word))
        return self._holds(word) or any(
            in_records(form) or _MENTION.search(form) is not None or self._linked(form) for form in forms
        )

    def _holds(self, word: str) -> bool:
        return bool(self._variables) and any(name in self._variables for name in re.findall(r"\$\{?(\w+)", word))

    def _linked(self, word: str) -> bool:
        """Whether a link on the way leads there."""
        if word not in self._links:
            self._links[word] = self._leads(word)
        return self._links[word]

    def _leads(self, word: str) -> bool:
        if self._workspace is None or not word or "\0" in word or len(word) > _LONGEST:
            return False
        # Through bytes, so that a name beyond ASCII works in a C locale too.
        real = os.path.realpath(os.path.join(os.fsencode(self._workspace), word.encode("utf-8", "replace")))
        return in_records(os.fsdecode(os.path.relpath(real, os.path.realpath(os.fsencode(self._workspace)))))


def _deletes(words: tuple[str, ...]) -> bool:
    return "-delete" in words or any(option[:5] == "-exec" and after in _CHANGES for option, after in pairwise(words))


def _touched(form: tuple[str, ...]) -> tuple[str, ...]:
    """The words that name what the command changes."""
    name, *words = form
    if name == "find" and _deletes(form):
        spares = {"-not", "!", "-prune"}.intersection(words)
        return tuple(takewhile(lambda word: word[:1] != "-", words)) if spares else form[1:]
    if name in _CHANGES:
        return form[1:]
    if name in ("sed", "perl") and any(re.match(r"-[A-Za-z]*i|--in-place", word) for word in words):
        return form[1:]
    if name in _COPIES:
        aimed = any(word == "-t" or word.startswith("--target-directory") for word in words)
        return form[1:] if aimed else form[-1:]
    if name == "tar":
        creates = any(re.fullmatch(r"-?[A-Za-z]*c[A-Za-z]*|--create", word) for word in words[:1])
        return tuple(
            after for word, after in pairwise(words) if re.fullmatch(r"-?[A-Za-z]*f|-?-C|--directory|--file", word)
        ) + (() if creates else tuple(word for word in words if word.startswith("--directory=")))
    if name in ("sort", "zip"):
        return tuple(after for word, after in pairwise(words) if word == "-o") if name == "sort" else form[1:2]
    return tuple(word[3:] for word in words if word.startswith("of=")) if name == "dd" else ()


def _not_left_out(words: tuple[str, ...]) -> Iterator[str]:
    """The words, without those that say what is to be left alone."""
    for before, word in pairwise(("", *words)):
        option = word.partition("=")[0]
        if (
            not _LEFT_OUT.fullmatch(before)
            and not (_LEFT_OUT.fullmatch(option) and option != word)
            and word[:2] not in (":!", ":^")
        ):
            yield word


def _excluded(words: tuple[str, ...]) -> bool:
    return any(FOLDER in word for word in words)


def _mentions(text: str) -> bool:
    """Whether the folder stands in a text, as a path or in code; saved output aside."""
    return any(not _SAVED.match(text, found.start()) for found in _MENTION.finditer(text))


def in_records(path: str) -> bool:
    """Whether a component of `path` is the folder of the records, or a pattern that the shell would make it."""
    names = path.casefold().split("/")
    return any(name == FOLDER or (name[:1] == "." and fnmatch.fnmatchcase(FOLDER, name)) for name in names)


def _expanded(word: str) -> Iterator[str]:
    """What the shell makes of the braces in a word, in bounds."""
    waiting, count = [word], 0
    while waiting and count < _MOST:
        text = waiting.pop()
        found = _BRACES.search(text)
        if found is None:
            count += 1
            yield text
        else:
            waiting += [text[: found.start()] + choice + text[found.end() :] for choice in found[1].split(",")][:_MOST]
