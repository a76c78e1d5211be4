"""Compares the instruction counts of benches/counts.rs with counts.tsv.

    python gate.py FOLDER [--write]

FOLDER has the summaries that gungraun wrote. Fails if a function executes over 3 % more instructions than recorded, or was not measured. `--write`
records the counts instead. Counts of another compiler are shown and not compared, because each compiler makes other code.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

RECORD = pathlib.Path(__file__).with_name("counts.tsv")
#: A count above this multiple of the recorded one is a failure.
MOST = 1.03


def compiler() -> str:
    lines = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = dict(line.split(": ", 1) for line in lines if ": " in line)
    return f"rustc {found['release']}, {found['host']}"


def measured(folder: pathlib.Path) -> dict[str, int]:
    """Returns the instructions of each function, by the name of its bench."""
    found = {}
    for path in sorted(folder.rglob("summary.json")):
        total = json.loads(path.read_text())["profiles"][0]["data"]["total"]
        found[path.parent.name] = int(total["metrics"]["Ir"]["values"]["new"])
    return found


def recorded() -> tuple[str, dict[str, int]]:
    head, *lines = RECORD.read_text().splitlines()
    return head.removeprefix("# "), {name: int(count) for name, count in (line.split("\t") for line in lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found, rustc = measured(args.folder), compiler()
    if not found:
        sys.exit(f"{args.folder}: expected summaries of gungraun, found none")
    if args.write:
        RECORD.write_text("".join([f"# {rustc}\n", *(f"{name}\t{count}\n" for name, count in found.items())]))
        return
    by, before = recorded()
    failed = []
    print(f"{'function':24}{'recorded':>14}{'now':>14}{'ratio':>9}")
    for name in [*before, *(name for name in found if name not in before)]:
        old, new = before.get(name), found.get(name)
        ratio = new / old if old and new else None
        print(f"{name:24}{old or '-':>14}{new or '-':>14}" + (f"{ratio:9.3f}" if ratio else ""))
        if new is None or (ratio or 0) > MOST:
            failed.append(name)
    if by != rustc:
        print(f"skipped: the counts were recorded with {by}, and this is {rustc}. `make bench-gate WRITE=1` records them")
    elif failed:
        sys.exit(f"more than {MOST - 1:.0%} above the recorded count, or not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
