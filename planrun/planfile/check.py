"""What the parts of a plan say about each other: ids, order, references, names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from planrun.core.expressions import ExpressionError, condition_references, references, shell_fault
from planrun.core.kinds import KINDS, check_condition, check_template
from planrun.core.plan import Field, Plan, RunCheck, Step
from planrun.core.shellcommand import RISKY_VARIABLES
from planrun.planfile.build import NAME
from planrun.planfile.report import Path, Report, nearest, spelled
from planrun.planfile.schema import PlanTable

TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Ls", "Bash", "SearchHistory", "ExpandHistory", "UpdatePlanStep")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_LONGEST_NAME = 200


def check(plan: Plan, table: PlanTable, report: Report) -> None:
    """Reports every fault between the parts of the plan. Parts that are damaged already are believed."""
    checker = _Checker(plan, report)
    checker.head(table)
    tables = [*table.steps, *table.finally_]
    for position, step in enumerate(plan.steps):
        path = checker.place(position)
        checker.identity(step, position, path)
        if path not in report.damaged:
            checker.kind(step, tables[position].prompt_file, path)
        checker.step(step, position, path)
        checker.leaves(step)
    for name, template in plan.output:
        checker.template(template, ("output", name), len(plan.steps))


@dataclass(slots=True)
class _Checker:
    plan: Plan
    report: Report
    params: dict[str, Field] = field(init=False)
    first: dict[str, int] = field(init=False)  # step id -> position of the first step that has it
    fields: dict[str, dict[str, Field]] = field(init=False)
    kinds: dict[str, str] = field(init=False)  # reference -> kind of its value, as far as the steps have been checked
    finals: int = field(init=False)

    def __post_init__(self) -> None:
        self.params = {param.name: param for param in self.plan.params}
        self.first = {step.id: position for position, step in reversed(list(enumerate(self.plan.steps)))}
        self.fields = {step.id: {f.name: f for f in step.output} for step in self.plan.steps}
        self.kinds = {f"params.{name}": KINDS[param.type] for name, param in self.params.items()}
        self.finals = sum(not step.final for step in self.plan.steps)

    def place(self, position: int) -> Path:
        return ("finally", position - self.finals) if position >= self.finals else ("steps", position)

    def head(self, table: PlanTable) -> None:
        name = self.plan.name
        if table.name is not None and (
            not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME or re.search(r"[/\\]|\.\.", name)
        ):
            self.report.at(
                ("name",), f"name: {spelled(name)} may not hold a path (/, \\, ..) and has at most {_LONGEST_NAME} characters"
            )
        for key in ("secrets", "env"):
            for position, word in enumerate(getattr(self.plan, key)):
                if not NAME.fullmatch(word):
                    self.report.at((key, position), f"{key}: {spelled(word)} is not the name of an environment variable")
                elif key == "env" and word in self.plan.secrets:
                    self.report.at((key, position), f"env: {word} is one of the secrets, and secrets are never templated")
        for path, text in (("goal",), table.goal), (("system",), self.plan.system):
            self.template(text or "", path, 0)
        for position, text in enumerate(self.plan.pin):
            self.template(text, ("pin", position), 0)

    def identity(self, step: Step, position: int, path: Path) -> None:
        first = self.first[step.id]
        if first != position:
            line = self.report.line((*self.place(first), "id"))
            self.report.at(
                (*path, "id"), f"the step id {step.id} appears twice: lines {line} and {self.report.line((*path, 'id'))}"
            )
        elif not _ID.fullmatch(step.id) and path not in self.report.damaged:
            self.report.at(
                (*path, "id"), f"id: {spelled(step.id)} may have only letters, digits, _ and -, at most 64, and no - first"
            )

    def kind(self, step: Step, prompt_file: str | None, path: Path) -> None:
        """What a step may have, by what it is."""
        node = self.report.find(path)[0]
        given = [key for key in ("prompt", "prompt_file", "run") if key in getattr(node, "entries", {})]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none"
            self.report.at(path, f"step {step.id} needs exactly one of prompt, prompt_file, run; {found}")
        elif not (step.run if step.run is not None else step.prompt or "").strip() and prompt_file is None:
            self.report.at((*path, given[0]), f"{given[0]} is empty")
        if step.run is not None and step.prompt is None:
            for key, present in ("tools", step.tools is not None), ("model", step.model is not None), ("fix", step.fix > 0):
                if present:
                    self.report.key((*path, key), f"a run step has no {key}: it uses no model")
        if step.run is None:
            for name in (f.name for f in step.output if f.source is not None):
                self.report.key((*path, "output", name, "from"), "from belongs to run steps: a model gives its output itself")

    def step(self, step: Step, position: int, path: Path) -> None:
        for where, text in _templates(step, path):
            self.template(text, where, position)
        if step.run is not None:
            self.command(step.run, (*path, "run"), position)
        for number, item in enumerate(step.verify):
            if isinstance(item, RunCheck):
                self.command(item.run, (*path, "verify", number, "run"), position, own=step)
        if step.condition is not None:
            self.condition(step.condition, (*path, "if"), position)
        for number, tool in enumerate(step.tools or ()):
            if tool not in TOOLS and "__" not in tool:
                self.report.at(
                    (*path, "tools", number),
                    f"unknown tool {spelled(tool)}",
                    nearest(tool, TOOLS) or f"known: {', '.join(TOOLS)}",
                )
        for number, needed in enumerate(step.needs or ()):
            if fault := self.step_fault(needed, position):
                self.report.at((*path, "needs", number), f"needs: {fault[0]}", fault[1])
        for name, value in step.env:
            if not NAME.fullmatch(name):
                self.report.key((*path, "env", name), f"env: {spelled(name)} is not the name of an environment variable")
            elif name in RISKY_VARIABLES and "${{" in value:
                self.report.at(
                    (*path, "env", name), f"env: {name} can make programs run what is in it, so it takes no ${{{{ }}}}"
                )

    def leaves(self, step: Step) -> None:
        self.kinds.update({f"steps.{step.id}.output.{f.name}": KINDS[f.type] for f in step.output})

    def command(self, text: str, path: Path, position: int, own: Step | None = None) -> None:
        if self.template(text, path, position, own) and (fault := shell_fault(text)):
            self.report.at(path, fault)

    def condition(self, text: str, path: Path, position: int) -> None:
        try:
            paths = condition_references(text)
            if self.references(paths, path, position, None):
                check_condition(text, self.kinds)
        except ExpressionError as error:
            self.report.at(path, f"if: {error}")

    def template(self, text: str, path: Path, position: int, own: Step | None = None) -> bool:
        """Checks one template; whether it is sound. `own` is the step whose outputs are there already."""
        if "${{" not in text:
            return True
        try:
            if not self.references(references(text), path, position, own):
                return False
            check_template(text, self.kinds)
        except ExpressionError as error:
            self.report.at(path, str(error))
            return False
        return True

    def references(self, paths: tuple[str, ...], path: Path, position: int, own: Step | None) -> bool:
        sound = True
        for text in paths:
            if fault := self.reference_fault(text, position, own):
                self.report.at(path, f"{text}: {fault[0]}", fault[1])
                sound = False
        return sound

    def reference_fault(self, text: str, position: int, own: Step | None) -> tuple[str, str] | None:
        match text.split("."):
            case ["params", name, *rest]:
                if name in self.params:
                    return _parts_fault(self.params[name], rest)
                return (
                    None
                    if ("params",) in self.report.damaged
                    else (f"there is no parameter {name}", nearest(name, self.params))
                )
            case ["env", name]:
                if name in self.plan.secrets:
                    return (
                        "it is one of the secrets, and secrets are never templated",
                        "a command reads it from its environment",
                    )
                if name in self.plan.env or ("env",) in self.report.damaged:
                    return None
                return "the plan does not declare it", nearest(name, self.plan.env) or f"add env: [{name}] to the plan"
            case ["steps", step, _, name, *rest]:
                if own is None or own.id != step:
                    if fault := self.step_fault(step, position):
                        return fault
                fields = self.fields[step]
                if name in fields:
                    return _parts_fault(fields[name], rest)
                if self.place(self.first[step]) in self.report.damaged:
                    return None
                return f"step {step} has no output {name}", nearest(
                    name, fields
                ) or f"its outputs: {', '.join(fields) or 'none'}"
        return None

    def step_fault(self, step: str, position: int) -> tuple[str, str] | None:
        """Why a step at `position` cannot build on `step`."""
        if step not in self.first:
            return f"there is no step {step}", nearest(step, self.first)
        if self.first[step] == position:
            return f"step {step} is this step itself", ""
        if self.first[step] > position:
            return f"step {step} comes later", "only earlier steps have left their output"
        return None


def _templates(step: Step, path: Path) -> Iterator[tuple[Path, str]]:
    """The templates of a step that are no commands."""
    if step.prompt is not None:
        yield (*path, "prompt"), step.prompt
    for name, value in step.env:
        yield (*path, "env", name), value
    for item in step.output:
        if item.path is not None:
            yield (*path, "output", item.name, "path"), item.path


def _parts_fault(found: Field, rest: list[str]) -> tuple[str, str] | None:
    if rest and found.type not in ("object", "array"):
        return f"{found.name} is of type {found.type} and has no parts", ""
    return None
