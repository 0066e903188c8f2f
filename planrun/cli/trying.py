"""`planrun doctor --endpoint`"""

from __future__ import annotations

import os
from pathlib import Path

from planrun.cli.printing import complain, say, say_json
from planrun.doctor.endpoint import Check, Endpoint
from planrun.settings import Flags, resolve
from planrun.views.words import one_line


def try_endpoint(model: str | None, base_url: str | None, format: str) -> int:
    """Say what will be sent, try the endpoint, print a line for each check. Returns the exit code. Raises ConfigError."""
    settings = resolve(Path.cwd().resolve(), Flags(model=model, base_url=base_url), os.environ, None)
    for warning in settings.warnings:
        complain(f"planrun: {one_line(warning, 400)}")
    endpoint = Endpoint(settings)
    complain(f"sending {endpoint.announcement()}")
    checks: list[Check] = []
    for check in endpoint.checks():
        checks.append(check)
        if format == "text":
            advice = f" ({check.advice})" if check.advice else ""
            say(f"{check.status:<8} " + one_line(f"{check.name}: {check.text}{advice}", 600))
    if format == "json":
        rows = [{"check": c.name, "status": c.status, "message": c.text, "advice": c.advice or None} for c in checks]
        say_json({"model": endpoint.model, "checks": rows})
    return max(c.exit_code for c in checks)
