"""``tfseek.stream``: files in order, without an index."""

from __future__ import annotations

import gzip
import os
import pathlib
import pickle
import threading
import zlib
from typing import Any

import numpy as np
import pytest
from conftest import SPEC, features, in_threads, write_records
from test_process import run

import tfseek


def write(path: pathlib.Path, numbers: range, compression: str = "none") -> str:
    write_records(path, (tfseek.Example(features(i)) for i in numbers), compression=compression)
    return str(path)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A hundred records in a gzip, a plain, an empty and a zlib file."""
    folder = tmp_path_factory.mktemp("mixed")
    return [
        write(folder / "a.tfrecord.gz", range(40), "gzip"),
        write(folder / "b.tfrecord", range(40, 70)),
        write(folder / "c.tfrecord", range(0)),
        write(folder / "d.tfrecord.zz", range(70, 100), "zlib"),
    ]


def labels(records: Any) -> list[int]:
    return [int(record["label"][0]) for record in records]


def test_records_of_all_compressions_in_order(mixed: list[str], shards: str) -> None:
    stream = tfseek.stream(mixed)
    assert stream.paths == mixed
    records = list(stream)
    assert labels(records) == list(range(100))
    assert all(isinstance(record, tfseek.Example) for record in records)
    assert bytes(records[7]) == tfseek.Example(features(7)).to_bytes()
    # Each iteration begins again at the first file.
    assert labels(stream) == labels(pickle.loads(pickle.dumps(stream))) == list(range(100))
    first = iter(stream)
    assert labels([next(first)]) == labels([next(iter(stream))]) == [0] and labels([next(first)]) == [1]
    # Paths resolve as in `tfseek.open`.
    folder = pathlib.Path(mixed[0]).parent
    assert labels(tfseek.stream(folder)) == list(range(100))
    assert labels(tfseek.stream(folder / "?.tfrecord.gz")) == list(range(40))
    assert [bytes(record) for record in tfseek.stream(shards)] == [bytes(record) for record in tfseek.open(shards)]
    # No index is built.
    assert not (folder / ".tfseek").exists()


def test_kinds(mixed: list[str], tmp_path: pathlib.Path) -> None:
    assert next(iter(tfseek.stream(mixed, kind="bytes"))) == tfseek.Example(features(0)).to_bytes()
    path = tmp_path / "s.tfrecord.gz"
    write_records(path, (tfseek.SequenceExample({"id": i}, {"steps": [[1], [2, 3]]}) for i in range(3)), compression="gzip")
    (one, *_) = tfseek.stream(path)
    assert isinstance(one, tfseek.SequenceExample) and one.context["id"].tolist() == [0]
    write_records(path, [b"text", b"x" * 3_000_000], compression="gzip")
    assert list(tfseek.stream(path)) == [b"text", b"x" * 3_000_000]
    assert all(isinstance(record, tfseek.Example) for record in tfseek.stream(path, kind="example"))
    assert list(tfseek.stream(write(tmp_path / "empty.tfrecord", range(0)))) == []


def test_options_are_checked(mixed: list[str], tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match='compression: invalid name "lz4" .*: expected none, gzip or zlib'):
        tfseek.stream(mixed, compression="lz4")
    with pytest.raises(tfseek.NotFoundError):
        tfseek.stream(tmp_path / "absent")
    # The file is sound, so no way around damage is named.
    with pytest.raises(tfseek.DataError, match="b.tfrecord: expected gzip, found an uncompressed file$"):
        list(tfseek.stream(mixed[1], compression="gzip"))
    assert labels(tfseek.stream(mixed[3], compression="zlib")) == list(range(70, 100))
    with pytest.raises(tfseek.DataError) as e:
        list(tfseek.stream(mixed[0], max_record=10))
    assert (e.value.path, e.value.record, e.value.offset) == (mixed[0], 0, 0)
    with pytest.raises(RuntimeError, match="pickle its Stream"):
        pickle.dumps(iter(tfseek.stream(mixed)))


def test_damage_follows_the_records_before_it(mixed: list[str], tmp_path: pathlib.Path) -> None:
    data = bytearray(pathlib.Path(mixed[1]).read_bytes())
    (size, *_) = {len(bytes(record)) + 16 for record in tfseek.stream(mixed[1]) if labels([record]) == [40]}
    data[size + 20] ^= 1
    damaged = tmp_path / "damaged.tfrecord.gz"
    damaged.write_bytes(gzip.compress(bytes(data)))
    records = iter(tfseek.stream([mixed[0], str(damaged), mixed[3]]))
    assert labels(next(records) for _ in range(41)) == list(range(41))
    with pytest.raises(tfseek.DataError) as e:
        next(records)
    assert (e.value.path, e.value.record, e.value.offset) == (str(damaged), 1, size)
    assert list(records) == []
    assert len(list(tfseek.stream(damaged, verify="header", kind="example"))) == 30
    batches = tfseek.stream(damaged).batches(SPEC, 10)
    assert next(batches)["label"].tolist() == [40]
    with pytest.raises(tfseek.DataError):
        next(batches)
    assert list(batches) == []
    with pytest.raises(tfseek.DataError):
        next(tfseek.stream(damaged).batches(SPEC, 10, drop_last=True))
    with pytest.raises(tfseek.DataError):
        tfseek.stream(damaged).sample(3)


def test_damage_is_left_out(mixed: list[str], tmp_path: pathlib.Path) -> None:
    plain, packed = tmp_path / "b.tfrecord", tmp_path / "b.tfrecord.gz"
    content = bytearray(pathlib.Path(mixed[1]).read_bytes())
    size = len(content) // 30
    content[size * 3] ^= 1  # a length
    content[size * 7 + 20] ^= 1  # a payload
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    sound = [i for i in range(40, 70) if i not in (43, 47)]
    for path in [plain, packed]:
        with pytest.raises(tfseek.DataError, match='record 3 at byte .*damage="skip" leaves it out, the command `tfseek salvage`'):
            list(tfseek.stream(path))
        records = tfseek.stream(path, damage="skip")
        with pytest.warns(tfseek.Warning, match="2 damaged ranges are left out"):
            assert labels(records) == sound
        (warning,) = records.warnings
        assert (warning.kind, warning.path, warning.records, len(warning.gaps or [])) == ("damage_skipped", str(path), 28, 2)
        with pytest.warns(tfseek.Warning):
            assert labels(tfseek.open(path, damage="skip", index_dir=tmp_path / "i")) == sound
    with pytest.raises(ValueError, match="damage"):
        tfseek.stream(plain, damage="ignore")


def test_torn_tail(mixed: list[str], tmp_path: pathlib.Path) -> None:
    torn = tmp_path / "torn.tfrecord"
    torn.write_bytes(pathlib.Path(mixed[1]).read_bytes()[:-5])
    with pytest.raises(tfseek.DataError):
        list(tfseek.stream(torn))
    assert labels(tfseek.stream(torn, tail="tolerate")) == list(range(40, 69))


@pytest.mark.parametrize("cut, rest", [(3, b""), (8, b""), (0, b"garbage")])
def test_torn_tail_of_a_gzip_file(tmp_path: pathlib.Path, cut: int, rest: bytes) -> None:
    path = tmp_path / "torn.tfrecord.gz"
    write_records(path, (tfseek.Example({"label": i}) for i in range(30)), compression="gzip")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut] + rest)
    with pytest.raises(tfseek.DataError):
        list(tfseek.stream(path))
    with pytest.raises(tfseek.DataError):
        tfseek.open(path, index_dir=tmp_path / "i")
    assert labels(tfseek.stream(path, tail="tolerate")) == list(range(30))
    for _ in range(2):
        assert labels(tfseek.open(path, index_dir=tmp_path / "i", tail="tolerate")) == list(range(30))
    with pytest.raises(tfseek.DataError, match="according to the index") as torn:
        tfseek.open(path, index_dir=tmp_path / "i")
    assert torn.value.category == "truncated"


def test_errors_of_a_feature_have_the_location(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    bad = b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02\x08"
    write_records(path, [tfseek.Example({"a": 1}), bad, tfseek.Example({"a": 3})], compression="gzip")
    stream = tfseek.stream(path, kind="example")
    (one, two, _) = stream
    with pytest.raises(tfseek.DataError) as e:
        two["a"]
    assert (e.value.path, e.value.record, e.value.offset) == (str(path), 1, len(bytes(one)) + 16)
    batches = stream.batches({"a": tfseek.FixedLenFeature([], "int64")}, 2)
    with pytest.raises(tfseek.DataError) as e:
        next(batches)
    assert (e.value.path, e.value.record, e.value.row) == (str(path), 1, 1)
    assert next(batches)["a"].tolist() == [3]


def test_batches(mixed: list[str], tmp_path: pathlib.Path) -> None:
    stream = tfseek.stream(mixed)
    found = list(stream.batches(SPEC, 32))
    assert [len(batch["label"]) for batch in found] == [32, 32, 32, 4]
    for k, batch in enumerate(found):
        want = tfseek.parse_example([tfseek.Example(features(i)) for i in range(32 * k, min(100, 32 * k + 32))], SPEC)
        assert list(batch) == list(want)
        for name in ("label", "emb", "name"):
            assert np.array_equal(batch[name], want[name])
        assert all(np.array_equal(a, b) for a, b in zip(batch["tokens"], want["tokens"]))
    assert [len(batch["label"]) for batch in stream.batches(SPEC, 32, drop_last=True)] == [32, 32, 32]
    batch = next(stream.batches(tfseek.Schema(SPEC), 3, bytes_as="offsets"))
    assert isinstance(batch["name"], tfseek.Bytes) and bytes(batch["name"].data[:8]) == b"record 0"
    path = tmp_path / "s.tfrecord.gz"
    write_records(path, (tfseek.SequenceExample({"id": i}, {"steps": [[1], [2]]}) for i in range(3)), compression="gzip")
    schema = tfseek.Schema(
        context_features={"id": tfseek.FixedLenFeature([], "int64")},
        sequence_features={"steps": tfseek.FixedLenSequenceFeature([], "int64")},
    )
    ((context, lists, lengths),) = tfseek.stream(path).batches(schema, 8)
    assert context["id"].tolist() == [0, 1, 2] and lists["steps"].shape == (3, 2) and lengths["steps"].tolist() == [2] * 3
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"batch_size: expected at least 1, found {size}"):
            stream.batches(SPEC, size)
    with pytest.raises(tfseek.SpecError):
        stream.batches({}, 3)
    with pytest.raises(ValueError, match="bytes_as"):
        stream.batches(SPEC, 3, bytes_as="x")


def test_sample(mixed: list[str]) -> None:
    stream = tfseek.stream(mixed)
    drawn = stream.sample(10, seed=3)
    assert drawn == stream.sample(10, seed=3) == tfseek.stream(mixed).sample(10, 3)
    # The same on every machine.
    assert labels(drawn) == [14, 27, 28, 36, 50, 57, 66, 81, 85, 96]
    assert labels(stream.sample(10)) != labels(drawn) != labels(stream.sample(10, seed=-3))
    assert labels(stream.sample(1000)) == labels(stream.sample(100)) == list(range(100))
    assert stream.sample(0) == []
    assert tfseek.stream(mixed, kind="bytes").sample(100, 1)[0] == bytes(next(iter(stream)))
    # Each record is equally likely: its count has mean 100 and a standard deviation of 7.
    counts = np.bincount([i for seed in range(200) for i in labels(tfseek.stream(mixed[1:]).sample(30, seed))])
    assert (abs(counts[40:] - 100) < 40).all()
    with pytest.raises(ValueError, match="n: expected at least 0, found -1"):
        stream.sample(-1)


def test_the_command_draws_the_same_sample(tmp_path: pathlib.Path) -> None:
    """`crates/cli/tests/one_pass.rs` has the same numbers for `tfseek sample`."""
    files = [
        write(tmp_path / "a.tfrecord.gz", range(50), "gzip"),
        write(tmp_path / "b.tfrecord.zz", range(50, 80), "zlib"),
        write(tmp_path / "c.tfrecord", range(80, 100)),
    ]
    assert labels(tfseek.stream(files).sample(7, 3)) == [3, 13, 24, 30, 78, 82, 93]


def test_unpacked_files_open_as_a_folder(tmp_path: pathlib.Path) -> None:
    for name in ("x.tfrecord.gz", "part-0-of-1.gz", "weird.gz"):
        write(tmp_path / name, range(3), "gzip")
    written = tfseek.unpack(str(tmp_path / "*.gz"), tmp_path / "plain")
    assert [os.path.basename(path) for path in written] == ["part-0-of-1.tfrecord", "weird.tfrecord", "x.tfrecord"]
    ds = tfseek.open(tmp_path / "plain")
    assert len(ds) == 9 and ds.warnings == []


def test_members_of_gzip_are_joined(mixed: list[str], tmp_path: pathlib.Path) -> None:
    both = tmp_path / "both.gz"
    both.write_bytes(pathlib.Path(mixed[0]).read_bytes() + gzip.compress(pathlib.Path(mixed[1]).read_bytes()))
    assert labels(tfseek.stream(both)) == list(range(70))
    both.write_bytes(zlib.compress(pathlib.Path(mixed[0]).read_bytes()))
    with pytest.raises(tfseek.Error):
        list(tfseek.stream(both))


def test_threads(mixed: list[str]) -> None:
    """Each thread has its own iterator, while the main thread does other work."""
    stream, found = tfseek.stream(mixed), []
    in_threads(lambda _: found.append(labels(stream)), range(4))
    assert found == [list(range(100))] * 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="requires FIFOs")
def test_pipes(mixed: list[str], tmp_path: pathlib.Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(pathlib.Path(mixed[0]).read_bytes()))
    writer.start()
    assert labels(tfseek.stream(fifo)) == list(range(40))
    writer.join()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("use", ["list(stream)", "list(stream.batches(SPEC, 8))", "stream.sample(3)"])
@pytest.mark.parametrize("opened", [False, True])
def test_ctrl_c_while_a_pipe_blocks(shards: str, tmp_path: pathlib.Path, use: str, opened: bool) -> None:
    run(f"""
