"""Writers with links, devices and FIFOs, and limits on threads."""

from __future__ import annotations

import gzip
import os
import signal
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tfseek

posix = pytest.mark.skipif(os.name != "posix", reason="links and devices of POSIX")


def write(path: Path, **options: Any) -> None:
    with tfseek.Writer(path, **options) as writer:
        writer.write(b"payload")


@posix
@pytest.mark.parametrize("atomic", [True, False])
def test_a_link_is_kept_and_its_target_replaced(tmp_path: Path, atomic: bool) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    for _ in range(2):
        write(link, atomic=atomic)
        assert link.is_symlink()
        assert len(file.read_bytes()) == 16 + 7
        file.write_bytes(b"old")
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@posix
@pytest.mark.parametrize("atomic", [True, False])
def test_a_device_is_written_to(tmp_path: Path, atomic: bool) -> None:
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    write(null, atomic=atomic)
    assert null.is_symlink() and stat.S_ISCHR(os.stat(null).st_mode)
    with pytest.raises(tfseek.Error, match="expected a regular file"):
        write(null, atomic=atomic, index=True)


@posix
def test_a_fifo_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Opening a FIFO blocks until it has a reader, here a thread of the same process."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    write(fifo)
    reader.join(60)
    write(tmp_path / "file")
    assert got == [(tmp_path / "file").read_bytes()]
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


@pytest.mark.parametrize("threads", [1025, 10**9, sys.maxsize, 2 * sys.maxsize + 1])
def test_more_than_1024_threads_are_refused(shards: str, threads: int) -> None:
    with pytest.raises(tfseek.Error, match="at most 1024"):
        tfseek.Loader(tfseek.open(shards), batch_size=10, threads=threads)
    with pytest.raises(tfseek.Error, match="at most 1024"):
        tfseek.open(shards, threads=threads)
    with pytest.raises(tfseek.Error, match="at most 1024"):
        tfseek.build_index(shards, threads=threads)


@pytest.mark.parametrize("options", [{}, {"shards": 2}, {"atomic": False}])
def test_a_missing_folder_is_named(tmp_path: Path, options: Any) -> None:
    folder = tmp_path / "a" / "b"
    with pytest.raises(tfseek.NotFoundError, match="the folder does not exist") as raised:
        tfseek.Writer(folder / "out", **options)
    assert raised.value.filename == raised.value.path == str(folder)
    assert os.listdir(tmp_path) == []
    if os.name == "posix" and "shards" not in options:
        # A link to a missing file names the link, because its own folder exists.
        (tmp_path / "link").symlink_to("missing/file")
        with pytest.raises(tfseek.NotFoundError, match="link: "):
            tfseek.Writer(tmp_path / "link", **options)


def test_gzip_members(tmp_path: Path) -> None:
    """Python's gzip module reads the members as one stream, and a member can be read without those before it."""
    records = [bytes([i]) * (i % 50) for i in range(200)]
    plain, file = tmp_path / "plain", tmp_path / "file.gz"
    for path, options in (plain, {}), (file, {"compression": "gzip", "members": 1000, "index": True}):
        with tfseek.Writer(path, **options) as writer:  # type: ignore[arg-type]
            for record in records:
                writer.write(record)
    data = file.read_bytes()
    assert gzip.decompress(data) == plain.read_bytes()
    assert [bytes(record) for record in tfseek.stream(file, kind="bytes")] == records
    starts = [at for at in range(len(data)) if data.startswith(b"\x1f\x8b\x08\0\0\0\0\0", at)]
    assert len(starts) == 8
    (tmp_path / "rest.gz").write_bytes(data[starts[5] :])
    rest = [bytes(record) for record in tfseek.stream(tmp_path / "rest.gz", kind="bytes")]
    assert rest == records[-len(rest) :]

    with tfseek.Writer(tmp_path / "x", shards=2, compression="gzip", members=1) as writer:
        for record in records:
            writer.write(record)
    shard = tmp_path / "x-00001-of-00002.tfrecord.gz"
    assert [bytes(record) for record in tfseek.stream(shard, kind="bytes")] == records[1::2]
    assert shard.read_bytes().count(b"\x1f\x8b\x08\0\0\0\0\0") == 100


@pytest.mark.parametrize(("compression", "ending"), [("gzip", ".tfrecord.gz"), ("zlib", ".tfrecord.zz"), ("none", ".tfrecord")])
def test_shards_are_named_by_their_compression(tmp_path: Path, compression: Any, ending: str) -> None:
    with tfseek.Writer(tmp_path / "x", shards=2, compression=compression) as writer:
        writer.write({"a": 1})
    assert sorted(os.listdir(tmp_path)) == [f"x-0000{k}-of-00002{ending}" for k in range(2)]
    assert len(tfseek.open(tmp_path, index="memory")) == 1
    with tfseek.Writer(tmp_path / "y", shards=1, compression=compression, suffix=".bin") as writer:
        writer.write({"a": 1})
    assert (tmp_path / "y-00000-of-00001.bin").exists()


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_members_require_gzip(tmp_path: Path, compression: Any) -> None:
    with pytest.raises(tfseek.Error, match="members: expected compression gzip, found"):
        tfseek.Writer(tmp_path / "out", compression=compression, members=1000)
    assert os.listdir(tmp_path) == []


def test_records_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    for label in range(3):
        with tfseek.Writer(path, append=True) as writer:
            writer.write({"label": label})
        ds = tfseek.open(path)
        assert [int(ex["label"][0]) for ex in ds] == list(range(label + 1))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tfseek.DataError, match="record 2"):
        tfseek.Writer(path, append=True)
    for options in ({"shards": 2}, {"compression": "gzip"}):
        with pytest.raises(ValueError, match="append: expected"):
            tfseek.Writer(tmp_path / "b", append=True, **options)


@posix
def test_forked_children_and_fifos(tmp_path: Path) -> None:
    writer = tfseek.Writer(tmp_path / "a", append=True)
    if (child := os.fork()) == 0:
        signal.pause()
    writer.close()
    tfseek.Writer(tmp_path / "a", append=True).close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(tfseek.Error, match="FIFO"):
        tfseek.Writer(tmp_path / "fifo", append=True)
