"""Which tool calls are allowed: rules such as `Bash(git status*)`, and what is denied until a rule allows it."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from planrun.core.names import FOLDER, PATH_TOOLS
from planrun.core.rules import FORM, meant
from planrun.errors import ConfigError
from planrun.policy.commands import Part, parts
from planrun.policy.records import in_records, writers
from planrun.tools.search import matches, split_pattern

_ROOT = frozenset({"sudo", "doas", "su", "pkexec"})
_PUSHES = (("git", "push"), ("git", "send-pack"), ("git", "subtree", "push"), ("git", "lfs", "push"), ("git-push",))


@dataclass(frozen=True, slots=True)
class Rule:
    """`tool` may hold `*`; without a `pattern` every call of it matches."""

    tool: str
    pattern: str | None = None

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run; `reason` is for the model and names what the user could change."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Somebody has to say yes; `rule` is the one that asks."""

    rule: str
    reason: str


Verdict = Allow | Deny | Ask


@dataclass(frozen=True, slots=True)
class _Fault:
    """Something denied by default: what, the spellings of which a rule has to match one to allow it, and such a
    rule."""

    what: str
    spellings: frozenset[str]
    rule: str


def parse_rule(text: str) -> Rule:
    """The rule that `text` spells. Raises ConfigError, with a suggestion where there is one."""
    found = FORM.fullmatch(text.strip())
    if found is None:
        word = re.match(r"\w+", text.strip())
        example = f"{word[0]}(pattern*)" if word else "Bash(git status*)"
        raise ConfigError(f"permission rule {text!r} cannot be read: write TOOL or TOOL(PATTERN), for example {example}")
    tool, pattern = found[1], found[2]
    if name := meant(tool):
        raise ConfigError(f"permission rule {text!r} names no tool: did you mean {Rule(name, pattern)}?")
    return Rule(tool, pattern)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rules in force. `deny` beats `ask` beats `allow`; what no rule names is allowed, but for what is denied by
    default: `git push`, becoming root, writes into the folder of the records."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> Permissions:
        """Permissions from the texts of their rules. Raises ConfigError."""
        return cls(*(tuple(parse_rule(text) for text in texts) for texts in (allow, ask, deny)))

    def judge(self, tool: str, subject: str, *, workspace: Path | None = None) -> Verdict:
        """What happens to a call of `tool` on `subject` (its command, its path). With a `workspace` a path is also
        judged by where its links lead. A command is judged part by part: a deny or ask rule that matches one part
        decides, and each part denied by default needs a rule of its own."""
        found = parts(subject) if tool == "Bash" else []
        spellings = _command_spellings(subject, found) if tool == "Bash" else _spellings(tool, subject, workspace)
        if rule := _first(self.deny, tool, spellings):
            return Deny(f"denied by the user's rule {rule}; find another way or report that the step cannot be done")
        faults = _command_faults(found, workspace) if tool == "Bash" else _path_faults(tool, spellings, workspace)
        asked = _first(self.ask, tool, spellings)
        for fault in faults:
            if not _first((*self.allow, *self.ask), tool, fault.spellings):
                return Deny(
                    f"{fault.what} is denied by default and was not done; go on without it. "
                    f'Only the user can allow it, with permissions.allow: ["{fault.rule}"]'
                )
        return Ask(str(asked), f"the user's rule {asked} asks for approval of: {subject or tool}") if asked else Allow()

    def protected(self) -> tuple[str, ...]:
        """The folders that file tools must keep out of whatever a path is called: none, once a rule allows writes
        there."""
        opened = (rule for rule in self.allow if any(_names(rule, tool) for tool in ("Write", "Edit")))
        return (
            ()
            if any(rule.pattern is None or FOLDER in rule.pattern or rule.pattern[0] == "*" for rule in opened)
            else (FOLDER,)
        )


def named(rules: Sequence[Rule], tool: str, subject: str) -> bool:
    """Whether one of the rules names a call of `tool` on `subject`, or a part of its command."""
    if not rules:
        return False
    spellings = _command_spellings(subject, parts(subject)) if tool == "Bash" else _spellings(tool, subject, None)
    return _first(rules, tool, spellings) is not None


def _first(rules: Sequence[Rule], tool: str, spellings: Collection[str]) -> Rule | None:
    return next((rule for rule in rules if _names(rule, tool) and any(_matches(rule, tool, text) for text in spellings)), None)


def _names(rule: Rule, tool: str) -> bool:
    return fnmatch.fnmatchcase(tool, rule.tool)


def _matches(rule: Rule, tool: str, text: str) -> bool:
    if rule.pattern is None:
        return True
    if tool in PATH_TOOLS:
        return _path_matches(rule.pattern, text)
    if rule.pattern.endswith(":*"):  # another spelling of a prefix, known from settings of similar tools
        prefix = rule.pattern[:-2]
        return text == prefix or text.startswith(prefix + " ")
    return fnmatch.fnmatchcase(text, rule.pattern.replace("[", "[[]"))


def _path_matches(pattern: str, text: str) -> bool:
    """As in .gitignore: without a slash at any depth, and a folder stands for all that is in it."""
    names = PurePosixPath(text).parts
    wanted = pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"
    prefixes = [names[:length] for length in range(1, len(names) + 1)] or [()]
    absolute = ("/",) if wanted.startswith("/") else ()
    return any(matches((*absolute, *each), prefix) for each in split_pattern(wanted) for prefix in prefixes)


def _spellings(tool: str, subject: str, workspace: Path | None) -> set[str]:
    if tool not in PATH_TOOLS:
        return {subject}
    plain = os.path.normpath(subject or ".")
    if workspace is None:
        return {plain}
    base = _spelled(os.fspath(workspace))
    given = os.path.normpath(os.path.join(base, plain))
    # Through bytes, so that a name beyond ASCII works in a C locale too.
    real = _spelled(os.path.realpath(os.fsdecode(given.encode("utf-8", "surrogateescape")))) if "\0" not in given else given
    return {each for path in (given, real) for each in (path, os.path.relpath(path, base))}


def _spelled(path: str) -> str:
    """A path of the file system as rules spell it, whatever the locale."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def _command_spellings(command: str, found: list[Part]) -> set[str]:
    return {command.strip(), *(part.text for part in found), *(" ".join(form) for part in found for form in part.forms)}


def _path_faults(tool: str, spellings: Collection[str], workspace: Path | None) -> list[_Fault]:
    if tool not in ("Write", "Edit"):
        return []
    hits = frozenset(text for text in spellings if in_records(text) and not (workspace and text.startswith("/")))
    return [_Fault(f"writing into {FOLDER}/", hits, f"{tool}({FOLDER}/**)")] if hits else []


def _command_faults(found: list[Part], workspace: Path | None) -> list[_Fault]:
    faults: list[_Fault] = []
    for part in found:
        for form in part.forms:
            spellings = frozenset({part.text, " ".join(form)})
            if form[0] in _ROOT:
                faults.append(_Fault(f"becoming another user ({form[0]})", spellings, f"Bash({form[0]} *)"))
            if push := next((" ".join(push) for push in _PUSHES if form[: len(push)] == push), None):
                faults.append(_Fault(push, spellings, f"Bash({push}*)"))
    for part in writers(found, workspace):
        faults.append(_Fault(f"writing into {FOLDER}/", frozenset({part.text}), f"Bash({part.text[:60]}*)"))
    return faults