path = sys.argv[2]
os.mkfifo(path)
if {opened}:
    writer = os.open(path, os.O_RDWR)
    os.write(writer, b"\\x00" * 5)
stream = tfseek.stream(path)
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    {use}
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
# Nobody writes to the pipe.
""", shards, str(tmp_path / "fifo"))


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_in_a_large_record(shards: str, tmp_path: pathlib.Path) -> None:
    """A signal ends the decompression of one long record."""
    path = tmp_path / "large.tfrecord.gz"
    write_records(path, [bytes(400_000_000)], compression="gzip", level=1)
    run("""
for use in (lambda stream: list(stream), lambda stream: stream.sample(1)):
    try:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        use(tfseek.stream(sys.argv[2], kind="bytes"))
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        pass
""", shards, str(path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_forked_child_begins_its_own_iteration(shards: str, tmp_path: pathlib.Path, mixed: list[str]) -> None:
    run("""
import warnings; warnings.simplefilter("ignore")
stream = tfseek.stream(sys.argv[2])
records = iter(stream); next(records)
if os.fork() == 0:
    try:
        next(records)
    except RuntimeError as e:
        ok = "another iteration" in str(e) and len(list(stream)) == 40
    os._exit(0 if ok else 1)
assert os.wait()[1] == 0
assert len(list(records)) == 39
""", shards, mixed[0])


def test_unpack(mixed: list[str], tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out" / "plain"
    folder = pathlib.Path(mixed[0]).parent
    calls: list[tuple[int, Any]] = []
    written = tfseek.unpack(folder, out, progress=lambda done, total: calls.append((done, total)))
    # Files that are not compressed are skipped.
    assert written == [str(out / "a.tfrecord"), str(out / "d.tfrecord")]
    assert sorted(os.listdir(out)) == ["a.tfrecord", "d.tfrecord"]
    size = sum(os.path.getsize(mixed[k]) for k in (0, 3))
    assert calls[-1][1] == size and calls[-1][0] >= size
    assert labels(tfseek.open(out)) == [*range(40), *range(70, 100)]
    assert (out / "a.tfrecord").read_bytes() == gzip.decompress(pathlib.Path(mixed[0]).read_bytes())


def test_unpack_replaces_only_if_forced(mixed: list[str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"old")
    with pytest.raises(tfseek.Error, match=r"a\.tfrecord: already exists \(force=True replaces it\)"):
        tfseek.unpack(mixed, tmp_path)
    # The other files are unpacked.
    assert (tmp_path / "a.tfrecord").read_bytes() == b"old"
    assert labels(tfseek.open(tmp_path / "d.tfrecord")) == list(range(70, 100))
    assert len(tfseek.unpack(mixed, tmp_path, force=True)) == 2
    assert labels(tfseek.open(tmp_path / "a.tfrecord")) == list(range(40))


def test_unpack_refuses_names_that_clash(mixed: list[str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "x").mkdir()
    one, two = str(tmp_path / "a.tfrecord.gz"), str(tmp_path / "x" / "a.tfrecord.gz")
    for path in (one, two):
        pathlib.Path(path).write_bytes(pathlib.Path(mixed[0]).read_bytes())
    with pytest.raises(tfseek.Error, match="would both be written to .*a.tfrecord"):
        tfseek.unpack([one, two], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "a.tfrecord").write_bytes(pathlib.Path(mixed[1]).read_bytes())
    with pytest.raises(tfseek.Error, match="a.tfrecord: is an input, so it cannot be an output"):
        tfseek.unpack([one, str(tmp_path / "a.tfrecord")], tmp_path, force=True)


def test_unpack_of_damaged_files_leaves_no_file(mixed: list[str], tmp_path: pathlib.Path) -> None:
    damaged, out = tmp_path / "a.tfrecord.gz", tmp_path / "out"
    damaged.write_bytes(pathlib.Path(mixed[0]).read_bytes()[:-100])
    text = tmp_path / "b.tfrecord"
    text.write_bytes(b"<html>not a record</html>")
    with pytest.raises(tfseek.DataError) as e:
        tfseek.unpack([str(damaged), str(text), mixed[3]], out)
    assert e.value.path == str(damaged)
    assert os.listdir(out) == ["d.tfrecord"]
    with pytest.raises(tfseek.Error, match="b.tfrecord: "):
        tfseek.unpack(text, out)
    with pytest.raises(tfseek.NotFoundError):
        tfseek.unpack(tmp_path / "absent", out)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="requires mkfifo")
def test_unpack_reads_the_files_that_it_looked_at(mixed: list[str], tmp_path: pathlib.Path) -> None:
    fifo, second, other = tmp_path / "a.gz", tmp_path / "b.gz", tmp_path / "other"
    os.mkfifo(fifo)
    packed = pathlib.Path(mixed[0]).read_bytes()
    second.write_bytes(packed)
    other.write_bytes(pathlib.Path(mixed[1]).read_bytes())

    def feed() -> None:
        # The pipe opens when it is its turn, after all files were looked at.
        with open(fifo, "wb") as pipe:
            os.replace(other, second)
            pipe.write(packed)

    thread = threading.Thread(target=feed)
    thread.start()
    written = tfseek.unpack([str(fifo), str(second)], tmp_path / "out")
    thread.join()
    assert [labels(tfseek.open(path)) for path in written] == [list(range(40))] * 2


def test_an_exception_of_the_callable_ends_unpack(mixed: list[str], tmp_path: pathlib.Path) -> None:
    def fail(done: int, total: Any) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        tfseek.unpack(mixed, tmp_path / "out", progress=fail)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_unpack(shards: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "large.tfrecord.gz"
    write_records(path, (bytes(1_000_000) for _ in range(1000)), compression="gzip", level=1)
    run("""
