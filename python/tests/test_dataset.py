"""Datasets, read through maps and with positional reads."""

from __future__ import annotations

import collections.abc
import os
import pathlib
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, features, write_records, written

import tfseek


def numbers(items: Any) -> list[int]:
    return [int(ex["label"][0]) for ex in items]


def test_is_a_sequence(ds: tfseek.Dataset, labels: list[int]) -> None:
    assert len(ds) == RECORDS and isinstance(ds, collections.abc.Sequence)
    assert numbers(ds) == labels
    assert numbers([ds[7], ds[-1], ds[np.int64(3)]]) == [labels[7], labels[-1], labels[3]]
    assert ds.kind == "example" and [os.path.basename(path) for path in ds.shards][0] == "train-00000-of-00003.tfrecord"
    for beyond in (RECORDS, -RECORDS - 1, 2**62):
        with pytest.raises(IndexError) as e:
            ds[beyond]
        assert isinstance(e.value, tfseek.Error)
    key: Any
    for key in ("label", 1.5, [1.5], [[1]], None):
        with pytest.raises(TypeError):
            ds[key]


@pytest.mark.parametrize(
    "key", [slice(10, 20), slice(None, None, -1), slice(-5, None), slice(900, 10, -7), slice(5, 5), slice(2, 10**9, 300)]
)
def test_slices_are_those_of_a_list(ds: tfseek.Dataset, labels: list[int], key: slice) -> None:
    view = ds[key]
    assert isinstance(view, tfseek.Dataset)
    assert numbers(view) == labels[key]
    assert numbers(view[1:-1]) == labels[key][1:-1]
    assert numbers(view[::-2]) == labels[key][::-2]
    assert view.ids.tolist() == list(range(RECORDS))[key]


def test_lists_and_masks(ds: tfseek.Dataset, labels: list[int]) -> None:
    assert numbers(ds[[4, 2, -1, 4]]) == [labels[k] for k in (4, 2, -1, 4)]
    assert numbers(ds[np.array([9, 8], dtype=np.uint8)]) == [labels[9], labels[8]]
    mask = np.array(labels) % 100 == 0
    assert sorted(numbers(ds[mask])) == list(range(0, RECORDS, 100))
    assert numbers(ds[[5, 6, 7]][1:]) == [labels[6], labels[7]]
    assert len(ds[[]]) == 0 and list(ds[[]]) == []
    assert numbers(ds.get_many([3, 1, -2])) == numbers(ds.__getitems__([3, 1, -2])) == [labels[k] for k in (3, 1, -2)]
    with pytest.raises(IndexError):
        ds[[0, RECORDS]]
    with pytest.raises(IndexError):
        ds[mask[1:]]


def test_filter_keeps_the_order(ds: tfseek.Dataset, labels: list[int]) -> None:
    found = ds[::-1].filter("label in 3, 5..9")
    assert numbers(found) == [label for label in labels[::-1] if label in (3, 5, 6, 7, 8)]
    with pytest.raises(tfseek.SpecError):
        ds.filter("label ==")


