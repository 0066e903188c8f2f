"""SESS, RES, PAIR-09, APPR, LOCK: sessions found on disk, and resumed by the real command."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

from planrun.testing.server import call, done
from tests.cases.cli import (
    alive,
    case,
    install,
    log_of,
    planrun,
    records,
    resume,
    run,
    running,
    serving,
    until,
    write,
)  # fmt: skip
from tests.cases_support import PLAN as THREE
from tests.cases_support import plan_text, texts

OK = ("finished", 0)


def whole(log: Path) -> list[dict[str, object]]:
    """Every line parses, numbers follow each other."""
    data = log.read_bytes()
    assert data.endswith(b"\n")
    found = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert [r["seq"] for r in found] == list(range(1, len(found) + 1))
    return found


def test_sess_01a_a_torn_last_line(tmp_path: Path) -> None:
    log = install("SESS-01a", tmp_path, THREE, closed=True)
    ran = resume(tmp_path, [], session="SESS-01a")
    assert ran.ended == OK
    assert "torn" in ran.err
    assert ran.result["steps"][0]["output"] == {"ver": "1.10"}
    assert len(ran.server.requests) == 2, "one is not run again"
    assert any(r.get("kind") == "sealed" for r in whole(log))


def test_sess_01b_a_torn_line_in_the_middle(tmp_path: Path) -> None:
    log = install("SESS-01b", tmp_path, THREE)
    before = log.read_bytes()
    ran = resume(tmp_path, [], session="SESS-01b")
    assert ran.ended == ("session_damaged", 5)
    assert "line 5" in ran.err
    assert (ran.server.requests, log.read_bytes()) == ([], before)


def test_sess_01c_a_missing_newline(tmp_path: Path) -> None:
    log = install("SESS-01c", tmp_path, THREE, closed=True)
    before = log.read_bytes()
    assert not before.endswith(b"\n")
    ran = resume(tmp_path, [], session="SESS-01c")
    assert ran.ended == OK
    assert "torn" not in ran.err
    assert log.read_bytes().startswith(before + b"\n")
    whole(log)


def test_sess_04_every_text_comes_back(tmp_path: Path) -> None:
    values = list(texts("SESS-04"))
    for number, value in enumerate(values):
        (tmp_path / f"{number}.txt").write_bytes(value.encode())
    acts = [call("Read", {"file_path": f"{n}.txt"}, f"r{n}") for n in range(len(values))]
    ran = run(tmp_path, [*acts, done({})])
    assert ran.ended == OK
    log = log_of(tmp_path)
    assert log.read_bytes().count(b"\n") == len(whole(log))
    stored = {r["tool_call_id"]: r["content"] for r in records(tmp_path) if r.get("role") == "tool"}
    sent = {m["tool_call_id"]: m["content"] for m in ran.messages() if m["role"] == "tool"}
    assert all(stored[k] == v for k, v in sent.items()) and len(sent) == len(values)
    for inner in ("\u2028", "\u2029", "\U0001f600 \u6f22\u5b57"):
        assert inner in "".join(map(str, sent.values()))


def test_res_01_a_recorded_result_is_not_made_again(tmp_path: Path) -> None:
    install("RES-01", tmp_path, plan_text("RES-01"))
    (tmp_path / "log.txt").write_text("x\n")
    ran = resume(tmp_path, [done({"n": 1}), done({})], session="RES-01")
    assert ran.ended == OK
    assert (tmp_path / "log.txt").read_text() == "x\n"
    assert ran.messages(0)[-1] == {"role": "tool", "content": "(exit 0)", "tool_call_id": "e1"}


def test_res_02_failed_is_not_final(tmp_path: Path) -> None:
    install("RES-02", tmp_path, THREE)
    ran = resume(tmp_path, [], session="RES-02")
    assert ran.ended == OK
    assert [(s["status"], s["attempts"]) for s in ran.result["steps"]] == [("done", 1), ("done", 2), ("done", 1)]
    assert len(ran.server.requests) == 2


def test_res_06_outputs_keep_their_type_over_a_resume(tmp_path: Path) -> None:
    for name, words in (("RES-06a", "a short note about 1.10 to"), ("RES-06c", "a short note about  to")):
        folder = tmp_path / name
        install(name, folder, plan_text("RES-06"))
        ran = resume(folder, [done({"path": "note.txt"}), done({})], session=name)
        assert ran.ended == OK
        assert words in ran.users(0)[-1]


def test_res_06b_a_missing_output_names_step_and_field(tmp_path: Path) -> None:
    install("RES-06b", tmp_path, plan_text("RES-06"))
    ran = resume(tmp_path, [], session="RES-06b")
    assert ran.ended == ("output_invalid", 1)
    assert ran.server.requests == []
    assert "one" in ran.result["reason"] and "ver" in ran.result["reason"]


def test_res_07_only_sessions_of_this_directory_are_meant(tmp_path: Path) -> None:
    here, there, third = (tmp_path / n for n in ("web/ui", "web-ui", "third"))
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    for folder, name in ((here, "RES-07a"), (there, "RES-07b")):
        install(name, folder, THREE)
        os.replace(log_of(folder, name), sessions / f"{name}.jsonl")
    os.utime(sessions / "RES-07b.jsonl")
    third.mkdir()
    with serving([]) as server:
        ran = planrun(third, server, "resume", "--session-dir", str(sessions))
        assert ran.code == 2 and server.requests == []
        assert "RES-07a" in ran.err and "RES-07b" in ran.err
        ran = planrun(here, server, "resume", "--session-dir", str(sessions), "--format", "json")
        assert ran.ended == OK
    assert ran.result["session"] == "s-a"
    assert json.loads((sessions / "RES-07b.jsonl").read_bytes().splitlines()[-1])["type"] == "step"


def test_res_07_a_named_session_runs_where_it_was_started(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    install("RES-02", here, THREE)
    other.mkdir()
    with serving([call("Bash", {"command": "touch ran"}), done({})]) as server:
        args = ("resume", "RES-02", "--session-dir", str(log_of(here).parent), "--format", "json")
        assert planrun(other, server, *args).ended == OK
    assert (here / "ran").exists() and not (other / "ran").exists()


def test_pair_09_an_answer_at_the_end_stays(tmp_path: Path) -> None:
    install("PAIR-09", tmp_path, THREE)
    ran = resume(tmp_path, [], session="PAIR-09")
    assert ran.ended == OK
    first = ran.messages(0)
    assert first[-1]["role"] == "user"
    assert "The file lists three ports and a host name." in [m["content"] for m in first]


def test_pair_09b_an_empty_answer_at_the_end_goes(tmp_path: Path) -> None:
    install("PAIR-09b", tmp_path, THREE)
    ran = resume(tmp_path, [], session="PAIR-09b")
    assert ran.ended == OK
    assert ran.messages(0)[-1]["role"] == "user"
    assert all(m["content"] for m in ran.messages(0))


def test_pair_01_whole_pairs_go_on(tmp_path: Path) -> None:
    install("PAIR-01", tmp_path, THREE)
    assert resume(tmp_path, [], session="PAIR-01").ended == OK


def test_pair_07_a_list_that_no_endpoint_takes_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """Its first user message was dropped, so that the list begins with an assistant's."""
    log = install("PAIR-07", tmp_path, THREE)
    before = log.read_bytes()
    ran = resume(tmp_path, [], session="PAIR-07")
    assert ran.ended == ("session_damaged", 5)
    assert "message at record 4" in ran.err and "--rerun one" in ran.err and "doctor PAIR-07 --repair" in ran.err
    assert (ran.server.requests, log.read_bytes()) == ([], before)
    assert resume(tmp_path, [], "--rerun", "one", session="PAIR-07").ended == OK


