"""The result as JUnit XML, for the test reports of CI systems: one suite, one case for each step."""

from __future__ import annotations

import json
import re
from xml.etree.ElementTree import Element, SubElement, tostring

from planrun.core.plan import Json
from planrun.views.inert import inert

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WORK = frozenset({"step_failed", "verify_failed", "output_invalid"})  # the work failed; anything else is an error around it


def junit(result: dict[str, Json]) -> bytes:
    """A whole XML document in UTF-8, for a result object. It is well-formed whatever text the result holds."""
    name = _clean(result["plan"] or "planrun")
    suite = Element("testsuite", name=name, hostname="localhost")
    steps = result["steps"]
    rows = [s for s in steps if isinstance(s, dict)] if isinstance(steps, list) else []
    for step in rows:
        _case(suite, name, step, result)
    if not rows or _unsaid(rows, result):
        case = SubElement(suite, "testcase", name="run", classname=name, time="0")
        _verdict(case, result)
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in suite):.3f}")
    body: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _unsaid(steps: list[dict[str, Json]], result: dict[str, Json]) -> bool:
    """Whether the run did not finish and no step's case says why."""
    return result["outcome"] != "finished" and not any(s["status"] in ("failed", "in_progress") for s in steps)


def _case(suite: Element, name: str, step: dict[str, Json], result: dict[str, Json]) -> None:
    seconds = step["seconds"] if isinstance(step["seconds"], int | float) else 0.0
    case = SubElement(suite, "testcase", name=_clean(step["id"]), classname=name, time=f"{seconds:.3f}")
    note = _clean(step["note"] or "")
    match step["status"]:
        case "failed":
            SubElement(case, "failure", type="failed", message=_first_line(note)).text = note
        case "skipped":
            SubElement(case, "skipped", message=_first_line(note))
        case "in_progress":
            _verdict(case, result)
        case "todo" | "blocked":
            SubElement(case, "skipped", message="not reached")
    if step["output"] is not None:
        SubElement(case, "system-out").text = _clean(json.dumps(step["output"], ensure_ascii=False, indent=2))


def _verdict(case: Element, result: dict[str, Json]) -> None:
    """How the run as a whole ended, on the step that it ended in."""
    outcome, reason = _clean(result["outcome"] or "unfinished"), _clean(result["reason"] or "the run has not ended")
    if outcome != "finished":
        SubElement(case, "failure" if outcome in _WORK else "error", type=outcome, message=_first_line(reason)).text = reason


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0][:300]


def _clean(value: Json) -> str:
    """Text in which the characters that XML 1.0 forbids (section 2.2, Char) and those that are not seen are JSON escapes."""
    text = inert(value if isinstance(value, str) else json.dumps(value))
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
