"""The disk's rate for the files of a corpus, in records per second: copies of all files, or random reads past the page cache.

    python disk.py cp|fio CORPUS SECONDS

The loader has 64 reads in flight while records are cold, so fio has as many. Prints a line of JSON.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from corpora import DATA, files, meta


def copied(corpus: str) -> float:
    """Returns the bytes per second of one copy of all files."""
    paths = files(corpus)
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        start = time.perf_counter()
        subprocess.run(["cp", *paths, folder], check=True)
        return sum(map(os.path.getsize, paths)) / (time.perf_counter() - start)


def read(corpus: str, seconds: float) -> float:
    """Returns the bytes per second of random reads of 8 KB."""
    options = ["--ioengine=libaio", "--direct=1", "--rw=randread", "--bs=8k", "--iodepth=64", "--time_based", f"--runtime={seconds}",
               "--readonly", "--output-format=json", "--name=read"]
    found = subprocess.run(["fio", *options, "--filename=" + ":".join(files(corpus))], capture_output=True, check=True, text=True)
    return json.loads(found.stdout)["jobs"][0]["read"]["bw_bytes"]


def main() -> None:
    program, corpus, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if shutil.which(program) is None:
        print(json.dumps({"missing": f"the program {program}"}))
        return
    rate = copied(corpus) if program == "cp" else read(corpus, max(seconds, 1))
    size = sum(map(os.path.getsize, files(corpus)))
    print(json.dumps({"rate": rate * meta(corpus)["records"] / size, "megabytes_per_second": rate / 1e6}))


if __name__ == "__main__":
    main()
