"""Measures `tfseek reshard` beside `cp`: time and peak memory.

    python benches/reshard.py FOLDER target/release/tfseek [--mb 2000] [--record 100000] [--rounds 3]

FOLDER needs room for four times the size of the dataset, which is made with the Python package tfseek. Each round runs the commands in turn, with
a warm page cache if the memory suffices, and each output is removed before the next. The report has the median of the rounds and the ratio to `cp`
(not synced) and to `cp` with `sync -f`. `tfseek` syncs its outputs.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time


def make(folder: pathlib.Path, size: int, record: int) -> list[pathlib.Path]:
    import tfseek

    folder.mkdir(parents=True, exist_ok=True)
    prefix, shards = folder / f"x{size}-{record}", 8
    done = sorted(folder.glob(f"{prefix.name}-*"))
    if len(done) != shards:
        with tfseek.Writer(prefix, shards=shards) as writer:
            block = os.urandom(1 << 20)
            for i in range(size // (record + 16)):
                # Payloads differ, and have different lengths.
                length = record // 2 + i * 7919 % (record + 1)
                writer.write(i.to_bytes(8, "little") + (block * (length // len(block) + 1))[i % 1000 : i % 1000 + length])
        done = sorted(folder.glob(f"{prefix.name}-*"))
    return done


def run(command: list[str], environment: dict[str, str]) -> tuple[float, int]:
    """Returns the seconds and the peak memory in bytes of a command."""
    start = time.monotonic()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command}: exit status {child.returncode}")
    return time.monotonic() - start, used.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tfseek")
    parser.add_argument("--mb", type=int, default=2000)
    parser.add_argument("--record", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="256MB")
    arguments = parser.parse_args()
    folder = arguments.folder
    inputs = [str(path) for path in make(folder / "in", arguments.mb * 1_000_000, arguments.record)]
    out = folder / "out"
    environment = {**os.environ, "TFSEEK_INDEX_DIR": str(folder / "index")}
    command = [arguments.tfseek, "-q", "reshard", *inputs, "--out", str(out / "y@8.tfrecord")]
    quoted = " ".join(inputs)
    runs = {
        "cp": ["cp", *inputs, str(out)],
        "cp, sync": ["sh", "-c", f"cp {quoted} {out} && sync -f {out}"],
        "stored order": command,
        "shuffle, direct": [*command, "--shuffle", "--memory", "1TB"],
        f"shuffle, {arguments.memory}": [*command, "--shuffle", "--memory", arguments.memory],
    }
    subprocess.run([arguments.tfseek, "-q", "index", "--index-dir", str(folder / "index"), *inputs], check=True)
    times: dict[str, list[float]] = {name: [] for name in runs}
    peaks = dict.fromkeys(runs, 0)
    for _ in range(arguments.rounds):
        for name, command in runs.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            subprocess.run(["sync", "-f", str(folder)], check=True)
            seconds, peak = run(command, environment)
            times[name].append(seconds)
            peaks[name] = max(peaks[name], peak)
    shutil.rmtree(out, ignore_errors=True)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    size = sum(os.path.getsize(path) for path in inputs)
    print(f"{size / 1e6:.0f} MB, records of {arguments.record} bytes on average")
    for name, seconds in medians.items():
        ratios = f"{seconds / medians['cp']:.2f} x cp, {seconds / medians['cp, sync']:.2f} x cp and sync"
        each = ", ".join(f"{second:.2f}" for second in times[name])
        print(f"{name:20} {seconds:7.2f} s  {ratios}  {peaks[name] / 1e6:6.0f} MB  ({each})")


if __name__ == "__main__":
    main()
