"""The machine's limit for a corpus: a loop that only reads all bytes of its records, in a random order.

    python limit.py CORPUS THREADS SECONDS

Runs the program `limit` of benches/peers, which `cargo build --release` makes there, and prints its line of JSON.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys

from corpora import files

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def program() -> str:
    found = subprocess.run(["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"], cwd=PACKAGE, capture_output=True,
                          check=True, text=True)
    return os.path.join(json.loads(found.stdout)["target_directory"], "release", "limit")


def main() -> None:
    corpus, threads, seconds = sys.argv[1:]
    path = program()
    if not os.path.exists(path):
        print(json.dumps({"missing": "the program limit: run `cargo build --release` in benches/peers"}))
        return
    print(subprocess.run([path, threads, seconds, *files(corpus)], capture_output=True, check=True, text=True).stdout)


if __name__ == "__main__":
    main()
