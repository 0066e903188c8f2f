"""What `planrun init` writes."""

from __future__ import annotations

from planrun.core.names import SESSIONS, SPILL

PLAN = """\
# A plan: steps that a model or a command carries out one after another. Check it with `planrun validate plan.yaml`,
# see what it would do with `planrun run -n plan.yaml`, run it with `planrun run plan.yaml --model NAME`.
version: 1
name: first-plan
goal: Describe this folder in OVERVIEW.md, and prove that the file is there.
context: compact                # what a step sees of earlier ones: keep | compact | clear | summary
limits: {time: 30m, turns: 60, tokens: 300_000}

steps:
  - id: look
    title: See what is here
    prompt: |
      Look at the files of this folder, at most ten of them, and find out what it is for.
      Hand in one paragraph that says so and the paths of the files that matter most.
    tools: [Read, Grep, Glob, Ls]
    output:
      summary: {type: string, max_length: 1500}
      files: {type: array, items: {type: string}, max_items: 10}

  - id: write
    title: Write OVERVIEW.md
    prompt: |
      Write OVERVIEW.md: a heading, this paragraph: ${{ steps.look.output.summary }}
      and then one line for each of these files: ${{ steps.look.output.files | tojson }}
    verify:                     # the step is done when these pass, not when the model says so
      - exists: [OVERVIEW.md]
      - run: grep -q '^# ' OVERVIEW.md
    fix: 2                      # rounds in which the model may mend what a check found
    retry: {attempts: 2}        # fresh attempts after that

  - id: count
    title: Count its lines
    run: wc -l < OVERVIEW.md | tr -d ' '
    output: {lines: string}

output:
  summary: ${{ steps.look.output.summary }}
  lines: ${{ steps.count.output.lines }}
"""

SETTINGS = """\
{
  "planContextStrategy": "compact",
  "permissions": {
    "allow": [],
    "ask": [],
    "deny": []
  }
}
"""

IGNORED = (f"{SESSIONS}/", f"{SPILL}/")
