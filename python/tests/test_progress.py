"""Progress, and Ctrl-C: every call that may take long ends at once, and leaves nothing half-made."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Optional

import pytest

import tfseek

MIB = 1 << 20
# Signals come from a timer; where there is none like it, `raise_signal` in a callable has to do.
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX, and symbolic links")

START = """
import os, signal, sys, threading, time
import numpy as np
import tfseek

def interrupted(work, after=0.2):
    '''Sends the signal a moment after the work has begun, which would take minutes.'''
    pid, main = os.getpid(), threading.main_thread().ident
    began = threading.Event()
    def kill():
        began.wait(); time.sleep(after); os.kill(pid, signal.SIGINT)
    thread = threading.Thread(target=kill); thread.start()
    start = time.monotonic()
    try:
        began.set()
        work()
    except KeyboardInterrupt:
        took = time.monotonic() - start
        thread.join()
        assert took < after + 5, took
        return took - after
    raise AssertionError("not interrupted")
"""


def run(code: str, *arguments: str, seconds: float = 60) -> str:
    command = [sys.executable, "-X", "faulthandler", "-c", START + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stdout, done.stderr)
    return done.stdout


def linked(folder: pathlib.Path, name: str, count: int, records: int, record: Any) -> pathlib.Path:
    """A pattern of ``count`` shards that are one file, of 16 or 64 MiB: long to scan, and quick to make."""
    with tfseek.Writer(folder / f"{name}.data") as writer:
        for i in range(records):
            writer.write(record(i))
    for k in range(count):
        (folder / f"{name}-{k:05}.tfrecord").symlink_to(f"{name}.data")
    return folder / f"{name}-*.tfrecord"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Records without a payload: a scan for the index takes minutes."""
    return str(linked(tmp_path_factory.mktemp("small"), "small", 10_000, MIB, lambda _: b""))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Records of a MiB of ints each, and a label: indexed at once, and read in minutes."""
    import numpy as np

    ints = np.arange(MIB // 3, dtype=np.int64) % (1 << 20)
    features = {"label": 1, "ints": ints}
    example = tfseek.Example(features)
    return str(linked(tmp_path_factory.mktemp("large"), "large", 4_000, 64, lambda _: example))


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.glob("**/*") if path.is_file())


@POSIX
@pytest.mark.parametrize(
    "work",
    [
        "tfseek.open(sys.argv[1], index='memory')",
        "tfseek.open(sys.argv[1], index='memory', io='pread')",
        "tfseek.open(sys.argv[1], index_dir=sys.argv[2])",
        "tfseek.build_index(sys.argv[1], index_dir=sys.argv[2])",
        "tfseek.build_index(sys.argv[1], index_dir=sys.argv[2], jobs=1)",
    ],
)
def test_ctrl_c_ends_the_scan_for_an_index(small: str, tmp_path: pathlib.Path, work: str) -> None:
    out = run(f"print(interrupted(lambda: {work}))", small, str(tmp_path))
    print(work, out)
    found = names(tmp_path)
    assert len(found) < 10_000 and not [name for name in found if name.startswith(".tmp-")], found


@POSIX
@pytest.mark.parametrize(
    "work",
    [
        "ds.column('label')",
        "ds.filter('label == 1')",
        "tfseek.open(sys.argv[1], columns='label', index='memory', io=ds_io)",
        "tfseek.Loader(ds, batch_size=2, balance='label')",
        "list(ds)",
        "sum(1 for _ in ds)",
        "ds.get_many(ids)",
        "ds.__getitems__(ids)",
        "tfseek.infer_schema(ds)",
        "tfseek.infer_schema(payloads)",
    ],
)
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_ctrl_c_ends_what_reads_records(large: str, work: str, io: str) -> None:
    code = f"""
ds_io = "{io}"
ds = tfseek.open(sys.argv[1], index="memory", io=ds_io)
ids = np.arange(len(ds))
payloads = [bytes(ds[0])] * len(ds)
print(interrupted(lambda: {work}))
assert len(ds) == 256_000 and ds[255_999]["label"] == [1]
"""
    print(work, run(code, large))


@POSIX
def test_ctrl_c_ends_the_command(large: str) -> None:
    """It dies by the signal, as the command that is a program of its own does."""
    for start in (["-m", "tfseek"], ["-c", "import sys; from tfseek._command import main; sys.exit(main())"]):
        command = subprocess.Popen(
            [sys.executable, *start, "verify", "--json", "-j", "1", large], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert command.stdout is not None
        command.stdout.read(1)
        command.send_signal(signal.SIGINT)
        command.stdout.close()
        assert command.wait(20) == -signal.SIGINT
        assert command.stderr is not None and command.stderr.read() == b""
        command.stderr.close()