def test_columns(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a", shards=2) as writer:
        for i in range(10):
            row: dict[str, Any] = {"label": i, "name": f"n{i}", "x": i / 2}
            if i == 4:
                row = {"label": i}
            writer.write(tfseek.Example(row))
    path = tmp_path / "a-*.tfrecord"
    order = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    for columns in ((), "label", ["x", "name", "label"]):
        for index in ("auto", "memory"):
            ds = tfseek.open(path, columns=columns, index=index)
            label, name, x = ds.column("label"), ds.column("name"), ds[::-1].column("x")
            assert label.values.dtype == np.int64 and label.values.tolist() == order and label.present.all()
            assert name.values.tolist() == [None if i == 4 else f"n{i}".encode() for i in order]
            assert name.present.tolist() == [i != 4 for i in order] and name.present.dtype == bool
            assert x.values.dtype == np.float32 and x.values.tolist() == [0 if i == 4 else i / 2 for i in order[::-1]]
            assert not label.values.flags.writeable and not name.values.flags.writeable
            assert [int(ex["label"][0]) for ex in ds.filter("label > 6 and present(x)")] == [8, 7, 9]
            with pytest.raises(tfseek.SpecError, match="no record has a value of this feature"):
                ds.column("no such feature")
    with pytest.raises(tfseek.SpecError):
        tfseek.open(path, columns="label").filter("label == 'a'")
    with pytest.raises(tfseek.SidecarError):
        tfseek.open(path, columns="unheard of", index="require")
    write_records(tmp_path / "two", [tfseek.Example({"label": [1, 2]})])
    with pytest.raises(tfseek.DataError) as e:
        tfseek.open(tmp_path / "two", columns=["label"])
    assert (e.value.record, e.value.feature) == (0, "label")


def test_unpickling_opens_the_files_and_compares_content(ds: tfseek.Dataset, shards: str, tmp_path: pathlib.Path) -> None:
    for view in (ds, ds[10:20], ds[[3, 1]], ds[::-1][5:10]):
        again = pickle.loads(pickle.dumps(view))
        assert repr(again) == repr(view) and numbers(again[:2]) == numbers(view[:2]) and len(again) == len(view)

    path = tmp_path / "a.tfrecord"
    write_records(path, [tfseek.Example({"label": 1})])
    kept = pickle.dumps(tfseek.open(path, index="memory"))
    write_records(path, [tfseek.Example({"label": 2})])
    with pytest.raises(tfseek.Error, match="changed since it was pickled"):
        pickle.loads(kept)


def test_repr_is_stable(ds: tfseek.Dataset, shards: str) -> None:
    assert repr(ds) == f'tfseek.Dataset("{shards}", records=1000)'
    assert repr(ds[[1, 2]]) == repr(ds[[1, 2]]) != repr(ds[[2, 1]])


def test_repr_of_a_prepared_data_set(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "x.tfrecord", [tfseek.Example({"label": 2})])
    (tmp_path / "features.json").write_text("{}")
    assert repr(tfseek.open(tmp_path, index="memory")).endswith(", records=1; tfseek.tfds.open decodes its features)")


def test_kinds(shards: str) -> None:
    raw = tfseek.open(shards, kind="bytes")[0]
    assert isinstance(raw, bytes) and tfseek.Example.from_bytes(raw) == tfseek.Example(features(0))
    assert isinstance(tfseek.open(shards, kind="sequence_example")[0], tfseek.SequenceExample)
    for bad in ({"kind": "x"}, {"io": "x"}, {"index": "x"}, {"verify": "x"}, {"tail": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            tfseek.open(shards, **bad)  # type: ignore[call-overload]


def test_paths(shards: str, tmp_path: pathlib.Path) -> None:
    files = tfseek.open(shards).shards
    assert len(tfseek.open(files[:1])) == 334
    assert len(tfseek.open(map(pathlib.Path, files))) == RECORDS
    with pytest.raises(FileNotFoundError) as e:
        tfseek.open(tmp_path / "nothing-*.tfrecord")
    assert isinstance(e.value, tfseek.Error) and isinstance(e.value, tfseek.IoError)
    os.link(files[0], tmp_path / "x-00000-of-00002.tfrecord")
    with pytest.raises(tfseek.NotFoundError, match="00001-of-00002"):
        tfseek.open(tmp_path)
    assert len(tfseek.open(tmp_path, allow_missing=True)) == 334


def test_errors_for_damage_have_a_location(shards: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    ends = []
    with tfseek.Writer(path) as writer:
        for i in range(10):
            writer.write(tfseek.Example(features(i)))
            ends.append(sum(len(tfseek.Example(features(k)).to_bytes()) + 16 for k in range(i + 1)))
    good = path.read_bytes()
    tfseek.open(path, index_dir=tmp_path / "index")
    bad = bytearray(good)
    bad[ends[3] + 20] ^= 1
    times = path.stat()
    path.write_bytes(bad)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    ds = tfseek.open(path, index_dir=tmp_path / "index")
    with pytest.raises(tfseek.DataError) as e:
        ds[4]
    assert (e.value.path, e.value.record, e.value.offset) == (str(path), 4, ends[3])
    assert e.value.category == "checksum_mismatch"
    assert str(e.value).startswith(f"{path}: record 4 at byte {ends[3]}: payload crc32c: expected")
    assert pickle.loads(pickle.dumps(e.value)).offset == ends[3]
    # Iteration yields the records before it.
    seen = []
    with pytest.raises(tfseek.DataError):
        for ex in ds:
            seen.append(ex)
    assert numbers(seen) == [0, 1, 2, 3]

    path.write_bytes(good[:-5])
    with pytest.raises(tfseek.DataError, match="truncated") as torn:
        tfseek.open(path, index="memory")
    assert torn.value.category == "truncated"
    assert len(tfseek.open(path, index="memory", tail="tolerate")) == 9
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(tfseek.DataError, match="expected a TFRecord file"):
        tfseek.open(path, index="memory")


def test_truncated_while_open(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    ds = written(path, (tfseek.Example(features(i)) for i in range(100)), io="pread")
    os.truncate(path, 200)
    with pytest.raises(tfseek.Error) as e:
        ds[99]
    assert e.value.path == str(path)


def test_a_stale_sidecar(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    for count in (5, 9):
        write_records(path, (tfseek.Example(features(i + count)) for i in range(count)))
        if count == 5:
            assert tfseek.build_index(path) == 5
        else:
            with pytest.raises(tfseek.SidecarError) as e:
                tfseek.open(path, index="require")
            assert e.value.path == str(path)
    assert numbers(tfseek.open(path)) == list(range(9, 18))


def test_required_index(shards: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFSEEK_INDEX_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(pathlib.Path(tfseek.open(shards).shards[0]).read_bytes())
    with pytest.raises(tfseek.SidecarError):
        tfseek.open(path, index="require")
    assert tfseek.build_index(path) == 334
    assert (tmp_path / ".tfseek").is_dir()
    assert len(tfseek.open(path, index="require")) == 334


def test_masked_values_are_refused(ds: tfseek.Dataset) -> None:
    ids = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    picked = np.ma.masked_array(np.ones(len(ds), dtype=bool), mask=np.arange(len(ds)) == 2)
    for call in (
        lambda: ds[ids],
        lambda: ds[picked],
        lambda: ds.get_many(ids),
        lambda: tfseek.Example({"x": ids}),
        lambda: tfseek.Example({"x": [ids, ids]}),
        lambda: tfseek.SequenceExample({}, {"x": [ids]}),
    ):
        with pytest.raises(ValueError, match="masked"):
            call()
    assert len(ds[np.ma.masked_array([1, 2])]) == 2


def test_features_are_looked_up_by_bytes(ds: tfseek.Dataset) -> None:
    ex = tfseek.Example({b"label": 3, "grüße".encode(): [1, 2]})
    assert ex == tfseek.Example({"label": 3, "grüße": [1, 2]})
    assert ex[b"label"].tolist() == [3] and ex["grüße".encode()].tolist() == [1, 2]
    assert ex.kind(b"label") == "int64" and b"label" in ex and b"x" not in ex and 3 not in ex
    assert ex.get(b"x", 7) == 7 and np.array_equal(ex.get(b"label", 0), [3])
    with pytest.raises(KeyError):
        ex[b"x"]
    for call in (lambda: ex[b"\xff"], lambda: ex.get(b"\xff"), lambda: tfseek.Example({b"\xff": 1})):
        with pytest.raises(ValueError, match="UTF-8"):
            call()
    with pytest.raises(ValueError, match="twice"):
        tfseek.Example({b"a": 1, "a": 1})
    assert b"\xff" not in ex
    sequence = tfseek.SequenceExample({b"id": 1}, {b"steps": [[1], [2]]})
    assert [step.tolist() for step in sequence.feature_lists[b"steps"]] == [[1], [2]]
    assert b"steps" in sequence.feature_lists and sequence.feature_lists.get(b"x") is None
    assert sequence.context[b"id"].tolist() == [1]
    assert ds.column(b"label").values.tolist() == ds.column("label").values.tolist()
    assert next(tfseek.Loader(ds, batch_size=4, balance=b"kind" if "kind" in ds[0] else b"label"))  # type: ignore[call-overload]


def test_a_folder_names_tfrecord_files_with_other_names(shards: str, tmp_path: pathlib.Path) -> None:
    shard = pathlib.Path(tfseek.open(shards).shards[0])
    for name in ("a.bin", "part-0"):
        (tmp_path / name).write_bytes(shard.read_bytes())
    (tmp_path / "notes.txt").write_text("nothing")
    # Without the extension the names do not matter.
    assert [pathlib.Path(path).name for path in tfseek.open(tmp_path).shards] == ["a.bin", "part-0"]
    (tmp_path / "x.tfrecord").write_bytes(shard.read_bytes())
    ds = tfseek.open(tmp_path)
    (warning,) = ds.warnings
    assert len(ds.shards) == 1 and ds.info()["warnings"] == 1
    assert (warning.kind, warning.path) == ("other_names", str(tmp_path))
    assert tfseek.stream(tmp_path).warnings == [warning]
    assert "2 files have other names but are TFRecord files and were not opened: a.bin, part-0" in warning.message
    assert len(tfseek.open([tmp_path / "part-*", tmp_path / "a.bin"]).shards) == 2


def test_functions_without_warnings_in_their_result_raise_them(shards: str, tmp_path: pathlib.Path) -> None:
    shard = pathlib.Path(tfseek.open(shards).shards[0]).read_bytes()
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "x.tfrecord").write_bytes(shard)
    text = "1 file has another name but is a TFRecord file and was not opened: part-0"
    calls: list[Any] = [
        lambda: tfseek.verify(folder),
        lambda: tfseek.build_index(folder),
        lambda: tfseek.unpack(folder, out),
        lambda: tfseek.stats(folder),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            call()
    (folder / "part-0").write_bytes(shard)
    for call in calls:
        with pytest.warns(UserWarning) as raised:
            call()
        assert [text in str(warning.message) for warning in raised] == [True], raised


def test_warnings_have_fields(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"")
    (tmp_path / ".tfseek").mkdir()
    (tmp_path / ".tfseek" / "a.tfrecord.tfri").write_bytes(b"no index")
    (warning,) = tfseek.open(path, index_dir=tmp_path / "i").warnings
    assert isinstance(warning, tfseek.Warning)
    assert warning.kind == "file_refused"
    assert warning.path is not None and warning.path.endswith("a.tfrecord.tfri")
    assert warning.message == str(warning) and "file is not used" in str(warning)


def test_filters_of_lists_strings_and_payloads(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(20):
            scores = [k / 4 for k in range(i % 4)] or None
            writer.write({"id": i, "scores": scores, "caption": f"a dog and {i} cats"})
    ds = tfseek.open(tmp_path / "a.tfrecord", index="memory")
    loaded = tfseek.open(tmp_path / "a.tfrecord", index="memory", columns="id")

    def ids(condition: str) -> list[int]:
        found: list[int] = ds.filter(condition).ids.tolist()
        assert loaded.filter(condition).ids.tolist() == found, condition
        return found

    assert ids("len(scores) == 3 and id > 10") == [11, 15, 19]
    assert ids("any(scores) > 0.4") == [3, 7, 11, 15, 19]
    assert ids("all(scores) < 0.3 and id < 8") == [1, 2, 5, 6]
    assert ids("caption contains 'd 1 '") == [1]
    assert ids(r"caption matches '\b1[23] cats$'") == [12, 13]
    assert ids("record in 3..5 or bytes(caption) > 16 and id < 12") == [3, 4, 10, 11]
    assert sorted(ids("split(0.5, seed=3)") + ids("not split(0.5, seed=3)")) == list(range(20))
    spec = {"id": tfseek.FixedLenFeature([], "int64")}
    batches = tfseek.Loader(ds.filter("len(scores) == 2"), spec, batch_size=5, shuffle=False)
    assert [batch["id"].tolist() for batch in batches] == [[2, 6, 10, 14, 18]]
    with pytest.raises(tfseek.SpecError, match=r"2 values: expected one") as caught:
        ds.filter("id > 1 and scores > 1")
    assert str(caught.value).endswith("\n  id > 1 and scores > 1\n             ^")
    assert (caught.value.record, caught.value.feature) == (2, "scores")
    with pytest.raises(tfseek.SpecError, match="nearest name is \"scores\""):
        ds.filter("len(score) > 1")


def sequences(path: pathlib.Path) -> list[tfseek.SequenceExample]:
    """Writes SequenceExamples, the first 16 without feature lists."""
    lists: list[dict[str, Any]] = [{}] * 16 + [{"frames": [[i], [i, i]]} for i in range(4)]
    records = [tfseek.SequenceExample({"id": i}, steps) for i, steps in enumerate(lists)]
    write_records(path, records)
    return records


def test_a_guessed_kind_that_a_later_record_contradicts(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.tfrecord"
    records = sequences(path)
    message = 'q.tfrecord: record 1[6-9] .*found a SequenceExample with feature lists .kind="sequence_example" reads it'
    ds = tfseek.open(path)
    assert ds.kind == "example" and len(ds[15]) == 1
    reads: dict[str, Callable[[], object]] = {
        "item": lambda: ds[18],
        "slice": lambda: list(ds[10:]),
        "get_many": lambda: ds.get_many([0, 17]),
        "sample": lambda: tfseek.stream(path).sample(20),
        "stats": lambda: tfseek.stats(path),
        "schema": lambda: ds.schema,
        "scan": lambda: ds.scan(["id"]),
    }
    for name, read in reads.items():
        with pytest.raises(tfseek.SpecError, match=message):
            read()
            pytest.fail(name)
    assert tfseek.open(path, kind="sequence_example").get_many(range(20)) == records
    # A stream guesses from the records that it reads together.
    guessed: list[Any] = list(tfseek.stream(path))
    assert guessed == list(tfseek.stream(path, kind="sequence_example")) == records
    assert tfseek.open(path, kind="sequence_example").schema.feature_lists == ["frames"]
    # Payloads have no guessed kind: all of them decide.
    assert tfseek.infer_schema([bytes(record) for record in records]).feature_lists == ["frames"]


def test_keys_may_end_in_a_carriage_return(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "crlf.tfrecord"
    ds = written(path, [{"x": 1, "label\r": 2}])
    assert ds.kind == "example" and ds.features == ["label\r", "x"] and ds[0]["label\r"].tolist() == [2]
    with pytest.raises(tfseek.DataError, match=r'feature "label": .*; the nearest name is "label\\r"'):
        tfseek.parse_example(ds, {"label": tfseek.FixedLenFeature([], "int64")})
