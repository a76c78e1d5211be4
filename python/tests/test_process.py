"""Signals, forks, threads, interpreter shutdown and memory. Each test runs in a separate process with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import run_python

import tfseek

START = """
import glob, gzip, os, signal, struct, sys, threading, time, zlib
import numpy as np
import tfseek
SPEC = {
    "label": tfseek.FixedLenFeature([], "int64"), "emb": tfseek.FixedLenFeature([8], "float32"),
    "name": tfseek.FixedLenFeature([], "string"),
}
ds = tfseek.open(sys.argv[1])
def labels(loader):
    return [label for batch in loader for label in batch["label"].tolist()]
def payloads(path):
    with open(path, "rb") as file:
        data = file.read()
    data = gzip.decompress(data) if data[:2] == b"\\x1f\\x8b" else zlib.decompress(data) if data[:1] == b"\\x78" else data
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + length]
        at += 16 + length
"""


def run(code: str, *arguments: str) -> str:
    return run_python(START + code, *arguments)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_forked_child_resumes_at_its_parents_position(shards: str) -> None:
    run("""
import warnings; warnings.simplefilter("ignore")
loader = tfseek.Loader(ds, SPEC, batch_size=50, seed=4, threads=2)
want = labels(loader)
loader.set_epoch(0)
batches = iter(loader)
seen = [label for _ in range(3) for label in next(batches)["label"].tolist()]
tfseek.parse_example(ds[:10], SPEC)
items = iter(ds); next(items)
read, write = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        try:
            ok = seen + labels(batches) == want
            ok = ok and len(list(items)) == 999 and len(tfseek.parse_example(ds, SPEC)["label"]) == 1000
            tfseek.build_index(ds.shards, index_dir=os.environ["TFSEEK_INDEX_DIR"])
            ok = ok and len(tfseek.open(ds.shards, index="memory")) == 1000
            del loader
        except BaseException as e:
            print(repr(e), flush=True)
            ok = False
        os.write(write, b"y" if ok else b"n")
        sys.exit(0)
assert seen + labels(batches) == want
for _ in range(3):
    os.wait()
assert os.read(read, 10) == b"yyy"
""", shards)


def test_interpreter_ends_with_live_iterators(shards: str) -> None:
    for end in ("", "os.kill(os.getpid(), 0)", "sys.exit(0)", "import atexit; atexit.register(lambda: next(loader))"):
        run(f"""
loader = tfseek.Loader(ds, SPEC, batch_size=10, seed=4, repeat=True)
batch = next(loader)
items = iter(ds); next(items)
class Late:
    def __init__(self): self.loader = tfseek.Loader(ds, SPEC, batch_size=10, repeat=True); next(self.loader)
    def __del__(self): pass
late = Late(); late.me = late
writer = tfseek.Writer(sys.argv[1].replace("*", "unfinished"))
{end}
""", shards)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_while_waiting(shards: str) -> None:
    """A signal interrupts the wait for a batch of four million samples long before the batch is complete."""
    run("""
def first():
    loader = tfseek.Loader(ds, {"label": SPEC["label"]}, batch_size=4_000_000, last_batch="pad", threads=1)
    # The time of the process: other processes take none of it.
    start = time.process_time()
    try:
        next(loader)
    except KeyboardInterrupt:
        return True, time.process_time() - start
    return False, time.process_time() - start
interrupted, whole = first()
assert not interrupted
timer = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT)); timer.start()
interrupted, took = first()
assert interrupted and took < whole / 2, (whole, took)
""", shards)


def test_other_threads_run_while_a_loader_waits(shards: str) -> None:
    out = run("""
counted, go = 0, True
def count():
    global counted
    while go:
        counted += 1
        time.sleep(0)
thread = threading.Thread(target=count); thread.start()
loader = tfseek.Loader(ds, SPEC, batch_size=1 << 20, last_batch="pad", threads=1)
before, start = counted, time.monotonic()
next(loader)
took, during = time.monotonic() - start, counted - before
go = False; thread.join()
print(took, during)
assert during > 10, (took, during)
""", shards)
    assert out


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_memory_stays_flat(shards: str) -> None:
    run("""
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
schema = tfseek.Schema(SPEC)
payloads = [bytes(ex) for ex in ds[:8]]
loader = tfseek.Loader(ds, schema, batch_size=8, seed=0, repeat=True, threads=1)
def rounds(n):
    for k in range(n):
        ex = ds[k % 1000]; ex["emb"]; ex["name"]; ex.to_dict()
        tfseek.parse_example(payloads, schema); next(loader)
        try: ds[1000]
        except IndexError: pass
rounds(3000)
before = resident()
rounds(50_000)
grown = resident() - before
assert grown < 4 << 20, grown
""", shards)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(shards: str, method: str) -> None:
    import multiprocessing

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    ds = tfseek.open(shards)
    list(tfseek.Loader(ds, batch_size=100, threads=1))
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(label_of, [(ds, i) for i in range(20)]).get(60)
    assert found == [int(ds[i]["label"][0]) for i in range(20)]


def label_of(item: tuple[tfseek.Dataset, int]) -> int:
    ds, i = item
    return int(ds[i]["label"][0])


def test_a_panic_is_an_exception(shards: str) -> None:
    run("""
