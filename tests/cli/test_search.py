"""`search` and `expand`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from planrun.core.edits import Insert
from planrun.session.index import NAME
from tests.cli.conftest import Call, one_object
from tests.session.archives import compacted, said, write


@pytest.fixture
def logs(project: Path) -> Path:
    folder = project / ".thclaws" / "sessions"
    here = str(project.resolve())
    write(folder, [said("the proxy of old")], "old", here)
    events = [
        said("the proxy is down"),
        said("Connection refused " * 50, "tool", "two", name="Bash"),
        compacted(Insert("proxy trouble", 2, 3, 1)),
    ]
    write(folder, events, "young", here)
    return folder


def test_search_shows_place_and_text(planrun: Call, logs: Path) -> None:
    shown = planrun("search", "proxy")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert len(lines) == 4
    assert {line.split()[0] for line in lines[::2]} == {"2", "4"}
    assert {line.strip() for line in lines[1::2]} == {"the proxy is down", "proxy trouble"}
    assert shown.stderr == "2 hits\n"
    assert (logs / NAME).exists()


def test_search_as_json(planrun: Call, logs: Path) -> None:
    found = one_object(planrun("search", "refused", "CONNECTION", "--role", "tool", "--format", "json").stdout)
    assert (found["total"], found["more"], found["message"]) == (1, False, "")
    hit = found["hits"][0]
    assert {k: hit[k] for k in ("session", "record", "role", "step", "kind", "level")} == {
        "session": "young", "record": 3, "role": "tool", "step": "two", "kind": "message", "level": None,
    }  # fmt: skip
    assert len(hit["snippet"]) <= 300


def test_search_in_another_session_and_in_all(
    planrun: Call, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "proxy of old" in planrun("search", "proxy", "--session", "ol").stdout
    every = planrun("search", "proxy", "-a").stdout
    assert "old:2" not in every.split()[:1] and "old:2" in every and every.count("proxy") == 3
    monkeypatch.chdir(tmp_path)
    elsewhere = planrun("search", "proxy", "-a", "--session-dir", str(logs))
    assert "young:2" in elsewhere.stdout
    refused = planrun("search", "proxy", "--session-dir", str(logs))
    assert refused.exit_code == 2 and "no session of" in refused.stderr


@pytest.mark.parametrize("args", [["nosuchword"], ["*"], [""], ['"'], ["--", "--"]])
def test_no_hits_is_no_error(planrun: Call, logs: Path, args: list[str]) -> None:
    shown = planrun("search", *args)
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr.startswith("no hits")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["x", "--last", "soon"], "6h"),
        (["x", "--since", "soon"], "2026"),
        (["(x", "--mode", "boolean"], "missing"),
        (["x", "--limit", "51"], "51"),
        (["x", "--session", "nope"], "nope"),
        (["x", "--session", "../young"], "expected a session's name"),
        ([], "QUERY"),
    ],
)
def test_wrong_use_is_explained(planrun: Call, logs: Path, args: list[str], why: str) -> None:
    shown = planrun("search", *args)
    assert shown.exit_code == 2 and why in shown.stderr


def test_expand_prints_originals(planrun: Call, logs: Path) -> None:
    shown = planrun("expand", "2")
    assert (shown.exit_code, shown.stdout) == (0, "--- 2  one  user\nthe proxy is down\n")
    assert "left out" in planrun("expand", "2-3").stdout
    assert "Connection refused" in planrun("expand", "two", "--results").stdout
    assert planrun("expand", "4").stdout.startswith("--- 4  -  summary leaf\nproxy trouble\n--- 2")
    assert "proxy of old" in planrun("expand", "old:2").stdout


def test_expand_as_json(planrun: Call, logs: Path) -> None:
    given = one_object(planrun("expand", "3", "--format", "json").stdout)
    assert given["originals"][0]["text"] == given["originals"][0]["message"]["content"] == "Connection refused " * 50
    assert (given["rest"], given["unknown"]) == ("", {})


def test_expand_tells_what_is_not_there_and_how_to_go_on(planrun: Call, logs: Path) -> None:
    shown = planrun("expand", "2", "99")
    assert shown.exit_code == 2 and "the proxy is down" in shown.stdout and "99: there is no record 99" in shown.stderr
    cut = planrun("expand", "2", "3", "--max-tokens", "20")
    assert cut.exit_code == 0 and cut.stderr == "there is more: planrun expand 3\n"


def test_help_names_both(planrun: Call, project: Path) -> None:
    text = planrun("--help").stdout
    assert "search" in text and "expand" in text


def test_a_search_loads_nothing_heavy(logs: Path) -> None:
    import subprocess

    import planrun

    program = (
        "import sys\nfrom planrun.cli.main import main\n"
        "try: main(['search', 'proxy'])\nexcept SystemExit as stop: assert not stop.code\n"
        "print('LOADED', *sys.modules)\n"
    )
    source = str(Path(planrun.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env={"PYTHONPATH": source}
    )
    assert set(done.stdout.split("LOADED")[1].split()).isdisjoint({"pydantic", "jsonlines", "yaml", "rich", "planrun.api"})
