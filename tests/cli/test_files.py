"""Every file that a run reads, being what nobody means: told by its name and place, without waiting, in little memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.test_doors import told
from tests.hostile import REFUSED
from tests.test_hostile import measured, written

PLAN = "model: m\nparams: {a: x}\nsteps:\n- {id: a, prompt_file: ask.md}\n"
DOORS = {  # the file, the call that reads it, what stands before the file's own fault
    "plan": ("plan.yaml", ["run", "-n", "plan.yaml"], "plan.yaml"),
    "prompt_file": ("ask.md", ["run", "-n", "plan.yaml"], "plan.yaml:4:24: prompt_file: 'ask.md'"),
    "parameters": ("p.json", ["run", "-n", "plan.yaml", "--params-file", "p.json"], "p.json"),
    "settings": (".thclaws/settings.json", ["run", "-n", "plan.yaml"], ".thclaws/settings.json"),
    "settings of the user": ("../config/thclaws/settings.json", ["list"], "config/thclaws/settings.json"),
}


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50_000_000)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a directory": (Path.mkdir, "is a directory"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file|leads out of"),
    "a loop": (lambda path: path.symlink_to(path.name), "symbolic links|Symlink loop"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link to"),
    "50 MB of nothing": (_sparse, "larger than 1 MiB"),
    "50 MB of text": (lambda path: path.write_bytes(b"a" * 50_000_000), "larger than 1 MiB"),
}  # fmt: skip
NO_TEXTS = {
    "UTF-16 cut": ("a: b".encode("utf-16") + b"x", ":1:1: not UTF-16: byte 0x78"),
    "UTF-16 without a mark": ("ab: c".encode("utf-16-le"), ":1:2: the character U+0000"),
    "UTF-32": ("a: b".encode("utf-32"), ": is UTF-32"),
    "Latin-1": (b"a:\n \xfc", ":2:2: not UTF-8: byte 0xfc"),
    "half a character": (b"a:\n \xed\xa0\xbd", ":2:2: not UTF-8: byte 0xed"),
    "NUL": (b"a:\n \0", ":2:2: the character U+0000"),
}


@pytest.fixture
def files(project: Path, planrun: Call) -> Path:
    (project / "plan.yaml").write_text(PLAN)
    (project / "ask.md").write_text("Do it.")
    for path in (project / ".thclaws", project.parent / "config" / "thclaws"):
        path.mkdir(parents=True)
    assert planrun("run", "-n", "plan.yaml").exit_code == 0
    return project


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_file(files: Path, planrun: Call, door: str) -> None:
    name, args, prefix = DOORS[door]
    path = files / name
    for make, words in NO_FILES.values():
        path.unlink(missing_ok=True)
        make(path)
        result = told(planrun, *args)
        assert result.exit_code == 2 and prefix in result.stderr, result.stderr
        assert any(word in result.stderr for word in words.split("|")), result.stderr
        if path.is_dir():
            path.rmdir()


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_text(files: Path, planrun: Call, door: str) -> None:
    name, args, prefix = DOORS[door]
    for data, place in NO_TEXTS.values():
        (files / name).write_bytes(data)
        result = told(planrun, *args)
        assert result.exit_code == 2 and prefix + place in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_plan_is_refused_by_a_run_as_by_validate(files: Path, planrun: Call, name: str) -> None:
    (files / "plan.yaml").write_bytes(written(REFUSED[name][0]))
    results = [planrun(*args, "plan.yaml") for args in (["validate"], ["run", "-n"], ["run"])]
    assert {result.exit_code for result in results} == {2}
    assert len({result.stderr for result in results}) == 1
    assert not (files / ".thclaws" / "sessions").exists()


PARAMETERS = [
    ("[a]", "p.json:1:1: a parameters file is made of names with values"),
    ("[" * 10_000, "p.json:1:1001: nested more than 64 deep"),
    ('{"a": 1,\n"a": 2}', "p.json:2:1: the key 'a' appears twice"),
    ('{"a": "x",\n"b": "\\ud83d"}', "p.json:2:9: not YAML"),
    ('{"a": {"b": 1}}', "parameter a: expected a string, found an object"),
    ('{"a": "' + "x" * 70_000 + '"}', "the parameters are 70,008 bytes of JSON, over the limit of 65,536"),
    ('{"b": 1}', "the plan has no parameter 'b'; it has: a"),
    ('{"\\u001b": 1}', "the plan has no parameter '\\x1b'; it has: a"),
    ("a: *b", "p.json:1:4: "),
    ("- - \t", "p.json:1:"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "part"), PARAMETERS)
def test_parameters(files: Path, planrun: Call, text: str, part: str) -> None:
    (files / "p.json").write_text(text)
    result = told(planrun, "run", "-n", "plan.yaml", "--params-file", "p.json")
    assert result.exit_code == 2 and part in result.stderr, result.stderr


VALUES = [
    ("n=NaN", "parameter n must be of type integer, found 'NaN'"),
    ("n=1e400", "parameter n: expected a finite number"),
    ("n=" + "9" * 5_000, "parameter n must be of type integer, found '999"),
    ("n=null", "parameter n must be of type integer, found null"),
    ("n=", "parameter n must be of type integer, found ''"),
    ("o=" + "[" * 20_000, "found '[[["),
    ('o={"a":1,"a":2}', "the key 'a' appears twice (at character 8)"),
    ('o={"a":"\\ud83d"}', "half of a character"),
    ("o=[1]", "parameter o: expected an object, found an array: [1]"),
    ("s=" + "x" * 100_000, "over the limit of 65,536"),
    ("s=a\udcff", "s: expected a value in UTF-8"),
    ("x\x1b=1", "expected a name without control characters"),
    ("=1", "expected NAME=VALUE, found '=1'"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "part"), VALUES)
def test_values_on_the_command_line(files: Path, planrun: Call, pair: str, part: str) -> None:
    params = "params: {s: x, n: {type: integer, default: 1}, o: {type: object, default: {}}}"
    (files / "plan.yaml").write_text(f"{params}\nsteps: [{{id: a, run: 'true'}}]\n")
    result = told(planrun, "run", "-n", "plan.yaml", "-p", pair)
    assert result.exit_code == 2 and part in result.stderr, result.stderr


def test_what_programs_write_as_json_is_read_as_json(files: Path, planrun: Call) -> None:
    """`json.dumps` writes a character beyond U+FFFF as two escapes; a variable may hold several parameters with blanks."""
    (files / "plan.yaml").write_text(
        "params: {a: x, b: y}\nsteps: [{id: a, run: 'true'}]\noutput: {v: '${{ params.a }}|${{ params.b }}'}\n"
    )
    (files / "p.json").write_text('{"a": "\\ud83d\\ude00 \\\\ud83d\\\\ude00"}')
    result = planrun("run", "plan.yaml", "--params-file", "p.json", env={"PLANRUN_RUN_PARAM": "'b=two words' a=\"it's\""})
    assert result.stdout == "v: it's|two words\n", result.output
    result = planrun("run", "plan.yaml", "--params-file", "p.json")
    assert result.stdout == "v: 😀 \\ud83d\\ude00|y\n", result.output


@pytest.mark.parametrize("option", ["--summary", "--junit"])
def test_a_pipe_that_nobody_reads_is_not_waited_for(
    files: Path, planrun: Call, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("pipe")
    (files / "plan.yaml").write_text("steps: [{id: a, run: 'true'}]\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "pipe")
    result = planrun("run", "plan.yaml", option, "pipe")
    assert result.exit_code == 5
    assert result.stderr.splitlines()[-2:] == ["planrun: cannot write pipe: it is a pipe that nobody reads"] * 2
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert "cannot write" not in planrun("run", "plan.yaml", option, "pipe").stderr
    os.close(reader)


LOOKS = (
    "list", "show s", "logs s", "logs -f s", "output s", "context s", "resume s -q", "resume -q", "search -s s x", "search -a x",
    "search x", "expand -s s 1", "expand s:1", "compact s", "fork s", "doctor s", "doctor", "run plan.yaml -q --session s",
)  # fmt: skip


@pytest.mark.parametrize("kind", [name for name in NO_FILES if not name.startswith("50 MB")])
def test_a_session_that_is_no_file(files: Path, planrun: Call, kind: str) -> None:
    log = files / ".thclaws" / "sessions" / "s.jsonl"
    log.parent.mkdir()
    NO_FILES[kind][0](log)
    for look in LOOKS:
        result = planrun(*look.split())
        assert result.exit_code in (0, 2, 5) and "internal" not in result.stderr, (look, result.output)
        assert look.startswith(("list", "search", "doctor")) or result.exit_code, look


def test_a_line_that_no_record_has_is_not_read_whole(files: Path, planrun: Call) -> None:
    log = files / ".thclaws" / "sessions" / "s.jsonl"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(150_000_000)
    for look in ("show s", "logs s", "resume s -q"):
        result = planrun(*look.split())
        assert result.exit_code == 5 and "line 1: it has more than 67,108,864 bytes" in result.stderr, result.output
    assert planrun("search", "-s", "s", "x").exit_code == 0
    done, kilobytes = measured(files, "list")
    assert done.returncode == 0 and kilobytes < 200_000


def test_a_working_directory_that_no_record_can_name(files: Path, planrun: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.fsdecode(os.fsencode(files) + b"/d\xff"))
    folder.mkdir()
    (folder / "plan.yaml").write_text("steps: [{id: a, run: touch ran}]\n")
    monkeypatch.chdir(folder)
    for args in (["run", "plan.yaml"], ["run", "-n", "plan.yaml"]):
        result = told(planrun, *args)
        assert result.exit_code == 2 and "d\\udcff' is not UTF-8" in result.stderr, result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["plan.yaml"]
