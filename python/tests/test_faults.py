"""Failing system calls, short reads, hostile pickles and forks under a loader.

A library that is preloaded into the interpreter makes calls fail. It is the one of the tests of the command.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest

import tfseek
from conftest import SPEC

SHIM = pathlib.Path(__file__).resolve().parents[2] / "crates" / "cli" / "tests" / "faults" / "shim.c"
# Slow tests run with TFSEEK_SLOW=1, as `make test-slow` does.
SLOW = bool(os.environ.get("TFSEEK_SLOW"))

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="preloads a library")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not SHIM.exists():
        pytest.skip(f"{SHIM} does not exist")
    library = str(tmp_path_factory.mktemp("shim") / "shim.so")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, str(SHIM), "-ldl"], check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler (cc)")
    return library


# The child process. Calls fail between `open(ARM)` and `open(ARM.off)`.
CHILD = r"""
import errno, os, shutil, sys, numpy as np
import tfseek
pattern, step, ARM, FIRED = sys.argv[1], int(sys.argv[2]), os.environ["TFSEEK_ARM"], os.environ["TFSEEK_FIRED"]
cold = os.path.join(os.path.dirname(ARM), "cold")
SPEC = {
    "label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([8], "float32"),
    "name": tfseek.FixedLenFeature([], "string"), "tokens": tfseek.VarLenFeature("int64"),
}

def records(io, **options):
    ds = tfseek.open(pattern, io=io, **options)
    return [bytes(ex) for ex in ds[::7]] + [bytes(ex) for ex in ds.get_many([3, 999, 500])]

def batches(io, threads, **options):
    loader = tfseek.Loader(tfseek.open(pattern, io=io, **options), SPEC, batch_size=64, seed=4, threads=threads)
    return [[batch["label"].tolist(), batch["emb"].tobytes(), list(batch["name"])] for batch in loader]

def stream(compressed):
    return [bytes(ex) for ex in tfseek.stream(compressed)]

def written(compression):
    path = os.path.join(os.path.dirname(ARM), "written")
    with tfseek.Writer(path, compression=compression) as writer:
        for i in range(300):
            writer.write({"label": i})
    return os.path.getsize(path)

def column():
    return [bytes(ex) for ex in tfseek.open(pattern).filter("label < 20")]

compressed = os.path.join(os.path.dirname(ARM), "x.gz")
with tfseek.Writer(compressed, compression="gzip") as writer:
    for i in range(300):
        writer.write({"label": i, "emb": np.zeros(8, np.float32), "name": str(i)})
TASKS = {
    "records, map": lambda: records("map"),
    "records, pread": lambda: records("pread"),
    "records, cold": lambda: records("pread", index_dir=cold),
    "batches, map, 0 threads": lambda: batches("map", 0),
    "batches, pread, 0 threads": lambda: batches("pread", 0),
    "batches, map, 2 threads": lambda: batches("map", 2),
    "batches, pread, 2 threads": lambda: batches("pread", 2),
    "stream": lambda: stream(compressed),
    "writer": lambda: written(None),
    "gzip writer": lambda: written("gzip"),
    "filter": column,
}

def run(task, **variables):
    shutil.rmtree(cold, ignore_errors=True)
    os.environ.update(variables)
    files = [os.open(ARM, os.O_RDONLY)]
    try:
        return task()
    except (OSError, tfseek.Error) as e:
        return e
    finally:
        files.append(os.open(ARM + ".off", os.O_RDONLY))
        for file in files:
            os.close(file)
        for name in variables:
            del os.environ[name]

CALLS = [("open", errno.EMFILE), ("open", errno.EINTR), ("open", errno.EACCES), ("read", errno.EIO), ("read", errno.EINTR),
         ("stat", errno.EIO), ("mmap", errno.ENOMEM), ("lseek", errno.EIO), ("opendir", errno.EACCES), ("readdir", errno.EIO),
         ("write", errno.ENOSPC), ("fsync", errno.EIO), ("rename", errno.EIO), ("link", errno.EIO), ("close", errno.EIO),
         ("thread", errno.EAGAIN)]
counts = [0, 0]
for name, task in TASKS.items():
    task()
    want = run(task)
    assert not isinstance(want, Exception), (name, want)
    for variables in ({"TFSEEK_SHORT": "1"}, {"TFSEEK_SHORT": "4096"}, {"TFSEEK_INTERRUPT": "1"}):
        assert run(task, **variables) == want, (name, variables)
        counts[0] += 1
    for call, number in CALLS:
        n = 1
        while True:
            found = run(task, TFSEEK_FAIL=f"{call}:{n}:{number}")
            fault = (name, call, n, number, repr(found)[:300])
            if not os.path.exists(FIRED):
                assert found == want, fault
                break
            os.remove(FIRED)
            if isinstance(found, Exception):
                assert number != errno.EINTR and call != "close", fault
                text = str(found)
                assert "/" in text or getattr(found, "filename", None) or "thread" in text, fault
            else:
                assert found == want, fault
            counts[isinstance(found, Exception)] += 1
            n += step
