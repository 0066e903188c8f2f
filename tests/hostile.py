"""Plan files that somebody wrote to do harm, or that a program got wrong: what each is, and the first thing said about it.

No data is kept in the repository that a line of code can make."""

from __future__ import annotations

SOUND = "name: sound\nsteps:\n- {id: a, run: touch ran}\n"


def _lined(*lines: str) -> str:
    return "\n".join(lines) + "\n" + SOUND


def _grown(first: str, row: str, rows: int) -> str:
    """An anchor x0, and rows in which each `%` is an alias of the one before."""
    made = [f"x-{i}: &x{i} {row.replace('%', f'*x{i - 1}')}" for i in range(1, rows)]
    return _lined(f"x-0: &x0 {first}", *made)


def _step(text: str, params: str = "params: {p: x}\n") -> str:
    return f"{params}steps:\n- id: a\n  {text}\n"


_ODD_TAGS = {
    "object": "!!python/object/apply:os.system ['touch ran']",
    "name": "!!python/name:os.system",
    "binary": "!!binary aGk=",
    "set": "!!set {a, b}",
    "omap": "!!omap [a: b]",
    "time": "!!timestamp 2024-01-01",
    "float": "!!float 1.10",
    "map": "!!map [a]",
    "own": "!env HOME",
    "bare": "! x",
}

