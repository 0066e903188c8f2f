"""YAML, TMPL, CLI, FS-01, ENC: plan files as they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.testing.server import Script, done, script_from
from tests.cases.cli import Ran, case, planrun, records, run, serving

INVALID = ("plan_invalid", 2)


def refused(folder: Path, name: str) -> Ran:
    """The plan is refused before anything: nothing is sent, no session is made."""
    ran = run(folder, [], plan=case(f"{name}.plan.yaml"))
    assert ran.ended == INVALID, ran.err
    assert ran.server.requests == []
    assert not (folder / ".thclaws" / "sessions").exists()
    return ran


def accepted(folder: Path, name: str, *outputs: dict[str, Any]) -> Ran:
    ran = run(folder, [done(o) for o in outputs], plan=case(f"{name}.plan.yaml"))
    assert ran.ended == ("finished", 0), ran.err
    return ran


def test_yaml_01_words_stay_words(tmp_path: Path) -> None:
    ran = accepted(tmp_path, "YAML-01", {"off": "x"}, {})
    assert [s["id"] for s in ran.result["steps"]] == ["no", "yes"]
    assert ran.result["plan"] == "on"
    assert {b["model"] for b in ran.server.bodies} == {"no"}
    assert "Second x" in ran.users()[-1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("YAML-01b", ["plan.yaml:5:", "unknown key 'on'"]),
        ("YAML-02a", ["'steps' appears twice", "plan.yaml:6:", "lines 3 and 6"]),
        ("YAML-02b", ["'prompt' appears twice", "plan.yaml:6:", "lines 5 and 6", "step id a appears twice"]),
        ("YAML-02c", ["base"]),
        ("YAML-05d.cp1252", ["plan.yaml", "UTF-8", "byte"]),
        ("YAML-05e.tab", ["plan.yaml:4:", "use spaces"]),
        ("YAML-05f.nbsp", ["plan.yaml:5:", "U+00A0"]),
        ("YAML-07", ["plan.yaml:1:", "tag"]),
        ("FS-01a", ["name", "id"]),
    ],
)
def test_plans_that_are_refused(tmp_path: Path, name: str, words: list[str]) -> None:
    err = refused(tmp_path, name).err
    assert all(w in err for w in words), err


def test_yaml_02b_mended_in_part(tmp_path: Path) -> None:
    text = case("YAML-02b.plan.yaml").read_text().replace("    prompt: Other.\n", "")
    ran = run(tmp_path, [], plan=text)
    assert ran.ended == INVALID
    assert "plan.yaml:6:" in ran.err and "the step id a appears twice: lines 4 and 6" in ran.err


def test_yaml_02c_is_legal_once_the_key_is_free(tmp_path: Path) -> None:
    text = case("YAML-02c.plan.yaml").read_text().replace("base:", "x-base:")
    ran = run(tmp_path, [], plan=text)
    assert ran.ended == ("finished", 0)
    assert "Own text." in ran.users()[0]


@pytest.mark.parametrize("name", ["YAML-05a.bom", "YAML-05b.crlf"])
def test_yaml_05_marks_and_line_ends_of_windows(tmp_path: Path, name: str) -> None:
    ran = accepted(tmp_path, name, {})
    assert ran.result["plan"] == "enc"
    assert "Grüße, 你好\nsecond line" in ran.users()[0] and "\r" not in ran.users()[0]


def test_yaml_05c_utf_16_loads_or_says_so(tmp_path: Path) -> None:
    ran = run(tmp_path, [], plan=case("YAML-05c.utf16.plan.yaml"))
    assert ran.ended == ("finished", 0) or (ran.ended == INVALID and "UTF-16" in ran.err)


def test_yaml_07_nothing_was_executed(tmp_path: Path) -> None:
    refused(tmp_path, "YAML-07")
    with serving([]) as server:
        assert planrun(tmp_path, server, "validate", "plan.yaml").code == 2
    assert not Path("/tmp/planrun-yaml07-marker").exists()


def test_tmpl_01_no_value_becomes_code(tmp_path: Path) -> None:
    ran = run(tmp_path, repeat_done("TMPL-01.response.json"), plan=case("TMPL-01.plan.yaml"))
    assert ran.ended == ("verify_failed", 1)
    assert ran.steps == ["done", "failed"]
    assert not Path("/tmp/planrun-tmpl01-marker").exists()
    value = ran.result["steps"][0]["output"]["fname"]
    assert value.startswith("x'; touch ")


def repeat_done(name: str) -> Script:
    return Script(script_from(case(name)).answers)


def test_tmpl_02_values_are_never_read_again(tmp_path: Path) -> None:
    ran = run(tmp_path, "TMPL-02.response.json", plan=case("TMPL-02.plan.yaml"))
    assert ran.ended == ("finished", 0)
    data = ran.result["steps"][0]["output"]["data"]
    assert data.startswith('{"type": "x"} {{ vars.secret }}')
    assert f"Data follows:\n{data}\nEnd." in ran.users()[-1]
    assert "do-not-show" not in json.dumps(ran.server.bodies)


def test_cli_01_a_failed_step_is_no_success(tmp_path: Path) -> None:
    ran = run(tmp_path, [], plan=case("CLI-01.fail.plan.yaml"))
    assert ran.ended == ("verify_failed", 1)
    assert ran.steps == ["failed", "todo"]
    assert "one" in ran.err and "failed" in ran.err
    assert len(ran.server.requests) == 1


@pytest.mark.parametrize("env", [{}, {"PYTHONIOENCODING": "ascii"}])
def test_enc_01_the_locale_changes_nothing(tmp_path: Path, env: dict[str, str]) -> None:
    ascii_only = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", **env}
    from planrun.testing.server import calls

    acts = calls(
        [
            ("Write", {"file_path": "п中😀.txt", "content": "Скажи 你好 😀 naïve"}, "c1"),
            ("Bash", {"command": "cat *.txt; printf '\\351'"}, "c2"),
            ("Ls", {}, "c3"),
        ]
    )
    ran = run(tmp_path, [acts, done({})], "-v", plan=case("ENC-01.plan.yaml"), env=ascii_only)
    assert ran.ended == ("finished", 0), ran.err
    assert "Скажи 你好 😀 naïve" in ran.users()[0]
    assert (tmp_path / "п中😀.txt").read_text(encoding="utf-8") == "Скажи 你好 😀 naïve"
    assert ran.results()[1] == "Скажи 你好 😀 naïve\N{REPLACEMENT CHARACTER}"
    assert "п中😀.txt" in ran.results()[2]
    assert records(tmp_path)[0]["plan"].startswith("name: план")
    assert ran.result["plan"] == "план"
    assert ran.err.isascii()
