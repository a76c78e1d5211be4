"""Error messages and classes."""

from __future__ import annotations

import errno
import gzip
import os
import pathlib
import pickle
import zlib
from typing import Any, Callable

import pytest
from conftest import features, write_records

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
    write_records(tmp_path / "a", [b"x"], shards=2)
    old = tmp_path / ".tfseek-replaced"
    old.mkdir()
    shard = tmp_path / "a-00001-of-00002.tfrecord"
    shard.rename(old / shard.name)
    for path in [tmp_path, tmp_path / "a-*", tmp_path / "a@2.tfrecord", shard]:
        with pytest.raises(tfseek.NotFoundError, match="interrupted.* 1 old file is in .*move the old files back") as found:
            tfseek.open(path)
        assert found.value.filename == str(tmp_path / "a@2.tfrecord") and str(old) in str(found.value)
    write_records(tmp_path / "a", [b"y"], shards=2)
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
    write_records(folder / "x", (tfseek.Example(features(i)) for i in range(count)), shards=count)


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
    write_records(tmp_path / "other", [payload])
    with open(first, "r+b") as file:
        file.write((tmp_path / "other").read_bytes()[:12])
    raised(tfseek.SidecarError, lambda: ds[0], "rebuild=True")
    for text in messages:
        for word in ("--", "Dataset::", "Options::", "tfseek index"):
            assert word not in text, text


def test_misspelt_names_suggest_the_nearest(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", [{"label": 3, "image/format": "png"}])
    write_records(tmp_path / "s.tfrecord", [tfseek.SequenceExample({"label": 3}, {"tokens": [[1]]})])
    ds = tfseek.open(tmp_path / "a.tfrecord", index="memory")
    sequences = tfseek.open(tmp_path / "s.tfrecord", index="memory", kind="sequence_example")
    for key, end in (
        ("lable", 'no feature "lable"; the nearest name is "label"'),
        ("format", 'no feature "format"; the nearest name is "image/format"'),
        ("nothing", 'no feature "nothing"; there are "image/format", "label"'),
    ):
        with pytest.raises(KeyError) as e:
            ds[0][key]
        assert e.value.args == (end,)
    with pytest.raises(KeyError, match='no feature "a"; there are none'):
        tfseek.Example()["a"]
    with pytest.raises(KeyError, match='no feature list "token"; the nearest name is "tokens"'):
        sequences[0].feature_lists["token"]
    with pytest.raises(KeyError, match='no context feature and no feature list "Label"; the nearest name is "label"'):
        sequences[0]["Label"]
    with pytest.raises(KeyError, match='no feature "lable"; the nearest name is "label"'):
        tfseek.stats(ds).feature("lable")

    spec = {"lable": tfseek.FixedLenFeature([], "int64")}
    message = 'feature "lable": expected int64, found no such feature; the nearest name is "label"'
    calls: list[Callable[[], Any]] = [
        lambda: tfseek.parse_example(ds, spec),
        lambda: tfseek.parse_single_example(ds[0], spec),
        lambda: next(iter(tfseek.Loader(ds, spec, batch_size=1))),
        lambda: next(tfseek.stream(tmp_path / "a.tfrecord").batches(spec, 1)),
    ]
    for call in calls:
        with pytest.raises(tfseek.DataError, match=message) as found:
            call()
        assert (found.value.feature, found.value.category) == ("lable", "missing_feature")
    lists = {"tokns": tfseek.FixedLenSequenceFeature([], "int64")}
    with pytest.raises(tfseek.DataError, match='"tokns": .*the nearest name is "tokens"'):
        tfseek.parse_sequence_example(sequences, {}, lists)
    with pytest.raises(tfseek.DataError, match="found no such feature$"):
        tfseek.parse_example(ds, {"other": tfseek.FixedLenFeature([], "int64")})


def test_sets_with_another_number_of_shards_are_named(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "train", [{"a": 1}], shards=4)
    for name in ("train@5.tfrecord", "train@4"):
        with pytest.raises(tfseek.NotFoundError, match=rf"no file matches .*{name}, but there is train@4.tfrecord") as e:
            tfseek.open(tmp_path / name)
        assert e.value.filename == str(tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": "2"}, TypeError, "batch_size: expected an integer, found '2'"),
        ({"batch_size": 2.0}, TypeError, "batch_size: expected an integer, found 2.0"),
        ({"batch_size": 0}, tfseek.OrderError, "batch_size: expected at least 1, found 0"),
        ({"global_batch_size": -1}, tfseek.OrderError, "global_batch_size: expected at least 1, found -1"),
        ({"batch_size": 2, "threads": "4"}, TypeError, "threads: expected an integer, found '4'"),
        ({"batch_size": 2, "epoch": -1}, OverflowError, "epoch: expected an integer of at least 0, found -1"),
        ({"batch_size": 10**30}, OverflowError, f"batch_size: expected a smaller integer, found {10**30}"),
    ],
)
def test_wrong_arguments_are_named(ds: tfseek.Dataset, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        tfseek.Loader(ds, **arguments)
    with pytest.raises(TypeError, match="^threads: expected an integer, found 'x'$"):
        tfseek.open(ds.shards[0], threads="x")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="^features: expected a dict such as .* found list$"):
        tfseek.Loader(ds, ["label"], batch_size=2)  # type: ignore[call-overload]


def test_files_that_are_compressed_twice(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", [{"a": 1}])
    once = gzip.compress((tmp_path / "a.tfrecord").read_bytes())
    twice = tmp_path / "twice.tfrecord.gz"
    twice.write_bytes(gzip.compress(once))
    mixed = tmp_path / "mixed.tfrecord.gz"
    mixed.write_bytes(gzip.compress(zlib.compress((tmp_path / "a.tfrecord").read_bytes())))
    calls: list[Callable[[pathlib.Path], Any]] = [
        lambda path: tfseek.unpack(path, tmp_path / "out"),
        lambda path: tfseek.open(path, index="memory"),
        lambda path: list(tfseek.stream(path)),
        lambda path: tfseek.stats(path),
    ]
    for path, inner in ((twice, "gzip"), (mixed, "zlib")):
        for call in calls:
            with pytest.raises(tfseek.DataError, match=f"compressed twice: expected records in the gzip stream, found a {inner} stream"):
                call(path)
    assert [error.args[0] for error in tfseek.verify(twice).errors][0].endswith("(`gzip -dc` decompresses it once)")
    # A compressed file whose first record is damaged is no such file.
    plain = bytearray((tmp_path / "a.tfrecord").read_bytes())
    plain[9] ^= 1
    twice.write_bytes(gzip.compress(plain))
    with pytest.raises(tfseek.DataError, match="length crc32c"):
        tfseek.open(twice, index="memory")