# name: (text or bytes, line, column, part of the message); line 0: the fault is the file's
REFUSED: dict[str, tuple[str | bytes, int, int, str]] = {
    "laughs": (_grown("[a, a, a, a, a, a, a, a, a]", f"[{', '.join('%' * 9)}]", 12), 5, 36, "more than 50,000 values"),
    "laughs in maps": (_grown("{a: b}", "{a: %, b: %, c: %}", 30), 10, 14, "more than 50,000 values"),
    "laughs in merges": (_grown("{a: b}", "{<<: [%, %, %], b: c}", 40), 9, 26, "more than 50,000 values"),
    "quadratic": (_lined(f"x-a: &a {'b' * 90_000}", f"pin: [{', '.join(['*a'] * 40_000)}]"), 2, 51, "more than 1,048,576 characters"),
    "cycle": (_lined("x-a: &a [*a]"), 1, 10, "stands inside what it names"),
    "cycle in a map": (_lined("x-a: &a {b: {c: *a}}"), 1, 17, "stands inside what it names"),
    "cycle of a merge": (_lined("x-a: &a {<<: *a}"), 1, 14, "stands inside what it names"),
    "deep lists": (_lined(f"x-a: {'[' * 10_000}{']' * 10_000}"), 1, 1005, "nested more than 64 deep"),
    "deep maps": (_lined(f"x-a: {'{a: ' * 10_000}{'}' * 10_000}"), 1, 258, "nested more than 64 deep"),
    "deep blocks": (_lined("x-a:", *(" " * i + "-" for i in range(1, 1200))), 65, 65, "nested more than 64 deep"),
    "deep block maps": (_lined("x-a:", *(" " * i + "a:" for i in range(1, 1200))), 65, 65, "nested more than 64 deep"),
    "deep dashes": (_lined("x-a:", f"  {'- ' * 10_000}x"), 2, 129, "nested more than 64 deep"),
    "deep questions": (_lined("x-a:", f"  {'? ' * 10_000}x"), 2, 129, "nested more than 64 deep"),
    "keys of one name": (_lined("name: a", '"name": b'), 2, 1, "the key 'name' appears twice: lines 1 and 2"),
    "keys of one name inside": (_lined("x-a: {b: {c: 1, 'c': 2}}"), 1, 17, "the key 'c' appears twice"),
    "a hundred thousand of one name": (_lined(*["x-a: 1"] * 100_000), 2, 1, "the key 'x-a' appears twice"),
    "a hundred thousand keys": (_lined(*(f"k{i}:" for i in range(60_000))), 25_000, 8, "more than 50,000 values"),
    "ten thousand unknown keys": (_lined(*(f"k{i}: v" for i in range(10_000))), 1, 1, "unknown key 'k0'"),
    "a long key": (_lined(f"{'k' * 1_000}: v"), 1, 1, "unknown key 'kkk"),
    "merge of a text": (_lined("x-a: {<<: x}"), 1, 11, "<< merges mappings only"),
    "merge of lists": (_lined("x-a: {<<: [[{a: b}]]}"), 1, 11, "<< merges mappings only"),
    **{f"tag {name}": (_lined(f"x-a: {text}"), 1, 6, "is not allowed") for name, text in _ODD_TAGS.items()},
    "tag by a handle": (
        _lined("%TAG ! tag:yaml.org,2002:python/", "---", "x-a: !object/apply:os.system [x]"),
        3,
        6,
        "the tag !!python/object/apply:os.system is not allowed",
    ),
    "two documents": (SOUND + "---\n" + SOUND, 4, 1, "a second document"),
    "an anchor of another document": ("--- &a\nname: x\n---\nx-a: *a\n", 3, 1, "a second document"),
    "an empty second document": (SOUND + "---\n", 4, 1, "a second document"),
    "text behind the end": (SOUND + "...\nx\n", 5, 1, "not YAML"),
    "a version to come": ("%YAML 9.9\n---\n" + SOUND, 1, 1, "incompatible YAML document"),
    "half a character": (_lined('x-a: "\\ud83d"'), 1, 9, "invalid Unicode character escape"),
    "half a character as bytes": (b"name: \xed\xa0\xbd\n", 1, 7, "not UTF-8: byte 0xed"),
    "beyond Unicode": (_lined('x-a: "\\UFFFFFFFF"'), 1, 9, "invalid Unicode character escape"),
    "NUL": (_lined("name: a\0b"), 1, 8, "U+0000"),
    "NUL escaped": (_step('run: "a\\0b"'), 4, 8, "a NUL character"),
    "C1": (_lined("x-a: a\x9bb"), 1, 7, "U+009B"),
    "a bell in a comment": (_lined("# \x07"), 1, 3, "U+0007"),
    "next line": (_lined("x-a: a\x85name: b"), 1, 7, "U+0085"),
    "line separator": (_lined("x-a: a\u2028name: b"), 1, 7, "U+2028"),
    "paragraph separator": (_lined("# a\u2029name: b"), 1, 4, "U+2029"),
    "two marks": ("\ufeff\ufeff" + SOUND, 1, 1, "U+FEFF"),
    "a mark inside": (SOUND + "\ufeff", 4, 1, "U+FEFF"),
    "a mark alone": ("\ufeff", 0, 0, "the file is empty"),
    "UTF-32": (SOUND.encode("utf-32"), 0, 0, "is UTF-32"),
    "UTF-16 without a mark": (SOUND.encode("utf-16-le"), 1, 2, "U+0000"),
    "UTF-16 cut": (SOUND.encode("utf-16") + b"x", 1, 1, "not UTF-16"),
    "Latin-1": ("# é\nname: ü".encode("latin-1"), 1, 3, "not UTF-8: byte 0xe9"),
    "a long scalar": (_lined(f"x-a: {'a' * 5_000_000}"), 0, 0, "larger than 1 MiB"),
    "comments alone": ("# a\n# b", 0, 0, "the file is empty"),
    "nothing": ("", 0, 0, "the file is empty"),
    "null": ("~\n", 1, 1, "a plan is made of keys"),
    "a tab": ("\t", 1, 1, "a tab"),
    "a list as a key": (_lined("[a]: b"), 1, 1, "a key must be text"),
    "a map as a key": (_lined("{a: b}: c"), 1, 1, "a key must be text"),
    "null as a key": (_lined("~: x"), 1, 1, "unknown key '~'"),
    "true as a key": (_lined("true: x"), 1, 1, "unknown key 'true'"),
    "a control character in a key": (_lined('"a\\e[31m\\n": x'), 1, 1, "unknown key 'a\\x1b[31m\\n'"),
    "a control character in an id": ('steps:\n- {id: "\\n\\e", prompt: x, run: x}\n', 2, 3, "step \\n\\x1b needs exactly one"),
    "unclosed": (_lined("x-a: [a"), 2, 5, "not YAML"),
    "unclosed quote": (_lined("x-a: 'a"), 5, 1, "not YAML"),
    "a huge integer": (_lined(f"window: {'9' * 100_000}"), 1, 9, "window: expected an integer"),
    "a huge number": (_lined("limits: {cost_usd: 1e999999}"), 1, 20, "cost_usd: expected a number"),
    "a long number": (_lined(f"limits: {{cost_usd: {'1' * 900_000}.e}}"), 1, 20, "cost_usd: expected a number"),
    "a long time": (_lined(f"limits: {{time: {'9' * 400}h}}"), 1, 16, "at most ten years"),
    "dots for a time": (_lined(f"limits: {{time: {'.' * 100_000}h}}"), 1, 16, "expected a time"),
    "a pattern never closed": (_step(f"output: {{f: {{pattern: '{'(' * 900}'}}}}\n  prompt: x"), 4, 25, "not a regular expression"),
    "a pattern too large": (_step("output: {f: {pattern: '(a{999}){999}'}}\n  prompt: x"), 4, 25, "size limit"),
    "a pattern that looks back": (_step("output: {f: {pattern: '(a)\\1'}}\n  prompt: x"), 4, 25, "backreferences are not supported"),
    "a pattern that looks ahead": (_step("output: {f: {pattern: 'a(?=b)'}}\n  prompt: x"), 4, 25, "look-ahead"),
    "a deep condition": (_step(f"if: '{'(' * 200}true{')' * 200}'\n  run: x"), 4, 7, "more than 250 parts"),
    "a condition in brackets": (_step(f"if: '{'(' * 120}true{')' * 120}'\n  run: x"), 4, 7, "recursion limit"),
    "a long list in a condition": (_step(f"if: '1 in [{'1,' * 100_000}1]'\n  run: x"), 4, 7, "more than 250 parts"),
    "a long number in a condition": (_step(f"if: '{'9' * 100_000} == 1'\n  run: x"), 4, 7, "the number is too large"),
    "unknown references": (_step("prompt: " + "${{ params.q }}" * 900), 4, 11, "params.q: there is no parameter q"),
    "many expressions": (_step("prompt: " + "${{ 'a' }}" * 50_000), 4, 11, "more than 1,000 ${{ }}"),
    "many of them in all": (
        "params: {p: x}\nsteps:\n" + "".join(f"- {{id: s{i}, prompt: '{'${{ 1 }}' * 900}'}}\n" for i in range(12)),
        14,
        21,
        "more than 10,000 expressions",
    ),
    "unclosed expressions": (_step("prompt: " + "${{ " * 200_000), 4, 11, "'$' cannot stand here"),
    "a long command": (_step("run: echo " + "a" * 200_000), 4, 8, "the command is over 131,000 bytes"),
    "a deep command": (_step("run: echo " + "$(" * 20_000 + " ${{ params.p }}"), 4, 8, "nested too deeply"),
    "a deep command in quotes": (_step("run: 'echo " + '"$(' * 20_000 + " ${{ params.p }}'"), 4, 8, "nested too deeply"),
    "many here-documents": (_step("run: |\n" + "".join(f"    cat <<E{i}\n" for i in range(8_000)) + "    ${{ params.p }}"), 4, 8, "no line E0"),
    "many backquotes": (_step("run: |\n    echo " + "`a" * 60_001 + " ${{ params.p }}"), 4, 8, "a ` is not closed"),
    "steps of one id": ("steps:\n" + "- {id: s, run: x}\n" * 5_000, 3, 8, "the step id s appears twice"),
    "steps that are none": (f"steps: [{', '.join('x' * 45_000)}]\n", 1, 9, "steps: expected keys with values"),
    "needs that are none": (_step(f"prompt: x\n  needs: [{', '.join(f'q{i}' for i in range(5_000))}]"), 5, 11, "there is no step q0"),
    "tools that are none": (_step(f"prompt: x\n  tools: [{', '.join(f'Reed{i}' for i in range(40_000))}]"), 5, 11, "unknown tool 'Reed0'"),
    "a million choices": (_step(f"prompt: x\n  output: {{f: {{enum: [{','.join('a' * 480_000)}]}}}}"), 5, 99_987, "more than 50,000 values"),
    "choices of another type": (
        _step(f"prompt: x\n  output: {{f: {{type: integer, enum: [{','.join('a' * 45_000)}]}}}}"),
        5,
        38,
        "enum: expected an integer",
    ),
}  # fmt: skip

