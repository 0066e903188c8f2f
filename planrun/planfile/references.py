"""References of a plan's templates: whether each can have a value by the time its text is used, and of what type it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from planrun.core.expressions import ExpressionError, condition_references, references, shell_fault
from planrun.core.hints import nearest
from planrun.core.plan import Field, FieldType, Plan, Step
from planrun.planfile.report import Path, Report, TooManyFaults
from planrun.planfile.trial import try_condition, try_template

_MOST_EXPRESSIONS = 10_000
Problem = tuple[str, str]  # what is wrong, and a hint


@dataclass(slots=True)
class References:
    """`position` is a step's place in the plan: what stands before it can be referred to. `own` is the step whose output is
    there already, as in its own checks."""

    plan: Plan
    report: Report
    params: dict[str, Field] = field(init=False)
    first: dict[str, int] = field(init=False)  # step id -> position of the first step that has it
    fields: dict[str, dict[str, Field]] = field(init=False)
    types: dict[str, FieldType] = field(init=False)  # reference -> type of its value, as far as the steps have been checked
    finals: int = field(init=False)
    expressions: int = 0  # how many have been checked

    def __post_init__(self) -> None:
        self.params = {param.name: param for param in self.plan.params}
        self.first = {step.id: position for position, step in reversed(list(enumerate(self.plan.steps)))}
        self.fields = {step.id: {f.name: f for f in step.output} for step in self.plan.steps}
        self.types = {f"params.{name}": param.type for name, param in self.params.items()}
        self.types.update({f"env.{name}": "string" for name in self.plan.env})
        self.finals = sum(not step.final for step in self.plan.steps)

    def place(self, position: int) -> Path:
        """Where the file has the step."""
        return ("finally", position - self.finals) if position >= self.finals else ("steps", position)

    def learn(self, step: Step) -> None:
        """From now on the types of this step's outputs count."""
        self.types.update({f"steps.{step.id}.output.{f.name}": f.type for f in step.output})

    def template(self, text: str, path: Path, position: int, own: Step | None = None) -> bool:
        """Checks one template; whether it is sound."""
        if "${{" not in text:
            return True
        try:
            found = references(text)
            self._count(text.count("${{"), path)
            if not self._all_known(found, path, position, own):
                return False
            try_template(text, self.types)
        except ExpressionError as error:
            self.report.at(path, str(error))
            return False
        return True

    def command(self, text: str, path: Path, position: int, own: Step | None = None) -> None:
        if self.template(text, path, position, own) and (fault := shell_fault(text)):
            self.report.at(path, fault)

    def condition(self, text: str, path: Path, position: int) -> None:
        self._count(1, path)
        try:
            if self._all_known(condition_references(text), path, position, None):
                try_condition(text, self.types)
        except ExpressionError as error:
            self.report.at(path, f"if: {error}")

    def _count(self, more: int, path: Path) -> None:
        self.expressions += more
        if self.expressions > _MOST_EXPRESSIONS:
            self.report.at(path, f"the plan has more than {_MOST_EXPRESSIONS:,} expressions up to here")
            raise TooManyFaults

    def step_problem(self, step: str, position: int) -> Problem | None:
        """Why a step at `position` cannot build on `step`."""
        if step not in self.first:
            return f"there is no step {step}", nearest(step, self.first)
        if self.first[step] == position:
            return f"step {step} is this step itself", ""
        if self.first[step] > position:
            return f"step {step} comes later", "only earlier steps have left their output"
        return None

    def _all_known(self, paths: tuple[str, ...], path: Path, position: int, own: Step | None) -> bool:
        problems = [(text, problem) for text in paths if (problem := self._problem(text, position, own))]
        for text, (message, hint) in problems:
            self.report.at(path, f"{text}: {message}", hint)
        return not problems

    def _problem(self, text: str, position: int, own: Step | None) -> Problem | None:
        match text.split("."):
            case ["params", name, *rest]:
                return self._param_problem(name, rest)
            case ["env", name]:
                return self._env_problem(name)
            case ["steps", step, _, name, *rest]:
                before = None if own is not None and own.id == step else self.step_problem(step, position)
                return before or self._field_problem(step, name, rest)
        return None

    def _param_problem(self, name: str, rest: list[str]) -> Problem | None:
        if name in self.params:
            return _parts_problem(self.params[name], rest)
        return None if ("params",) in self.report.damaged else (f"there is no parameter {name}", nearest(name, self.params))

    def _env_problem(self, name: str) -> Problem | None:
        if name in self.plan.secrets:
            return "it is one of the secrets, and secrets are never templated", "a command reads it from its environment"
        if name in self.plan.env or ("env",) in self.report.damaged:
            return None
        return "the plan does not declare it", nearest(name, self.plan.env) or f"add env: [{name}] to the plan"

    def _field_problem(self, step: str, name: str, rest: list[str]) -> Problem | None:
        fields = self.fields[step]
        if name in fields:
            return _parts_problem(fields[name], rest)
        if self.place(self.first[step]) in self.report.damaged:
            return None
        return f"step {step} has no output {name}", nearest(name, fields) or f"its outputs: {', '.join(fields) or 'none'}"


def _parts_problem(found: Field, rest: list[str]) -> Problem | None:
    if rest and found.type not in ("object", "array"):
        return f"{found.name} is of type {found.type} and has no parts", ""
    return None
