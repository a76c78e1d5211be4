"""``tfseek.io``: the names of ``tf.io``; ``tfseek.image_shape``."""

from __future__ import annotations

import gc
import pathlib
from typing import Any

import numpy as np
import pytest
from tiny_images import JPEG, png
from conftest import flip

import tfseek as tf

PICTURES = pathlib.Path(__file__).parents[2] / "crates" / "image" / "tests" / "data"


@pytest.mark.parametrize("options", [None, "", "GZIP", "ZLIB", tf.io.TFRecordOptions("GZIP", compression_level=1), tf.io.TFRecordOptions()])
def test_records_are_those_that_were_written(tmp_path: pathlib.Path, options: Any) -> None:
    path = tmp_path / "x.tfrecord"
    with tf.io.TFRecordWriter(path, options) as writer:
        for i in range(5):
            writer.write(b"%d" % i)
        writer.flush()
    for read in (None, options):
        assert list(tf.io.tf_record_iterator(str(path), read)) == [b"0", b"1", b"2", b"3", b"4"]
    assert len(tf.open(path, kind="bytes")) == 5


def test_compression_types() -> None:
    kinds = tf.io.TFRecordCompressionType
    assert tf.io.TFRecordOptions(kinds.GZIP).compression_type == kinds.GZIP
    assert tf.io.TFRecordOptions(tf.io.TFRecordOptions("ZLIB")).compression_type == "ZLIB"
    with pytest.raises(ValueError, match="expected 'GZIP', 'ZLIB' or '', found 'BZ2'"):
        tf.io.TFRecordOptions("BZ2")
    with pytest.raises(ValueError, match="window_bits"):
        tf.io.TFRecordOptions("GZIP", window_bits=9)  # type: ignore[arg-type]


def test_the_string_of_a_compression_type() -> None:
    string = tf.io.TFRecordOptions.get_compression_type_string
    types = tf.io.TFRecordCompressionType
    assert [string(value) for value in (None, "", types.NONE)] == [""] * 3
    assert [string(value) for value in ("GZIP", types.GZIP, tf.io.TFRecordOptions("GZIP"))] == ["GZIP"] * 3
    with pytest.raises(ValueError, match="compression_type: expected 'GZIP'"):
        string("LZ4")


def test_a_closed_writer_is_not_flushed(tmp_path: pathlib.Path) -> None:
    writer = tf.io.TFRecordWriter(tmp_path / "a.tfrecord")
    writer.flush()
    writer.close()
    with pytest.raises(tf.Error, match="the writer is closed"):
        writer.flush()
    with pytest.raises(tf.Error, match="the writer is closed"):
        writer.write(b"x")


def test_an_iterator_repeats_its_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(bytes([i] * 9))
    flip(path, 2 * 25 + 12)
    records = tf.io.tf_record_iterator(path)
    assert [next(records) for _ in range(2)] == [bytes([i] * 9) for i in range(2)]
    for _ in range(3):
        with pytest.raises(tf.DataError, match="record 2 at byte 50"):
            next(records)


def test_a_writer_that_is_not_closed_keeps_its_records(tmp_path: pathlib.Path) -> None:
    writer = tf.io.TFRecordWriter(str(tmp_path / "x"))
    writer.write(b"a")
    with pytest.warns(ResourceWarning, match="unclosed writer"):
        del writer
        gc.collect()
    assert list(tf.io.tf_record_iterator(tmp_path / "x")) == [b"a"]


def test_a_failed_block_leaves_no_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(KeyError), tf.io.TFRecordWriter(tmp_path / "x") as writer:
        writer.write(b"a")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_parsing() -> None:
    data = tf.train.Example(features={"feature": {"a": {"int64_list": {"value": [5]}}}}).SerializeToString()
    features = {
        "a": tf.io.FixedLenFeature([], tf.int64),
        "b": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "c": tf.io.FixedLenFeature([], tf.float32, 0.5),
        "d": tf.io.VarLenFeature(tf.int64),
    }
    one = tf.io.parse_single_example(data, features, None, "name")
    assert (one["a"], one["b"], one["c"]) == (5, b"", 0.5)
    assert tf.io.parse_example(serialized=[data, data], features=features, example_names=["x", "y"])["a"].tolist() == [5, 5]
    sequence = tf.train.SequenceExample(feature_lists={"feature_list": {"s": {"feature": [{"int64_list": {"value": [1]}}]}}})
    steps = {"s": tf.io.FixedLenSequenceFeature([], tf.int64)}
    context, lists = tf.io.parse_single_sequence_example(sequence.SerializeToString(), None, steps)
    assert context == {} and lists["s"].tolist() == [1]
    _, lists, lengths = tf.io.parse_sequence_example([sequence.SerializeToString()], sequence_features=steps)
    assert lists["s"].tolist() == [[1]] and lengths["s"].tolist() == [1]
    tensor = tf.io.serialize_tensor(np.array([[1, 2]]), "name")
    assert tf.io.parse_tensor(tensor, tf.int64).tolist() == [[1, 2]]


def test_image_shape() -> None:
    assert tf.image_shape(JPEG) == (8, 8, 1)
    for colour, channels in ((0, 1), (2, 3), (3, 3), (4, 2), (6, 4)):
        for make in (bytes, bytearray, memoryview):
            assert tf.image_shape(make(png(3, 2, colour))) == (2, 3, channels)
    assert tf.image_shape(png(3, 2, 3, transparent=True)) == (2, 3, 4)
    for name, shape in (("bmp8.bmp", (5, 7, 1)), ("bmp32.bmp", (5, 7, 4)), ("gif-parts.gif", (6, 9, 3)), ("webp-lossy-alpha.webp", (13, 21, 4))):
        assert tf.image_shape((PICTURES / name).read_bytes()) == shape
    for data, text in ((b"", "expected a JPEG, PNG, BMP, GIF or WebP picture, found no bytes"), (b"GIF89a", "GIF: the data end before all pixels")):
        with pytest.raises(ValueError, match=f"^image: {text}$"):
            tf.image_shape(data)
    for data in (JPEG[:2], JPEG[:90], png(3, 2, 2)[:32], png(0, 2, 2), b"\xff\xd8\x00\x00\x00\x00"):
        with pytest.raises(ValueError, match="^image: "):
            tf.image_shape(data)
    turned = (PICTURES / "exif.jpg").read_bytes()
    for name in ("exif.jpg", "yuv420.jpg", "bmp8.bmp", "gif-parts.gif"):
        file = (PICTURES / name).read_bytes()
        height, width, channels = tf.image_shape(file, exif=False)
        assert tf.image_shape(file, exif=True) == ((width, height, channels) if file == turned else (height, width, channels))
    with pytest.raises(TypeError, match="expected bytes, found str"):
        tf.image_shape("x")  # type: ignore[arg-type]


def test_image_shape_of_damaged_headers() -> None:
    """Each truncation and each changed byte of a header is a shape or a ``ValueError``."""
    for image in (JPEG, png(3, 2, 2)):
        damaged = [image[:n] for n in range(len(image))]
        damaged += [image[:i] + bytes([value]) + image[i + 1 :] for i in range(min(len(image), 120)) for value in (0, 1, 0x80, 0xD8, 0xFF)]
        for data in damaged:
            try:
                height, width, channels = tf.image_shape(data)
                assert height > 0 and width > 0 and channels >= 0
            except ValueError:
                pass
