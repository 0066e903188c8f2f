"""Test doubles that ship with planrun, for its own tests and for those of plans.

    model = ScriptedModel([call("Write", file_path="a.txt", content="1"), done(version="2.0")])
    seams = api.Seams(models=lambda name: model)
    found = api.run(plan, api.Ask(), api.Front(), cwd=folder, environ=environ, seams=seams)
    assert found.state.ended.outcome == "finished"

`model` answers from a script, without a network. `server` is a real endpoint on 127.0.0.1, and `answers` what it can be told to
say. `crash` has logs that die, or cannot be written any more, at a chosen record. `matrix` cuts a recorded session everywhere,
resumes each cut and compares: it tests a plan with a session that you made.
"""
