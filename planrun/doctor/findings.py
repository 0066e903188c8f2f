"""What an examination comes to, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

KEPT = 20  # findings of one log that are told one by one


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was noticed. `line` counts physical lines from 1, 0 where it has none; `until` is another one where all the
    lines up to there have the same. One that is no `damage` is for a person to know and keeps nobody from going on."""

    kind: str
    text: str
    line: int = 0
    advice: str = ""
    damage: bool = True
    until: int = 0


@dataclass(slots=True)
class Report:
    """One file. `outcome` is how its session ended, `unfinished`, or `running`; empty where it holds no session."""

    path: Path
    findings: list[Finding] = field(default_factory=list)
    records: int = 0
    size: int = 0  # bytes
    outcome: str = ""
    more: int = 0  # damage beyond KEPT findings
    writer: str | None = None

    @property
    def damaged(self) -> bool:
        return self.more > 0 or any(f.damage for f in self.findings)

    def add(self, finding: Finding) -> None:
        last = self.findings[-1] if self.findings else None
        if last and last.line and (last.kind, (last.until or last.line) + 1) == (finding.kind, finding.line):
            self.findings[-1] = replace(last, until=finding.line)
        elif len(self.findings) < KEPT or not finding.damage:
            self.findings.append(finding)
        else:
            self.more += 1