from tfseek import _tfseek
sys.stderr.flush(); kept = os.dup(2); null = os.open(os.devnull, os.O_WRONLY); os.dup2(null, 2)
for k in range(3):
    try:
        _tfseek._panic(f"panic {k}")
    except BaseException as e:
        assert type(e).__name__ == "PanicException" and str(e) == f"panic {k}", e
    else:
        raise AssertionError
os.dup2(kept, 2)
assert len(labels(tfseek.Loader(ds, SPEC, batch_size=100))) == 1000
""", shards)


def test_the_command(shards: str) -> None:
    code = "import sys; from _tfseek_command import main; sys.exit(main())"
    first = tfseek.open(shards).shards[0]
    done = subprocess.run([sys.executable, "-c", code, "head", "-n", "1", first], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("record 0, ")
    done = subprocess.run([sys.executable, "-c", code, "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "nonsense" in done.stderr
    done = subprocess.run([sys.executable, "-m", "tfseek", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("tfseek ")


def test_the_demo_names_the_command(tmp_path: Path) -> None:
    """The lines under "Next" can be copied: they do not begin with the interpreter."""
    code = "import sys; from _tfseek_command import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "demo", "--out", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.split("Next\n")[1].splitlines()
    assert len(lines) >= 4 and all(line.startswith("  tfseek ") for line in lines), lines


def test_numpy_is_looked_up_at_import(shards: str) -> None:
    """Otherwise a signal handler that raises during the lookup would cause a panic."""
    run("""
import numpy.lib
def interrupted(version):
    raise KeyboardInterrupt
numpy.lib.NumpyVersion = interrupted
assert len(tfseek.parse_example(ds[:3], SPEC)["label"]) == 3
assert ds[0]["name"].dtype == object and ds.column("label").present.all()
""", shards)


def test_ctrl_c_during_import() -> None:
    code = """
import signal, sys
import numpy.lib
known = numpy.lib.NumpyVersion
calls = []
def interrupted(version):
    calls.append(version)
    signal.raise_signal(signal.SIGINT)
    for _ in range(1000):
        pass
    return known(version)
numpy.lib.NumpyVersion = interrupted
try:
    import tfseek
except KeyboardInterrupt:
    pass
assert calls
numpy.lib.NumpyVersion = known
import tfseek
assert tfseek.parse_single_example(b"", {"x": tfseek.FixedLenFeature([], "int64", 3)})["x"] == 3
"""
    run_python(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "del writer; sys.exit(0)", "close", "write", "with", "raise"])
@pytest.mark.parametrize(
    "options",
    [
        "{}", "{'atomic': False}", "{'compression': 'gzip'}", "{'compression': 'zlib', 'atomic': False}",
        "{'shards': 2}", "{'shards': 2, 'compression': 'gzip', 'atomic': False}",
    ],
)
def test_a_forked_child_does_not_change_its_parents_file(shards: str, tmp_path: Path, end: str, options: str) -> None:
    run(f"""
import warnings; warnings.simplefilter("ignore")
end, options = {end!r}, {options}
writer = tfseek.Writer(sys.argv[2], **options)
def refused(call):
    try:
        call()
    except tfseek.Error as e:
        return "fork" in str(e)
    return False
for i in range(100):
    writer.write(b"%d" % i)
child = os.fork()
if child == 0:
    ok = True
    if end == "close":
        ok = refused(writer.close) and refused(lambda: writer.records_written)
    elif end == "write":
        ok = refused(lambda: writer.write(b"child")) and refused(writer.close)
    elif end == "with":
        def leave():
            with writer:
                pass
        ok = refused(leave)
    elif end == "raise":
        try:
            with writer:
                raise KeyError
        except KeyError:
            pass
        else:
            ok = False
    else:
        exec(end)
    del writer
    sys.exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
for i in range(100, 200):
    writer.write(b"%d" % i)
writer.close()
assert writer.records_written == 200
written = [record for path in sorted(glob.glob(sys.argv[2] + "*")) for record in payloads(path)]
assert sorted(written, key=int) == [b"%d" % i for i in range(200)], len(written)
""", shards, str(tmp_path / "out"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".tmp-")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_child_forked_while_a_thread_writes_does_not_hang(shards: str, tmp_path: Path) -> None:
    """Compressing threads hold the writer's lock most of the time. A thread that held it at the fork does not exist in the child."""
    run("""
import warnings; warnings.simplefilter("ignore")
writer = tfseek.Writer(sys.argv[2], compression="gzip", level=9)
payload, written, go = np.random.default_rng(0).bytes(1 << 20), 0, True
def write():
    global written
    while go:
        writer.write(payload); written += 1
thread = threading.Thread(target=write); thread.start()
while not written:
    time.sleep(0.001)
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            writer.close()
        except tfseek.Error:
            del writer
            sys.exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
go = False; thread.join()
writer.close()
assert sum(1 for _ in payloads(sys.argv[2])) == written
""", shards, str(tmp_path / "out"))
