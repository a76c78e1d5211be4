"""Progress and Ctrl-C: every long call can be interrupted and leaves no incomplete files."""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from typing import Any, Callable, Optional

import pytest
from conftest import RECORDS, features, run_python, write_records

import tfseek
from tfseek import _progress

MIB = 1 << 20
# A timer sends the signals. Where it does not exist, a callable calls `raise_signal`.
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
        assert took < after + 500, took
        return took - after
    raise AssertionError("not interrupted")
"""


def run(code: str, *arguments: str) -> str:
    return run_python(START + code, *arguments)


def linked(folder: pathlib.Path, name: str, count: int, records: int, record: Any) -> pathlib.Path:
    """Returns a pattern of ``count`` shards that link to one file of 16 or 64 MiB. It is fast to create and slow to scan."""
    write_records(folder / f"{name}.data", (record(i) for i in range(records)))
    for k in range(count):
        (folder / f"{name}-{k:05}.tfrecord").symlink_to(f"{name}.data")
    return folder / f"{name}-*.tfrecord"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Empty records, whose index takes a minute to build. They are below the limit of an automatic build."""
    return str(linked(tmp_path_factory.mktemp("small"), "small", 3_000, MIB, lambda _: b""))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Records with a label and a MiB of ints, which are indexed in a moment and take minutes to read."""
    import numpy as np

    ints = np.arange(MIB // 3, dtype=np.int64) % (1 << 20)
    features = {"label": 1, "ints": ints}
    example = tfseek.Example(features)
    return str(linked(tmp_path_factory.mktemp("large"), "large", 4_000, 64, lambda _: example))


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.glob("**/*") if path.is_file())


Call = Callable[[str, Any], object]
# Calls with progress, and true if they count bytes. Each scans or reads a whole shard without an index.
CALLS: dict[str, tuple[Call, bool]] = {
    "open": (lambda path, f: tfseek.open(path, index="memory", progress=f), True),
    "columns": (lambda path, f: tfseek.open(path, index="memory", columns=["label"], progress=f), True),
    "build_index": (lambda path, f: tfseek.build_index(path, rebuild=True, progress=f), True),
    "pack": (lambda path, f: tfseek.build_index(path, pack="all", progress=f), True),
    "verify": (lambda path, f: tfseek.verify(path, progress=f), True),
    "column": (lambda path, f: tfseek.open(path, index="memory").column("label", progress=f), True),
    "filter": (lambda path, f: tfseek.open(path, index="memory").filter("label < 9", progress=f), True),
    "balance": (lambda path, f: tfseek.Loader(tfseek.open(path, index="memory"), batch_size=1, balance="label", progress=f), True),
    "infer_schema": (lambda path, f: tfseek.infer_schema(tfseek.open(path), progress=f), False),
    "get_many": (lambda path, f: tfseek.open(path).get_many(range(RECORDS), progress=f), False),
}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    """A new shard without an index."""
    write_records(tmp_path / "a.tfrecord", (tfseek.Example(features(i)) for i in range(RECORDS)))
    return str(tmp_path / "a.tfrecord")


@pytest.mark.parametrize("name", CALLS)
def test_a_callable_gets_the_progress(path: str, name: str) -> None:
    call, in_bytes = CALLS[name]
    reports: list[tuple[int, Optional[int]]] = []
    threads = set()

    def report(done: int, total: Optional[int]) -> None:
        reports.append((done, total))
        threads.add(threading.get_ident())

    call(path, report)
    assert threads == {threading.get_ident()}, "only the calling thread"
    all_of_it = os.path.getsize(path) if in_bytes else RECORDS
    # Opening and building a column scan the file once each.
    all_of_it *= 2 if name == "columns" else 1
    assert reports[0][0] == 0 and reports[-1] == (all_of_it, all_of_it), reports
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)


@pytest.mark.parametrize("name", CALLS)
def test_an_exception_in_a_callable_ends_the_call(path: str, name: str) -> None:
    call, _ = CALLS[name]
    calls = []

    def report(done: int, total: Optional[int]) -> None:
        calls.append(done)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call(path, report)
    assert calls == [0], "not called again"
    assert names(pathlib.Path(path).parent) == ["a.tfrecord"], "nothing was made"
    call(path, None)


@pytest.mark.parametrize("name", CALLS)
def test_a_signal_in_a_callable_ends_the_call(path: str, name: str) -> None:
    call, _ = CALLS[name]
    with pytest.raises(KeyboardInterrupt):
        call(path, lambda *_: signal.raise_signal(signal.SIGINT))
    assert names(pathlib.Path(path).parent) == ["a.tfrecord"], "nothing was made"
    call(path, False)


@POSIX
@pytest.mark.parametrize("end", [KeyboardInterrupt, KeyError])
def test_a_call_ends_in_the_middle(large: str, end: type[BaseException]) -> None:
    ds = tfseek.open(large, index="memory")
    ids = range(len(ds))
    calls: list[Callable[[Any], object]] = [
        lambda f: ds.column("label", progress=f),
        lambda f: ds.filter("label == 1", progress=f),
        lambda f: ds.get_many(ids, progress=f),
        lambda f: tfseek.infer_schema(ds, progress=f),
        lambda f: tfseek.verify(large, progress=f),
    ]
    for call in calls:
        reports: list[tuple[int, Optional[int]]] = []

        def report(done: int, total: Optional[int]) -> None:
            reports.append((done, total))
            if done > 0 and end is KeyError:
                raise KeyError("mine")
            if done > 0:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(end):
            call(report)
        done, total = reports[-1]
        assert total is not None and 0 < done < total // 2, reports


def test_progress_of_a_slow_iterator() -> None:
    class Slow:
        def __len__(self) -> int:
            return 60

        def __iter__(self) -> Any:
            for i in range(60):
                time.sleep(0.004)
                yield tfseek.Example(features(i))

    reports: list[tuple[int, Optional[int]]] = []
    tfseek.infer_schema(Slow(), progress=lambda done, total: reports.append((done, total)))
    assert reports == sorted(reports) and reports[0] == (0, 60) and reports[-1] == (60, 60), reports
    assert len({done for done, _ in reports}) > 3, reports


def test_a_copy_has_no_progress(path: str) -> None:
    reports: list[int] = []
    ds = tfseek.open(path, progress=lambda done, _: reports.append(done))
    count = len(reports)
    copy = pickle.loads(pickle.dumps(ds))
    assert len(copy) == RECORDS and len(copy.filter("label < 9")) == 9 and len(ds.filter("label < 9")) == 9
    assert len(reports) == count > 0


class Tqdm:
    """The part of ``tqdm`` that is used."""

    bars: list[Tqdm] = []

    def __init__(self, desc: str = "", total: Optional[int] = None, unit: str = "it", **_: object) -> None:
        self.desc, self.total, self.unit, self.n, self.closed = desc, total, unit, 0, False
        Tqdm.bars.append(self)

    def __bool__(self) -> bool:
        # tqdm's bar is false as well before there is work.
        return False

    def update(self, n: int) -> None:
        self.n += n

    def close(self) -> None:
        self.closed = True


def test_bars_of_tqdm(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = os.path.getsize(path)
    auto = types.ModuleType("tqdm.auto")
    setattr(auto, "tqdm", Tqdm)
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    ds = tfseek.open(path, index="memory")
    for progress in (True, Tqdm):
        Tqdm.bars.clear()
        ds.column("label", progress=progress)
        [bar] = Tqdm.bars
        assert (bar.total, bar.n, bar.unit, bar.closed) == (size, size, "B", True)
    ds.get_many([1, 2], progress=True)
    assert (Tqdm.bars[-1].n, Tqdm.bars[-1].unit) == (2, " records")
    own, counted = Tqdm(), Tqdm(total=7)
    for bar in (own, counted):
        ds.column("label", progress=bar)
        ds.filter("label < 9", progress=bar)
    assert (own.total, own.n, own.closed) == (size, 2 * size, False)
    assert (counted.total, counted.n, counted.closed) == (7, 2 * size, False)

    def fails(self: Tqdm, n: int) -> None:
        raise KeyError("mine")

    monkeypatch.setattr(Tqdm, "update", fails)
    with pytest.raises(KeyError, match="mine"):
        ds.column("label", progress=True)
    assert Tqdm.bars[-1].closed


def test_a_line_without_tqdm(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    ds = tfseek.open(path)
    capsys.readouterr()
    ds.get_many(range(RECORDS), progress=True)
    assert capsys.readouterr() == ("", "reading: 1000 records of 1000 records\n")
    ds.column("label", progress=True)
    assert capsys.readouterr() == ("", "columns: 0 MiB of 0 MiB\n")
    for nothing in (None, False):
        ds.column("name", progress=nothing)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(TypeError, match="progress: expected a bool, a callable or a tqdm bar, found str"):
        ds.column("label", progress="yes")


@POSIX
def test_an_iterator_continues_after_ctrl_c(shards: str) -> None:
    """No record is lost or repeated."""
    run("""
