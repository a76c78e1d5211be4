"""Names, texts and tables of records and datasets."""

from __future__ import annotations

import base64
import html
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, SPEC, features, write_records, written

import tfseek

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def sequence() -> tfseek.SequenceExample:
    return tfseek.SequenceExample({"id": 7, "both": 1}, {"tokens": [[1, 2], [3], None], "both": [["a"]]})


def test_sequence_examples_are_read_by_name() -> None:
    record = sequence()
    assert record["id"].tolist() == [7] and record[b"id"].tolist() == [7]
    assert [None if step is None else step.tolist() for step in record["tokens"]] == [[1, 2], [3], None]
    assert record.keys() == list(record) == ["both", "id", "tokens"] == record._ipython_key_completions_()
    assert "id" in record and "tokens" in record and "both" in record and "x" not in record and 3 not in record
    with pytest.raises(KeyError, match="'?both.* is a context feature and a feature list: use .context or .feature_lists"):
        record["both"]
    with pytest.raises(KeyError, match="no context feature and no feature list \"x\"; there are"):
        record["x"]
    with pytest.raises(TypeError):
        record[0]  # type: ignore[index]
    found = record.to_dict()
    assert list(found) == ["context", "feature_lists"] and sorted(found["context"]) == ["both", "id"]
    assert tfseek.SequenceExample(**found) == record
    own = record.to_dict(copy=True)
    own["feature_lists"]["tokens"][0][0] = own["context"]["id"][0] = 9
    assert record["id"].tolist() == [7] and not found["feature_lists"]["tokens"][0].flags.writeable
    damaged = tfseek.SequenceExample.from_bytes(b"\x0a")
    for call in (damaged.to_dict, damaged.keys, lambda: damaged["x"], lambda: "x" in damaged):
        with pytest.raises(tfseek.DataError):
            call()


def test_the_repr_of_an_example_has_its_first_values() -> None:
    ex = tfseek.Example({"label": 1, "image": PNG[:8] + b"\0" * 12337, "none": None, "f": [0.5, float("nan")], "it's": "a'\""})
    text = repr(ex)
    assert text.startswith("tfseek.Example({'f': [0.5, nan] float, 'image': [b'\\x89PNG\\r\\n\\x1a\\n\\x00")
    assert "..'] bytes (12345 bytes), 'it\\'s': [b'a\\'\"'] bytes, 'label': [1] int64, 'none': None})" in text
    assert repr(tfseek.Example({"x": np.arange(1000)})).endswith(", ..] int64 (1000 values)})")
    assert "bytes (100 values, 400 bytes)" in repr(tfseek.Example({"x": ["abcd"] * 100}))
    assert repr(tfseek.Example({"x": np.empty(0, np.int64)})) == "tfseek.Example({'x': [] int64})"
    many = repr(tfseek.Example({f"f{i:02}": "x" * 10**4 for i in range(20)}))
    assert "'f09'" in many and "'f10'" not in many and many.endswith(", ..})") and len(many) < 10 * 120
    assert repr(tfseek.Example()) == "tfseek.Example({})"


def test_the_repr_of_a_sequence_example_has_its_first_values() -> None:
    text = repr(sequence())
    assert text == (
        "tfseek.SequenceExample(context={'both': [1] int64, 'id': [7] int64}, "
        "feature_lists={'both': [[b'a']] bytes (1 step), 'tokens': [[1, 2], [3], None] int64 (3 steps)})"
    )
    assert repr(sequence().feature_lists) == f"tfseek.FeatureLists({text.partition('feature_lists=')[2]}"
    long = tfseek.SequenceExample({}, {"x": [[k] for k in range(1000)]})
    assert repr(long).endswith(", ..] int64 (1000 steps)})") and len(repr(long)) < 200
    assert "malformed" in repr(tfseek.SequenceExample.from_bytes(b"\x0a"))


def test_the_repr_of_datasets_and_loaders(ds: tfseek.Dataset) -> None:
    assert f", 10 of {RECORDS} records, from 5 by 1)" in repr(ds[5:15]) and f", 2 of {RECORDS} records, crc32c " in repr(ds[[3, 2]])
    loader = tfseek.Loader(ds, SPEC, batch_size=64, seed=1)
    assert "16 batches, 1000 samples, 1000 records in global order" in repr(loader)
    assert repr(loader).endswith(", epoch 0, position 0 of 1000)")
    next(loader)
    assert repr(loader).endswith(", epoch 0, position 64 of 1000)")
    loader.close()
    assert repr(loader) == "tfseek.Loader(closed)"


