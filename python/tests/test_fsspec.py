"""Shards read through filesystems of fsspec: the records of files, without secrets in any text."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Optional

import numpy as np
import pytest
from prepared import write_bridge, write_mnist

import tfseek
from tfseek import _fsspec

from conftest import RECORDS, SPEC, beside, run_python, write_records

fsspec = pytest.importorskip("fsspec")

from fsspec.asyn import AsyncFileSystem  # noqa: E402
from fsspec.implementations.local import LocalFileSystem  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

SECRET = "hidden-key"


class PlainFiles(MemoryFileSystem):  # type: ignore[misc]
    """A filesystem that loops over ranges. Reads wait for ``opened``, and each call of ``fails_at`` fails."""

    protocol = "plain"
    cachable = True
    store: dict[str, Any] = {}
    pseudo_dirs = [""]
    opened = threading.Event()
    fails_at = 0
    text = "it broke"
    reads: list[tuple[str, int, int]] = []
    at_once: set[int] = set()
    most = 0

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(path.removeprefix("plain://"))

    def cat_ranges(self, paths: Any, starts: Any, ends: Any, max_gap: Any = None, on_error: str = "return", **_: Any) -> Any:
        assert max_gap is None and len(paths) == 1
        cls = type(self)
        cls.reads.append((paths[0], starts[0], ends[0]))
        if cls.fails_at and len(cls.reads) % cls.fails_at == 0:
            return [OSError(cls.text)]
        cls.at_once.add(threading.get_ident())
        cls.most = max(cls.most, len(cls.at_once))
        try:
            cls.opened.wait()
            return super().cat_ranges(paths, starts, ends, on_error=on_error)
        finally:
            cls.at_once.discard(threading.get_ident())


class AsyncFiles(AsyncFileSystem):  # type: ignore[misc]
    """An async filesystem over a dict of bytes."""

    protocol: tuple[str, ...] = ("asyncs", "async2")
    files: dict[str, bytes] = {}
    made = 0
    reads: list[tuple[str, int, int]] = []
    running = 0
    most = 0

    def __init__(self, key: str = "", **options: Any) -> None:
        super().__init__(**options)
        type(self).made += 1

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.files:
            content = self.files[path]
            return {"name": path, "size": len(content), "type": "file", "ETag": f'"{hash(content)}"'}
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        path = self._strip_protocol(path)
        names = {f"{path}/{name[len(path) + 1 :].split('/')[0]}" for name in self.files if name.startswith(f"{path}/")}
        if not names:
            raise FileNotFoundError(path)
        found = [await self._info(name) for name in sorted(names)]
        return found if detail else [each["name"] for each in found]

    async def _cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **_: Any) -> bytes:
        cls = type(self)
        cls.reads.append((path, start or 0, end or 0))
        cls.running += 1
        cls.most = max(cls.most, cls.running)
        await asyncio.sleep(0.002)
        cls.running -= 1
        return self.files[path][start:end]


for each in (PlainFiles, AsyncFiles):
    fsspec.register_implementation(each.protocol if isinstance(each.protocol, str) else each.protocol[0], each, clobber=True)


@pytest.fixture
def content(shards: str) -> Iterator[dict[str, bytes]]:
    """The files of ``shards``, which are in ``bucket/data`` of all filesystems."""
    found = {path.name: path.read_bytes() for path in sorted(pathlib.Path(shards).parent.glob("train-*.tfrecord"))}
    memory: Any = fsspec.filesystem("memory")
    plain: Any = fsspec.filesystem("plain")
    PlainFiles.opened.set()
    PlainFiles.fails_at, PlainFiles.text, PlainFiles.most = 0, "it broke", 0
    for name, each in found.items():
        memory.pipe(f"/bucket/data/{name}", each)
        plain.pipe(f"/bucket/data/{name}", each)
        AsyncFiles.files[f"bucket/data/{name}"] = each
    PlainFiles.reads.clear()
    AsyncFiles.reads.clear()
    try:
        yield found
    finally:
        PlainFiles.opened.set()
        for fs in (memory, plain):
            fs.store.clear()
            fs.pseudo_dirs[:] = [""]
        AsyncFiles.files.clear()


def filesystem(kind: str) -> Any:
    return fsspec.filesystem(kind)


def opened(name: str, **arguments: Any) -> tfseek.Dataset[Any]:
    return tfseek.open(f"{name}://bucket/data/train-*.tfrecord", filesystem=filesystem(name), **arguments)


def no_secret(*texts: object) -> None:
    for text in texts:
        assert SECRET not in str(text) and "hidden-signature" not in str(text), text


@pytest.mark.parametrize("kind", ["memory", "file", "plain", "asyncs"])
def test_records_are_those_of_files(content: dict[str, bytes], shards: str, kind: str) -> None:
    files, fs = tfseek.open(shards, kind="bytes"), filesystem(kind)
    folder = f"file://{pathlib.Path(shards).parent}" if kind == "file" else f"{kind}://bucket/data"
    url = f"{folder}/train-*.tfrecord"
    ds = tfseek.open(url, filesystem=fs, kind="bytes")
    assert len(ds) == RECORDS and ds.fingerprint == files.fingerprint
    # `file://` is the address of a file that tfseek opens itself.
    assert ds.shards == [f"{folder}/{name}".replace("file://", "local://") for name in content]
    numbers = np.random.default_rng(1).permutation(RECORDS)
    assert ds.get_many(numbers) == files.get_many(numbers) and list(ds) == list(files) and ds[-1] == files[-1]
    for names in (ds.shards, f"{folder}/train@{len(content)}.tfrecord"):
        if isinstance(names, list) or any("-of-" in name for name in content):
            assert len(tfseek.open(names, filesystem=fs)) == RECORDS
    # A name without a protocol, and the files of fsspec.
    bare = fs._strip_protocol(f"{folder}/{next(iter(content))}")
    assert len(tfseek.open(bare, filesystem=fs)) == len(tfseek.open(f"{folder}/{next(iter(content))}", filesystem=fs))
    through = tfseek.open(fsspec.open_files(url, compression=None), kind="bytes", index="memory")
    assert list(through) == list(files) and through.refresh().fingerprint == files.fingerprint
    examples, local = tfseek.open(url, filesystem=fs), tfseek.open(shards)
    assert examples.filter("label in 3..30").ids.tolist() == local.filter("label in 3..30").ids.tolist()
    assert examples.column("label").values.tolist() == local.column("label").values.tolist()
    assert examples.schema.features == local.schema.features
    for shuffle in (False, True):
        batches = [
            [batch["label"].tolist() for batch in tfseek.Loader(each, SPEC, batch_size=64, shuffle=shuffle, seed=3)] for each in (examples, local)
        ]
        assert batches[0] == batches[1]
    loader = tfseek.Loader(examples, SPEC, batch_size=64, shuffle="block", seed=3)
    assert sorted(label for batch in loader for label in batch["label"].tolist()) == list(range(RECORDS))


def test_an_index_is_kept_in_the_cache(content: dict[str, bytes], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFSEEK_INDEX_DIR", str(tmp_path))
    names = set(MemoryFileSystem.store)
    assert len(opened("asyncs")) == RECORDS and any(path.is_file() for path in tmp_path.rglob("*"))
    reads = len(AsyncFiles.reads)
    assert len(opened("asyncs", index="require")) == RECORDS
    assert len(AsyncFiles.reads) - reads <= 2 * len(content)
    opened("memory")
    assert set(MemoryFileSystem.store) == names


def test_filesystems_with_other_options_share_no_index(content: dict[str, bytes], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts may have a file of one name, size and time."""
    monkeypatch.setenv("TFSEEK_INDEX_DIR", str(tmp_path))

    def files(**options: Any) -> set[str]:
        name = next(iter(content))
        fs = fsspec.filesystem("plain", **options)
        tfseek.open(f"plain://bucket/data/{name}", filesystem=fs)
        return {path.name for path in tmp_path.rglob("*.tfri")}

    one = files(host="one", password=SECRET)
    assert len(one) == 1 and files(host="one", token="other") == one
    two = files(host="two")
    assert len(two) == 2 and len(files(host="one", username="me")) == 3
    assert len(files(host="one", nested={"endpoint_url": "http://one"})) == 4 and len(files(host="one", nested={"endpoint_url": "http://one"})) == 4


