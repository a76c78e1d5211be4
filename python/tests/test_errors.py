"""Error messages and classes."""

from __future__ import annotations

import errno
import os
import pathlib
import pickle
from typing import Any

import pytest
from conftest import features

import tfseek


def test_io_errors_have_their_text(tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "nosuch")
    with pytest.raises(FileNotFoundError) as found:
        tfseek.open(missing)
    e: Any = found.value
    assert isinstance(e, tfseek.NotFoundError) and isinstance(e, OSError) and isinstance(e, tfseek.Error)
    assert (e.errno, e.strerror, e.filename) == (errno.ENOENT, os.strerror(errno.ENOENT), missing)
    assert str(e).startswith(f"{missing}: ") and "o such file" in str(e) and "None" not in str(e)

    # An error with a number of the operating system.
    with pytest.raises(OSError) as other:
        tfseek.Writer(tmp_path / "nosuch" / "a.tfrecord")
    e = other.value
    assert isinstance(e, tfseek.NotFoundError) and e.errno == errno.ENOENT and e.strerror == os.strerror(errno.ENOENT)
    assert e.filename is not None and str(e).startswith(e.filename) and "None" not in str(e)

    # An error about a pattern has no file.
    pattern = str(tmp_path / "nosuch-*")
    with pytest.raises(tfseek.NotFoundError, match="no file matches") as none:
        tfseek.open(pattern)
    assert (none.value.errno, none.value.filename) == (errno.ENOENT, pattern)


def test_a_set_whose_replacement_was_interrupted(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a", shards=2) as writer:
        writer.write(b"x")
    old = tmp_path / ".tfseek-replaced"
    old.mkdir()
    shard = tmp_path / "a-00001-of-00002.tfrecord"
    shard.rename(old / shard.name)
    for path in [tmp_path, tmp_path / "a-*", tmp_path / "a@2.tfrecord", shard]:
        with pytest.raises(tfseek.NotFoundError, match="interrupted.* 1 old file is in .*move the old files back") as found:
            tfseek.open(path)
        assert found.value.filename == str(tmp_path / "a@2.tfrecord") and str(old) in str(found.value)
    with tfseek.Writer(tmp_path / "a", shards=2) as writer:
        writer.write(b"y")
    assert not old.exists() and bytes(tfseek.open(tmp_path)[0]) == b"y"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="requires mkfifo")
def test_io_errors_without_a_number_have_their_text(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "pipe.tfrp"
    os.mkfifo(pipe)
    with pytest.raises(tfseek.IoError) as found:
        tfseek.open(pipe, io="pread")
    e = found.value
    assert e.errno is None and e.filename == str(pipe)
    assert e.strerror and "regular file" in e.strerror
    assert str(e) == f"{pipe}: {e.strerror}"


def test_errors_are_pickled(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tfseek.NotFoundError) as missing:
        tfseek.open(tmp_path / "nosuch")
    with pytest.raises(tfseek.DataError) as damaged:
        tfseek.parse_example([b"", b"\x0a"], {"x": tfseek.VarLenFeature("int64")})
    e: Any
    for e in (missing.value, damaged.value, tfseek.IoError("x")):
        copy = pickle.loads(pickle.dumps(e))
        assert type(copy) is type(e) and str(copy) == str(e) and copy.args == e.args
        for name in ("path", "record", "row", "category", "errno", "strerror", "filename"):
            assert getattr(copy, name, None) == getattr(e, name, None), name


def shards(folder: pathlib.Path, count: int) -> None:
    with tfseek.Writer(folder / "x", shards=count) as writer:
        for i in range(count):
            writer.write(tfseek.Example(features(i)))


def test_errors_name_the_options_of_python(tmp_path: pathlib.Path) -> None:
    """Messages do not contain options of the command or of Rust."""
    shards(tmp_path, 3)
    first, second, _ = sorted(tmp_path.glob("x-*"))
    messages = []

    def raised(kind: type[tfseek.Error], call: Any, *words: str) -> None:
        with pytest.raises(kind) as e:
            call()
        messages.append(str(e.value))
        for word in words:
            assert word in str(e.value)

    ds = tfseek.open(first, index="memory", io="pread")
    raised(tfseek.SidecarError, lambda: tfseek.open(first, index="require"), f'tfseek.build_index("{first}")')
    # The message names the command, which builds columns.
    raised(
        tfseek.SidecarError,
        lambda: tfseek.open(first, index="require", index_dir=tmp_path / "i", columns=["label"])
        if tfseek.build_index(first, index_dir=tmp_path / "i")
        else None,
        "tfseek index",
        "--column label",
    )
    messages.pop()
    second.unlink()
    raised(tfseek.NotFoundError, lambda: tfseek.open(tmp_path / "x-*"), "allow_missing=True")
    raised(tfseek.NotFoundError, lambda: tfseek.build_index(tmp_path / "x-*"), "allow_missing=True")
    # A record changed in place after its shard was indexed.
    payload = first.read_bytes()
    assert len(ds) == 1 and payload and ds[0]
    with tfseek.Writer(tmp_path / "other") as writer:
        writer.write(payload)
    with open(first, "r+b") as file:
        file.write((tmp_path / "other").read_bytes()[:12])
    raised(tfseek.DataError, lambda: ds[0], "rebuild=True")
    for text in messages:
        for word in ("--", "Dataset::", "Options::", "tfseek index"):
            assert word not in text, text
