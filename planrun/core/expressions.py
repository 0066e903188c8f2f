"""Values of `${{ }}` and of `if`: one pass, typed, strict. The language is in `grammar`, the shell's part in `shellscan`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from planrun.core.grammar import parse_condition, parse_template
from planrun.core.kinds import compare, expect, kind_of
from planrun.core.messages import compact_json, well_formed
from planrun.core.plan import Json
from planrun.core.shellquotes import Form
from planrun.core.shellscan import scan
from planrun.core.syntax import Comparison, Constant, ExpressionError, Filtered, Hole, Junction, Negation, Path, Tree

__all__ = ["ExpressionError", "MissingValue", "Scope", "condition_references", "evaluate", "for_shell", "references", "render"]
__all__ += ["shell_fault", "test"]

_VARIABLE_LIMIT = 131_000  # Linux refuses an environment string of 128 KiB (MAX_ARG_STRLEN)
_VARIABLES_LIMIT = 1_500_000  # all of them, below the 2 MiB that execve takes with the usual stack


class MissingValue(ExpressionError):
    """A reference that has no value; `default` answers it, everything else lets it through."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions may read: parameters, the outputs of finished steps by step id, declared environment names."""

    params: Mapping[str, Json]
    outputs: Mapping[str, Mapping[str, Json]]
    env: Mapping[str, str]


def references(template: str) -> tuple[str, ...]:
    """The dotted paths that a template reads, each once, in the order of the text."""
    found: dict[str, None] = {}
    for piece in parse_template(template):
        if isinstance(piece, Hole):
            found.update(dict.fromkeys(paths(piece.tree)))
    return tuple(found)


