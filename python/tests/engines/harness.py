"""One test of every engine: each record of an unusual dataset is read exactly once, also by workers that die, or is an error.

An engine is a function ``read(paths, shares, die=None, planned=None)`` that returns the (number, digest) pairs of all records. It divides
the dataset into ``shares``, calls ``planned`` after that, and reads the shares in other processes where it can. A worker calls
:func:`die_once` with ``die`` for each record or batch.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

import numpy as np
import pytest

import tfseek

#: Records of each shard. The shard of ``BIG`` is mostly one record of 30 MB.
SHARDS = [3000, 0, 1, 25, 4000, 974, 2000]
RECORDS = sum(SHARDS)
BIG = 3010
#: A shard that is compressed, as one part.
GZIP = 5

#: Number and digest of a record.
Pair = tuple[int, str]

SPEC = {
    "id": tfseek.FixedLenFeature([], "int64"),
    "text": tfseek.FixedLenFeature([], "string"),
    "values": tfseek.VarLenFeature("int64"),
}


def row(i: int) -> dict[str, Any]:
    """Returns the features of record ``i``."""
    length = 30_000_000 if i == BIG else i * 37 % 101
    return {"id": i, "text": random.Random(i).randbytes(length), "values": np.arange(i % 5, dtype=np.int64) - i}


def digest(number: int, text: bytes, values: Iterable[int]) -> str:
    """Returns the digest of a record's values."""
    found = hashlib.blake2b(f"{number} {len(text)} {[int(value) for value in values]} ".encode(), digest_size=8)
    found.update(text)
    return found.hexdigest()


def digest_of(example: tfseek.Example) -> str:
    """Returns the digest of an Example."""
    return digest(int(example["id"][0]), bytes(example["text"][0]), example["values"])


def pairs_of(batch: Any, record: str = "n") -> list[Pair]:
    """Returns the pairs of an Arrow table or record batch with the column of record numbers ``record``."""
    columns = [batch.column(name).to_pylist() for name in (record, "id", "text", "values")]
    return [(n, digest(number, text, values or [])) for n, number, text, values in zip(*columns)]


def write(folder: pathlib.Path) -> list[str]:
    """Writes the dataset and returns the paths of its shards."""
    paths, first = [], 0
    for shard, records in enumerate(SHARDS):
        path = folder / f"odd-{shard}.tfrecord{'.gz' if shard == GZIP else ''}"
        with tfseek.Writer(path, compression="gzip" if shard == GZIP else "none") as writer:
            for i in range(first, first + records):
                writer.write(tfseek.Example(row(i)))
        paths.append(str(path))
        first += records
    return paths


def pairs(paths: Sequence[str]) -> list[Pair]:
    """Returns the pairs of a dataset, in order, read by number."""
    ds = tfseek.open(list(paths), index="memory", kind="example")
    return [(i, digest_of(record)) for i, record in enumerate(ds)]


def assert_written(folder: pathlib.Path, want: Sequence[Pair]) -> None:
    """Checks that a folder has one set, with indexes, and exactly these records."""
    ds = tfseek.open(folder, index="require", kind="example")
    assert sorted((int(record["id"][0]), digest_of(record)) for record in ds) == want
    # The bytes are those of the package's own encoder, and the kinds those of the source.
    for record in ds[:: max(len(ds) // 50, 1)]:
        assert bytes(record) == bytes(tfseek.Example(row(int(record["id"][0]))))
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    assert not [name for name in names if name.startswith(".")], names


def die_once(marker: Optional[str]) -> None:
    """Ends this process, unless a process has done so before. ``marker`` is the path of a file that does not exist yet."""
    if marker is None:
        return
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    os._exit(1)


def messages(error: Optional[BaseException]) -> str:
    """Returns the messages of an error and of all its causes."""
    found = []
    while error is not None:
        found.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(found)


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The dataset. A test file imports the fixtures that its tests use."""
    return write(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="session")
def want(paths: list[str]) -> list[Pair]:
    """The pairs of its index."""
    found = pairs(paths)
    assert len(found) == RECORDS == 10_000 and len(set(found)) == RECORDS
    return found


@pytest.fixture
def copy(tmp_path: pathlib.Path, paths: list[str]) -> list[str]:
    """The same dataset, for a test that changes it. The largest shard, which no test changes, is a link."""
    copies = []
    for path in paths:
        target = tmp_path / os.path.basename(path)
        if os.path.getsize(path) < 5_000_000:
            target.write_bytes(pathlib.Path(path).read_bytes())
        else:
            target.symlink_to(path)
        copies.append(str(target))
    return copies


@pytest.fixture(scope="session")
def urls(paths: list[str]) -> Iterator[list[str]]:
    """The URLs of its shards in a server of this machine. The environment has the login, which engines that start later pass on to their workers."""
    # Workers import this file, and have no server.
    from object_server import ObjectServer

    with ObjectServer() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true", "AWS_SKIP_SIGNATURE": "true"}.items():
            patch.setenv(name, value)
        urls = []
        for path in paths:
            name = f"odd/{os.path.basename(path)}"
            server.objects[name] = pathlib.Path(path).read_bytes()
            urls.append(f"s3://{name}")
        yield urls


def reads_urls() -> bool:
    """Returns true if this build reads URLs."""
    try:
        tfseek.stream("s3://odd/none", storage_options={"endpoint": "http://127.0.0.1:1"})
    except tfseek.Error as e:
        return "without the feature" not in str(e)
    return True


class Suite:
    """The tests of an engine. A subclass in the engine's test file defines ``read``."""

    #: Numbers of shares. Slow engines take fewer of them.
    shares: Sequence[int] = range(1, 9)
    read: Any

    def test_each_record_is_read_once(self, paths: list[str], want: list[Pair]) -> None:
        for shares in self.shares:
            assert sorted(self.read(paths, shares)) == want, shares

    @pytest.mark.skipif(not reads_urls(), reason="requires a build with the feature remote")
    def test_shards_at_urls(self, urls: list[str], want: list[Pair]) -> None:
        assert sorted(self.read(urls, 3)) == want

    def test_a_worker_that_dies_is_replaced(self, paths: list[str], want: list[Pair], tmp_path: pathlib.Path) -> None:
        marker = tmp_path / "died"
        assert sorted(self.read(paths, 3, die=str(marker))) == want
        assert marker.exists()

    def test_a_shard_that_was_replaced_after_planning(self, copy: list[str]) -> None:
        def replace() -> None:
            with tfseek.Writer(copy[4]) as writer:
                for i in range(SHARDS[4]):
                    writer.write(tfseek.Example(row(i)))

        with pytest.raises(Exception) as raised:
            self.read(copy, 3, planned=replace)
        found = messages(raised.value)
        assert "the content of the shard has changed" in found and os.path.basename(copy[4]) in found, found

    def test_a_damaged_record_is_named(self, copy: list[str]) -> None:
        ds = tfseek.open(copy, index="memory", kind="example")
        at = pathlib.Path(copy[4]).read_bytes().index(bytes(ds[sum(SHARDS[:4]) + 1234]))
        with open(copy[4], "r+b") as file:
            file.seek(at + 20)
            byte = file.read(1)
            file.seek(at + 20)
            file.write(bytes([byte[0] ^ 1]))
        with pytest.raises(Exception) as raised:
            self.read(copy, 3)
        found = messages(raised.value)
        assert re.search(rf"{re.escape(os.path.basename(copy[4]))}: record 1234 at byte {at - 12}: payload crc32c", found), found
