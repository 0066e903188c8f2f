"""Reading plan files: surprises of YAML, encodings, things that are no files, bounds; only PlanInvalid ever comes out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.core.plan import RunCheck
from planrun.errors import PlanInvalid
from planrun.planfile import LoadedPlan, json_schema, load, parse

CASES = Path(__file__).parent / "cases"
FULL = (CASES / "full.plan.yaml").read_text()


@pytest.mark.parametrize(
    "word", ["no", "yes", "on", "off", "1.10", "1e3", "012", "0x1F", "22:30", "2024-01-01", "~", "null", "true", ".5", "1_000"]
)
def test_text_fields_get_what_was_written(word: str) -> None:
    plan = parse(
        f"name: {word}\nmodel: {word}\nparams: {{x: {word}}}\nsteps: [{{id: a, title: {word}, prompt: {word}}}]",
        "p.yaml",
        {},
    ).plan
    assert (plan.name, plan.model, plan.params[0].default) == (word, word, word)
    assert (plan.steps[0].title, plan.steps[0].prompt) == (word, word)


def test_values_of_free_type_follow_yaml_1_2() -> None:
    text = "params: {x: {type: object, default: {a: [no, 012, 1.5, true, ~, '7', 1e3], b: }}}\nsteps: [{id: a, prompt: x}]"
    assert parse(text, "p.yaml", {}).plan.params[0].default == {"a": ["no", 12, 1.5, True, None, "7", 1000.0], "b": None}


def test_defaults_of_names() -> None:
    plan = parse("description: D\nsteps: [{id: a, prompt: x}]", "dir/my plan.yaml", {}).plan
    assert (plan.name, plan.goal) == ("my plan", "D")
    assert parse("name: N\nsteps: [{id: a, prompt: x}]", "p.yaml", {}).plan.goal == "N"


def case(name: str) -> LoadedPlan:
    return load(CASES / name)


def case_faults(name: str) -> list[tuple[int, str]]:
    with pytest.raises(PlanInvalid) as caught:
        case(name)
    assert all(f.line and f.column for f in caught.value.faults)
    return [(f.line, f.message) for f in caught.value.faults]


def test_yaml_01_words_stay_words() -> None:
    plan = case("YAML-01.plan.yaml").plan
    assert (plan.name, plan.model, [s.id for s in plan.steps], plan.steps[0].output[0].name) == (
        "on",
        "no",
        ["no", "yes"],
        "off",
    )
    assert case_faults("YAML-01b.plan.yaml") == [(5, "unknown key 'on'")]


def test_yaml_02_duplicates() -> None:
    assert case_faults("YAML-02a.plan.yaml") == [(6, "the key 'steps' appears twice: lines 3 and 6")]
    assert case_faults("YAML-02b.plan.yaml") == [
        (6, "the key 'prompt' appears twice: lines 5 and 6"),
        (7, "the step id a appears twice: lines 4 and 7"),
    ]
    assert case_faults("YAML-02c.plan.yaml") == [(3, "unknown key 'base'")]
    free = (CASES / "YAML-02c.plan.yaml").read_text().replace("base:", "x-base:")
    only = parse(free, "p.yaml", {}).plan.steps[0]
    assert (only.prompt, only.context) == ("Own text.", "clear")


@pytest.mark.parametrize("name", ["YAML-05a.bom.plan.yaml", "YAML-05b.crlf.plan.yaml", "YAML-05c.utf16.plan.yaml"])
def test_yaml_05_encodings(name: str) -> None:
    loaded = case(name)
    assert loaded.plan.name == "enc"
    assert loaded.plan.steps[0].prompt == "Grüße, 你好\nsecond line\n"
    assert "\r" not in loaded.text
    assert not loaded.text.startswith("\ufeff")
    assert parse(loaded.text, "p.yaml", {}).digest == loaded.digest


def test_yaml_05_refused_bytes() -> None:
    assert case_faults("YAML-05d.cp1252.plan.yaml") == [(5, "not UTF-8: byte 0xfc at byte offset 59")]
    assert case_faults("YAML-05e.tab.plan.yaml") == [(4, "a tab is used to indent")]
    (line, message), *_ = case_faults("YAML-05f.nbsp.plan.yaml")
    assert (line, "U+00A0 NO-BREAK SPACE" in message) == (5, True)


def test_yaml_07_tags_run_nothing() -> None:
    marker = Path("/tmp/planrun-yaml07-marker")
    assert (1, "the tag !!python/object/apply:os.system is not allowed") in case_faults("YAML-07.plan.yaml")
    assert not marker.exists()


def test_fs_01_names_and_ids_cannot_be_paths() -> None:
    assert [line for line, _ in case_faults("FS-01a.plan.yaml")] == [1, 4]


def test_plans_of_the_template_cases_load() -> None:
    assert case("TMPL-01.plan.yaml").plan.steps[1].verify == (RunCheck("test -e ${{ steps.one.output.fname }}"),)
    assert case("TMPL-02.plan.yaml").plan.params[0].default == "do-not-show"
    assert [s.id for s in case("RES-06.plan.yaml").plan.steps] == ["one", "two", "three"]


def test_files_that_are_no_files(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    started = time.monotonic()
    for path, part in (
        (tmp_path / "nope", "no such file"),
        (tmp_path, "is a directory"),
        (fifo, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (large, "larger than 1 MiB"),
    ):
        with pytest.raises(PlanInvalid, match=part):
            load(path)
    assert time.monotonic() - started < 60


def test_alias_bomb_is_refused() -> None:
    rows = ["x0: &x0 [" + ", ".join(["x"] * 10) + "]"]
    rows += [f"x{i}: &x{i} [" + ", ".join([f"*x{i - 1}"] * 10) + "]" for i in range(1, 10)]
    with pytest.raises(PlanInvalid, match="more than 50,000 values"):
        parse("\n".join(rows), "p.yaml", {})


def test_prompt_files(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("params: {x: 1}\nsteps: [{id: a, prompt_file: prompts/a.md}]")
    with pytest.raises(PlanInvalid, match=r"2:30: prompt_file: 'prompts/a.md': no such file"):
        load(path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_bytes(b"\xef\xbb\xbfDo\r\n${{ params.x }}")
    loaded = load(path)
    assert loaded.plan.steps[0].prompt == "Do\n${{ params.x }}"
    assert loaded.files == {"prompts/a.md": "Do\n${{ params.x }}"}
    (tmp_path / "prompts" / "a.md").unlink()
    again = parse(loaded.text, str(path), loaded.files)
    assert (again.plan, again.digest) == (loaded.plan, loaded.digest)
    assert parse(loaded.text, str(path), {"prompts/a.md": "Other"}).digest != loaded.digest
    with pytest.raises(PlanInvalid, match=r"params\.y: there is no parameter y"):
        parse(loaded.text, str(path), {"prompts/a.md": "${{ params.y }}"})
    (tmp_path.parent / "outside.md").write_text("x")
    (tmp_path / "prompts" / "a.md").symlink_to(tmp_path.parent / "outside.md")
    with pytest.raises(PlanInvalid, match=r"out of the plan's folder"):
        load(path)


def test_a_plan_of_a_thousand_steps_loads_fast() -> None:
    first = "steps:\n- {id: s0, prompt: x, output: {v: string}}\n"
    more = (
        f"- id: s{i}\n  prompt: |\n    Do {i} with ${{{{ steps.s{i - 1}.output.v }}}}\n  output: {{v: string}}\n"
        f"  verify: test -e ${{{{ steps.s{i}.output.v }}}}\n"
        for i in range(1, 1000)
    )
    text = first + "".join(more)
    started = time.process_time()
    assert len(parse(text, "p.yaml", {}).plan.steps) == 1000
    assert time.process_time() - started < 2  # about 0.15 on an idle machine


def test_json_schema() -> None:
    schema = json_schema()
    text = json.dumps(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["steps"]
    tables = schema["$defs"]
    assert all(t["additionalProperties"] is False for t in tables.values())
    assert {"if", "prompt_file", "on_failure"} <= set(tables["StepTable"]["properties"])
    assert "finally" in schema["properties"]
    for name in tables:
        assert f'"#/$defs/{name}"' in text


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        parse(data, "p.yaml", None)
    except PlanInvalid as error:
        assert error.faults


@given(st.data())
@settings(max_examples=300)
def test_any_mutation(data: st.DataObject) -> None:
    """Lines dropped, doubled, moved or replaced, characters put in: a plan or PlanInvalid, never anything else."""
    lines = FULL.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "double", "indent", "insert", "value"])):
            case "drop":
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "indent":
                lines[at] = " " * data.draw(st.integers(0, 6)) + lines[at].strip()
            case "insert":
                place = data.draw(st.integers(0, len(lines[at])))
                piece = data.draw(
                    st.sampled_from(
                        [
                            "${{",
                            "}}",
                            "[",
                            "]",
                            "{",
                            "}",
                            ":",
                            "- ",
                            "'",
                            '"',
                            "*a",
                            "&a ",
                            "!x ",
                            "\t",
                            "\u00a0",
                            "|",
                            "~",
                            "<<: ",
                        ]
                    )
                )
                lines[at] = lines[at][:place] + piece + lines[at][place:]
            case "value":
                key = lines[at].partition(":")[0]
                lines[at] = (
                    key
                    + ": "
                    + data.draw(
                        st.sampled_from(["", "[]", "{}", "x", "-1", "[x]", "{x: y}", "true", "[[[]]]", "'${{ params.zz }}'"])
                    )
                )
        lines = lines or [""]
    try:
        assert parse("\n".join(lines), "p.yaml", {}).plan.steps
    except PlanInvalid as error:
        assert error.faults
