"""`python -m tests.fuzz TARGET [--seconds N] [--corpus FOLDER] [libFuzzer's options]`; without a target, their names."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.fuzz.corpus import WORDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Coverage-guided fuzzing of one target.")
    parser.add_argument("target", choices=list(WORDS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="a folder of inputs that grows from run to run")
    args, options = parser.parse_known_args()
    from tests.fuzz.guided import run

    run(args.target, args.seconds, args.corpus, options)


main()