def test_uni_01_half_a_character_on_disk(tmp_path: Path) -> None:
    install("UNI-01", tmp_path, THREE)
    ran = resume(tmp_path, [], session="UNI-01")
    assert ran.ended == OK
    assert ran.messages(0)[-1]["content"] == "ready \N{REPLACEMENT CHARACTER}"


def test_appr_02_a_stale_question_never_runs_another_call(tmp_path: Path) -> None:
    install("APPR-02", tmp_path, THREE)
    (tmp_path / ".thclaws" / "settings.json").write_text(json.dumps({"permissions": {"ask": ["Bash(*)"]}}))
    began = monotonic()
    ran = resume(tmp_path, [], session="APPR-02")
    assert ran.ended == ("needs_human", 4)
    assert monotonic() - began < 60 and ran.server.requests == []
    ran = resume(tmp_path, [], "--approve", "none", session="APPR-02")
    assert ran.ended == ("needs_human", 4)
    ran = resume(tmp_path, [], "--approve", "all", session="APPR-02")
    assert ran.ended == OK
    asked = [r for r in records(tmp_path, "APPR-02") if r["type"] == "approval" and r["decision"] == "asked"]
    assert asked[-1]["subject"] == "new" and asked[-1]["digest"] != "2" * 64, "the answer is bound to the call's own digest"
    assert [m["content"] for m in ran.messages(0) if m["role"] == "tool"] == ["(interrupted)", "B"]