def test_properties_of_a_dataset(tmp_path: pathlib.Path, ds: tfseek.Dataset) -> None:
    assert ds.features == ["emb", "label", "name", "tokens"] and ds[0:0].features == []
    assert ds.schema == tfseek.infer_schema(ds[:1000]) and ds.schema is ds.schema
    assert ds[4:5].schema == tfseek.infer_schema(ds[4:5]) != ds.schema
    size = sum(pathlib.Path(shard).stat().st_size for shard in ds.shards)
    assert ds.info() == {"records": 1000, "shards": 3, "bytes": size, "kind": "example", "warnings": len(ds.warnings)}
    assert ds[:7].info()["records"] == 7
    json.dumps(ds.info())
    path = tmp_path / "a.tfrecord"
    write_records(path, [sequence()])
    with tfseek.open(path, kind="sequence_example") as other:
        assert other.features == ["both", "id", "tokens"] and other.schema.is_sequence
    other.close()
    assert other[0] == sequence()
    with pytest.raises(TypeError, match="features: expected records of Examples"):
        tfseek.open(path, kind="bytes").features
    with pytest.raises(ZeroDivisionError), tfseek.open(path):
        raise ZeroDivisionError


def test_key_completions(ds: tfseek.Dataset) -> None:
    assert ds[0]._ipython_key_completions_() == ds[0].keys()


SCRIPT = "<script>alert('1')</script>"


def test_html_escapes_all_text(tmp_path: pathlib.Path) -> None:
    evil = {SCRIPT: SCRIPT, "b": SCRIPT.encode(), "image": PNG + SCRIPT.encode(), "n": [1, 2]}
    path = tmp_path / "<script>.tfrecord"
    ds = written(path, [evil])
    record = tfseek.SequenceExample(evil, {SCRIPT: [SCRIPT, ["x"]]})
    batch = tfseek.parse_example(
        ds,
        {
            SCRIPT: tfseek.FixedLenFeature([], "string"),
            "b": tfseek.VarLenFeature("string"),
            "n": tfseek.RaggedFeature("int64"),
            "image": tfseek.FixedLenFeature([1], "string"),
        },
    )
    offsets = tfseek.parse_example(ds, {SCRIPT: tfseek.FixedLenFeature([], "string")}, bytes_as="offsets")
    tables = [ds._repr_html_(), ds[0]._repr_html_(), record._repr_html_()]
    shown: Any
    for shown in (ds, ds[0], record, batch, offsets, [bytes(ds[0]), SCRIPT], ({SCRIPT: np.array([1])}, {SCRIPT: np.array([SCRIPT])})):
        tables.append(tfseek.show(shown)._repr_html_())
    for table in tables:
        assert "<script" not in table and "&lt;script&gt;" in table and table.count("<table ") == table.count("</table>") >= 1
    assert "Ragged int64 [2], 1 rows" in tables[6] and "Sparse bytes [1], dense shape [1, 1]" in tables[6]
    with pytest.raises(TypeError, match="batch: expected .*, found int"):
        tfseek.show(3)


def test_html_embeds_small_images() -> None:
    for magic, kind in ((PNG, "png"), (b"\xff\xd8\xff\xe0", "jpeg"), (b"GIF89a", "gif"), (b"RIFF\x10\0\0\0WEBPVP8 ", "webp")):
        table = tfseek.Example({"image": magic.ljust(12)})._repr_html_()
        assert f'<img src="data:image/{kind};base64,' in table
        text = base64.b64encode(magic + b"\0\xfb\xff" * 9)
        data = f'<img src="data:image/{kind};base64,{text.decode()}"'
        urls = text.translate(bytes.maketrans(b"+/", b"-_")).rstrip(b"=")
        for encoded in (text, urls, b"data:image/png;base64," + text + b"\n"):
            assert data in tfseek.Example({"image": encoded})._repr_html_(), encoded
    for other in (b"/9j/ is no image", b"R0lGOD", b"iVBORw0KGg", b"data:image/png;base64,"):
        assert "<img" not in tfseek.Example({"image": other})._repr_html_()
    assert "<img" in tfseek.Example({"image": PNG.ljust(64_000)})._repr_html_()
    assert "<img" not in tfseek.Example({"image": PNG.ljust(64_001)})._repr_html_()
    assert "<img" not in tfseek.Example({"image": b"<svg onload=x>"})._repr_html_()
    images = tfseek.show({"image": np.array([PNG] * 100, dtype=object)})
    assert str(images).count("<img") == 4 and "(100 values)" in str(images) and len(repr(images)) < 100
    # The images of a display have a limit in all, and the next display has it again.
    batch = {f"image{k}": np.array([PNG.ljust(60_000)] * 4, dtype=object) for k in range(10)}
    assert [str(tfseek.show(batch)).count("<img") for _ in range(2)] == [16, 16]


