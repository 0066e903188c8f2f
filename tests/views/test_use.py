"""How a session uses its context: counted from the records, told without a fault whatever they hold."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given

from planrun.core import context
from planrun.core.context import View
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import State
from planrun.core.using import Observer, Use, share
from planrun.looking import use_of
from planrun.testing.model import ScriptedModel, call, done, say
from planrun.views.use import as_json, text
from tests.runner.driving import ask, project, step
from tests.strategies import PLAN, conversations, runs


def _use(records: list[Record]) -> Use:
    state, observer = State(), Observer()
    for record in records:
        state = apply(state, record, lambda _: PLAN)
        observer(record, state)
    return observer.use(state)


@given(runs())
def test_every_run_can_be_told(records: list[Record]) -> None:
    use = _use(records)
    found = as_json(use)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert text(use).startswith("Context\n")


@given(conversations(), conversations())
def test_a_share_is_that_of_the_beginning_in_common(one: View, other: View) -> None:
    assert share(one, one) == 1.0
    assert 0.0 <= share(one, other) <= 1.0
    grown = (*one, context.Segment("more", other[-1].entries))
    assert share(one, grown) == context.raw_size(one) / context.raw_size(grown)
    assert share(grown, one) == 1.0
    assert share(one[1:], one) == 0.0


def test_a_run_in_a_small_window(tmp_path: Path) -> None:
    made = project(tmp_path, step("one"), step("two", context="compact"))
    script = iter(
        [call("Bash", command="seq 1 400"), done(), *[call("Bash", command=f"seq {n} 900") for n in range(8)], done()]
    )
    made.run(ScriptedModel(lambda body: next(script) if "tools" in body else say("no")), ask(flags={"window": 8_000}))
    use = use_of(made.log)
    found = as_json(use)
    compactions = made.of("compaction")
    assert found["compactions"] == len(compactions) > 1
    last = found["last_compaction"]
    assert isinstance(last, dict) and last["tokens_after"] == compactions[-1]["tokens_after"]
    assert found["window"] == 8_000 and found["window_origin"] == "settings"
    requests = [r for r in made.of("request") if r.get("purpose", "step") == "step"]
    assert len(use.shares) == len(requests) - 1
    assert isinstance(found["prefix_average"], float) and 0.2 < found["prefix_average"] < 1.0
    shown = text(use)
    assert "8,000 by settings" in shown and "the last at" in shown and "on average" in shown


def test_what_was_put_off_is_told_with_its_reason(tmp_path: Path) -> None:
    made = project(tmp_path, step("one"), step("two"))
    made.settings(hooks={"pre_compact": "echo not today >&2; exit 2"})
    made.run([call("Bash", command="seq 1 400"), done(), done()])
    use = use_of(made.log)
    assert len(use.deferred) == 1 and "not today" in text(use)
