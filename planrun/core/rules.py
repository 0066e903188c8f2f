"""The form of rules that name tool calls: `*`, `Read`, `Bash(git status*)`, `Write(src/**)`."""

from __future__ import annotations

import re

FORM = re.compile(r"(\*|[A-Za-z_][\w.*-]*)(?:\((.+)\))?", re.DOTALL)


def rule(text: str) -> str:
    """`text` where it is a rule. Raises ValueError."""
    if not FORM.fullmatch(text):
        raise ValueError("expected a rule such as Bash(git status*) or Write(src/**)")
    return text
