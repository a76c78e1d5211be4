"""Byte strings in every form of ``bytes_as``, and strings that repeat."""

from __future__ import annotations

import gc
import io
import os
import pathlib
import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from conftest import in_threads, write_records, written

import tfseek

FORMS = ("objects", "str", "offsets", "views", "S")
SPEC = {
    "one": tfseek.FixedLenFeature([], "string"),
    "two": tfseek.FixedLenFeature([2], "string"),
    "many": tfseek.RaggedFeature("string"),
    "some": tfseek.VarLenFeature("string"),
    "maybe": tfseek.Optional("string"),
}


def values(n: int) -> Iterator[dict[str, Any]]:
    """Yields features: few and many different values, empty ones, and lengths around the limits of the cache."""
    rng = np.random.default_rng(5)
    words = [b"", b"cat", b"dog", b"a chicken", "naïve".encode(), b"x" * 63, b"x" * 64, b"x" * 65, b"y" * 300]
    classes = [b"class %d" % k for k in range(3000)]
    for i in range(n):
        row: dict[str, Any] = {
            # Words at first, then values that never repeat, then words again.
            "one": words[rng.integers(len(words))] if i % 6000 < 3000 else b"unique %d" % i,
            "two": [classes[rng.integers(30)], classes[rng.integers(len(classes))]],
            "many": [words[k] for k in rng.integers(len(words), size=rng.integers(4))],
            "some": [b"%d" % k for k in rng.integers(12, size=rng.integers(3))],
        }
        if not row["many"]:
            row["many"] = None
        if not row["some"]:
            row["some"] = None
        if i % 3:
            row["maybe"] = words[i % 5]
        yield row


ROWS = list(values(9000))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("strings") / "strings.tfrecord"
    write_records(path, ROWS)
    return str(path)


def plain(value: Any) -> Any:
    """Returns a value of any form as ``bytes``."""
    if isinstance(value, np.ndarray):
        assert value.dtype == np.uint8 and value.ndim == 1 and not value.flags.writeable
        return value.tobytes()
    return value.encode() if isinstance(value, str) else value