def test_announced_ranges_are_requested_together(content: dict[str, bytes]) -> None:
    ds = opened("asyncs", kind="bytes")
    # The first read of a shard compares its index.
    ds.get_many(range(RECORDS))
    AsyncFiles.reads.clear()
    AsyncFiles.most = 0
    ds.get_many(range(0, RECORDS, 2))
    size = sum(map(len, content.values()))
    assert len(AsyncFiles.reads) <= 2 * len(content), AsyncFiles.reads
    assert sum(end - start for _, start, end in AsyncFiles.reads) <= size
    if len(content) > 1:
        assert AsyncFiles.most > 1


def test_plain_filesystems_have_several_calls(content: dict[str, bytes]) -> None:
    # Far from each other, so that each is a range.
    payload = os.urandom(200_000)
    with fsspec.filesystem("plain").open("/bucket/far.tfrecord", "wb") as file:
        file.write(record_file([payload] * 40))
    ds = tfseek.open("plain://bucket/far.tfrecord", filesystem=PlainFiles(), kind="bytes", index="memory")
    assert ds[0] == payload
    PlainFiles.opened.clear()
    PlainFiles.reads.clear()
    PlainFiles.most = 0
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(ds.get_many(range(0, 40, 8))))
    thread.start()
    end = time.monotonic() + 60
    while PlainFiles.most < 4 and time.monotonic() < end:
        time.sleep(0.01)
    assert PlainFiles.most == 4
    PlainFiles.opened.set()
    thread.join(10)
    assert found == [payload] * 5


