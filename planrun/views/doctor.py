"""What an examination found, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from planrun.core.plan import Json
from planrun.doctor.findings import Finding, Report
from planrun.views.words import amount, one_line, plural

Beside = tuple[Path, Finding]


def text(report: Report, here: Path) -> str:
    """One line that says how it stands, then one for each finding, with its place."""
    size = f"{plural(report.records, 'record')}, {amount(report.size)} bytes"
    how = "damaged" if report.damaged else "sound"
    outcome = f", {one_line(report.outcome, 40)}" if report.outcome else ""
    lines = [f"{report.path.stem}: {how}, {size}{outcome}"]
    lines += [f"  {_placed(report.path, finding, here)}" for finding in report.findings]
    if report.more:
        lines.append(f"  and {plural(report.more, 'finding')} more")
    lines += [f"  what to do: {advice}" for advice in what_to_do(report)]
    return "\n".join(lines)


def beside(found: Iterable[Beside], here: Path) -> str:
    return "\n".join(_placed(path, finding, here) for path, finding in found)


def what_to_do(report: Report) -> list[str]:
    kinds, name = {f.kind for f in report.findings if f.damage}, report.path.stem
    if not report.damaged:
        return []
    if "headless" in kinds:
        return ["run the plan anew; the log can still be searched and read"]
    if kinds == {"torn"}:
        return [f"planrun resume {name}"]
    return [f"`planrun doctor {name} --repair` writes a copy, {name}-repaired, for `planrun resume` to go on with"]


def as_json(reports: Iterable[Report], found: Iterable[Beside]) -> dict[str, Json]:
    return {
        "sessions": [_report(r) for r in reports],
        "beside": [{"path": str(path), **_finding(f)} for path, f in found],
    }


def repaired(report: Report, lost: int, told: list[str]) -> dict[str, Json]:
    """The copy, how many of its records are lost, and what it has not or not for sure."""
    return {"copy": _report(report), "lost": lost, "told": list(told)}


def _report(report: Report) -> Json:
    return {
        "session": report.path.stem,
        "log": str(report.path),
        "damaged": report.damaged,
        "outcome": report.outcome or None,
        "records": report.records,
        "bytes": report.size,
        "findings": [_finding(f) for f in report.findings],
        "more": report.more,
        "advice": list(what_to_do(report)),
    }


def _finding(finding: Finding) -> dict[str, Json]:
    return {
        "kind": finding.kind,
        "line": finding.line or None,
        "until": finding.until or None,
        "damage": finding.damage,
        "message": finding.text,
        "advice": finding.advice or None,
    }


def _placed(path: Path, finding: Finding, here: Path) -> str:
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    place = f"{shown}:{finding.line}" if finding.line else f"{shown}"
    same = f"; the same up to line {finding.until}" if finding.until else ""
    advice = f" ({finding.advice})" if finding.advice else ""
    return one_line(f"{place}: {finding.text}{same}{advice}", 400)
