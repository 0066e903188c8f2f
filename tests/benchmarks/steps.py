"""What planrun adds to a model call: a plan of N steps against a loopback endpoint beside as many bare calls of the openai package.

    python tests/benchmarks/steps.py [STEPS] [compact|clear] [TURNS]

Prints ratios within one run; the machine's own speed drops out. Times per step come from the arrival of requests at the endpoint."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DONE = {"status": "done", "output": {"value": "x" * 200}}


def answer(name: str, arguments: object, stream: bool) -> bytes:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {"prompt_tokens": 500, "completion_tokens": 60}
    key = "delta" if stream else "message"
    whole = {"id": "c", "model": "m", "choices": [{"index": 0, key: message, "finish_reason": "tool_calls"}], "usage": usage}
    body = f"data: {json.dumps(whole)}\n\ndata: [DONE]\n\n" if stream else json.dumps(whole)
    kind = "text/event-stream" if stream else "application/json"
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def serve(turns: int) -> None:
    """An endpoint as quick as Python can be: the answers are ready, requests are not parsed."""
    ready = {
        (last, stream): answer(*(("UpdatePlanStep", DONE) if last else ("Ls", {})), stream)
        for last in (0, 1)
        for stream in (0, 1)
    }
    arrivals: list[float] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]) if b"ontent-" in head else 0
            body = await reader.readexactly(size)
            if head.startswith(b"GET"):
                data = json.dumps(arrivals).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                arrivals.clear()
                continue
            arrivals.append(time.monotonic())
            writer.write(ready[len(arrivals) % turns == 0, b'"stream":true' in body])

    server = await asyncio.start_server(client, "127.0.0.1", 0, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def median_ms(times: list[float], turns: int = 1) -> list[float]:
    starts = times[::turns]
    steps = [(b - a) * 1000 for a, b in zip(starts, starts[1:], strict=False)]
    tenth = max(1, len(steps) // 10)
    return [statistics.median(part) for part in (steps, steps[:tenth], steps[-tenth:])]


def bare(url: str, steps: int) -> list[float]:
    import openai

    client, times = openai.OpenAI(base_url=url, api_key="x"), []
    for number in range(steps):
        times.append(time.monotonic())
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"Step {number}. " + "y" * 500}])
    return times


def run(url: str, folder: Path, steps: int, context: str) -> tuple[float, float, int, int]:
    """CPU milliseconds a step, peak MB, bytes of the log, bytes of its messages."""
    rows = ["name: bench", f"context: {context}", "window: 1000000", "steps:"]
    for n in range(steps):
        before = f" It was ${{{{ steps.s{n - 1}.output.value }}}}" if n else ""
        rows += [
            f"  - id: s{n}",
            f"    prompt: 'Step {n}: transform the previous output.{before}'",
            "    output: {value: string}",
        ]
    (folder / "plan.yaml").write_text("\n".join(rows) + "\n")
    env = {**os.environ, "OPENAI_API_KEY": "x", "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "planrun", "run", "plan.yaml", "-q", "--base-url", url, "--model", "m", "--session", "b"]
    child = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, "the run failed"
    log = (folder / ".thclaws" / "sessions" / "b.jsonl").read_bytes().split(b"\n")[1:-1]
    messages = [m for m in map(json.loads, log) if m["type"] == "message"]
    wire = sum(
        len(json.dumps({k: m[k] for k in ("role", "content", "tool_calls", "tool_call_id") if k in m})) for m in messages
    )
    return (used.ru_utime + used.ru_stime) * 1000 / steps, used.ru_maxrss / 1024, sum(map(len, log)), wire


def main(steps: int, context: str, turns: int) -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve", str(turns)], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{(server.stdout or sys.stdin).readline().strip()}/v1"
        base = median_ms(bare(url, min(steps, 500)))[0]
        arrivals(url)
        with tempfile.TemporaryDirectory() as folder:
            cpu, rss, log, wire = run(url, Path(folder), steps, context)
        whole, first, last = median_ms(arrivals(url), turns)
    finally:
        server.kill()
    print(f"{steps} steps, {context}, {turns} turns: {whole:.2f} ms a step, bare call {base:.2f} ms, ratio {whole / base:.2f}")
    print(f"last tenth / first tenth {last / first:.2f}; CPU {cpu:.2f} ms a step (start-up included); {rss:.0f} MB")
    print(f"log {log / steps:.0f} bytes a step, {log / wire:.2f} times its messages")


def arrivals(url: str) -> list[float]:
    from urllib.request import urlopen

    with urlopen(url) as answered:
        times: list[float] = json.load(answered)
    return times


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        asyncio.run(serve(int(arguments[1])))
    else:
        main(
            int((arguments + ["100"])[0]),
            (arguments + ["100", "clear"])[1],
            int((arguments + ["1", "1", "1"])[2] if len(arguments) > 2 else 1),
        )