def test_a_call_is_answered_once(content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that follows the answer, as of a trace function, seems to be the call's."""
    payload = os.urandom(200_000)
    with fsspec.filesystem("plain").open("/bucket/far.tfrecord", "wb") as file:
        file.write(record_file([payload] * 40))
    answer, read = _fsspec._Calls._answer, PlainFiles.cat_ranges
    stalled, released = threading.Event(), threading.Event()

    def twice(self: Any, queue: Any, number: int, name: str, arguments: Any) -> None:
        answer(self, queue, number, name, arguments)
        queue.failed(number, "other", "an exception after the answer")

    def stalls_once(self: Any, *ranges: Any, **options: Any) -> Any:
        if not stalled.is_set():
            stalled.set()
            released.wait(60)
        return read(self, *ranges, **options)

    monkeypatch.setattr(_fsspec._Calls, "_answer", twice)
    ds = tfseek.open("plain://bucket/far.tfrecord", filesystem=PlainFiles(), kind="bytes", index="memory")
    assert ds[39] == payload
    monkeypatch.setattr(PlainFiles, "cat_ranges", stalls_once)
    first = threading.Thread(target=lambda: ds[0], daemon=True)
    first.start()
    assert stalled.wait(60)
    # While a call stalls, the other threads make one after the other.
    found: list[Any] = []
    others = threading.Thread(target=lambda: found.extend(ds[k] for k in (10, 20, 30)), daemon=True)
    others.start()
    others.join(60)
    in_time = len(found)
    released.set()
    first.join(60)
    others.join(60)
    assert in_time == 3 and found == [payload] * 3


def record_file(payloads: list[bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_records(f"{folder}/x.tfrecord", payloads)
        return pathlib.Path(f"{folder}/x.tfrecord").read_bytes()


def test_long_ranges_are_cut(content: dict[str, bytes]) -> None:
    payload = os.urandom(20 << 20)
    AsyncFiles.files["bucket/long.tfrecord"] = record_file([payload, b"end"])
    ds = tfseek.open("asyncs://bucket/long.tfrecord", filesystem=AsyncFiles(), kind="bytes")
    AsyncFiles.reads.clear()
    assert ds[0] == payload and ds[1] == b"end"
    assert max(end - start for _, start, end in AsyncFiles.reads) <= 8 << 20


def test_failures_are_errors_with_the_path(content: dict[str, bytes]) -> None:
    ds = opened("plain", kind="bytes")
    records = list(ds)
    PlainFiles.reads.clear()
    PlainFiles.fails_at = 3
    failed = 0
    for number in range(60):
        try:
            assert ds[number] == records[number]
        except tfseek.IoError as e:
            failed += 1
            assert e.path is not None and str(e.path).startswith("plain://bucket/data/train-") and "it broke" in str(e)
    assert failed == 20
    # The epoch ends with the error, and another one begins.
    PlainFiles.fails_at = 1
    loader = tfseek.Loader(ds, SPEC, batch_size=10, threads=2)
    with pytest.raises(tfseek.IoError, match="it broke"):
        list(loader)
    PlainFiles.fails_at = 0
    assert sum(len(batch["label"]) for batch in tfseek.Loader(ds, SPEC, batch_size=10)) == RECORDS


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (FileNotFoundError("gone"), tfseek.NotFoundError),
        (PermissionError("403"), tfseek.IoError),
        (NotImplementedError(), tfseek.IoError),
        (KeyError("x"), tfseek.IoError),
        (ValueError("odd\ntext"), tfseek.IoError),
    ],
)
def test_kinds_of_failures(content: dict[str, bytes], failure: Exception, error: type[Exception]) -> None:
    class Failing(AsyncFiles):
        protocol = ("failing",)
        fail = False
        short = False

        async def _cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **_: Any) -> bytes:
            if Failing.fail:
                raise failure
            found = await super()._cat_file(path, start, end)
            return found[:-1] if Failing.short else found

    ds = tfseek.open("failing://bucket/data/train-*", filesystem=Failing(), kind="bytes")
    first = ds[0]
    Failing.fail = True
    with pytest.raises(error, match=f"failing://bucket/data/.*{type(failure).__name__}"):
        ds[0]
    Failing.fail, Failing.short = False, True
    with pytest.raises(tfseek.IoError, match="expected bytes 0 to .*found"):
        ds[0]
    Failing.short = False
    assert ds[0] == first