os.mkdir(sys.argv[3])
try:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    tfseek.unpack(sys.argv[2], sys.argv[3])
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
# The thread that wrote cleans up.
while os.listdir(sys.argv[3]):
    time.sleep(0.01)
""", shards, str(path), str(tmp_path / "out"))


def test_batches_leave_out_records_that_do_not_decode(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.tfrecord"
    spec = {"label": tfseek.FixedLenFeature([], "int64")}
    write_records(path, (b"\x0a\x7f" if i in (3, 4, 9, 19) else tfseek.Example({"label": "text" if i == 5 else i}) for i in range(20)))
    labels = [i for i in range(20) if i not in (3, 4, 5, 9, 19)]
    for drop_last, expected in ((False, [4, 4, 4, 3]), (True, [4, 4, 4])):
        stream = tfseek.stream(path, kind="example", damage="skip")
        with pytest.warns(tfseek.Warning) as found:
            batches = [batch["label"].tolist() for batch in stream.batches(spec, 4, drop_last=drop_last)]
        assert [len(batch) for batch in batches] == expected
        assert [label for batch in batches for label in batch] == labels[: sum(expected)]
        warning: Any = found[0].message
        assert len(found) == 1
        assert warning.kind == "payloads_skipped" and "record 3" in str(warning) and "5 records" in str(warning)
        assert [each.kind for each in stream.warnings] == ["payloads_skipped"]
    with pytest.raises(tfseek.DataError, match="record 3"):
        list(tfseek.stream(path, kind="example").batches(spec, 4))
    only = tmp_path / "only.tfrecord"
    write_records(only, [b"\x0a\x7f"])
    with pytest.warns(tfseek.Warning, match="1 record"):
        assert list(tfseek.stream(only, kind="example", damage="skip").batches(spec, 4)) == []