def rows(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the features of the records of a batch, in the form of ``ROWS``."""
    columns = {
        "one": [plain(value) for value in batch["one"]],
        "two": [[plain(value) for value in row] for row in batch["two"]],
        "many": [[plain(value) for value in row] or None for row in batch["many"]],
        "some": [[plain(value) for value in row] or None for row in batch["some"]],
        "maybe": [plain(value) for value in batch["maybe"]],
    }
    found = [dict(zip(columns, row)) for row in zip(*columns.values())]
    for row in found:
        if row["maybe"] is None:
            del row["maybe"]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["map", "pread"])
def test_every_form_has_the_values(path: str, form: str, mode: str) -> None:
    ds = tfseek.open(path, io=mode)
    loader = tfseek.Loader(ds, SPEC, batch_size=500, bytes_as=form)
    assert [row for batch in loader for row in rows(batch)] == ROWS
    assert rows(tfseek.parse_example(ds, SPEC, bytes_as=form)) == ROWS
    stream = tfseek.stream(path).batches(SPEC, 1000, bytes_as=form)
    assert [row for batch in stream for row in rows(batch)] == ROWS
    if mode == "map":
        payloads = [bytes(ex) for ex in ds]
        schema = tfseek.Schema(SPEC)
        for _ in range(3):
            assert rows(tfseek.parse_example(payloads, schema, bytes_as=form)) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_a_single_record(path: str, form: str) -> None:
    ds = tfseek.open(path)
    for record in (ds[7], bytes(ds[7])):
        found = tfseek.parse_single_example(record, SPEC, bytes_as=form)
        one = found["one"].to_list() if form == "offsets" else found["one"]
        one = one[()] if isinstance(one, np.ndarray) else one
        assert plain(one) == ROWS[7]["one"]
        assert [plain(value) for value in found["two"]] == ROWS[7]["two"]
        assert [plain(value) for value in found["many"]] == (ROWS[7]["many"] or [])


def test_a_single_string_is_itself(path: str) -> None:
    """The buffer of an array with one object is a pointer."""
    ds = tfseek.open(path)
    expected = ROWS[7]["one"]
    spec = {"one": SPEC["one"]}
    lists = tfseek.SequenceExample({"one": expected}, {"steps": [[b"x"]]})
    given = {
        "parse_single_example": tfseek.parse_single_example(ds[7], spec)["one"],
        "parse_single_sequence_example": tfseek.parse_single_sequence_example(lists, spec)[0]["one"],
    }
    if find_spec("grain") is not None:
        from tfseek import grain

        given["grain"] = grain.source(ds, spec)[7]["one"]
    if find_spec("torch") is not None:
        from tfseek import torch

        given["torch"] = torch.Dataset(ds, spec)[7]["one"]
    for name, one in given.items():
        assert type(one) is bytes and io.BytesIO(one).getvalue() == expected, name
    text = tfseek.parse_single_example(tfseek.Example({"one": "é"}), spec, bytes_as="str")["one"]
    assert type(text) is str and text == "é"


def test_no_records_and_no_values() -> None:
    for form in FORMS:
        found = tfseek.parse_example([], SPEC, bytes_as=form)
        assert len(found["one"]) == 0 and len(found["many"]) == 0 and len(found["maybe"]) == 0
        found = tfseek.parse_example([tfseek.Example({"one": b"", "two": [b"", b""]})], SPEC, bytes_as=form)
        assert rows(found) == [{"one": b"", "two": [b"", b""], "many": None, "some": None}]


def test_values_that_repeat_are_one_object(path: str) -> None:
    words = tfseek.parse_example([tfseek.Example({"one": b"word %d" % (k % 9)}) for k in range(5000)], {"one": SPEC["one"]})["one"]
    # The first values are a sample.
    assert words.tolist() == [b"word %d" % (k % 9) for k in range(5000)]
    assert len({id(word) for word in words[2048:]}) == 9
    unique = tfseek.parse_example([tfseek.Example({"one": b"%d" % (k % 9) + b"x" * 70}) for k in range(5000)], {"one": SPEC["one"]})["one"]
    assert len({id(value) for value in unique}) == 5000
    loader = tfseek.Loader(tfseek.open(path)[:3000], {"one": SPEC["one"]}, batch_size=100)
    kept = [word for batch in loader for word in batch["one"] if len(word) <= 64]
    assert len({id(word) for word in kept[2048:]}) == 7


def test_a_column_of_a_dataset(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", ({"name": b"class %d" % (k % 50)} if k % 7 else {} for k in range(5000)))
    column = tfseek.open(tmp_path / "a.tfrecord").column("name")
    assert column.to_list() == [b"class %d" % (k % 50) if k % 7 else None for k in range(5000)]
    assert len({id(value) for value in column.values[2048:]}) < 500


def views(path: str, mode: str) -> tuple[Any, list[bytes]]:
    """Returns views whose batch, loader and dataset are gone."""
    ds = tfseek.open(path, io=mode)
    found, want = [], []
    for batch in tfseek.Loader(ds, {"one": SPEC["one"]}, batch_size=300, shuffle=True, seed=4, bytes_as="views", ids="id"):
        found.append(batch["one"][::50])
        want += [ROWS[k]["one"] for k in batch["id"][::50].tolist()]
    return [view for part in found for view in part], want


@pytest.mark.parametrize("mode", ["map", "pread"])
def test_views_keep_their_memory(path: str, mode: str) -> None:
    found, want = views(path, mode)
    gc.collect()
    # Other batches use the memory that was released.
    for batch in tfseek.Loader(tfseek.open(path, io=mode), SPEC, batch_size=300, bytes_as="views"):
        del batch
    assert [view.tobytes() for view in found] == want
    some = found[::7]
    del found
    gc.collect()
    assert [bytes(view) for view in some] == want[::7]


def test_uses_of_a_view(path: str) -> None:
    ds = tfseek.open(path)
    column = tfseek.parse_example(ds[:40], SPEC, bytes_as="views")["one"]
    assert column.dtype == object and not column.flags.writeable
    for view, row in zip(column, ROWS):
        want = row["one"]
        assert bytes(view) == want == memoryview(view) and len(view) == len(want)
        assert io.BytesIO(view).read() == want and np.asarray(view) is view
        copy = pickle.loads(pickle.dumps(view))
        assert copy.tobytes() == want
        with pytest.raises(ValueError, match="read-only"):
            view[:1] = 0
        with pytest.raises(ValueError, match="WRITEABLE|writeable|owner"):
            view.setflags(write=True)
    again = pickle.loads(pickle.dumps(column))
    assert [view.tobytes() for view in again] == [view.tobytes() for view in column]


def test_views_copy_nothing(path: str) -> None:
    ds = tfseek.open(path)
    records = [ds[k] for k in range(30)]
    for source in (records, ds[:30]):
        column = tfseek.parse_example(source, SPEC, bytes_as="views")["two"]
        for record, row in zip(records, column):
            raw = record.raw.__array_interface__["data"][0]
            for view in row:
                address = view.__array_interface__["data"][0]
                assert raw <= address < raw + len(record.raw)
    loader = tfseek.Loader(ds[:30], {"two": SPEC["two"]}, batch_size=30, bytes_as="views")
    (batch,) = loader
    assert [view.__array_interface__["data"][0] for view in batch["two"].flat] == [
        view.__array_interface__["data"][0] for view in column.flat
    ]


def test_methods_of_columns_of_views_and_of_fixed_width() -> None:
    payloads = [tfseek.Example({"many": [b"a", b"bc"], "maybe": b"x"}), tfseek.Example({"many": [b"def"]}), tfseek.Example({"maybe": b""})]
    spec = {name: SPEC[name] for name in ("many", "some", "maybe")}
    for form in ("views", "S"):
        found = tfseek.parse_example(payloads, spec, bytes_as=form)
        padded, mask = found["many"].to_padded()
        assert [[plain(value) for value in row] for row in padded] == [[b"a", b"bc"], [b"def", b""], [b"", b""]]
        assert mask.tolist() == [[True, True], [True, False], [False, False]]
        assert [plain(value) for value in found["maybe"].to_dense()] == [b"x", b"", b""]
        assert [None if value is None else plain(value) for value in found["maybe"].to_list()] == [b"x", None, b""]
        assert "b'bc'" in repr(found["many"]) and "b'x'" in repr(found["maybe"]) and "None" in repr(found["maybe"])
        assert found["some"].to_dense().shape == (3, 0)
        page = tfseek.show(found)._repr_html_()
        assert "def" in page and "array" not in page


def test_strings_of_fixed_width() -> None:
    spec = {"one": SPEC["one"], "two": SPEC["two"], "maybe": SPEC["maybe"]}
    payloads = [
        tfseek.Example({"one": b"abc", "two": [b"\0a", b""], "maybe": b"12345"}),
        tfseek.Example({"one": b"", "two": [b"a\0b", b"b"]}),
    ]
    found = tfseek.parse_example(payloads, spec, bytes_as="S")
    assert found["one"].dtype == "S3" and found["one"].tolist() == [b"abc", b""] and not found["one"].flags.writeable
    assert found["two"].dtype == "S3" and found["two"].tolist() == [[b"\0a", b""], [b"a\0b", b"b"]]
    assert found["maybe"].values.dtype == "S5" and found["maybe"].to_list() == [b"12345", None]
    assert tfseek.parse_example([], spec, bytes_as="S")["two"].shape == (0, 2)
    empty = tfseek.parse_example([tfseek.Example({"one": b""})], {"one": SPEC["one"]}, bytes_as="S")["one"]
    assert empty.dtype == "S1" and empty.tolist() == [b""]


def test_a_nul_at_the_end_is_an_error(tmp_path: pathlib.Path) -> None:
    ds = written(tmp_path / "a.tfrecord", ({"one": b"a", "two": [b"b", b"c\0" if k == 13 else b"\0c"]} for k in range(20)))
    spec = {"one": SPEC["one"], "two": SPEC["two"]}
    with pytest.raises(tfseek.DataError, match='row 13: feature "two": expected no NUL at the end .* found a value of 2 bytes') as e:
        tfseek.parse_example(ds, spec, bytes_as="S")
    assert (e.value.row, e.value.feature) == (13, "two")
    with pytest.raises(tfseek.DataError, match='^feature "two": expected no NUL'):
        tfseek.parse_single_example(ds[13], spec, bytes_as="S")
    assert tfseek.parse_example(ds, spec)["two"][13].tolist() == [b"b", b"c\0"]


def test_sequences() -> None:
    record = tfseek.SequenceExample({"name": b"cat"}, {"words": [[b"a"], [b"bc"]]})
    schema = tfseek.Schema(
        context_features={"name": tfseek.FixedLenFeature([], "string")},
        sequence_features={"words": tfseek.FixedLenSequenceFeature([], "string")},
    )
    for form in FORMS:
        context, lists, _ = tfseek.parse_sequence_example([record] * 3000, schema, bytes_as=form)
        assert {plain(value) for value in context["name"]} == {b"cat"}
        assert {tuple(plain(value) for value in row) for row in lists["words"]} == {(b"a", b"bc")}


def test_threads_share_a_schema(path: str) -> None:
    schema, ds, failed = tfseek.Schema(SPEC), tfseek.open(path), []

    def parse(start: int) -> None:
        for k in range(start, len(ds) - 200, 900):
            if rows(tfseek.parse_example(ds[k : k + 200], schema)) != ROWS[k : k + 200]:
                failed.append(k)

    in_threads(parse, range(0, 600, 100))
    assert not failed


def test_a_finalizer_parses_with_the_same_schema(path: str) -> None:
    schema, records = tfseek.Schema(SPEC), list(tfseek.open(path)[:200])
    inner: list[bool] = []

    def parse(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and len(inner) < 50:
            inner.append(False)
            inner[-1] = rows(tfseek.parse_example(records[:50], schema)) == ROWS[:50]

    threshold = gc.get_threshold()
    gc.callbacks.append(parse)
    gc.set_threshold(1)
    try:
        for _ in range(20):
            assert rows(tfseek.parse_example(records, schema)) == ROWS[:200]
    finally:
        gc.callbacks.remove(parse)
        gc.set_threshold(*threshold)
    assert inner and all(inner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_the_strings(path: str) -> None:
    schema, ds = tfseek.Schema(SPEC), tfseek.open(path)
    kept = tfseek.parse_example(ds[:3000], schema)
    seen = tfseek.parse_example(ds[:50], schema, bytes_as="views")
    loader = tfseek.Loader(ds, SPEC, batch_size=300)
    batches = iter(loader)
    first = rows(next(batches))
    child = os.fork()
    if child == 0:
        ok = rows(kept) == ROWS[:3000] and rows(seen) == ROWS[:50]
        ok = ok and rows(tfseek.parse_example(ds[:3000], schema)) == ROWS[:3000]
        ok = ok and first + [row for batch in batches for row in rows(batch)] == ROWS
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert first + [row for batch in batches for row in rows(batch)] == ROWS
