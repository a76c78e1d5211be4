"""Scans of data sets of TensorFlow Datasets: nested columns in PyArrow, pandas, Polars, DuckDB, DataFusion and Ray."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import pytest
from conftest import write_records
from test_tfds import TEXT as TEXT_CLASS
from test_tfds import features, image, label, sequence, tensor

import tfseek
import tfseek.tfds
from tfseek import NestedSpec

pa = pytest.importorskip("pyarrow")

NAMES = ["ant", "bee", "cat"]


LABEL = label(3)
TEXT = {"pythonClassName": TEXT_CLASS, "text": {}}
IMAGE = image(None, None, 3)
FEATURES = features(
    age=tensor("int32", optional=True),
    embedding=tensor("float32", (2, 2)),
    flag=tensor("bool"),
    image=IMAGE,
    label=LABEL,
    meta=features(text=TEXT, weight=tensor("float64")),
    objects=sequence(features(bbox=tensor("float32", (4,)), label=LABEL)),
    words=sequence(sequence(TEXT)),
    episode=sequence(features(action=tensor("float32", (2,)), done=tensor("bool")), "dataset_feature.Dataset"),
)


def record(i: int) -> dict[str, Any]:
    """Returns the stored features of a record."""
    n = i % 3
    row: dict[str, Any] = {
        "embedding": np.arange(4, dtype=np.float32) + i,
        "flag": i % 2,
        "image": b"\x89PNG" + bytes([i % 256]) * (20_000 if i % 10 == 0 else 3),
        "label": i % 4 - 1,
        "meta/text": f"text {i}",
        "meta/weight": np.float32(0.5 * i),
        "objects/bbox": np.arange(4 * n, dtype=np.float32),
        "objects/label": np.arange(n),
        "words/ragged_flat_values": [f"{i}", "x", "y"][: n + 1],
        "words/ragged_row_lengths_0": [n, 1],
        "episode/action": np.arange(2 * n, dtype=np.float32),
        "episode/done": np.arange(n) == n - 1,
    }
    return row if i % 5 == 0 else {"age": i, **row}


def expected(i: int, names: Optional[list[str]] = NAMES) -> dict[str, Any]:
    """Returns the row of a record."""
    n, stored = i % 3, record(i)

    def label(k: int) -> Any:
        return k if names is None else None if k < 0 else names[k]

    return {
        "age": stored.get("age"),
        "embedding": stored["embedding"].reshape(2, 2).tolist(),
        "episode": {"action": stored["episode/action"].reshape(-1, 2).tolist(), "done": stored["episode/done"].tolist()},
        "flag": bool(i % 2),
        "image": stored["image"],
        "label": label(i % 4 - 1),
        "meta": {"text": f"text {i}", "weight": 0.5 * i},
        "objects": {"bbox": stored["objects/bbox"].reshape(-1, 4).tolist(), "label": [label(k) for k in range(n)]},
        "words": [[f"{i}", "x", "y"][:n], [f"{i}", "x", "y"][n : n + 1]],
    }


class Set(NamedTuple):
    ds: tfseek.Dataset[Any]
    folder: pathlib.Path

    def spec(self, **options: Any) -> NestedSpec:
        return NestedSpec(self.folder, **options)

    def scan(self, columns: Any = None, **options: Any) -> tfseek.Scan:
        return self.ds.scan(columns, self.spec(), **options)


def write(folder: pathlib.Path, tree: Any, rows: list[dict[str, Any]]) -> Set:
    (folder / "features.json").write_text(json.dumps(tree))
    for name in ("label", "objects-label"):
        (folder / f"{name}.labels.txt").write_text("\n".join(NAMES))
    path = folder / "set-train.tfrecord"
    write_records(path, (tfseek.Example(row) for row in rows))
    return Set(tfseek.open(path, index="memory"), folder)


@pytest.fixture
def found(tmp_path: pathlib.Path) -> Set:
    return write(tmp_path, FEATURES, [record(i) for i in range(50)])


EXPECTED = [expected(i) for i in range(50)]


def test_values(found: Set) -> None:
    for bytes in ("view", "copy"):
        table = found.scan(bytes=bytes, batch_rows=7).to_arrow()
        table.validate(full=True)
        assert table.to_pylist() == EXPECTED
    numbers = found.ds.scan(spec=found.spec(labels="numbers", text=False)).to_arrow()
    assert numbers["label"].type == pa.int64()
    assert numbers["label"].to_pylist() == [i % 4 - 1 for i in range(50)]
    assert numbers["meta"][3]["text"].as_py() == b"text 3"
    assert json.loads(numbers.schema.field("label").metadata[b"tfseek.labels"]) == NAMES
    assert numbers.schema.field("image").metadata[b"tfseek.stored"] == b"file"
    scan = found.scan(tensors="extension")
    assert scan.to_arrow()["embedding"].combine_chunks().to_numpy_ndarray().shape == (50, 2, 2)
    assert scan.schema.features == scan.columns == list(EXPECTED[0])


def test_choices(found: Set) -> None:
    scan = found.scan(["label", "objects/bbox", "age"], where="label == 2", record="n")
    kept = [i for i in range(50) if i % 4 == 3]
    wanted = [
        {"n": i, "age": row["age"], "label": row["label"], "objects": {"bbox": row["objects"]["bbox"]}}
        for i, row in enumerate(EXPECTED)
        if i in kept
    ]
    assert scan.to_arrow().to_pylist() == wanted
    assert found.scan(["meta"]).take([7, 3, 7]).to_arrow().to_pylist() == [{"meta": EXPECTED[i]["meta"]} for i in (7, 3, 7)]
    assert found.ds[10:12].scan(spec=found.spec()).to_arrow().to_pylist() == EXPECTED[10:12]
    parts = [part for share in found.ds.shares(3) for part in share]
    assert tfseek.scan(parts=parts, spec=found.spec()).to_arrow().to_pylist() == EXPECTED
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_arrow().to_pylist() == wanted
    narrow = found.spec(select=["objects/bbox", "meta"])
    rows = found.ds.scan(["objects", "meta/text"], narrow).take([2]).to_arrow().to_pylist()
    assert rows == [{"meta": {"text": "text 2"}, "objects": {"bbox": EXPECTED[2]["objects"]["bbox"]}}]
    for name in ("label", "objects/label", "obj"):
        with pytest.raises(tfseek.SpecError, match="expected a feature of the spec") as error:
            found.ds.scan([name], narrow)
        assert error.value.feature == name
    with pytest.raises(tfseek.SpecError, match="expected a feature of the data set"):
        found.scan(["objects/nothing"])
    with pytest.raises(tfseek.SpecError, match="expected no `rename`"):
        found.scan(rename={"label": "class"})
    pickled = pickle.dumps(narrow)
    (found.folder / "features.json").write_text(json.dumps(features(meta=TEXT)))
    with pytest.raises(tfseek.Error):
        pickle.loads(pickled)


def test_data_sets(found: Set) -> None:
    """Selections of a data set scan themselves, also for Polars and PyArrow."""
    pytest.importorskip("polars")
    import tfseek.arrow
    import tfseek.polars

    os.rename(found.folder / "set-train.tfrecord", found.folder / "set-train.tfrecord-00000-of-00001")
    splits = [{"name": "train", "shardLengths": ["50"]}]
    info = {"name": "set", "version": "1.0.0", "fileFormat": "tfrecord", "splits": splits}
    (found.folder / "dataset_info.json").write_text(json.dumps(info))
    ds = tfseek.tfds.open(found.folder)["train[10:30]"]
    assert ds.scan().to_arrow().to_pylist() == EXPECTED[10:30]
    assert ds[[3, 1]].scan(["label", "objects/bbox"], labels="numbers").to_arrow().to_pylist() == [
        {"label": 0, "objects": {"bbox": EXPECTED[13]["objects"]["bbox"]}},
        {"label": 2, "objects": {"bbox": EXPECTED[11]["objects"]["bbox"]}},
    ]
    kept = [row["meta"] for row in EXPECTED[10:30] if row["label"] == "cat"]
    assert [row["meta"] for row in ds.scan(["meta"], where='label == "cat"').to_arrow().to_pylist()] == kept
    with pytest.raises(TypeError, match="expected a list of names"):
        ds.scan("label")
    scans = [ds.scan(spec=found.spec(text=False)), ds.scan(text=False), ds.scan(["meta/text"], text=False), ds.scan(spec=found.spec(), text=False)]
    for scan in [*scans, pickle.loads(pickle.dumps(scans[1]))]:
        assert scan.to_arrow()["meta"][0]["text"].as_py() == b"text 10"
    assert tfseek.polars.scan(ds, text=False).collect()["meta"][0]["text"] == b"text 10"
    assert tfseek.arrow.dataset(ds, text=False).to_table()["meta"][0]["text"].as_py() == b"text 10"
    with pytest.raises(tfseek.Error, match="cow"):
        ds.scan(where='label == "cow"').to_arrow()
    assert tfseek.polars.scan(ds).collect().to_dicts() == EXPECTED[10:30]
    assert tfseek.arrow.dataset(ds).to_table(columns=["words"]).to_pylist() == [{"words": row["words"]} for row in EXPECTED[10:30]]


def test_errors(tmp_path: pathlib.Path) -> None:
    found = write(tmp_path, features(label=LABEL), [{"label": 2}, {"label": 3}])
    with pytest.raises(Exception, match='record 1 of the dataset: column "label": expected a label below 3, or -1 for none, found 3'):
        found.scan().to_arrow()
    assert found.ds.scan(spec=found.spec(labels="numbers")).to_arrow()["label"].to_pylist() == [2, 3]
    found = write(tmp_path, features(x=tensor("bfloat16"), y=tensor("int64")), [{"x": 0.5, "y": 3}])
    with pytest.raises(tfseek.SpecError, match="expected a type that Arrow has, found arrays of bfloat16") as error:
        found.spec()
    assert error.value.feature == "x"
    assert found.ds.scan(spec=found.spec(select=["y"])).to_arrow().to_pylist() == [{"y": 3}]
    with pytest.raises(ValueError, match="labels: expected one of"):
        found.spec(labels="words")
    with pytest.raises(tfseek.Error, match="expected features.json"):
        NestedSpec(tmp_path / "nothing")


def test_pandas(found: Set) -> None:
    pd = pytest.importorskip("pandas")
    frame = found.scan().to_pandas()
    assert frame["label"].dtype == "category" and list(frame["label"].cat.categories) == NAMES
    # The codes are the numbers, also of records without a label.
    assert frame["label"].cat.codes.tolist() == [i % 4 - 1 for i in range(50)]
    assert frame["age"].isna().sum() == 10
    assert frame["meta"][4] == EXPECTED[4]["meta"]
    assert frame["objects"][2]["label"].tolist() == ["ant", "bee"]
    assert frame["embedding"][1].tolist()[0].tolist() == [1.0, 2.0]
    arrow = found.scan().to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    assert arrow["label"].tolist()[:4] == [pd.NA, *NAMES]


def test_polars(found: Set) -> None:
    pl = pytest.importorskip("polars")
    import tfseek.polars

    frame = found.scan().to_polars()
    rows = frame.to_dicts()
    assert rows == EXPECTED
    lazy = tfseek.polars.scan(found.ds, spec=found.spec())
    query = lazy.filter(pl.col("label").cast(pl.String) == "cat").select("label", pl.col("meta").struct.field("text"))
    assert query.collect().to_dicts() == [
        {"label": "cat", "text": row["meta"]["text"]} for row in EXPECTED if row["label"] == "cat"
    ]
    boxes = lazy.select(pl.col("objects").struct.field("bbox").list.len().alias("n")).collect()["n"].to_list()
    assert boxes == [i % 3 for i in range(50)]


def test_duckdb(found: Set) -> None:
    duckdb = pytest.importorskip("duckdb")
    import tfseek.arrow

    data = tfseek.arrow.dataset(found.ds, spec=found.spec())
    stream = found.scan()
    assert data is not None and stream is not None
    for table in ("data", "stream"):
        query = f"select label, count(*) as n, sum(meta.weight) as w from {table} where label = 'cat' group by label"
        kept = [row for row in EXPECTED if row["label"] == "cat"]
        assert duckdb.sql(query).fetchall() == [("cat", len(kept), sum(row["meta"]["weight"] for row in kept))]
        query = f"select label, objects.label as labels, words, embedding, image, age, episode from {table}"
        for found_row, row in zip(duckdb.sql(query).fetchall(), EXPECTED, strict=True):
            label, labels, words, embedding, image, age, episode = found_row
            assert (label, labels, words, image) == (row["label"], row["objects"]["label"], row["words"], row["image"])
            assert age == row["age"]
            assert [list(inner) for inner in embedding] == row["embedding"]
            assert [list(action) for action in episode["action"]] == row["episode"]["action"]
        assert duckdb.sql(f"select count(*) from {table} where age is null").fetchall() == [(10,)]


def test_datasets_of_pyarrow(found: Set) -> None:
    import pyarrow.compute as pc

    import tfseek.arrow

    data = tfseek.arrow.dataset(found.ds, spec=found.spec())
    kept = [row for row in EXPECTED if row["label"] == "bee"]
    table = data.to_table(columns=["label", "words"], filter=pc.field("label") == "bee")
    assert table.to_pylist() == [{"label": row["label"], "words": row["words"]} for row in kept]
    assert data.count_rows() == 50
    table = data.to_table(filter=pc.field("meta", "weight") > 20)
    assert table.to_pylist() == EXPECTED[41:]


def test_datafusion(found: Set) -> None:
    datafusion = pytest.importorskip("datafusion")
    import tfseek.arrow

    context = datafusion.SessionContext()
    context.register_dataset("data", tfseek.arrow.dataset(found.ds, spec=found.spec()))
    query = "select count(*) as n, sum(meta['weight']) as w from data where label = 'cat'"
    kept = [row for row in EXPECTED if row["label"] == "cat"]
    assert context.sql(query).to_pydict() == {"n": [len(kept)], "w": [sum(row["meta"]["weight"] for row in kept)]}


def test_plans(found: Set) -> None:
    """Workers of engines read parts with the spec."""
    from tfseek._plan import Reading

    reading = pickle.loads(pickle.dumps(Reading(found.ds, found.spec(), ["label", "objects/bbox"], where="label > 0", record="n")))
    rows = [row for share in found.ds.shares(3) for batch in reading.batches(share) for row in batch.to_pylist()]
    kept = [(i, row) for i, row in enumerate(EXPECTED) if row["label"] in ("bee", "cat")]
    assert rows == [{"n": i, "label": row["label"], "objects": {"bbox": row["objects"]["bbox"]}} for i, row in kept]


def cases() -> list[Any]:
    root = os.environ.get("TFSEEK_TFDS_CASES")
    if not root:
        return [pytest.param(None, marks=pytest.mark.skip(reason="TFSEEK_TFDS_CASES is not set"))]
    return sorted(path for path in pathlib.Path(root, "sets").glob("**/features.json"))


def has(type: Any, test: Callable[[Any], bool]) -> bool:
    """Returns true if a type, or one in it, passes a test."""
    return test(type) or any(has(type.field(k).type, test) for k in range(type.num_fields))


def is_empty(type: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(type) and type.list_size == 0)


def without(scan: tfseek.Scan, test: Callable[[Any], bool]) -> tfseek.Scan:
    """Returns the scan of the columns that a library reads."""
    names = [field.name for field in pa.schema(scan) if not has(field.type, test)]
    return tfseek.Scan({**scan._arguments, "schema": scan.schema._of_columns(names)})


def read_arrow(scan: tfseek.Scan) -> int:
    table = scan.to_arrow()
    table.validate(full=True)
    return len(table.to_pylist())


def read_pandas(scan: tfseek.Scan) -> int:
    pytest.importorskip("pandas")
    return len(scan.to_pandas())


def read_polars(scan: tfseek.Scan) -> int:
    pytest.importorskip("polars")
    # Polars 2.1 panics at lists of the fixed length 0, also at those of PyArrow.
    return len(without(scan, is_empty).to_polars().to_dicts())


def read_duckdb(scan: tfseek.Scan) -> int:
    duckdb = pytest.importorskip("duckdb")
    # DuckDB has no float16.
    stream = without(scan, pa.types.is_float16)
    assert stream is not None
    return len(duckdb.sql("select * from stream").fetchall())


@pytest.mark.parametrize("read", [read_arrow, read_pandas, read_polars, read_duckdb])
@pytest.mark.parametrize("path", cases(), ids=lambda path: path and path.parts[-3])
def test_libraries_read_data_sets(path: pathlib.Path, read: Callable[[tfseek.Scan], int]) -> None:
    """Each library reads each prepared data set that has Arrow types and no malformed record."""
    files = sorted(path.parent.rglob("*.tfrecord*"))
    try:
        ds = tfseek.open(files, index="memory")
        scan = ds.scan(spec=NestedSpec(path.parent, text=False))
        rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(scan))
    except (tfseek.Error, pa.ArrowException) as error:
        pytest.skip(str(error))
    assert read(scan) == rows == len(ds)


def test_pandas_rounds_no_integers(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pandas")
    big = 2**62 + 1
    tree = features(a=tensor("int64", optional=True), d=features(b=tensor("int64", optional=True)), name=tensor("string"), image=IMAGE)
    image = {"name": "x", "image": b"\x89PNG"}
    found = write(tmp_path, tree, [{"a": big, "d/b": big, **image}, image])
    frame = found.scan(text=True).to_pandas()
    assert frame["a"][0] == big and frame["a"].isna().tolist() == [False, True] and str(frame["a"].dtype) == "Int64"
    assert frame["d"].tolist() == [{"b": big}, {"b": None}]
    # All byte strings but files are text.
    assert frame["name"].tolist() == ["x", "x"] and frame["image"][0] == b"\x89PNG"
