"""Runs fuzz targets, one after the other, or minimises their corpora: `make fuzz`, `make fuzz-minimise`.

    python3 fuzz/run.py [--minimise]

FUZZ_TARGETS names the targets, all by default. Each runs for FUZZ_SECONDS, or FUZZ_MINUTES are divided among them. With FUZZ_SINCE, a commit,
the targets of the crates that have changed since then run first. All run, also after one has failed.
"""
from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz/corpus"
CARGO = shlex.split(os.environ.get("CARGO") or "cargo")


def found(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the inputs in a folder that a fuzzer found, whose names are hashes."""
    return [path for path in folder.glob("*") if re.fullmatch("[0-9a-f]{40}", path.name)]


def folders(target: str) -> list[str]:
    """Returns the folders whose code a target runs: the crate that its function is in, or the library with its twins."""
    lines = (ROOT / "fuzz/src/lib.rs").read_text()
    function = re.search(r"tfseek_fuzz::(\w+)", (ROOT / f"fuzz/fuzz_targets/{target}.rs").read_text())[1]
    for crate, module in re.findall(r'#\[path = "\.\./\.\./(crates/\w+)/[^"]*"\]\nmod (\w+);', lines):
        for names in re.findall(rf"pub use {module}::\{{?([\w, ]+)\}}?;", lines):
            if function in names.split(", "):
                return [crate]
    return ["crates/rlds"] if function == "steps" else ["src", "crates/wire", "crates/testkit"]


def sorted_by_change(targets: list[str], since: str) -> list[str]:
    diff = ["git", "diff", "--name-only", f"{since}...HEAD"]
    names = subprocess.run(diff, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    changed = [target for target in targets if any(name.startswith(f"{folder}/") for folder in folders(target) for name in names)]
    print(f"of changed crates: {' '.join(changed) or 'none'}", flush=True)
    return changed + [target for target in targets if target not in changed]


def run(target: str, seconds: int) -> bool:
    print(f"fuzz {target}, {seconds} s", flush=True)
    command = [*CARGO, "fuzz", "run", target, "--", f"-max_total_time={seconds}", "-timeout=60"]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def minimise(target: str) -> bool:
    """Deletes the found inputs that reach no code which the seeds and the other inputs do not reach."""
    corpus, kept = CORPUS / target, ROOT / "target/fuzz-kept" / target
    before = found(corpus)
    shutil.rmtree(kept, ignore_errors=True)
    # What is in the first folder stays, so the seeds are there.
    shutil.copytree(corpus, kept, ignore=lambda _, names: [name for name in names if corpus / name in before])
    command = [*CARGO, "fuzz", "run", target, str(kept), str(corpus), "--", "-merge=1", "-timeout=60"]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        return False
    for path in before:
        path.unlink()
    after = [shutil.copy(path, corpus) for path in found(kept)]
    print(f"{target}: {len(after)} of {len(before)} inputs stay", flush=True)
    return True


def main() -> None:
    every = [path.stem for path in sorted((ROOT / "fuzz/fuzz_targets").glob("*.rs"))]
    targets = os.environ.get("FUZZ_TARGETS", "").split() or every
    if since := os.environ.get("FUZZ_SINCE"):
        targets = sorted_by_change(targets, since)
    minutes = os.environ.get("FUZZ_MINUTES")
    seconds = int(minutes) * 60 // len(targets) if minutes else int(os.environ.get("FUZZ_SECONDS") or 60)
    failed = [target for target in targets if not (minimise(target) if "--minimise" in sys.argv else run(target, seconds))]
    if failed:
        sys.exit(f"failed: {' '.join(failed)}; their inputs are in fuzz/artifacts")


if __name__ == "__main__":
    main()