def test_lock_01_one_writer(tmp_path: Path) -> None:
    """Both at once, the second through a linked folder: one runs, the other says who does and adds no byte."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    install("RES-02", tmp_path / "real", THREE)
    slow = call("Bash", {"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done"})
    with serving([slow]) as server:
        with running(tmp_path / "real", server, "resume", "RES-02") as first:
            until(first, (tmp_path / "real" / "begun").exists, "the command")
            before = log_of(tmp_path / "real", "RES-02").read_bytes()
            second = planrun(tmp_path / "link", server, "resume", "RES-02", "--format", "json")
            assert second.ended == ("session_busy", 5)
            assert f"pid {first.pid}" in second.err and os.uname().nodename in second.err
            assert log_of(tmp_path / "real", "RES-02").read_bytes() == before
            (tmp_path / "real" / "go").touch()
            assert first.wait(30) == 0


def test_lock_01_a_race_has_one_winner(tmp_path: Path) -> None:
    install("RES-02", tmp_path, THREE)
    with serving([call("Bash", {"command": "sleep 3"})]) as server, ThreadPoolExecutor(2) as pool:
        codes = sorted(pool.map(lambda _: planrun(tmp_path, server, "resume", "RES-02").code, range(2)))
    assert codes == [0, 5]
    whole(log_of(tmp_path, "RES-02"))


SLOW = "#!/bin/sh\necho half > report.txt; touch begun; sleep 97531; echo END >> report.txt\n"


def test_res_08_half_a_file_is_no_result(tmp_path: Path) -> None:
    write(tmp_path, case("RES-08.plan.yaml"))
    (tmp_path / "make-report.sh").write_text(SLOW)
    with serving([call("Bash", {"command": "sh make-report.sh"})]) as server:
        with running(tmp_path, server, "run", "plan.yaml", "--session", "s") as process:
            until(process, (tmp_path / "begun").exists, "the command")
            process.send_signal(signal.SIGKILL)
            process.wait(30)
    limit = monotonic() + 60
    while alive("97531"):
        assert monotonic() < limit, "the command outlives planrun"
    acts = [done({"path": "report.txt"}), call("Bash", {"command": "echo END >> report.txt"}), done({"path": "report.txt"})]
    with serving(acts) as server:
        ran = planrun(tmp_path, server, "resume", "s", "--format", "json")
    assert ran.ended == ("verify_failed", 1), "without fix rounds the first claim is the last"
    assert "interrupted" in ran.results(0)[-1]
    assert ran.result["steps"][0]["status"] == "failed"


def test_res_04_is_linear_and_the_bytes_of_earlier_records_stay(tmp_path: Path) -> None:
    plan = "name: c\nmodel: m\nsteps:\n" + "".join(f"  - {{id: s{i}, prompt: P.}}\n" for i in range(5))
    turn = [call("Bash", {"command": "head -c 20000 /dev/zero | tr '\\0' x"}), done({})]
    seen: list[bytes] = []

    def script(body: dict[str, object]) -> object:
        seen.append(log_of(tmp_path).read_bytes())
        return turn[(len(seen) - 1) % 2]

    assert run(tmp_path, script, plan=plan).ended == OK
    seen.append(log_of(tmp_path).read_bytes())
    assert all(b.startswith(a) for a, b in zip(seen, seen[1:], strict=False))
    assert len(seen[-1]) < 5 * 20_000 * 2


def test_comp_09_a_kill_behind_a_boundary_changes_no_byte(tmp_path: Path) -> None:
    plan = "name: c\nmodel: m\nsteps:\n  - {id: one, prompt: A.}\n  - {id: two, prompt: B.}\n"
    acts = [call("Bash", {"command": "seq 1 300"}), done({}, id="d1")]
    control = run(tmp_path / "control", [*acts, done({}, id="d2")], plan=plan)
    folder = tmp_path / "killed"
    write(folder, plan)
    from planrun.testing.server import raw

    with serving([*acts, raw(200, b"", hang=True)]) as server:
        with running(folder, server, "run", "plan.yaml", "--session", "s") as process:
            until(process, lambda: len(server.requests) == 3, "the third request")
            process.kill()
            process.wait(30)
    ran = resume(folder, [done({}, id="d2")])
    assert ran.ended == OK
    # The placeholder names the record, so both logs must have the same numbers up to here: they have.
    assert ran.server.requests[0].raw == control.server.requests[2].raw