@pytest.mark.parametrize("kind", ["memory", "plain", "asyncs"])
def test_replaced_objects_are_stale(content: dict[str, bytes], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = filesystem(kind)
    ds, name = opened(kind, kind="bytes"), next(iter(content))
    first = ds[0]

    def replace(new: bytes) -> None:
        if kind == "asyncs":
            AsyncFiles.files[f"bucket/data/{name}"] = new
        else:
            time.sleep(0.01)
            fs.pipe(f"/bucket/data/{name}", new)

    # As many bytes, and the first record as before.
    other = bytearray(content[name])
    other[-20] ^= 1
    replace(bytes(other))
    # Within a minute of the last comparison it is not compared.
    assert ds[0] == first
    monkeypatch.setattr(_fsspec, "_CHECK", 0.0)
    with pytest.raises(tfseek.SidecarError, match=f"{name}.*the object was replaced"):
        ds[0]
    # A failed read is always compared.
    monkeypatch.setattr(_fsspec, "_CHECK", 1e9)
    replace(content[name][:100])
    with pytest.raises(tfseek.SidecarError, match="the object was replaced: it had .* bytes and has 100"):
        ds[3]
    replace(content[name])
    assert tfseek.open(ds.shards, filesystem=fs, kind="bytes")[0] == first


def test_no_shares(shards: str, content: dict[str, bytes]) -> None:
    """Another process cannot read a part, but it can read a pickled dataset."""
    ds = opened("memory")
    text = r"found a dataset of filesystem= \(memory://\).*a pickle of the dataset has its protocol"
    for divided in (lambda: ds.shares(2), lambda: ds.shares_of(100), lambda: pickle.loads(pickle.dumps(ds)).shares(2)):
        with pytest.raises(ValueError, match=text):
            divided()
    assert len(tfseek.open(shards).shares(2)) == 2


def test_arguments(content: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    fs, url = filesystem("memory"), "memory://bucket/data/train-*.tfrecord"
    for wrong in ("memory", 3, object(), MemoryFileSystem):
        with pytest.raises(TypeError, match="filesystem: expected a filesystem of fsspec, found"):
            tfseek.open(url, filesystem=wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="filesystem: expected a filesystem of fsspec, found"):
            tfseek.tfds.open("memory://bucket", filesystem=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="paths: expected str, os.PathLike or a list of them, found int"):
        tfseek.open([3], filesystem=fs)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected URLs of the filesystem, memory://.., found one of s3://"):
        tfseek.open("s3://bucket/x", filesystem=fs)
    with pytest.raises(ValueError, match="storage_options: expected those of the filesystem"):
        tfseek.open(url, filesystem=fs, storage_options={"key": SECRET})
    with pytest.raises(ValueError, match="without asynchronous=True"):
        tfseek.open("asyncs://bucket/x", filesystem=AsyncFiles(asynchronous=True))
    with pytest.raises(ValueError, match="compression=None"):
        tfseek.open(fsspec.open_files(url, compression="gzip"))
    with pytest.raises(ValueError, match="expected files of one filesystem, found several"):
        tfseek.open([fsspec.open("memory://bucket/a"), fsspec.open(f"file://{tmp_path}/a")])
    with pytest.raises(TypeError, match="only files of fsspec.open_files"):
        tfseek.open([fsspec.open("memory://bucket/a"), "memory://bucket/b"])
    with pytest.raises(tfseek.NotFoundError, match="memory://bucket/none.tfrecord: no such object"):
        tfseek.open("memory://bucket/none.tfrecord", filesystem=fs)
    with pytest.raises(tfseek.NotFoundError, match="no file matches memory://none/x"):
        tfseek.open("memory://none/x*", filesystem=fs)
    assert len(tfseek.open("memory://bucket/data", filesystem=fs)) == len(tfseek.open("memory://bucket/data/", filesystem=fs)) == RECORDS
    assert len(tfseek.open("memory://bucket/*/train-*.tfrecord", filesystem=fs)) == RECORDS
    first = content[next(iter(content))]
    fs.pipe("/root.tfrecord", first)
    assert len(tfseek.open("memory://root.tfrecord", filesystem=fs)) == len(tfseek.open("memory://*.tfrecord", filesystem=fs)) > 0


def test_secrets_are_in_no_text(content: dict[str, bytes]) -> None:
    class Secret(AsyncFiles):
        protocol = ("secrets",)
        text = ""

        def __init__(self, key: str, nested: Any = None, **options: Any) -> None:
            super().__init__(**options)

        async def _cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **_: Any) -> bytes:
            if Secret.text:
                raise OSError(Secret.text)
            return await super()._cat_file(path, start, end)

    fs = Secret(SECRET, nested={"a": [{"b": "hidden-key-2"}]})
    ds = tfseek.open("secrets://bucket/data/train-*.tfrecord", filesystem=fs)
    assert len(ds) == RECORDS
    no_secret(repr(ds), pickle.dumps(ds), ds.__reduce__(), ds.shards, ds.info())
    loader = tfseek.Loader(ds, SPEC, batch_size=10)
    next(iter(loader))
    no_secret(loader.state_dict(), repr(loader), pickle.dumps(loader.state_dict()))
    # A closed loader drops the bytes that it requested ahead.
    loader.close()
    for text in (
        f"403 for {SECRET}",
        "403, message='Forbidden', url=URL('https://host/x?X-Signature=hidden-signature&a=b')",
        "https://user:hidden-signature@host/x is refused",
        "key hidden-key-2",
    ):
        Secret.text = text
        with pytest.raises(tfseek.IoError, match="OSError") as e:
            ds[5]
        no_secret(e.value, repr(e.value), e.value.__cause__, e.value.__context__)
    Secret.text = ""
    # This protocol is not registered in fsspec, as in a process without the package.
    with pytest.raises(tfseek.Error, match="a pickle has only the protocol of a filesystem, and fsspec.filesystem\\('secrets'\\) failed") as failed:
        pickle.loads(pickle.dumps(ds))
    no_secret(failed.value)
    with pytest.raises(TypeError, match="a filesystem is not pickled"):
        pickle.dumps(_fsspec.Filesystem(fs))


def label_of(ds: tfseek.Dataset[Any], number: int) -> Any:
    return ds[number]["label"]


def test_pickles_make_the_filesystem_again(content: dict[str, bytes], shards: str) -> None:
    ds = opened("asyncs")[10:20]
    made = AsyncFiles.made
    copy = pickle.loads(pickle.dumps(ds))
    assert [label_of(copy, i) for i in range(10)] == [label_of(ds, i) for i in range(10)] and repr(copy) == repr(ds)
    assert copy.refresh().ids.tolist() == ds.ids.tolist() and AsyncFiles.made <= made + 1
    AsyncFiles.files.clear()
    with pytest.raises(tfseek.Error, match="a pickle has only the protocol of a filesystem: fsspec.filesystem\\('asyncs'\\) was used"):
        pickle.loads(pickle.dumps(ds))


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_workers_make_the_filesystem_of_the_protocol(shards: str, start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"requires {start}")
    ds = tfseek.open(f"file://{pathlib.Path(shards).parent}/train-*.tfrecord", filesystem=fsspec.filesystem("file"))
    numbers = [0, 500, 999]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as workers:
        assert list(workers.map(label_of, [ds] * len(numbers), numbers)) == [ds[i]["label"] for i in numbers]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
@pytest.mark.parametrize("kind", ["file", "asyncs"])
def test_a_forked_child_makes_the_filesystem_again(shards: str, kind: str) -> None:
    code = """
import os, pathlib, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import test_fsspec as t, tfseek, fsspec
folder, kind = pathlib.Path(sys.argv[2]).parent, sys.argv[3]
for path in folder.glob("train-*"):
    t.AsyncFiles.files[f"bucket/data/{path.name}"] = path.read_bytes()
url = f"file://{folder}" if kind == "file" else "asyncs://bucket/data"
fs = fsspec.filesystem("file") if kind == "file" else t.AsyncFiles(key="k")
ds = tfseek.open(f"{url}/train-*.tfrecord", filesystem=fs)
want = [ds[i]["label"] for i in range(0, 1000, 90)]
items = iter(ds)
next(items)
loader = tfseek.Loader(ds, t.SPEC, batch_size=100, threads=2)
epoch = [batch["label"].tolist() for batch in loader]
made = t.AsyncFiles.made
for _ in range(5):
    child = os.fork()
    if child == 0:
        ok = [ds[i]["label"] for i in range(0, 1000, 90)] == want and len(list(items)) == 999
        ok = ok and [batch["label"].tolist() for batch in loader] == epoch and len(ds.refresh()) == 1000
        ok = ok and t.AsyncFiles.made == made + (kind == "asyncs")
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert [ds[i]["label"] for i in range(0, 1000, 90)] == want
"""
    run_python(code, pathlib.Path(__file__).parent, shards, kind)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_child_says_that_the_filesystem_cannot_be_made(content: dict[str, bytes]) -> None:
    class Once(AsyncFiles):
        protocol = ("once",)
        first = True

        def __init__(self, key: str, **options: Any) -> None:
            if not Once.first:
                raise ValueError(f"no second one with {key}")
            Once.first = False
            super().__init__(**options)

    ds = tfseek.open("once://bucket/data/train-*.tfrecord", filesystem=Once(SECRET), kind="bytes")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, bytes(ds[3]))
        except tfseek.Error as e:
            os.write(writing, str(e).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reading, 10_000).decode()
    assert "filesystem" in text and "ValueError" in text, text
    no_secret(text)


