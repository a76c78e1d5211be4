"""Measures the time of a cold interpreter to its first batch, which is read completely. Runs as a cell of bench.py, which records the
start time of the process.

    python first_batch.py CORPUS PEER

The clock is system-wide. Modules that the peer does not need are imported late or not at all.
"""
import time

stamps = {"began": time.monotonic()}

import numpy as np  # noqa: E402

assert np
stamps["numpy"] = time.monotonic()

import os  # noqa: E402
import sys  # noqa: E402

import epochs  # noqa: E402, F401
from registry import PEERS  # noqa: E402
from sums import Sums  # noqa: E402

corpus, peer = sys.argv[1], PEERS["first_batch", sys.argv[2]]
stamps["harness"] = time.monotonic()
missing = peer.missing()
stamps["imports"] = time.monotonic()
if not missing:
    batch = next(iter(peer.make(corpus)))
    Sums(batch)(batch)
    stamps["batch"] = time.monotonic()

import json  # noqa: E402

from process import kill, tree  # noqa: E402

print("\n" + json.dumps({"missing": missing} if missing else {"stamps": stamps}), flush=True)
kill([pid for pid in tree(os.getpid()) if pid != os.getpid()])
os._exit(0)
