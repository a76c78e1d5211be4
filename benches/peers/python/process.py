"""Memory, CPU time and page faults of a process and its children, and the allocator settings used for all peers."""
from __future__ import annotations

import os

# Keeps large blocks in the process, so that they are not returned to the system and faulted in again for each batch.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": str(4 << 30), "MALLOC_MMAP_THRESHOLD_": str(4 << 30), "MALLOC_TOP_PAD_": str(256 << 20)}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
TICKS = os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, str]:
    return {**os.environ, **ALLOCATOR, **QUIET}


def tree(pid: int) -> list[int]:
    """Returns a process and all its descendants."""
    out, todo = [], [pid]
    while todo:
        pid = todo.pop()
        out.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as f:
                    todo += map(int, f.read().split())
        except OSError:
            pass
    return out


def memory(pid: int) -> tuple[float, float]:
    """Returns the megabytes of a process tree: the sum of the peaks, and the current anonymous memory."""
    peak = anon = 0
    for each in tree(pid):
        try:
            with open(f"/proc/{each}/status") as f:
                found = dict(line.split(":", 1) for line in f)
            peak += int(found["VmHWM"].split()[0])
            anon += int(found["RssAnon"].split()[0])
        except (OSError, KeyError):
            pass
    return peak / 1024, anon / 1024


def spent(pid: int) -> tuple[float, int]:
    """Returns the CPU seconds, user and system, and the minor page faults of a process tree so far."""
    ticks = faults = 0
    for each in tree(pid):
        try:
            with open(f"/proc/{each}/stat") as f:
                found = f.read().rsplit(")", 1)[1].split()
            ticks += int(found[11]) + int(found[12])
            faults += int(found[7])
        except OSError:
            pass
    return ticks / TICKS, faults


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, 9)
        except OSError:
            pass


def warm(paths: list[str]) -> None:
    """Loads files into the page cache."""
    buffer = bytearray(8 << 20)
    for path in paths:
        with open(path, "rb", buffering=0) as f:
            while f.readinto(buffer):
                pass
