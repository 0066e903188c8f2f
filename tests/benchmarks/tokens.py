"""The estimate of tokens against a real tokenizer, and how fast it is: `python tests/benchmarks/tokens.py [CODE_FOLDER]`.

With tiktoken and its cl100k_base file at hand it prints, for each kind of text, the raw estimate by the true count, and the
estimate after the first reported usage. Goals: never more than 10 % under before, within 15 % after; no more time for a longer
ASCII text; 1 GB/s for others."""

from __future__ import annotations

import random
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import planrun
from planrun.core.tokens import calibrate, raw_tokens

SIZE = 200_000


def texts(folder: Path) -> dict[str, str]:
    rng = random.Random(1)
    words = "the clocks were striking thirteen and nobody in the street looked up from what had been said before".split()
    common = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    log = (
        f"2026-11-29T23:{i % 60:02d}:01Z INFO worker[{i}] GET /items/{i * 7919 % 99991} 200 id=0x{i * 2654435761 % 2**32:08x}\n"
        for i in range(2_000)
    )
    return {
        "code": "".join(p.read_text("utf-8") for p in sorted(folder.rglob("*.py")))[:SIZE],
        "english": ". ".join(" ".join(rng.choices(words, k=12)).capitalize() for _ in range(2_000))[:SIZE],
        "logs": "".join(log)[:SIZE],
        "cjk": "".join(rng.choices(common, k=SIZE // 3)),
        "tree": "├── src\n│   ├── main.py\n│   └── util.py\n└── README.md\n" * (SIZE // 50),
        "typeset": "The plan — a file — says “what” is done… and it’s fine. " * (SIZE // 60),
        "checks": "Done 😀 🎉 ok 🚀 failed ❌ passed ✅ after 12.3 s\n" * (SIZE // 60),
        "base64-like": "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=SIZE)),
    }


def tokenizer() -> Callable[[str], int] | None:
    try:
        import tiktoken  # type: ignore[import-not-found,unused-ignore]

        encoding = tiktoken.get_encoding("cl100k_base")
    except Exception as error:
        print(f"no tokenizer to compare with: {error}")
        return None
    return lambda text: sum(len(encoding.encode_ordinary(text[at : at + 4_000])) for at in range(0, len(text), 4_000))


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(planrun.__file__).parent
    count = tokenizer()
    for kind, text in texts(folder).items():
        took = min(timeit.repeat(lambda text=text: raw_tokens(text), number=20, repeat=9, timer=time.process_time)) / 20
        line = f"{kind:<12} {len(text.encode()) / took / 1e6:10,.0f} MB/s"
        if count is not None:
            true, raw = count(text), raw_tokens(text)
            after = calibrate(1.0, raw, true) * raw / true
            line += f"   raw {raw / true:5.2f} x true   after the first usage {after:5.2f} x"
        print(line)
    for size in (1_000, 100_000, 10_000_000):
        took = (
            min(
                timeit.repeat(
                    lambda size=size: raw_tokens("some text " * (size // 10)), number=5, repeat=3, timer=time.process_time
                )
            )
            / 5
        )
        alone = (
            min(timeit.repeat(lambda size=size: "some text " * (size // 10), number=5, repeat=3, timer=time.process_time)) / 5
        )
        print(f"{size:>12,} ASCII characters: {(took - alone) * 1e6:6.1f} us")


if __name__ == "__main__":
    main()