LEGAL: dict[str, str | bytes] = {
    "anchors": _lined("x-a:", *(f"- &a{i} x" for i in range(45_000))),
    "a merge that is overridden": "x-a: &a {title: T, run: 'true'}\nsteps:\n- {<<: *a, id: a, title: U}\n",
    "merges in a list": _lined("x-a: [{<<: {a: b}}, {<<: [{a: b}, {a: c}]}]"),
    "a quoted merge key": _lined("x-a: {'<<': x}"),
    "a tag that says nothing": _lined("x-a: !!str 1.10"),
    "an end": SOUND + "...\n",
    "a known version": "%YAML 1.2\n---\n" + SOUND,
    "a mark": "\ufeff" + SOUND,
    "UTF-16": SOUND.encode("utf-16"),
    "old line ends": SOUND.replace("\n", "\r"),
    "a scalar": _lined(f"x-a: {'a b ' * 250_000}"),
    "escapes": _lined('x-a: "' + "\\u0041" * 150_000 + '"'),
    "comments": "#\n" * 500_000 + SOUND,
    "a huge integer of no type": _lined(f"params: {{p: {{type: object, default: {{a: {'9' * 100_000}}}}}}}"),
    "an evil pattern": _step("prompt: x\n  output: {f: {pattern: '^(a+)+$'}}"),
    "nots": _step(f"run: x\n  if: {'not ' * 200}true"),
    "a long text in a condition": _step(f"run: x\n  if: \"'{'x' * 900_000}' == 'x'\""),
    "many choices": _step(f"prompt: x\n  output: {{f: {{type: integer, enum: [{','.join(map(str, range(45_000)))}]}}}}"),
    "items of items": _step(f"prompt: x\n  output: {{f: {'{type: array, items: ' * 50}string{'}' * 50}}}"),
    "a deep default": _lined(f"params: {{p: {{type: object, default: {'{a: ' * 58}1{'}' * 58}}}}}"),
    "a long command with a value": _step("run: |\n    echo ${{ params.p }} " + "a=$b " * 25_000),
}