@pytest.mark.parametrize("call", ["item", "many", "iteration", "open", "loader", "filter"])
def test_an_interrupt_ends_a_stalled_call(content: dict[str, bytes], call: str) -> None:
    ds = opened("plain", kind="bytes")
    examples = opened("plain")
    loader = tfseek.Loader(ds, SPEC, batch_size=10)
    calls: dict[str, Any] = {
        "item": lambda: ds[5],
        "many": lambda: ds.get_many([1, 999]),
        "iteration": lambda: list(ds),
        "open": lambda: opened("plain", index="memory"),
        "loader": lambda: next(iter(loader)),
        "filter": lambda: examples.filter("label > 3 and name contains '9'"),
    }
    PlainFiles.reads.clear()

    def interrupt() -> None:
        while not PlainFiles.reads:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    PlainFiles.opened.clear()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    thread.join()
    # The filesystem does not answer, and nothing waits for it.
    loader.close()
    PlainFiles.opened.set()
    assert calls["item"]() == ds.get_many([5])[0]


def test_other_threads_run_during_a_call(content: dict[str, bytes]) -> None:
    ds = opened("plain", kind="bytes")
    assert beside(lambda: ds[5], PlainFiles.opened) == ds[5]


def test_threads_end_with_the_data_set(content: dict[str, bytes]) -> None:
    before = set(threading.enumerate())
    ds = opened("plain", kind="bytes")
    assert ds[0]
    threads = set(threading.enumerate()) - before
    assert sorted(thread.name for thread in threads) == [f"tfseek-fsspec-{k}" for k in range(4)]
    assert all(thread.daemon for thread in threads)
    del ds
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("stalled", [False, True])
def test_the_interpreter_ends_at_once(shards: str, stalled: bool) -> None:
    code = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import test_fsspec as t, tfseek, pathlib
