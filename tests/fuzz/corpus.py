"""Where fuzzing begins: inputs that are nearly right, and the words of each language."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
_LONGEST = 20_000  # bytes of a seed

_YAML = """: - [ ] { } , & * ! | > ' " # % @ ` ? ~ << &a *a <<: *a --- ... %YAML 1.1
name goal model params context limits secrets env steps finally output system window pin recheck id title prompt prompt_file run
type description required enum pattern min_length max_length items max_items path from default tools verify exists unchanged fix
retry attempts timeout if on_failure approve needs cost_usd tokens time turns string integer number boolean array object file
keep compact clear summary stdout json continue before after x- true false null 1_000 90m 1e3 !!binary !env""".split()
_EXPRESSIONS = """${{ }} params.p params.n params.l params.o.k params.b params.z steps.s.output.p env.E | default( tojson indent( join(
length == != < <= > >= and or not in ( ) [ ] , 'x' "y" 1 -1.5e3 true null""".split()
_SHELL = """; & && || | ( ) { } $( ` ' " $' ${ << <<- > >> <( # \\ = sh -c eval git push sudo env xargs find -exec if then fi for do done
case esac Bash(git*) Write(src/**) Edit(!x) * .thclaws/ [a-z] EOF 2>&1 echo""".split()
_SEARCH = 'AND OR NOT NEAR ( ) " * ^ : - + { } \0 数据 连 brûlée ☃ 404 TKT-417'.split(" ")
_JSON = """{ } [ ] : , " true false null NaN Infinity 1e999 \\u0000 \\ud83d model baseUrl planContextStrategy modelOverrides context
maxOutput inputPrice permissions allow ask deny hooks pre_tool_use command timeout failClosed limits cost_usd tokens time turns
compaction summarizeTokenPercent summaryModel mcpServers""".split()
_ANSWERS = """data: event: error id: retry: [DONE] choices message delta content tool_calls function name arguments index id finish_reason
stop length usage prompt_tokens error code type detail context_length_exceeded maximum context length is 8192 tokens try again in 1m30s
text refusal function_call input model x_groq <html> <title> invalid_api_key rate_limit""".split()
_UNITS = """s m h d ms min w y 1h30m -1 1e3 2_000 . T Z +05:30 Mon, 30 Nov 2026 05:00:00 GMT try again in resets retry after http:// https://
@ : / ? # [::1] 2026-01-31""".split()

WORDS: dict[str, list[str]] = {
    "plan": [*_YAML, *_EXPRESSIONS],
    "parameters": _YAML,
    "expression": [*_EXPRESSIONS, *_SHELL],
    "settings": _JSON,
    "rules": _SHELL,
    "units": _UNITS,
    "answer": [*_ANSWERS, *_JSON[:11]],
    "error_body": [*_ANSWERS, *_JSON[:11]],
    "arguments": [*_JSON[:11], "command", "path", "pattern", "old_string", "offset"],
    "output": [*_JSON[:11], "a=", "a<<EOF", "b=1"],
    "query": _SEARCH,
    "log": [*_ANSWERS[:12], *_JSON[:11], "seq", "timestamp", "prev", "session", "compaction", "edits"],
    "records": [],
}


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with, in an order that never changes."""
    found = _SEEDS.get(target, _of_words)(target)
    return sorted({seed for seed in found if len(seed) <= _LONGEST}) or [b"x"]


def _files(*patterns: str) -> Iterator[bytes]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_bytes()


def _plans(target: str) -> Iterator[bytes]:
    yield from _files("examples/*.yaml", "plans/*.yaml", "tests/cases/*.plan.yaml")


def _texts_of_plans(target: str) -> Iterator[bytes]:
    """The parts of plans that hold expressions."""
    for data in _plans(target):
        yield from (line.partition(b": ")[2].strip() for line in data.splitlines() if b"${{" in line)
    yield b"params.n > 2 and not params.b or steps.s.output.p | default('x') == ''"
    yield b"for i in ${{ params.l }}; do grep -- \"${{ params.p }}\" '${{ params.p }}' <<EOF\n${{ params.p }}\nEOF\ndone"


def _answers(target: str) -> Iterator[bytes]:
    yield from _files("tests/cases/*.response.json")
    for data in _files("tests/cases/*.http.json", "tests/cases/*errors.json"):
        yield from _strings(json.loads(data))


def _strings(value: object) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > 20:
        yield value.encode("utf-8", "replace")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(inner)


def _errors(target: str) -> Iterator[bytes]:
    yield from (b"\x64" + data for data in _answers(target))


def _rules(target: str) -> Iterator[bytes]:
    rules = ("Bash(git status*)", "Write(src/**)", "*", "Edit(.thclaws/**)", "Bash(git push:*)", "mcp__*(x)")
    subjects = ("git push && sudo ls", "echo x | sh -c 'git -C a push' > .thclaws/x", "src/a/../b", "cat <<E\n$(rm x)\nE\n")
    yield from (f"{rule}\0{subject}".encode() for rule in rules for subject in subjects)


def _settings(target: str) -> Iterator[bytes]:
    yield b'{"model": "m", "baseUrl": "http://h/v1", "planContextStrategy": "clear", "limits": {"tokens": 5, "time": "90m"}}'
    yield b'{"permissions": {"allow": ["Bash(git*)"]}, "hooks": {"pre_tool_use": {"command": "x", "timeout": 1, "failClosed": true}}}'
    yield b'{"modelOverrides": {"m": {"context": 9, "inputPrice": 0.1}}, "compaction": {"summarizeTokenPercent": 50}, "mcpServers": {}}'


def _arguments(target: str) -> Iterator[bytes]:
    yield from (
        b'{"command": "ls", "timeout": 5}',
        b'{"path": "a", "content": "b"}',
        b'{"pattern": "x", "path": ".", "limit": 3}',
        b"{}",
    )


def _logs(target: str) -> Iterator[bytes]:
    yield from _files("tests/cases/*.session.jsonl")
    yield b"".join((ROOT / "plans" / "quickstart.session.jsonl").read_bytes().splitlines(keepends=True)[:12])


def _records(target: str) -> Iterator[bytes]:
    yield from (bytes((at, at * 7 % 256, how, at * 3 % 256)) for how in range(8) for at in range(0, 256, 9))


def _of_words(target: str) -> Iterator[bytes]:
    words = WORDS[target]
    yield from (" ".join(words[at : at + 5]).encode() for at in range(0, len(words), 3))


_SEEDS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "plan": _plans,
    "parameters": _plans,
    "expression": _texts_of_plans,
    "settings": _settings,
    "rules": _rules,
    "answer": _answers,
    "error_body": _errors,
    "arguments": _arguments,
    "log": _logs,
    "records": _records,
}
