"""``tfseek.polars.scan`` and ``tfseek.arrow.dataset``: queries that read only the columns and records that they need."""

from __future__ import annotations

import os
import pathlib
import pickle
import random
import sys
from typing import Any, Callable

import numpy as np
import pytest
from conftest import run_python, trust

import tfseek
from tfseek import _pruning

pa = pytest.importorskip("pyarrow")
import pyarrow.compute as pc  # noqa: E402

from tfseek import arrow  # noqa: E402

SPEC = {
    "label": tfseek.Optional("int64"),
    "weight": tfseek.FixedLenFeature([], "float32", default_value=-1.0),
    "name": tfseek.FixedLenFeature([], "string"),
    "tokens": tfseek.RaggedFeature("int64"),
    "vec": tfseek.FixedLenFeature([2], "float32"),
    "blob": tfseek.FixedLenFeature([], "string"),
}
RECORDS = 400
#: Features with column files: none, one, and all that can have them.
SAVED: tuple[list[str], ...] = ([], ["label"], ["label", "weight", "name", "blob"])

Dataset = tfseek.Dataset[tfseek.Example]
Query = Callable[[Any], Any]


def row(i: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": b"row %d" % (i % 23),
        "vec": np.arange(2, dtype=np.float32) + i,
        "tokens": np.arange(i % 4),
        "blob": bytes([i % 256]) * (i % 30),
    }
    if i % 7 != 3:
        values["label"] = i % 10
    if i % 5 > 0:
        values["weight"] = np.float32(i) / 16
    return values


def write(folder: pathlib.Path, pad: int = 0) -> list[str]:
    """Writes four shards, one of them empty and one compressed, with ``pad`` more bytes a record."""
    for name, numbers in (
        ("a.tfrecord", range(250)),
        ("b.tfrecord", range(0)),
        ("c.gz.tfrecord", range(250, 300)),
        ("d.tfrecord", range(300, RECORDS)),
    ):
        with tfseek.Writer(folder / name, compression="gzip" if ".gz." in name else "none") as writer:
            for i in numbers:
                writer.write(tfseek.Example({**row(i), "pad": os.urandom(pad)} if pad else row(i)))
    return sorted(str(path) for path in folder.iterdir())


def save_columns(paths: list[str], features: list[str]) -> None:
    """Writes column files next to the shards."""
    for feature in features:
        assert tfseek._tfseek.run(["tfseek", "index", *paths, "--column", feature, "--quiet"]) == 0