def condition_references(condition: str) -> tuple[str, ...]:
    """The dotted paths that a condition reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(paths(parse_condition(condition))))


def paths(tree: Tree) -> list[str]:
    match tree:
        case Constant():
            return []
        case Path(text):
            return [text]
        case Filtered(base):
            return paths(base)
        case Comparison(left, _, right):
            return paths(left) + paths(right)
        case Negation(inner):
            return paths(inner)
        case Junction(_, parts):
            return [path for part in parts for path in paths(part)]
    assert_never(tree)


def render(template: str, scope: Scope) -> str:
    """The template with every `${{ }}` replaced by its value as text; inserted text is not looked at again."""
    return "".join(p if isinstance(p, str) else _hole_text(p, scope) for p in parse_template(template))


def evaluate(template: str, scope: Scope) -> Json:
    """The typed value where the whole template is one `${{ }}`, else the rendered text."""
    pieces = parse_template(template)
    if len(pieces) == 1 and isinstance(pieces[0], Hole):
        return _value(pieces[0].tree, scope)
    return render(template, scope)


def test(condition: str, scope: Scope) -> bool:
    """Whether the condition holds. It must come to true or false: no other value counts as one of them."""
    value = _value(parse_condition(condition), scope)
    expect(kind_of(value), "true or false", condition.strip())
    return value is True


def for_shell(command: str, scope: Scope) -> tuple[str, dict[str, str]]:
    """The command with a variable in place of every `${{ }}`, and those variables' values.

    The shell expands the variables where no value can become code; where that cannot be shown, ExpressionError. The check
    depends on the command alone, so it can be made before anything runs (`shell_fault`).
    """
    pieces = parse_template(command)
    if "\0" in command:
        raise ExpressionError("a command cannot hold a NUL character")
    forms = iter(scan("".join(p if isinstance(p, str) else "\0" for p in pieces), _sources(pieces)))
    names: dict[str, str] = {}
    environment: dict[str, str] = {}
    text: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            text.append(piece)
            continue
        name = names.setdefault(piece.source, f"PLANRUN_VALUE_{len(names) + 1}")
        if name not in environment:
            environment[name] = _variable(piece, scope)
        text.append(_reference(next(forms), name))
    if sum(len(value.encode()) for value in environment.values()) > _VARIABLES_LIMIT:
        raise ExpressionError(f"the values in this command are over {_VARIABLES_LIMIT:,} bytes: hand them over as files")
    return "".join(text), environment


def shell_fault(command: str) -> str | None:
    """Why `for_shell` would refuse this command whatever the values are, or None."""
    pieces = parse_template(command)
    try:
        scan("".join(p if isinstance(p, str) else "\0" for p in pieces), _sources(pieces))
    except ExpressionError as error:
        return str(error)
    return None


def _sources(pieces: tuple[str | Hole, ...]) -> tuple[str, ...]:
    return tuple(piece.source for piece in pieces if isinstance(piece, Hole))


def _reference(form: Form, name: str) -> str:
    match form:
        case "bare":
            return f'"${{{name}}}"'
        case "double":
            return f"${{{name}}}"
        case "single":
            return f"'\"${{{name}}}\"'"
        case "comment":
            return name
    assert_never(form)


def _variable(hole: Hole, scope: Scope) -> str:
    value = _hole_text(hole, scope)
    if "\0" in value:
        raise ExpressionError(f"{hole.source}: the value holds a NUL character, which no command can be given")
    if len(value.encode()) > _VARIABLE_LIMIT:
        raise ExpressionError(f"{hole.source}: the value is over {_VARIABLE_LIMIT:,} bytes: hand it over as a file")
    return value


def _hole_text(hole: Hole, scope: Scope) -> str:
    value = _value(hole.tree, scope)
    if value is None:
        raise ExpressionError(f"{hole.source}: the value is null (add | default(...))")
    return _text(value)


def _text(value: Json) -> str:
    return well_formed(value if isinstance(value, str) else compact_json(value))


def _value(tree: Tree, scope: Scope) -> Json:
    match tree:
        case Constant(value):
            return value
        case Path():
            return _look_up(tree, scope)
        case Filtered(base, "default", (fallback,)):
            try:
                value = _value(base, scope)
            except MissingValue:
                return fallback
            return fallback if value is None else value
        case Filtered(base, name, arguments):
            return _filter(name, _value(base, scope), arguments)
        case Comparison(left, operator, right):
            return compare(operator, _value(left, scope), _value(right, scope))
        case Negation(inner):
            return not _truth(inner, scope)
        case Junction("and", parts):
            return all(_truth(part, scope) for part in parts)
        case Junction(_, parts):
            return any(_truth(part, scope) for part in parts)
    assert_never(tree)


def _truth(tree: Tree, scope: Scope) -> bool:
    value = _value(tree, scope)
    expect(kind_of(value), "true or false", tree.text if isinstance(tree, Path) else "a part of and, or, not")
    return value is True


def _look_up(path: Path, scope: Scope) -> Json:
    match path.parts:
        case ("params", name, *rest):
            if name not in scope.params:
                raise MissingValue(f"{path.text}: the parameter {name} has no value")
            return _inside(scope.params[name], rest, path)
        case ("env", name):
            if name not in scope.env:
                raise MissingValue(f"{path.text}: the environment has no {name}")
            return scope.env[name]
        case ("steps", step, _, field, *rest):
            if field not in (found := scope.outputs.get(step, {})):
                raise MissingValue(f"{path.text}: step {step} left no output {field}")
            return _inside(found[field], rest, path)
    raise ExpressionError(f"{path.text}: no reference")


def _inside(value: Json, rest: list[str], path: Path) -> Json:
    """`value` followed along keys of objects and positions in lists; both are data, never attributes."""
    for key in rest:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"[0-9]{1,9}", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MissingValue(f"{path.text}: the value has no {key}")
    return value


def _filter(name: str, value: Json, arguments: tuple[Json, ...]) -> Json:
    first = arguments[0] if arguments else None
    if name == "tojson":
        return json.dumps(value, ensure_ascii=False, indent=first) if isinstance(first, int) else compact_json(value)
    if name == "indent":
        expect(kind_of(value), "text", "indent")
        pad = " " * (first if isinstance(first, int) else 4)
        return re.sub(r"\n(?=[^\n])", "\n" + pad, str(value))
    if name == "join":
        if not isinstance(value, list):
            raise ExpressionError(f"join needs a list, found {kind_of(value)}")
        return (first if isinstance(first, str) else "").join(_text(item) for item in value)
    if not isinstance(value, str | list | dict):
        raise ExpressionError(f"length needs text, a list or an object, found {kind_of(value)}")
    return len(value)
