"""Fixtures: shards, and a separate cache folder."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Union

import numpy as np
import pytest

import tfseek

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
RECORDS = 1000

# A script's `&` makes its commands ignore SIGINT, and their children inherit that. A handler of Python is not inherited: children begin with
# the default.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The cache of `datasets`, which looks for it when it is imported.
_home = tempfile.TemporaryDirectory()
os.environ.update(HF_HOME=_home.name, HF_HUB_OFFLINE="1")


def beside(read: Callable[[], Any], gate: threading.Event) -> Any:
    """Returns the result of a call that ends once the gate is open. If it kept the lock of the interpreter, this thread would stop."""
    gate.clear()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    for _ in range(1000):
        time.sleep(0)
    assert not found
    gate.set()
    thread.join(10)
    return found[0]


def in_threads(work: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Calls ``work`` with each item in a thread of its own, and waits for all of them."""
    threads = [threading.Thread(target=work, args=(item,)) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()


_run = subprocess.run


def _bounded_run(*args: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run`` with a time limit. Only a process that hangs takes this long, even on a slow machine, so a test may not set less."""
    return _run(*args, **{**options, "timeout": max(600, options.get("timeout") or 0)})


subprocess.run = _bounded_run


def run_python(code: str, *arguments: object) -> str:
    """Returns what code prints in a process of its own, which may not fail, and may write nothing to standard error."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stdout, done.stderr)
    return done.stdout


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tells ``make test`` the seconds and passed tests of each file, and what skipped tests need."""
    if not (tested := os.environ.get("TFSEEK_TESTED")):
        return
    seconds: dict[str, float] = {}
    passed: dict[str, int] = {}
    needs: list[str] = []
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if not hasattr(report, "duration"):
                continue
            file = report.nodeid.split("::")[0]
            seconds[file] = seconds.get(file, 0) + report.duration
            passed[file] = passed.get(file, 0) + (outcome == "passed")
    for report in terminalreporter.stats.get("skipped", []):
        reason = re.sub(r"^Skipped: (could not import ')?((requires|needs) )?|(':| is not (set|installed)| does not name).*", "", report.longrepr[2])
        needs.append(reason)
    with open(tested, "a") as lines:
        lines.writelines(f"{file} {seconds[file]:.2f} {passed[file]}\n" for file in seconds)
    with open(os.environ["TFSEEK_SKIPPED"], "a") as lines:
        lines.writelines(f"skipped: needs {need}\n" for need in needs)


def import_keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports Keras with PyTorch or JAX, or skips the test. Keras without a backend would import TensorFlow."""
    backends = [name for name in ("torch", "jax") if importlib.util.find_spec(name)]
    if not backends:
        pytest.skip("requires PyTorch or JAX, for Keras")
    if "KERAS_BACKEND" not in os.environ:
        monkeypatch.setenv("KERAS_BACKEND", backends[0])
    pytest.importorskip("grain")
    return pytest.importorskip("keras", minversion="3.11", reason="Keras 3.11 or later is not installed")


@pytest.fixture(autouse=True, scope="session")
def _index_dir(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Keeps tests from writing to the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFSEEK_INDEX_DIR", str(tmp_path_factory.mktemp("index")))
        yield


def write_records(path: Any, records: Iterable[Any], **options: Any) -> None:
    """Writes records to a file or a set, with the options of a writer."""
    with tfseek.Writer(path, **options) as writer:
        for record in records:
            writer.write(record)


def written(path: Any, records: Iterable[Any], **options: Any) -> tfseek.Dataset[Any]:
    """Writes records to a file, and opens it with these options."""
    write_records(path, records)
    return tfseek.open(path, **options)


def flip(path: Any, at: Union[int, bytes]) -> None:
    """Changes a bit of the byte at a position, or of the first one of a text, in a new file, because a dataset may map the old one."""
    content = bytearray(pathlib.Path(path).read_bytes())
    content[at if isinstance(at, int) else content.index(at)] ^= 1
    os.unlink(path)
    pathlib.Path(path).write_bytes(content)


def features(i: int) -> dict[str, Any]:
    """Returns the features of record ``i``."""
    return {
        "label": i,
        "emb": np.arange(8, dtype=np.float32) + i,
        "name": f"record {i}",
        "tokens": np.arange(i % 5, dtype=np.int64),
    }


SPEC = {
    "label": tfseek.FixedLenFeature([], "int64"),
    "emb": tfseek.FixedLenFeature([8], "float32"),
    "name": tfseek.FixedLenFeature([], "string"),
    "tokens": tfseek.VarLenFeature("int64"),
}


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pattern for a thousand records, distributed over three shards in rotation."""
    folder = tmp_path_factory.mktemp("shards")
    write_records(folder / "train", (tfseek.Example(features(i)) for i in range(RECORDS)), shards=3)
    return str(folder / "train-*.tfrecord")


@pytest.fixture(scope="session")
def labels() -> list[int]:
    """Labels in the order of the record numbers."""
    return [i for shard in range(3) for i in range(shard, RECORDS, 3)]


@pytest.fixture(params=["map", "pread"])
def ds(shards: str, request: pytest.FixtureRequest) -> tfseek.Dataset:
    """The thousand records, read through maps and with positional reads."""
    return tfseek.open(shards, io=request.param)


def trust(*folders: Any) -> None:
    """Makes the index and column files in folders newer than all changes of their shards, so that size and time tell that a shard is the same."""
    for folder in folders:
        for file in pathlib.Path(folder).rglob("*.tfr?"):
            os.utime(file, (2**31, 2**31))
