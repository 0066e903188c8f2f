"""Tables of a plan file to the core Plan, and the checks that concern one field or one step alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planrun.core import patterns
from planrun.core.plan import Check, ExistsCheck, Field, Json, Limits, Plan, RunCheck, Sandbox, Step, UnchangedCheck
from planrun.planfile.nodes import Nothing
from planrun.planfile.report import Path, Report, spelled
from planrun.planfile.schema import CheckTable, LimitsTable, OutputTable, ParamTable, PlanTable, StepTable
from planrun.planfile.values import typed

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WANTS = {
    "pattern": ("string",),
    "min_length": ("string",),
    "max_length": ("string",),
    "items": ("array",),
    "max_items": ("array",),
    "path": ("file",),
}


def build(table: PlanTable, stem: str, prompts: Mapping[str, str], report: Report) -> Plan:
    """The plan; `prompts` are the texts of prompt files by the name that the plan gives them."""
    steps = [_step(step, ("steps", i), prompts, report, final=False) for i, step in enumerate(table.steps)]
    steps += [_step(step, ("finally", i), prompts, report, final=True) for i, step in enumerate(table.finally_)]
    name = table.name if table.name is not None else stem
    return Plan(
        name=name,
        goal=table.goal or table.description or name,
        steps=tuple(steps),
        description=table.description,
        model=table.model,
        params=tuple(_field(key, param, ("params", key), report) for key, param in table.params.items()),
        context=table.context,
        limits=_limits(table.limits),
        secrets=tuple(table.secrets),
        env=tuple(table.env),
        output=tuple(table.output.items()),
        system=table.system,
        window=table.window,
        pin=tuple(table.pin),
        polling=tuple(table.polling),
        recheck=table.recheck,
        sandbox=None if table.sandbox is None else Sandbox(table.sandbox.type, table.sandbox.network),
        index={step.id: position for position, step in enumerate(steps)},
    )


def _step(table: StepTable, path: Path, prompts: Mapping[str, str], report: Report, *, final: bool) -> Step:
    prompt = prompts.get(table.prompt_file, "") if table.prompt_file is not None else table.prompt
    return Step(
        id=table.id,
        title=table.title,
        prompt=prompt,
        run=table.run,
        output=tuple(_field(name, field, (*path, "output", name), report) for name, field in table.output.items()),
        context=table.context,
        tools=None if table.tools is None else tuple(table.tools),
        model=table.model,
        limits=_limits(table.limits),
        verify=tuple(_check(check, (*path, "verify", i), report) for i, check in enumerate(table.verify)),
        fix=table.fix,
        attempts=table.retry.attempts,
        timeout=table.timeout,
        condition=table.condition,
        on_failure=table.on_failure,
        env=tuple(table.env.items()),
        approve=table.approve,
        needs=None if table.needs is None else tuple(table.needs),
        final=final,
    )


def _limits(table: LimitsTable) -> Limits:
    return Limits(table.cost_usd, table.tokens, table.time, table.turns)


def _check(table: CheckTable, path: Path, report: Report) -> Check:
    given = [key for key in ("run", "exists", "unchanged") if getattr(table, key) is not None]
    if len(given) != 1:
        report.at(
            path, "a check has exactly one of run, exists, unchanged" + (f", found {' and '.join(given)}" if given else "")
        )
    if table.timeout is not None and table.run is None:
        report.key((*path, "timeout"), "timeout belongs to run")
    if table.exists is not None:
        return ExistsCheck(tuple(table.exists))
    if table.unchanged is not None:
        return UnchangedCheck(tuple(table.unchanged))
    return RunCheck(table.run or "true", table.timeout)


def _field(name: str, table: OutputTable | ParamTable, path: Path, report: Report) -> Field:
    if not NAME.fullmatch(name):
        report.key(path, f"the name {spelled(name)} may have only letters, digits and _, and no digit first")
    for key, kinds in _WANTS.items():
        if getattr(table, key, None) is not None and table.type not in kinds:
            report.key((*path, key), f"{key} belongs to the type {kinds[0]}, and {name} is of type {table.type}")
    _bounds(table, path, report)
    has_default = isinstance(table, ParamTable) and not isinstance(table.default, Nothing)
    required = not has_default if table.required is None else table.required
    if has_default and required:
        report.key((*path, "required"), f"{name} has a default, so it cannot be required")
    return Field(
        name=name,
        type=table.type,
        description=table.description,
        required=required,
        enum=tuple(_typed(value, table, (*path, "enum", i), report) for i, value in enumerate(table.enum or [])),
        pattern=_pattern(table.pattern, (*path, "pattern"), report),
        min_length=table.min_length,
        max_length=table.max_length,
        items=None if table.items is None else _field(_element(name), table.items, (*path, "items"), report),
        max_items=table.max_items,
        path=_path(table, path, report),
        source=table.source if isinstance(table, OutputTable) else None,
        default=_typed(table.default, table, (*path, "default"), report)
        if has_default and isinstance(table, ParamTable)
        else None,
        has_default=has_default,
    )


def _element(name: str) -> str:
    return name if NAME.fullmatch(name) else "element"


def _bounds(table: OutputTable | ParamTable, path: Path, report: Report) -> None:
    if table.min_length is not None and table.max_length is not None and table.min_length > table.max_length:
        report.at((*path, "min_length"), f"min_length {table.min_length} is more than max_length {table.max_length}")


def _typed(value: object, table: OutputTable | ParamTable, path: Path, report: Report) -> Json:
    try:
        return typed(value, table.type, table.items.type if table.items else None)
    except ValueError as error:
        report.at(path, f"{path[-1] if isinstance(path[-1], str) else path[-2]}: {error}")
    return None


def _pattern(pattern: str | None, path: Path, report: Report) -> str | None:
    if pattern is None:
        return None
    try:
        patterns.check(pattern)
    except patterns.PatternError as error:
        report.at(path, f"pattern is not a regular expression that planrun can use: {error}")
        return None
    return pattern


def _path(table: OutputTable | ParamTable, path: Path, report: Report) -> str | None:
    if not isinstance(table, OutputTable):
        return None
    if table.type == "file" and table.path is None:
        report.at(path, "an output of type file needs a path")
    elif table.path is not None and outside(table.path):
        report.at((*path, "path"), f"path: {spelled(table.path)} is not a relative path inside the working directory")
    return table.path


def outside(path: str) -> bool:
    """Whether a path of the plan is absolute, empty, or could lead out of its folder."""
    return not path or path.startswith(("/", "~")) or ".." in path.split("/") or "\0" in path
