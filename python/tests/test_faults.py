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
from conftest import SPEC, in_threads, written

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


# The beginning of a child process: calls fail while a task runs, between `open(ARM)` and `open(ARM.off)`.
ARMED = r"""
import os
ARM, FIRED = os.environ["TFSEEK_ARM"], os.environ["TFSEEK_FIRED"]

def armed(task, expected, variables):
    os.environ.update(variables)
    files = [os.open(ARM, os.O_RDONLY)]
    try:
        return task()
    except expected as e:
        return e
    finally:
        files.append(os.open(ARM + ".off", os.O_RDONLY))
        for file in files:
            os.close(file)
        for name in variables:
            del os.environ[name]
"""

CHILD = r"""
import errno, os, shutil, sys, numpy as np
import tfseek
pattern, step = sys.argv[1], int(sys.argv[2])
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
    return armed(task, (OSError, tfseek.Error), variables)

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
    code.write_text(ARMED + CHILD)
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

    want = [bytes(ex) for ex in ds]
    wrong: list[Any] = []

    def read(seed: int) -> None:
        numbers = random.Random(seed)
        for _ in range(200):
            i = numbers.randrange(len(want))
            some = [numbers.randrange(len(want)) for _ in range(5)]
            if bytes(ds[i]) != want[i] or [bytes(ex) for ex in ds.get_many(some)] != [want[i] for i in some]:
                wrong.append(i)

    in_threads(read, range(16))
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


# Requests of more than 1 MiB fail, one at a time. In the large record each call needs some.
MEMORY = r"""
import errno, gzip, os, sys
import numpy as np
import tfseek
folder, step = sys.argv[1], int(sys.argv[2])
N = 1 << 21
large = {
    "numbers": {"x": np.arange(N, dtype=np.int64) % 100}, "floats": {"x": np.zeros(N, np.float32)}, "strings": {"x": [b""] * (N // 2)},
    "long": {"x": bytes(4 * N)}, "zeros.gz": {"x": bytes(16 * N)},
}
small = {"numbers": {"x": [1]}, "floats": {"x": [1.0]}, "strings": {"x": [b"a"]}, "long": {"x": b"a"}, "zeros.gz": {"x": b"a"}}
for name in large:
    with tfseek.Writer(os.path.join(folder, name), compression="gzip" if name.endswith(".gz") else None) as writer:
        for features in (small[name], large[name], small[name]):
            writer.write(features)

def plain(value):
    # Of a large value: its type and length, and its beginning.
    if isinstance(value, (list, tuple)):
        return [len(value), *(plain(item) for item in value[:3])]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value), bytes(value[:3])
    return repr(value)[:200]

def tasks(name):
    path = os.path.join(folder, name)
    dtype = {"numbers": "int64", "floats": "float32"}.get(name, "string")
    specs = [{"x": tfseek.VarLenFeature(dtype)}, {"x": tfseek.RaggedFeature(dtype)}]
    ds = tfseek.open(path)
    payload = bytes(ds[1])
    yield "payload", lambda: bytes(ds[1])
    yield "example", lambda: ds[1]["x"]
    yield "list", lambda: list(ds[1]["x"])
    yield "get_many", lambda: [bytes(ex) for ex in ds.get_many([1, 0])]
    yield "pread", lambda: bytes(tfseek.open(path, io="pread")[1])
    yield "open", lambda: len(tfseek.open(path, index="memory"))
    yield "stream", lambda: [bytes(ex) for ex in tfseek.stream(path)]
    yield "to_dict", lambda: tfseek.Example.from_bytes(payload).to_dict()
    yield "encode", lambda: bytes(tfseek.Example({"x": ds[1]["x"]}))
    for k, spec in enumerate(specs):
        yield f"parse {k}", lambda spec=spec: tfseek.parse_example([payload, payload], spec)["x"]
        yield f"loader {k}", lambda spec=spec: [batch["x"] for batch in tfseek.Loader(ds, spec, batch_size=2, threads=0, shuffle=False)]
        yield f"threads {k}", lambda spec=spec: [batch["x"] for batch in tfseek.Loader(ds, spec, batch_size=2, threads=2, shuffle=False)]
    yield "schema", lambda: tfseek.infer_schema(ds)
    yield "column", lambda: len(ds.filter("len(x) > 0"))
    yield "verify", lambda: verified(path)
    yield "writer", lambda: write(payload)
    if scanned:
        yield "scan", lambda: [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(ds.scan())]
        yield "to_arrow", lambda: ds.scan().to_arrow().num_rows

def verified(path):
    found = tfseek.verify(path)
    for error in found.errors:
        raise error
    return found.records

def write(payload):
    path = os.path.join(folder, "written")
    with tfseek.Writer(path) as writer:
        writer.write(payload)
    return os.path.getsize(path)

try:
    import pyarrow
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    scanned = True
except ImportError:
    scanned = False

def run(task, **variables):
    found = armed(task, Exception, variables)
    return found if isinstance(found, Exception) else plain(found)

counts = [0, 0]
for name in large:
    for task_name, task in tasks(name):
        n, want = 1, run(task)
        assert not isinstance(want, Exception), (name, task_name, want)
        while True:
            print(name, task_name, n, file=sys.stderr, flush=True)
            found = run(task, TFSEEK_FAIL=f"alloc:{n}:{errno.ENOMEM}", TFSEEK_LARGE=str((1 << 20) + 1))
            if not os.path.exists(FIRED):
                assert found == want, (name, task_name, n, found, want)
                break
            os.remove(FIRED)
            failed = isinstance(found, Exception)
            assert failed or found == want, (name, task_name, n, found)
            assert not failed or "memory" in str(found).lower() or isinstance(found, MemoryError), (name, task_name, n, repr(found))
            counts[failed] += 1
            n += step
print("succeeded and errors:", counts)
"""


def test_large_requests_of_memory(shim: str, tmp_path: pathlib.Path) -> None:
    """Each result is the right one or an exception that tells of memory. ``TFSEEK_SLOW`` makes every request fail, not every third."""
    arm, code, data = tmp_path / "arm", tmp_path / "child.py", tmp_path / "data"
    data.mkdir()
    for path in (arm, tmp_path / "arm.off"):
        path.touch()
    code.write_text(ARMED + MEMORY)
    env = {**os.environ, "LD_PRELOAD": shim, "TFSEEK_ARM": str(arm), "TFSEEK_FIRED": str(tmp_path / "fired")}
    command = [sys.executable, "-X", "faulthandler", str(code), str(data), "1" if SLOW else "3"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=3600 if SLOW else 240)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    assert "panicked" not in done.stderr, done.stderr[-3000:]
    print(done.stdout)
