"""From a file, or from what a session recorded, to a plan. Raises PlanInvalid with all faults, nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from planrun.core.events import Session
from planrun.core.plan import Plan
from planrun.errors import Fault, PlanInvalid
from planrun.planfile.build import build, outside
from planrun.planfile.check import check
from planrun.planfile.form import shape
from planrun.planfile.nodes import Scalar, Table, data_of
from planrun.planfile.report import Report, TooManyFaults, spelled
from planrun.planfile.schema import PlanTable
from planrun.planfile.source import check_characters
from planrun.planfile.yamltext import read
from planrun.textfile import LIMIT, Unreadable, decode, normalise, read_bytes


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan and all that a session keeps of it: the text with `\\n` line ends, the contents of its prompt files by the names
    that it gives them, and the SHA-256 over both in hex."""

    plan: Plan
    text: str
    files: dict[str, str]
    digest: str


def load(path: Path) -> LoadedPlan:
    """The plan in a file, with the prompt files that it names."""
    try:
        data = read_bytes(path)
    except Unreadable as error:
        raise PlanInvalid(str(path), error.faults) from None
    return parse(data, str(path), None)


def parse(data: str | bytes, path: str, files: Mapping[str, str] | None) -> LoadedPlan:
    """The plan in a text. With `files` (what a session recorded) nothing is read; without, prompt files are looked for beside
    `path`, which also gives the plan its name where it has none."""
    try:
        text = decode(data) if isinstance(data, bytes) else normalise(data)
        if len(text) > LIMIT:
            raise Unreadable(Fault(f"larger than {LIMIT // 1024 // 1024} MiB"))
        check_characters(text)
    except Unreadable as error:
        raise PlanInvalid(path, error.faults) from None
    node, faults = read(text)
    if node is None or (isinstance(node, Scalar) and node.text is None):
        raise PlanInvalid(path, faults or [Fault("the file is empty: a plan needs at least steps")])
    if not isinstance(node, Table):
        raise PlanInvalid(path, [*faults, Fault("a plan is made of keys with values (steps: …)", node.line, node.column)])
    report = Report(node, faults)
    prompts: dict[str, str] = {}
    plan = None
    with suppress(TooManyFaults):
        table = shape(data_of(node), report)
        if table is not None:
            prompts = _prompts(table, Path(path).parent, files, report)
            plan = build(table, Path(path).stem or "plan", prompts, report)
            check(plan, table, report)
    if plan is None or report.faults:
        raise PlanInvalid(path, list(dict.fromkeys(report.faults)))
    return LoadedPlan(plan, text, prompts, _digest(text, prompts))


def read_plan(header: Session) -> Plan:
    """The plan of a session record, from the text in it alone. Raises PlanInvalid."""
    return _plan(header.plan, header.plan_path, tuple(header.files.items()))


@lru_cache(maxsize=8)  # many sessions have one plan, and a run asks for its own more than once
def _plan(text: str, path: str, files: tuple[tuple[str, str], ...]) -> Plan:
    return parse(text, path, dict(files)).plan


def _digest(text: str, files: Mapping[str, str]) -> str:
    whole = hashlib.sha256(text.encode())
    for name, content in sorted(files.items()):
        whole.update(f"\0{name}\0{content}".encode())
    return whole.hexdigest()


def _prompts(table: PlanTable, folder: Path, files: Mapping[str, str] | None, report: Report) -> dict[str, str]:
    """The text of every prompt file, by name; what cannot be had is reported."""
    found: dict[str, str] = {}
    places = [("steps", i, s.prompt_file) for i, s in enumerate(table.steps)]
    places += [("finally", i, s.prompt_file) for i, s in enumerate(table.finally_)]
    for part, position, name in places:
        if name is None or name in found:
            continue
        try:
            found[name] = _prompt(name, folder, files)
        except Unreadable as error:
            fault = error.faults[0]
            place = f":{fault.line}:{fault.column}" if fault.line else ""
            report.at((part, position, "prompt_file"), f"prompt_file: {spelled(name)}{place}: {fault.message}", fault.hint)
    return found


def _prompt(name: str, folder: Path, files: Mapping[str, str] | None) -> str:
    if files is not None:
        if name not in files:
            raise Unreadable(Fault("the session did not record it"))
        return files[name]
    if outside(name):
        raise Unreadable(Fault("is not a relative path inside the plan's folder"))
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise Unreadable(Fault(f"cannot be read: {error}")) from None
    if not inside:
        raise Unreadable(Fault("leads out of the plan's folder through a link"))
    text = decode(read_bytes(path))
    if not text.strip():
        raise Unreadable(Fault("is empty"))
    return text
