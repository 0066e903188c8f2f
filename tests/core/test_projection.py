"""What a step sees of the others: always whole pairs, never more than there was, and all of it back afterwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planrun.core import context, editing, pairing, projection
from planrun.core.context import View
from planrun.core.edits import Insert
from planrun.core.plan import Plan, Step
from tests.strategies import conversations

STEPS = tuple(f"s{n}" for n in range(4))
PLAN = Plan("p", "Do it.", tuple(Step(s, prompt="Do.") for s in STEPS), index={s: n for n, s in enumerate(STEPS)})
LINE = "a line each"


@given(conversations(), st.sets(st.sampled_from(STEPS)))
def test_laws(view: View, needs: set[str]) -> None:
    step = Step("next", prompt="Do.", needs=tuple(sorted(needs)))
    seen, hidden = projection.project(view, step, 100_000)
    assert set(pairing.faults(seen)) <= set(pairing.faults(view))
    assert context.raw_size(seen) <= context.raw_size(view)
    assert (seen == view) == (not hidden)
    kept = [e for s in view if s.step is None or s.step in needs for e in s.entries]
    assert [e for e in context.entries(seen) if e in kept] == kept
    assert projection.project(view, step, 100_000) == (seen, hidden)
    assert projection.restore(seen, hidden, PLAN) == view


@given(conversations())
def test_all_is_needed_unless_it_is_said(view: View) -> None:
    step = Step("next", prompt="Do.", needs=STEPS)
    assert projection.project(view, step, 100_000) == (view, ())


@given(conversations())
def test_what_was_edited_meanwhile_stays_edited(view: View) -> None:
    seen, hidden = projection.project(view, Step("next", prompt="Do.", needs=()), 100_000)
    notes = [e for e in context.entries(seen) if e.note is not None and LINE in (e.message.content or "")]
    for note in notes:
        seen = editing.apply(seen, (Insert("gone", *note.span),), 100_001)
    assert projection.restore(seen, hidden, PLAN) == seen