assert not [name for name in os.listdir(os.path.dirname(ARM)) if name.startswith(".tmp-")]
print("succeeded and errors:", counts)
"""


def test_failing_calls(shim: str, shards: str, tmp_path: pathlib.Path) -> None:
    """Each result is the right one or an exception that names a file. ``TFSEEK_SLOW`` makes every call fail, not every 40th."""
    arm, code = tmp_path / "arm", tmp_path / "child.py"
    for path in (arm, tmp_path / "arm.off"):
        path.touch()
    code.write_text(CHILD)
    env = {**os.environ, "LD_PRELOAD": shim, "TFSEEK_ARM": str(arm), "TFSEEK_FIRED": str(tmp_path / "fired")}
    command = [sys.executable, "-X", "faulthandler", str(code), shards, "1" if SLOW else "40"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=3600 if SLOW else 240)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert "panicked" not in done.stderr, done.stderr
    print(done.stdout)


def run(code: str, *arguments: str, seconds: float = 100) -> str:
    command = [sys.executable, "-X", "faulthandler", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0 and "panicked" not in done.stderr, (done.returncode, done.stdout, done.stderr)
    return done.stdout


HOSTILE = """
import pickle, resource, sys
import tfseek
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
SPEC = {"label": tfseek.FixedLenFeature([], "int64")}
slow = bool(int(sys.argv[2]))
ds = tfseek.open(sys.argv[1])
loader = tfseek.Loader(ds, SPEC, batch_size=50, seed=4, threads=0)
next(iter(loader))
state = loader.state_dict()
def labels(found):
    return [int(ex["label"][0]) for ex in found[:5]]
def resumed(found):
    other = tfseek.Loader(ds, SPEC, batch_size=50, seed=4, threads=0)
    other.load_state_dict(found)
    return (other.state_dict(), next(iter(other))["label"].tolist())
def fields(found):
    return (str(found), found.path, found.record, found.offset)
try:
    tfseek.parse_example([b"x"], SPEC)
except tfseek.Error as e:
    error = e
values = {
    "dataset": (ds, labels, True), "view": (ds[10:20], labels, True), "example": (ds[3], lambda ex: bytes(ex), False),
    "state": (state, resumed, False), "schema": (tfseek.Schema(SPEC), lambda schema: schema.to_json(), False),
    "error": (error, fields, False),
}
counts = [0, 0, 0]
for name, (value, use, exact) in values.items():
    data = pickle.dumps(value)
    want = use(pickle.loads(data))
    hostile = [data[:n] for n in range(len(data))]
    for bit in range(0, 8 * len(data), 1 if slow else 7):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        hostile.append(bytes(flipped))
    for bytes_ in hostile:
        try:
            found = use(pickle.loads(bytes_))
        except Exception:
            counts[0] += 1
            continue
        # Flipped text or numbers may be other text or numbers. A view may have other numbers, but the dataset has a fingerprint.
        assert found == want or not exact or set(found) <= set(range(1000)), (name, found, want)
        counts[1 if found == want else 2] += 1
print("exceptions, equal, another value:", counts)
"""


def test_hostile_pickles(shards: str) -> None:
    """A truncated or flipped pickle is an exception or a value, never a panic or a crash."""
    print(run(HOSTILE, shards, str(int(SLOW)), seconds=600))


def test_sixteen_threads_read_at_random(ds: tfseek.Dataset) -> None:
    import random
    import threading

    want = [bytes(ex) for ex in ds]
    wrong: list[Any] = []

    def read(seed: int) -> None:
        numbers = random.Random(seed)
        for _ in range(200):
            i = numbers.randrange(len(want))
            some = [numbers.randrange(len(want)) for _ in range(5)]
            if bytes(ds[i]) != want[i] or [bytes(ex) for ex in ds.get_many(some)] != [want[i] for i in some]:
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


CHANGED = """
import os, shutil, sys
import tfseek
pattern, io, change, folder = sys.argv[1:5]
import glob
paths = []
for path in sorted(glob.glob(pattern)):
    paths.append(shutil.copy(path, folder))
ds = tfseek.open(paths, io=io, index="memory")
want = [bytes(ex) for ex in ds]
size = os.path.getsize(paths[1])
if change == "truncated":
    os.truncate(paths[1], size // 2)
elif change == "grown":
    with open(paths[1], "ab") as file:
        file.write(b"x" * 1000)
elif change == "replaced":
    shutil.copy(paths[0], paths[1] + ".new"); os.replace(paths[1] + ".new", paths[1])
elif change == "removed":
    os.unlink(paths[1])
elif change == "zeroed":
    with open(paths[1], "r+b") as file:
        file.write(bytes(size))
right = errors = 0
for i in range(len(want)):
    try:
        assert bytes(ds[i]) == want[i], i
        right += 1
    except tfseek.Error:
        errors += 1
print(right, errors)
"""


@pytest.mark.parametrize("change", ["truncated", "grown", "replaced", "removed", "zeroed"])
def test_files_that_change_under_a_reader(shards: str, tmp_path: pathlib.Path, change: str) -> None:
    """With positional reads, each record is the old one or an exception. A map shows all changes that are not renames."""
    right, errors = map(int, run(CHANGED, shards, "pread", change, str(tmp_path)).split())
    assert right + errors == 1000 and (errors > 0) == (change in ("truncated", "zeroed"))
    if change in ("replaced", "removed"):
        assert run(CHANGED, shards, "map", change, str(tmp_path)).split() == ["1000", "0"]
    if change == "truncated":
        # The contract of maps is broken: the process may end by SIGBUS.
        command = [sys.executable, "-c", CHANGED, shards, "map", change, str(tmp_path)]
        assert subprocess.run(command, capture_output=True).returncode in (0, -signal.SIGBUS)
