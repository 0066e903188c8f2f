"""What an output may be, how a fault reads, and where a `run` step's output comes from."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core.messages import compact_json
from planrun.core.outputs import LIMIT, describe, from_run, schema, validate
from planrun.core.plan import Field, FieldType

FIELDS = (
    Field("version", pattern=r"^\d+$", max_length=5, min_length=1, description="the\nversion"),
    Field("n", "integer", required=False, enum=(1, 2, 3)),
    Field("files", "array", items=Field("files"), max_items=2, required=False),
    Field("report", "file", path="a.json"),
)


@pytest.mark.parametrize(
    ("kind", "value", "clean"),
    [
        ("string", "", ""),
        ("string", "é\ud83d\ude00", "é😀"),
        ("string", "a\ud800", "a\ufffd"),
        ("integer", 3, 3),
        ("integer", 3.0, 3),
        ("integer", -(10**30), -(10**30)),
        ("number", 3, 3),
        ("number", 2.5, 2.5),
        ("boolean", False, False),
        ("array", [1, "a", None, [True]], [1, "a", None, [True]]),
        ("object", {"a": {"b": [1]}}, {"a": {"b": [1]}}),
    ],
)
def test_right_type(kind: FieldType, value: object, clean: object) -> None:
    found, faults = validate((Field("f", kind),), {"f": value})
    assert (found, faults) == ({"f": clean}, ())
    assert type(found["f"]) is type(clean)


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        ("string", 3, "f: expected a string, found an integer: 3"),
        ("string", None, "f: expected a string, found null"),
        ("integer", "3", 'f: expected an integer, found a string: "3"'),
        ("integer", 3.5, "f: expected an integer, found a number: 3.5"),
        ("integer", True, "f: expected an integer, found a boolean: true"),
        ("number", True, "f: expected a number, found a boolean: true"),
        ("number", float("nan"), "f: expected a finite number, found NaN or infinity"),
        ("object", {"a": [float("inf")]}, "f: expected a finite number, found NaN or infinity"),
        ("boolean", "true", 'f: expected a boolean, found a string: "true"'),
        ("array", {"a": 1}, 'f: expected an array, found an object: {"a": 1}'),
        ("object", [1], "f: expected an object, found an array: [1]"),
    ],
)
def test_wrong_type(kind: FieldType, value: object, fault: str) -> None:
    assert validate((Field("f", kind),), {"f": value})[1] == (fault,)


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"version": "12"}, []),
        ({"version": "12", "report": "a.json", "n": None}, []),
        ({}, ["version: missing; expected a string"]),
        ([], ["output must be an object with the fields version, n, files, report, found an array: []"]),
        ({"version": "12", "versoin": 1}, ["versoin: not a field of this output; did you mean version?"]),
        ({"version": "12", "zzz": 1}, ["zzz: not a field of this output; the fields are version, n, files, report"]),
        ({"version": "x"}, ['version: expected text that matches the pattern ^\\d+$, found a string: "x"']),
        ({"version": "123456"}, ["version: expected at most 5 characters, found 6: shorten it"]),
        ({"version": "12", "n": 4}, ["n: expected one of 1, 2, 3, found an integer: 4"]),
        ({"version": "12", "files": ["a", 1]}, ["files[1]: expected a string, found an integer: 1"]),
        ({"version": "12", "files": ["a", "b", "c"]}, ["files: expected at most 2 elements, found 3"]),
        (
            {"version": "12", "report": "b"},
            ['report: this field is filled in from the file a.json; leave it out, found a string: "b"'],
        ),
    ],
)
def test_faults(value: object, faults: list[str]) -> None:
    assert list(validate(FIELDS, value)[1]) == faults


def test_long_values_are_clipped_in_faults() -> None:
    (fault,) = validate((Field("f", "integer"),), {"f": "x" * 5000})[1]
    assert len(fault) < 200
    assert "(5,000 characters)" in fault


def test_a_value_too_deep_is_a_fault() -> None:
    value: list[object] = []
    for _ in range(500):
        value = [value]
    assert "deep" in validate((Field("f", "array"),), {"f": value})[1][0]


def test_size_limit_counts_bytes_of_json() -> None:
    fits = "é" * ((LIMIT - len('{"f":""}')) // 2)
    assert validate((Field("f"),), {"f": fits})[1] == ()
    (fault,) = validate((Field("f"),), {"f": fits + "éé"})[1]
    assert "65,536" in fault
    assert "file" in fault


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_accepted_is_unchanged(value: object) -> None:
    clean, faults = validate((Field("f", "object"),), {"f": {"v": value}})
    assert faults == ()
    assert clean == {"f": {"v": value}}
    assert json.loads(compact_json(clean)) == clean


def test_words_for_the_prompt() -> None:
    assert [describe(f) for f in FIELDS] == [
        "version: string, pattern ^\\d+$, at least 1 characters, at most 5 characters - the version",
        "n: integer, optional, one of 1, 2, 3",
        "files: array of string, optional, at most 2 elements",
        "report: file, taken from a.json",
    ]


def test_schema() -> None:
    assert schema(FIELDS) == {
        "type": "object",
        "properties": {
            "version": {"type": "string", "description": "the\nversion", "pattern": "^\\d+$", "minLength": 1, "maxLength": 5},
            "n": {"type": "integer", "enum": [1, 2, 3]},
            "files": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "report": {"type": "string"},
        },
        "required": ["version"],
        "additionalProperties": False,
    }


ONE = (Field("a"),)
TWO = (Field("a"), Field("n", "integer"))


@pytest.mark.parametrize(
    ("fields", "stdout", "extra", "output"),
    [
        (ONE, "x\ny\n\n", "", {"a": "x\ny"}),
        (ONE, "", "", {"a": ""}),
        (ONE, "x", "a=from file", {"a": "from file"}),
        (TWO, "noise", "a=1=2\nn=5\n", {"a": "1=2", "n": 5}),
        (TWO, "", "a<<EOF\nl1\n\nn=7\nEOF\r\nn=5\n", {"a": "l1\n\nn=7", "n": 5}),
        (TWO, "", "a=1\na=2\n\nn=5", {"a": "2", "n": 5}),
        ((Field("a", source="stdout"), Field("n", "integer")), "x\n", "n=1", {"a": "x", "n": 1}),
        ((Field("a", source="json"), Field("n", "integer")), 'log\n{"a": "q", "n": 3, "other": 1}\n\n', "", {"a": "q", "n": 3}),
        ((Field("a", "array", source="stdout"),), "[1, 2]\n", "", {"a": [1, 2]}),
        ((Field("b", "boolean"), Field("o", "object")), "", 'b=true\no={"x": 1}', {"b": True, "o": {"x": 1}}),
        ((), "anything", "", {}),
    ],
)
def test_from_run(fields: tuple[Field, ...], stdout: str, extra: str, output: dict[str, object]) -> None:
    assert from_run(fields, stdout, extra) == (output, ())


@pytest.mark.parametrize(
    ("fields", "stdout", "extra", "part"),
    [
        (TWO, "x", "", "a: missing"),
        (TWO, "x", "a=1\nn=x", "n: expected an integer, found the text 'x'"),
        (TWO, "x", "a=1\nn=1\nzz=3", "zz: not a field"),
        (TWO, "x", "a=1\nn=1\n junk", "expected name=value or name<<MARK"),
        (TWO, "x", "n=1\na<<EOF\nx", "the block of a has no line EOF"),
        ((Field("a", source="json"),), "no json", "", "expected a JSON object on the last line of stdout, found 'no json'"),
        ((Field("a", source="json"),), "", "", "found nothing"),
        ((Field("a", source="json"),), '{"a": NaN}', "", "a: expected a finite number"),
    ],
)
def test_from_run_faults(fields: tuple[Field, ...], stdout: str, extra: str, part: str) -> None:
    assert part in from_run(fields, stdout, extra)[1][0]