ds = tfseek.open(sys.argv[1], kind="bytes")
ids = np.tile(np.arange(len(ds)), 300)
items, seen = iter(ds[ids]), []
try:
    threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
    seen.extend(items)
    time.sleep(10)
except KeyboardInterrupt:
    pass
seen.extend(items)
assert seen == list(ds) * 300, len(seen)
""", shards)


@POSIX
@pytest.mark.parametrize(
    "work",
    [
        "tfseek.open(sys.argv[1], index='memory')",
        "tfseek.open(sys.argv[1], index='memory', io='pread')",
        "tfseek.open(sys.argv[1], index_dir=sys.argv[2])",
        "tfseek.build_index(sys.argv[1], index_dir=sys.argv[2])",
        "tfseek.build_index(sys.argv[1], index_dir=sys.argv[2], threads=1)",
    ],
)
def test_ctrl_c_ends_the_scan_for_an_index(small: str, tmp_path: pathlib.Path, work: str) -> None:
    out = run(f"print(interrupted(lambda: {work}))", small, str(tmp_path))
    print(work, out)
    found = names(tmp_path)
    assert len(found) < 3_000 and not [name for name in found if name.startswith(".tmp-")], found


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
        "tfseek.verify(sys.argv[1], decode=ds_io == 'map', threads=2)",
    ],
)
@pytest.mark.parametrize("io", ["map", "pread"])
def test_ctrl_c_ends_calls_that_read_records(large: str, work: str, io: str) -> None:
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
    """The process dies by the signal, like the standalone command."""
    for start in (["-m", "tfseek"], ["-c", "import sys; from _tfseek_command import main; sys.exit(main())"]):
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


def test_invalid_bars(shards: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="expected a bool, a callable or a tqdm bar, found dict"):
        tfseek.open(shards, index="memory", progress={})
    monkeypatch.setattr("sys.stderr", None)
    assert len(tfseek.open(shards, index="memory", progress=True)) > 0


def test_slow_work_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [10.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert _progress.when_slow(None, "opening") is None, "no terminal"
    monkeypatch.setattr(_progress, "on_terminal", lambda: True)
    assert _progress.when_slow(False, "opening") is False
    report, close = _progress.progress_of(_progress.when_slow(None, "opening"), "opening", True)
    report(1 << 20, 8 << 20)
    assert capsys.readouterr().err == ""
    close()
    assert capsys.readouterr().err == "", "work that is done within a second"
    report, close = _progress.progress_of(_progress.when_slow(None, "opening"), "opening", True)
    now[0] += 1.01
    report(2 << 20, 8 << 20)
    assert capsys.readouterr().err == "\ropening: 2 MiB of 8 MiB\x1b[K"
    close()
    assert capsys.readouterr().err == "\r\x1b[K"
