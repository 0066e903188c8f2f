"""One simple shell command as far as it has been read, and whether a value may stand as its next word.

A quoted variable is one word for the shell, whatever is in it. It is still code where the program that gets the word runs
it: as the name of a command, in `eval`, as the text behind `sh -c`, in a script for `sed`. Those places are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_RESERVED = frozenset("! { } if then elif else fi while until do done time coproc".split())
_PREFIXES = frozenset("command builtin exec env sudo doas nohup nice timeout setsid stdbuf xargs ionice chronic".split())
_NUMBER = re.compile(r"[0-9]+[smhd]?")
_SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish csh tcsh".split())
_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|Rscript|osascript|pwsh|powershell|"
    r"sed|gsed|awk|gawk|mawk|nawk)[0-9.]*|expect"
)
_EDITOR = re.compile(r"(g?sed|[gmn]?awk)[0-9.]*")  # take their options in any place
_STOPS_EARLY = re.compile(r"(ba|da|z|k|mk|a|fi|c|tc)?sh|(python|pypy)[0-9.]*")  # take no option behind their code
_EVALUATORS = frozenset(
    "eval let trap alias ssh su runuser watch parallel unset read readarray mapfile source . [[ complete bind make gmake at "
    "batch compgen compopt".split()
)
_READERS = frozenset("read readarray mapfile [[ unset".split())  # evaluate their words, not what they read
_DECLARERS = frozenset("declare typeset local export readonly".split())
_EVALUATED = re.compile(r"[-+][A-Za-z]*[in][A-Za-z]*")  # what these declare is arithmetic, or the name of another variable
_TESTS = frozenset("[ test printf".split())
# Commands whose words are only data: naming a shell among them (`grep bash`, `apt-get install python3`) means nothing.
_HARMLESS = frozenset(
    "echo printf grep egrep fgrep rg which type hash apt apt-get apk dnf yum brew pip pip3 npm cargo gem [ test cp mv ls cat "
    "git mkdir rmdir touch rm chmod chown cd pushd true false wc head tail cut sort uniq tr tar gzip diff cmp basename "
    "dirname for case select function set shift return exit export local readonly kill wait sleep tee jq curl wget".split()
)
# Variables that make a shell or the loader run what is in them.
RISKY_VARIABLES = frozenset(
    "BASH_ENV ENV PS0 PS1 PS2 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS IFS PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT "
    "DYLD_INSERT_LIBRARIES PYTHONSTARTUP PYTHONPATH PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS GIT_SSH_COMMAND GIT_EXTERNAL_DIFF "
    "GIT_PAGER PAGER EDITOR VISUAL MAKEFLAGS".split()
)
_CODE_OPTION = re.compile(r"-[A-Za-z]*[ceErR]|--(eval|execute|expression|command|run|print)")
_CODE_GLUED = re.compile(r"-[A-Za-z]*[ceE].|--(eval|execute|expression|command|run|print)=")
_ANY_CODE_OPTION = re.compile(r"-[A-Za-z]*c|--command")
_TAKES_VALUE = re.compile(r"[-+][a-z]*[oO]|--rcfile|--init-file|-[WX]|-v|-F")
_INFORMS = frozenset(("--version", "--help", "-V", "-h"))


@dataclass(slots=True)
class Command:
    """`words` are the complete words with their quotes taken off; what an expansion will add stands in them as `$`.
    `inherited` is the reason why nothing inside may be a value, where an enclosing command already gives one."""

    inherited: str = ""
    words: list[str] = field(default_factory=list)  # the first one is the name
    name: str | None = None  # without its folder
    prefix: str = ""  # `sudo`, `env`, … before the name
    options: bool = False  # that prefix has options, so what follows them may be the value of one
    target: bool = False  # the next word is the target of a redirection

    def add(self, word: str) -> None:
        """Takes in a word that is complete."""
        base = word.rsplit("/", 1)[-1]
        if self.target:
            self.target = False
        elif self.name is not None:
            self.words.append(word)
        elif self.prefix == "command" and word in ("-v", "-V"):
            self.name = "type"
            self.words.append(word)
        elif self.prefix and (word.startswith("-") or _NUMBER.fullmatch(word)):
            self.options = True
        elif base in _PREFIXES:
            self.prefix = base
        elif base not in _RESERVED and not _ASSIGNMENT.match(word):
            self.name = base
            self.words.append(word)

    def refusal(self, start: str) -> str:
        """Why a value may not stand in the word that begins with `start`; empty where it may."""
        if self.target:
            return self.feeding()
        assigned = _ASSIGNMENT.match(start)
        if self.inherited:
            return self.inherited
        if assigned and assigned[1] in RISKY_VARIABLES and (self.name is None or self.name in _DECLARERS):
            return f"the variable {assigned[1]} can make programs run what is in it"
        if self.name is None:
            return "" if assigned else "the shell would run the value as the name of a command"
        if self.name in _EVALUATORS or (self.name in _DECLARERS and not assigned):
            return f"{self.name} would evaluate the value"
        option = self.name == "printf" and not start and len(self.words) == 1  # -vNAME
        if option or (self.name in _TESTS and (self.words[-1] == "-v" or self.words[1:] == ["$"])):
            return f"{self.name} could take the value for the name of a variable and evaluate it"
        return self._code(start)

    def assigned(self, start: str) -> list[str]:
        """The variable that a value goes into which stands in the word that begins with `start`."""
        if (found := _ASSIGNMENT.match(start)) and not self.target:
            return [found[1]]
        return self.words[1:2] if self.name in ("for", "select") else []

    def read(self) -> list[str]:
        """The variables that the complete command reads into."""
        return self.words[1:] if self.name == "read" else []

    def feeding(self) -> str:
        """Why a value may not stand in what the command reads or writes; empty where it may."""
        if self.inherited:
            return self.inherited
        if self.name in _EVALUATORS - _READERS or (self.interpreter() and self._program() is None):
            return f"{self.name} would run it as code"
        return ""

    def finished(self) -> str:
        """Why the complete command forbids values anywhere in the text; empty where it does not."""
        if self.name == "eval":
            return "eval runs text as code"
        if self.name == "let" or (self.name in _DECLARERS and any(_EVALUATED.fullmatch(word) for word in self.words)):
            return f"{self.name} evaluates what variables hold"
        if self.name == "[[" and self.words[-1] != "]]":
            return "[[ ]] with && or || in it is not followed"
        if self.words and self.words[0].endswith("$") and len(self.words) == 1:
            return "a program whose name is not known may run its standard input"
        program = self.interpreter()
        if program and "xargs" in (self.name, self.prefix):
            return f"xargs hands text to {program}"
        reads = program and self._program() is None and not _INFORMS.intersection(self.words)
        if reads or (program in _SHELLS and any(re.fullmatch(r"-[a-z]*s", word) for word in self.words)):
            return f"{program} reads its program from standard input"
        return ""

    def interpreter(self) -> str:
        """The program among the words that runs code given as a word; empty where there is none."""
        if self.name is None or (self.name in _HARMLESS and not self.options):
            return ""
        return next((base for base in map(_base, self.words) if base in _SHELLS or _INTERPRETER.fullmatch(base)), "")

    def _code(self, start: str) -> str:
        previous = self.words[-1]
        program = self.interpreter()
        if not program:
            if _ANY_CODE_OPTION.fullmatch(previous) and self.name not in _HARMLESS:
                return f"the value would be in the code behind {previous}"
            return ""
        where = self._program()
        if where == 1 and not _EDITOR.fullmatch(program):
            return ""  # a script directly behind the interpreter: all that follows is its arguments
        if where is None or _CODE_OPTION.fullmatch(previous) or _CODE_GLUED.match(start):
            return f"the value would be in the code that {program} runs"
        if not start and "--" not in self.words and not _STOPS_EARLY.fullmatch(program):
            return f"{program} would take a value that begins with - for an option (write -- before it)"
        return ""

    def _program(self) -> int | None:
        """How many words behind the interpreter its code or script stands; None where it has not come yet."""
        bases = [_base(word) for word in self.words]
        value = False
        for distance, word in enumerate(self.words[bases.index(self.interpreter()) + 1 :], 1):
            if value:
                value = False
            elif not word.startswith(("-", "+")):
                return distance
            else:
                value = _TAKES_VALUE.fullmatch(word) is not None
        return None


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]
