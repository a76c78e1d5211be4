"""Draws mutants by a seed from the list that `cargo mutants --list --json` prints, and prints a regular expression of their names.

    cargo mutants --list --json -p tfseek .. | python3 draw_mutants.py 300 15

Expressions of constants are left out. Mutants that do not compile count too: cargo-mutants reports them separately.
"""
import json
import random
import re
import sys


def main() -> None:
    count, seed = map(int, sys.argv[1:])
    mutants = sorted(mutant["name"] for mutant in json.load(sys.stdin) if mutant.get("function"))
    random.Random(seed).shuffle(mutants)
    print("^(" + "|".join(map(re.escape, mutants[:count])) + ")$")


if __name__ == "__main__":
    main()
