"""Values of `${{ }}` and of `if`: one pass, typed, strict. See `holes` for what may be written,
`engine` for what it comes to, `shellscan` for the shell's part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from planrun.core.engine import MissingValue, compute, references_of, text_of
from planrun.core.holes import ExpressionError, Hole, parse_condition, parse_template
from planrun.core.operands import expect, kind_of
from planrun.core.plan import Json, Plan
from planrun.core.shellquotes import Form
from planrun.core.shellscan import scan

__all__ = ["ExpressionError", "MissingValue", "PlanTexts", "Scope", "condition_references", "evaluate", "for_shell"]
__all__ += ["fenced", "plan_texts", "references", "render", "render_quoting", "shell_fault", "test"]

_INDENTED = re.compile(r"\|\s*indent\b")  # no line of it begins where a line of the plan's does
_TICKS = re.compile("`+")
_VARIABLE_LIMIT = 131_000  # Linux refuses an environment string of 128 KiB (MAX_ARG_STRLEN)
_VARIABLES_LIMIT = 1_500_000  # all of them, below the 2 MiB that execve takes with the usual stack


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions may read: parameters, the outputs of finished steps by step id, declared environment names."""

    params: Mapping[str, Json]
    outputs: Mapping[str, Mapping[str, Json]]
    env: Mapping[str, str]

    def value(self, path: str) -> Json:
        """What a reference stands for; MissingValue where there is nothing."""
        match path.split("."):
            case ["params", name, *rest]:
                if name not in self.params:
                    raise MissingValue(f"{path}: the parameter {name} has no value")
                return _inside(self.params[name], rest, path)
            case ["env", name]:
                if name not in self.env:
                    raise MissingValue(f"{path}: the environment has no {name}")
                return self.env[name]
            case ["steps", step, _, field, *rest]:
                if field not in (found := self.outputs.get(step, {})):
                    raise MissingValue(f"{path}: step {step} left no output {field}")
                return _inside(found[field], rest, path)
        raise ExpressionError(f"{path}: no reference")


class PlanTexts(NamedTuple):
    """The texts that concern the whole plan, with their values put in."""

    goal: str
    system: str
    pin: tuple[str, ...]


def plan_texts(plan: Plan, params: Mapping[str, Json], env: Mapping[str, str]) -> PlanTexts:
    """The plan's `goal`, `system` and `pin`. They are read before any step has run, so they see no outputs."""
    scope = Scope(params, {}, env)
    return PlanTexts(render(plan.goal, scope), render(plan.system, scope), tuple(render(text, scope) for text in plan.pin))


def references(template: str) -> tuple[str, ...]:
    """The dotted paths that a template reads, each once, in the order of the text."""
    found: dict[str, None] = {}
    for piece in parse_template(template):
        if isinstance(piece, Hole):
            found.update(dict.fromkeys(references_of(piece)))
    return tuple(found)


def condition_references(condition: str) -> tuple[str, ...]:
    """The dotted paths that a condition reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(references_of(parse_condition(condition))))


def render(template: str, scope: Scope) -> str:
    """The template with every `${{ }}` replaced by its value as text; inserted text is not looked at again."""
    return "".join(p if isinstance(p, str) else _hole_text(p, scope) for p in parse_template(template))


def render_quoting(template: str, scope: Scope) -> str:
    """As `render`, for a model to read: what a step has left stands between fences where it has several lines."""
    return "".join(p if isinstance(p, str) else _quoted(p, _hole_text(p, scope)) for p in parse_template(template))


def _quoted(hole: Hole, text: str) -> str:
    ours = not any(path.startswith("steps.") for path in hole.paths) or _INDENTED.search(hole.source)
    return text if ours or len(text.splitlines()) < 2 else f"\n{fenced(text)}\n"


def fenced(text: str) -> str:
    """The text between fences that no line of it can close."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def evaluate(template: str, scope: Scope) -> Json:
    """The typed value where the whole template is one `${{ }}`, else the rendered text."""
    pieces = parse_template(template)
    if len(pieces) == 1 and isinstance(pieces[0], Hole):
        return compute(pieces[0], scope.value)
    return render(template, scope)


def test(condition: str, scope: Scope) -> bool:
    """Whether the condition holds. It must come to true or false: no other value counts as one of them."""
    value = compute(parse_condition(condition), scope.value)
    expect(kind_of(value), "true or false", condition.strip())
    return value is True


def for_shell(command: str, scope: Scope) -> tuple[str, dict[str, str]]:
    """The command with a variable in place of every `${{ }}`, and those variables' values.

    The shell expands the variables where no value can become code; where that cannot be shown, ExpressionError. The check
    depends on the command alone, so it can be made before anything runs (`shell_fault`).
    """
    pieces = parse_template(command)
    _executable(command)
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
        _executable(command)
        scan("".join(p if isinstance(p, str) else "\0" for p in pieces), _sources(pieces))
    except ExpressionError as error:
        return str(error)
    return None


def _executable(command: str) -> None:
    if "\0" in command:
        raise ExpressionError("a command cannot hold a NUL character")
    if len(command.encode()) > _VARIABLE_LIMIT:
        raise ExpressionError(f"the command is over {_VARIABLE_LIMIT:,} bytes, which no shell can be given: write it to a file")


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
    value = compute(hole, scope.value)
    if value is None:
        raise ExpressionError(f"{hole.source}: the value is null (add | default(...))")
    return text_of(value)


def _inside(value: Json, rest: list[str], path: str) -> Json:
    """`value` followed along keys of objects and positions in lists; both are data, never attributes."""
    for key in rest:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"[0-9]{1,9}", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MissingValue(f"{path}: the value has no {key}")
    return value