def test_html_of_a_dataset_has_the_images_of_the_first_records(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", ({"image": PNG, "label": 3} for _ in range(20)))
    assert tfseek.open(tmp_path / "a.tfrecord")._repr_html_().count("<img") == 12 + 1


def test_html_of_a_dataset_begins_with_a_line_about_it(tmp_path: pathlib.Path) -> None:
    shard = tmp_path / "a.tfrecord"
    ds = written(shard, ({"x": i / 7, "n": i, "name": f"record {i}", "same": [0.5] * 3} for i in range(2000)))
    text = ds._repr_html_()
    size = shard.stat().st_size
    assert f"<strong>2,000 Examples</strong> · 1 shard · {size / 1000:.0f} kB</p>" in text
    # The first five records, with numbers in the form of the viewer.
    table = text.partition("<details>")[0]
    assert table.count("<tr>") == 6 and "&quot;record 4&quot;" in table and "&quot;record 5&quot;" not in table
    assert ">0.1429<" in table and "0.5, 0.5, 0.5" in table and "font-family:system-ui" in text
    assert "<strong>1 Example</strong>" in ds[7:8]._repr_html_() and "<strong>0 Examples</strong>" in ds[:0]._repr_html_()


def test_html_of_damaged_and_empty_data(tmp_path: pathlib.Path) -> None:
    for record in (tfseek.Example.from_bytes(b"\x0a"), tfseek.SequenceExample.from_bytes(b"\x0a")):
        assert "malformed" in record._repr_html_()
    for name, payloads in (("empty", []), ("bytes", [b"abc"]), ("damaged", [bytes(tfseek.Example(features(0))), b"\x0a"])):
        path = tmp_path / f"{name}.tfrecord"
        write_records(path, payloads)
        assert name in tfseek.open(path)._repr_html_()


def test_html_of_values() -> None:
    def cell(value: Any) -> str:
        return str(tfseek.Example({"x": value})._repr_html_()).rpartition("<td")[2].partition(">")[2].partition("</td>")[0]

    assert cell("Zoë 日本語") == "&quot;Zoë 日本語&quot;" and cell(b"") == "&quot;&quot;" and cell("a\nb") == "&quot;a\\nb&quot;"
    assert cell("é" * 200) == "&quot;" + "é" * 80 + "&quot;.. (400 bytes)" and cell("a" * 80) == "&quot;" + "a" * 80 + "&quot;"
    # The end of the bytes that are decoded is inside a character.
    assert cell("a" + "🐐" * 200) == "&quot;a" + "🐐" * 79 + "&quot;.. (801 bytes)"
    assert cell(b"\xff\0") == html.escape(repr(b"\xff\0")) and cell(b"\xc3") == html.escape(repr(b"\xc3"))
    assert cell(b"\xff" * 100) == html.escape(repr(b"\xff" * 40)) + ".. (100 bytes)"
    # Characters that change the direction of text are escaped.
    assert cell("\u202eabc") == html.escape(repr("\u202eabc".encode()))
    assert cell([float("nan"), float("inf")]) == "nan, inf" and cell(np.empty(0, np.int64)) == ""
    wide = tfseek.Example({f"f{i:03}": i for i in range(200)})._repr_html_()
    assert ">f049<" in wide and ">f050<" not in wide and ".. and 150 more" in wide


def test_html_counts_all_values(ds: tfseek.Dataset) -> None:
    batch = tfseek.parse_example(ds[:100], {"name": SPEC["name"]}, bytes_as="offsets")
    assert "(100 values)" in str(tfseek.show(batch))
    images = tfseek.SequenceExample({}, {"frames": [None, [PNG, PNG], [PNG] * 5]})._repr_html_()
    assert images.count("<img") == 4 and ".. (7 values)" in images
    assert "First record" in ds._repr_html_()


def test_html_of_columns_with_missing_values_and_of_text(ds: tfseek.Dataset) -> None:
    column = tfseek.Column(np.array([1, 0, 3]), np.array([True, False, True]))
    assert "1, None, 3" in str(tfseek.show({"x": column})) and "Optional int64 [3], 2 present" in str(tfseek.show({"x": column}))
    words = np.array(["Zoë", "a\u202eb", "x" * 100], dtype=object)
    table = str(tfseek.show({"x": words}))
    assert "&quot;Zoë&quot;, &quot;a\\u202eb&quot;" in table and "\u202e" not in table
    assert "&quot;" + "x" * 80 + "&quot;.. (100 characters)" in str(tfseek.show({"x": words[2:]}))
    one = tfseek.parse_single_example(ds[1], {"x": tfseek.Optional("int64"), "label": tfseek.Optional("int64")})
    assert "None" in str(tfseek.show(one)) and "<td" in str(tfseek.show(one))
