"""What the parts of a plan say about each other: ids, kinds of steps, names, and the templates (see `references`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planrun.core.hints import nearest
from planrun.core.names import TOOLS
from planrun.core.plan import Plan, RunCheck, Step
from planrun.core.shellcommand import RISKY_VARIABLES
from planrun.planfile.build import NAME
from planrun.planfile.references import References
from planrun.planfile.report import Path, Report, spelled
from planrun.planfile.schema import PlanTable

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_LONGEST_NAME = 200


def check(plan: Plan, table: PlanTable, report: Report) -> None:
    """Reports every fault between the parts of the plan. Parts that are damaged already are believed."""
    checker = _Checker(plan, report, References(plan, report))
    if table.name is not None:
        checker.name(table.name)
    checker.variables()
    checker.texts("goal" if table.goal else "description" if table.description else "name")
    tables = [*table.steps, *table.finally_]
    for position, step in enumerate(plan.steps):
        path = checker.known.place(position)
        checker.identity(step, position, path)
        if path not in report.damaged:
            checker.kind(step, tables[position].prompt_file, path)
        checker.templates(step, position, path)
        checker.names(step, position, path)
        checker.environment(step, path)
        checker.known.learn(step)
    for name, template in plan.output:
        checker.known.template(template, ("output", name), len(plan.steps))


@dataclass(frozen=True, slots=True)
class _Checker:
    plan: Plan
    report: Report
    known: References

    def name(self, name: str) -> None:
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME or re.search(r"[/\\]|\.\.", name):
            rule = f"may not hold a path (/, \\, ..) and has at most {_LONGEST_NAME} characters"
            self.report.at(("name",), f"name: {spelled(name)} {rule}")

    def variables(self) -> None:
        for key in ("secrets", "env"):
            for position, word in enumerate(getattr(self.plan, key)):
                if not NAME.fullmatch(word):
                    self.report.at((key, position), f"{key}: {spelled(word)} is not the name of an environment variable")
                elif key == "env" and word in self.plan.secrets:
                    self.report.at((key, position), f"env: {word} is one of the secrets, and secrets are never templated")

    def texts(self, goal: str) -> None:
        """The texts of the whole plan: no step has left anything when they are used. `goal` is the key that gives the goal."""
        self.known.template(self.plan.goal, (goal,), 0)
        self.known.template(self.plan.system, ("system",), 0)
        for position, text in enumerate(self.plan.pin):
            self.known.template(text, ("pin", position), 0)

    def identity(self, step: Step, position: int, path: Path) -> None:
        place: Path = (*path, "id")
        first = self.known.first[step.id]
        if first != position:
            lines = f"{self.report.line((*self.known.place(first), 'id'))} and {self.report.line(place)}"
            self.report.at(place, f"the step id {step.id} appears twice: lines {lines}")
        elif not _ID.fullmatch(step.id) and path not in self.report.damaged:
            rule = "may have only letters, digits, _ and -, at most 64, and no - first"
            self.report.at(place, f"id: {spelled(step.id)} {rule}")

    def kind(self, step: Step, prompt_file: str | None, path: Path) -> None:
        """What a step may have, by what it is."""
        entries = getattr(self.report.find(path)[0], "entries", {})
        given = [key for key in ("prompt", "prompt_file", "run") if key in entries]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none"
            self.report.at(path, f"step {step.id} needs exactly one of prompt, prompt_file, run; {found}")
        elif prompt_file is None and not (step.run or step.prompt or "").strip():
            self.report.at((*path, given[0]), f"{given[0]} is empty")
        if given == ["run"]:
            for key in (key for key in ("tools", "model", "fix") if key in entries):
                self.report.key((*path, key), f"a run step has no {key}: it uses no model")
        elif step.run is None:
            for name in (f.name for f in step.output if f.source is not None):
                self.report.key((*path, "output", name, "from"), "from belongs to run steps: a model gives its output itself")

    def templates(self, step: Step, position: int, path: Path) -> None:
        for where, text in _templates(step, path):
            self.known.template(text, where, position)
        if step.run is not None:
            self.known.command(step.run, (*path, "run"), position)
        for number, item in enumerate(step.verify):
            if isinstance(item, RunCheck):
                self.known.command(item.run, (*path, "verify", number, "run"), position, own=step)
        if step.condition is not None:
            self.known.condition(step.condition, (*path, "if"), position)

    def names(self, step: Step, position: int, path: Path) -> None:
        for number, tool in enumerate(step.tools or ()):
            if tool not in TOOLS and "__" not in tool:
                hint = nearest(tool, TOOLS) or f"known: {', '.join(TOOLS)}"
                self.report.at((*path, "tools", number), f"unknown tool {spelled(tool)}", hint)
        for number, needed in enumerate(step.needs or ()):
            if problem := self.known.step_problem(needed, position):
                self.report.at((*path, "needs", number), f"needs: {problem[0]}", problem[1])

    def environment(self, step: Step, path: Path) -> None:
        for name, value in step.env:
            place: Path = (*path, "env", name)
            if not NAME.fullmatch(name):
                self.report.key(place, f"env: {spelled(name)} is not the name of an environment variable")
            elif name in RISKY_VARIABLES and "${{" in value:
                self.report.at(place, f"env: {name} can make programs run what is in it, so it takes no ${{{{ }}}}")


def _templates(step: Step, path: Path) -> Iterator[tuple[Path, str]]:
    """The templates of a step that are no commands."""
    if step.prompt is not None:
        yield (*path, "prompt"), step.prompt
    for name, value in step.env:
        yield (*path, "env", name), value
    for item in step.output:
        if item.path is not None:
            yield (*path, "output", item.name, "path"), item.path