@pytest.fixture(params=SAVED, ids=[f"{len(features)} column files" for features in SAVED])
def ds(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Dataset:
    paths = write(tmp_path)
    save_columns(paths, request.param)
    return tfseek.open(paths, io="pread")


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> Dataset:
    """A dataset with a column file of the label. Most records are damaged since they were indexed, so reading all is an error. The fingerprints, of 64 KiB at each
    end, are those before."""
    paths = write(tmp_path, 5000)
    save_columns(paths, ["label"])
    assert len(tfseek.open(paths, io="pread")) == RECORDS
    for path in paths:
        stat = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(65536)
            file.write(os.urandom(max(0, stat.st_size - 2 * 65536)))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    trust(tmp_path, os.environ["TFSEEK_INDEX_DIR"])
    opened = tfseek.open(paths, io="pread")
    with pytest.raises(tfseek.DataError):
        opened[125]
    return opened


@pytest.fixture(params=[None, 37], ids=["large frames", "small frames"], autouse=True)
def frames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of all records, or of a few each."""
    if request.param is not None:
        monkeypatch.setattr(_pruning, "_RECORDS", request.param)
        monkeypatch.setattr(_pruning, "_VALUES", 2 * request.param)


#: For tests whose code does not depend on the size of frames.
ONE_FRAME = pytest.mark.parametrize("frames", [None], indirect=True)
#: For tests whose code does not depend on column files.
NO_COLUMNS = pytest.mark.parametrize("ds", [[]], indirect=True)


def views(ds: Dataset) -> list[Dataset]:
    return [ds, ds[50:350], ds[::-1], ds[[7, 7, 3, 399]], ds[0:0], ds.filter("record in 100..300")]


def names(choice: random.Random) -> list[str]:
    return choice.sample(list(SPEC), choice.randrange(1, len(SPEC) + 1))


def either(choice: random.Random, one: Any, other: Any) -> Any:
    """Combines two conditions."""
    return choice.choice([one & other, one | other, ~one])


def arrow_predicate(choice: random.Random, depth: int = 0) -> Any:
    label, weight, name, vec = (pc.field(name) for name in ("label", "weight", "name", "vec"))
    number = choice.randrange(12)
    leaves: list[Callable[[], Any]] = [
        lambda: label == number,
        lambda: label < number,
        lambda: label.isin([number, 3]),
        lambda: label.is_null(),
        lambda: weight > 2.0 * number,
        lambda: weight + label.cast("float32") > 10.0,
        lambda: name == f"row {number}",
        lambda: pc.starts_with(name, "row 1"),
        lambda: pc.list_element(vec, 1) > 40.0 * number,
        lambda: pc.list_value_length(pc.field("tokens")) == 2,
        lambda: pc.scalar(number % 2 == 0),
        lambda: pc.field(0) == number,
    ]
    if depth < 2 and choice.random() < 0.6:
        return either(choice, arrow_predicate(choice, depth + 1), arrow_predicate(choice, depth + 1))
    return choice.choice(leaves)()


def test_random_predicates_of_pyarrow(ds: Dataset) -> None:
    choice = random.Random(5)
    for view in views(ds):
        whole = view.scan(spec=SPEC, text=["name"], bytes="copy").to_arrow()
        data = arrow.dataset(view, spec=SPEC, text=["name"])
        assert data.schema == whole.schema and data.to_table() == whole and data.count_rows() == len(whole)
        for _ in range(12):
            predicate, columns = arrow_predicate(choice), names(choice)
            want = whole.filter(predicate)
            assert data.to_table(columns=columns, filter=predicate) == want.select(columns), (predicate, columns)
            assert data.count_rows(predicate) == len(want), predicate
            pieces = [piece.to_table(columns=columns) for piece in data.get_fragments(predicate)]
            pieces = pieces or [whole.slice(0, 0).select(columns)]
            assert pa.concat_tables(pieces) == want.select(columns)


def polars_predicate(pl: Any, choice: random.Random, depth: int = 0) -> Any:
    label, weight, name = pl.col("label"), pl.col("weight"), pl.col("name")
    number = choice.randrange(12)
    leaves: list[Callable[[], Any]] = [
        lambda: label == number,
        lambda: label < number,
        lambda: label.is_in([number, 3]),
        lambda: label.is_null(),
        lambda: weight > 2.0 * number,
        lambda: weight + label > 10,
        lambda: name == f"row {number}",
        lambda: name.str.contains(str(number)),
        lambda: pl.col("vec").arr.get(1) > 40 * number,
        lambda: pl.col("tokens").list.len() == 2,
        lambda: pl.lit(number % 2 == 0),
        lambda: pl.col("blob").bin.size() > number,
    ]
    if depth < 2 and choice.random() < 0.6:
        return either(choice, polars_predicate(pl, choice, depth + 1), polars_predicate(pl, choice, depth + 1))
    return choice.choice(leaves)()


def test_random_predicates_of_polars(ds: Dataset) -> None:
    pl = pytest.importorskip("polars")
    from tfseek import polars

    choice = random.Random(6)
    for view in views(ds):
        whole = pl.DataFrame(view.scan(spec=SPEC, text=["name"]))
        lazy = polars.scan(view, spec=SPEC, text=["name"])
        assert lazy.collect_schema() == whole.schema and lazy.collect().equals(whole)
        for _ in range(12):
            predicate, columns, n = polars_predicate(pl, choice), names(choice), choice.randrange(80)
            queries: list[Query] = [
                lambda frame: frame.filter(predicate).select(columns),
                lambda frame: frame.filter(predicate).select(columns).head(n),
                lambda frame: frame.head(n).filter(predicate).select(columns),
                lambda frame: frame.slice(n, 20).filter(predicate).select(columns),
                lambda frame: frame.filter(predicate).select(pl.len()),
                lambda frame: frame.filter(predicate).group_by("label").len().sort("label"),
            ]
            for query in queries:
                want = query(whole.lazy()).collect()
                assert query(lazy).collect().equals(want), (predicate, columns, n)


def test_values_of_column_files_need_no_record(saved: Dataset) -> None:
    labels = [row(i).get("label") for i in range(RECORDS)]
    threes = labels.count(3)
    data = arrow.dataset(saved, spec=SPEC, record="n")
    assert data.count_rows(pc.field("label") == 3) == threes and data.count_rows() == RECORDS
    assert data.to_table(["label"])["label"].to_pylist() == labels
    found = data.to_table(["n"], filter=pc.field("label") == 3)
    assert found["n"].to_pylist() == [i for i, label in enumerate(labels) if label == 3]
    # Other columns need the records, which are not there.
    with pytest.raises(Exception, match="record 0 at byte|crc32c|a.tfrecord"):
        data.to_table(["name"])
    with pytest.raises(Exception, match="a.tfrecord"):
        data.to_table(["name"], filter=pc.field("label") == 3)
    # No record passes, so none is read.
    assert data.to_table(["name"], filter=pc.field("label") == 99).num_rows == 0


def test_polars_over_column_files_reads_no_record(saved: Dataset) -> None:
    pl = pytest.importorskip("polars")
    from tfseek import polars

    lazy = polars.scan(saved, spec=SPEC, text=["name"])
    labels = [row(i).get("label") for i in range(RECORDS)]
    assert lazy.filter(pl.col("label") == 3).select(pl.len()).collect().item() == labels.count(3)
    assert lazy.select("label").collect()["label"].to_list() == labels
    counts = dict(lazy.group_by("label").len().collect().iter_rows())
    assert counts == {label: labels.count(label) for label in set(labels)}
    with pytest.raises(Exception, match="a.tfrecord"):
        lazy.filter(pl.col("label") == 3).select("name").collect()


QUERIES = (
    "select count(*) as n from d where label = 3",
    "select label, count(*) as n, sum(weight) as w from d group by label order by label",
    "select name, tokens, blob from d where label > 7 and weight > 3 order by name, weight limit 20",
    "select count(*) as n from d",
    "select name, count(*) as n from d where name like 'row 1%' or label is null group by name order by name",
    "select max(vec[1]) as v, min(weight) as w from d where label in (1, 2) and name <> 'row 4'",
)


def test_duckdb(ds: Dataset) -> None:
    duckdb = pytest.importorskip("duckdb")
    whole, data = ds.scan(spec=SPEC, text=["name"], bytes="copy").to_arrow(), arrow.dataset(ds, spec=SPEC, text=["name"])
    with duckdb.connect() as one, duckdb.connect() as other:
        one.register("d", data)
        other.register("d", whole)
        for query in QUERIES:
            found = one.sql(query).fetchall()
            assert found == other.sql(query).fetchall() and found, query


def test_duckdb_over_column_files_reads_no_record(saved: Dataset) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("d", arrow.dataset(saved, spec=SPEC))
        ((found,),) = connection.sql("select count(*) from d where label = 3").fetchall()
        assert found == sum(row(i).get("label") == 3 for i in range(RECORDS))
        with pytest.raises(Exception, match="a.tfrecord"):
            connection.sql("select name from d where label = 3").fetchall()


def test_datafusion(ds: Dataset) -> None:
    datafusion = pytest.importorskip("datafusion")
    whole, data = ds.scan(spec=SPEC, text=["name"], bytes="copy").to_arrow(), arrow.dataset(ds, spec=SPEC, text=["name"])
    one, other = datafusion.SessionContext(), datafusion.SessionContext()
    one.register_dataset("d", data)
    other.from_arrow(whole, "d")
    for query in QUERIES:
        found, want = one.sql(query).to_pydict(), other.sql(query).to_pydict()
        assert found == want and next(iter(found.values())), query


def test_polars_over_a_pyarrow_dataset(ds: Dataset) -> None:
    pl = pytest.importorskip("polars")
    whole, data = ds.scan(spec=SPEC, text=["name"], bytes="copy").to_arrow(), arrow.dataset(ds, spec=SPEC, text=["name"])
    queries: list[Query] = [
        lambda frame: frame.filter(pl.col("label") == 3).select(pl.len()),
        lambda frame: frame.filter((pl.col("label") > 7) & (pl.col("weight") > 3.0)).select("name", "tokens"),
        lambda frame: frame.select("blob").tail(3),
        lambda frame: frame.filter(pl.col("name").is_in(["row 1", "row 2"])).select("label", "name"),
    ]
    for query in queries:
        assert query(pl.scan_pyarrow_dataset(data)).collect().equals(query(pl.from_arrow(whole).lazy()).collect())


@ONE_FRAME
def test_columns_that_an_expression_needs() -> None:
    schema = pa.schema([(name, pa.int64()) for name in "abcdefghij"])
    a, d, j = pc.field("a"), pc.field("d"), pc.field("j")
    for expression, want in (
        (pc.scalar(True), []),
        (d == 3, ["d"]),
        ((a == 1) | (j.isin([1, 2])), ["a", "j"]),
        ((a + d) * j > 4, ["a", "d", "j"]),
        (pc.field(3) == 3, list("abcdefghij")),
        (pc.field("unknown") == 3, list("abcdefghij")),
        (d == "text", list("abcdefghij")),
    ):
        assert sorted(arrow._columns(expression, schema)) == want, expression


def test_projections_of_a_dataset(ds: Dataset) -> None:
    data = arrow.dataset(ds, spec=SPEC, text=["name"])
    whole = data.to_table()
    three = pc.field("label") == 3
    assert data.to_table({"x": pc.field("label") + 1, "tokens": pc.field("tokens")}, filter=three).to_pydict() == {
        "x": [4] * len(whole.filter(three)),
        "tokens": whole.filter(three)["tokens"].to_pylist(),
    }
    assert data.to_table([]).num_rows == RECORDS and data.to_table([], filter=three).num_rows == len(whole.filter(three))
    assert data.to_table(["vec", "label"]).column_names == ["vec", "label"]
    assert data.head(5) == whole.slice(0, 5)
    assert data.take([399, 3, 3]) == whole.take([399, 3, 3])
    assert pa.Table.from_batches(data.to_batches(), whole.schema) == whole
    assert data.filter(three).filter(pc.field("weight") > 5.0).to_table() == whole.filter(three & (pc.field("weight") > 5.0))
    assert data.filter(three).count_rows() == len(whole.filter(three))
    assert data.sort_by([("name", "descending"), ("weight", "ascending")]).to_table()["name"][0].as_py() == "row 9"
    other = pa.table({"label": [3, 4], "word": ["three", "four"]})
    pairs = arrow.dataset(ds, ["label", "name"], SPEC)
    assert set(pairs.filter(three).join(other, "label").to_table(["word"])["word"].to_pylist()) == {"three"}
    copy = pickle.loads(pickle.dumps(data.filter(three)))
    assert copy.to_table() == whole.filter(three)
    assert data.replace_schema(data.schema) is data and data.partition_expression.equals(pc.scalar(True))
    for columns, filter in ((["labels"], None), (None, pc.field("labels") == 1)):
        with pytest.raises(pa.ArrowInvalid, match="labels"):
            data.to_table(columns, filter=filter)
    with pytest.raises(TypeError, match="replace_schema: expected the schema of the dataset"):
        data.replace_schema(pa.schema([]))
    fragments = list(data.get_fragments())
    assert sum(fragment.count_rows() for fragment in fragments) == RECORDS and len(fragments) >= 3
    assert all(fragment.physical_schema == data.schema for fragment in fragments)
    assert pa.concat_tables(fragment.to_table(columns=["label"]) for fragment in fragments) == whole.select(["label"])


def test_conditions_skip_damaged_records(tmp_path: pathlib.Path) -> None:
    """A record that a column file excludes is neither verified nor an error; one that passes is named."""
    path = tmp_path / "a.tfrecord"
    with tfseek.Writer(path) as writer:
        for i in range(20):
            # The record is in neither of the fingerprints, of 64 KiB at each end.
            writer.write(tfseek.Example({"label": i, "name": b"row %d" % i, "pad": bytes(20_000)}))
    save_columns([str(path)], ["label"])
    schema = tfseek.open(path).schema
    stat = os.stat(path)
    path.write_bytes(path.read_bytes().replace(b"row 13", b"ROW 13"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    trust(tmp_path, os.environ["TFSEEK_INDEX_DIR"])
    data = arrow.dataset(tfseek.open(path, io="pread"), spec=schema)
    assert data.to_table(["name"], filter=pc.field("label") < 13).num_rows == 13
    with pytest.raises(Exception, match="a.tfrecord: record 13 at byte"):
        data.to_table(["name"], filter=pc.field("label") < 14)


@ONE_FRAME
@NO_COLUMNS
def test_adapters_take_paths_and_need_no_import(ds: Dataset) -> None:
    program = "import sys, tfseek; assert 'pyarrow' not in sys.modules; print(tfseek.arrow.dataset(sys.argv[1]).count_rows())"
    assert run_python(program, ds.shards[0]) == f"{len(tfseek.open(ds.shards[0]))}\n"
    with pytest.raises(AttributeError, match="module 'tfseek' has no attribute 'pandas'"):
        _ = tfseek.pandas  # type: ignore[attr-defined]
    pytest.importorskip("polars")
    assert tfseek.polars.scan(ds.shards, columns=["label"]).collect().equals(tfseek.polars.scan(tfseek.open(ds.shards), ["label"]).collect())


@NO_COLUMNS
def test_tables_of_a_dataset_round_no_integers(ds: Dataset) -> None:
    pytest.importorskip("pandas")
    assert str(arrow.dataset(ds, spec=SPEC).to_table().to_pandas()["label"].dtype) == "Int64"


@ONE_FRAME
def test_messages_of_engines_have_no_traceback_of_ours(ds: Dataset) -> None:
    duckdb = pytest.importorskip("duckdb")
    strict = {"label": tfseek.FixedLenFeature([], "int64"), "weight": SPEC["weight"]}
    data, scan = arrow.dataset(ds, spec=strict), ds.scan(spec=strict)
    for query in ("select max(label) from data", "select max(label) from data where weight > 3", "select max(label) from scan"):
        with pytest.raises(Exception, match="record .* expected int64, found no such feature") as e:
            duckdb.sql(query).fetchall()
        assert "Traceback" not in str(e.value) and "External error" not in str(e.value), query