for path in pathlib.Path(sys.argv[2]).parent.glob("train-*"):
    t.PlainFiles().pipe(f"/bucket/data/{path.name}", path.read_bytes())
t.PlainFiles.opened.set()
ds = t.opened("plain")
loader = tfseek.Loader(ds, t.SPEC, batch_size=10, threads=2)
epoch = iter(loader)
next(epoch)
if sys.argv[3] == "True":
    t.PlainFiles.opened.clear()
    threading.Thread(target=lambda: ds[900], daemon=True).start()
    time.sleep(0.2)
print(time.time())
"""
    folder = str(pathlib.Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", code, folder, shards, str(stalled)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    # A daemon thread that waits gets an error.
    assert done.stderr == "" or stalled and "the interpreter ends" in done.stderr, done.stderr
    assert time.time() - float(done.stdout) < 40


def test_prepared_data_sets_are_those_of_folders(content: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    write_mnist(tmp_path / "mnist")
    write_bridge(tmp_path / "bridge")
    for path in tmp_path.rglob("*.*"):
        if path.is_file():
            AsyncFiles.files[f"bucket/{path.relative_to(tmp_path).as_posix()}"] = path.read_bytes()
    fs = AsyncFiles(key=SECRET)
    files, remote = tfseek.tfds.open(tmp_path / "mnist"), tfseek.tfds.open("asyncs://bucket/mnist", filesystem=fs)
    assert remote.folder == "asyncs://bucket/mnist/3.0.1" and repr(remote.features) == repr(files.features)
    ds, local = remote["train[10%:50%]+test"], files["train[10%:50%]+test"]
    assert [record["label"] for record in ds] == [record["label"] for record in local]
    assert np.array_equal(ds[3]["image"], local[3]["image"])
    batches = [[batch["label"].tolist() for batch in tfseek.Loader(each, batch_size=8, shuffle=True, seed=1)] for each in (ds, local)]
    assert batches[0] == batches[1]
    pickled = pickle.dumps(ds)
    no_secret(repr(remote), repr(ds), pickled)
    copy = pickle.loads(pickled)
    assert [record["label"] for record in copy] == [record["label"] for record in ds] and copy.names("label") == ds.names("label")
    # With episodes, their steps and windows.
    robot = tfseek.rlds.open("asyncs://bucket/bridge/1.0.0", filesystem=fs)
    here = tfseek.rlds.open(tmp_path / "bridge" / "1.0.0")
    assert robot.lengths.tolist() == here.lengths.tolist()
    assert np.array_equal(robot.steps[77]["action"], here.steps[77]["action"])
    windows = [each.windows({"action": range(4), "observation/state": [-1, 0]}) for each in (robot, here)]
    batches = [[batch["action"].tobytes() for batch in tfseek.Loader(each, batch_size=8, shuffle=True, seed=2)] for each in windows]
    assert batches[0] == batches[1]
    pickled = pickle.dumps(windows[0])
    no_secret(pickled)
    assert np.array_equal(pickle.loads(pickled)[5]["action"], windows[1][5]["action"])


def test_versions_that_tell_nothing_are_none(content: dict[str, bytes]) -> None:
    fs = filesystem("memory")
    named = _fsspec._Calls.__new__(_fsspec._Calls)
    named._fs = fs
    keys = (*_fsspec._VERSIONS, "ukey")
    name = f"/bucket/data/{next(iter(content))}"
    shared = {"name": name, "size": 5, "type": "file"}
    assert named._version(name, shared, keys) is None
    assert named._version(name, {**shared, "ETag": 'W/"a"'}, keys) != 'ETag:W/"a'
    assert named._version(name, {**shared, "ETag": '"a"'}, keys) == "ETag:a"
    assert named._version(name, {**shared, "ETag": '""'}, keys) != "ETag:"
    found = named._version(name, fs.info(name), keys)
    assert found is not None and found.startswith("ukey:")
    time.sleep(0.01)
    fs.pipe(name, fs.cat(name))
    assert named._version(name, fs.info(name), keys) != found

    class Unchanging(MemoryFileSystem):  # type: ignore[misc]
        protocol = ("http", "https")

    named._fs = Unchanging()
    assert named._version(name, {**shared, "Last-Modified": "x", "url": name}, keys) is None
    assert _fsspec._nanoseconds({"Last-Modified": "Thu, 01 Jan 1970 00:00:02 GMT"}) == 2_000_000_000
    for unknown in ("yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"):
        assert _fsspec._nanoseconds({"Last-Modified": unknown}) is None


def test_files_whose_time_was_restored_have_another_version(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a"
    calls = _fsspec._Calls.__new__(_fsspec._Calls)
    calls._fs = LocalFileSystem()
    versions = []
    for content in (b"one", b"two"):
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
        stamp = calls._stamp_of(str(path))
        assert stamp is not None
        versions.append(stamp)
        time.sleep(0.02)
    (size, then, one), (_, now, two) = versions
    assert size == 3 and then == now == 10**18 and one != two


def test_members_of_an_archive_are_of_no_known_time(tmp_path: pathlib.Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(__file__, "a")
    calls = _fsspec._Calls.__new__(_fsspec._Calls)
    calls._fs = fsspec.filesystem("tar", fo=str(tmp_path / "a.tar"))
    assert calls._stamp_of("a") == (os.stat(__file__).st_size, None, None)
