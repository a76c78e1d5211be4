"""``tfseek.arrow.tensorboard``: scalars of events that are made by hand, and by TensorFlow."""

from __future__ import annotations

import importlib.util
import pathlib
import struct
import subprocess
import sys
from typing import Any, Optional, Union

import pytest
from conftest import flip, write_records

import tfseek

pytest.importorskip("pyarrow")

from tfseek.arrow import tensorboard  # noqa: E402


def field(number: int, data: Union[bytes, int, float], size: str = "d") -> bytes:
    """A field of a message: of bytes, an integer, or a float of the size ``d`` or ``f``."""
    if isinstance(data, bytes):
        return varint(number << 3 | 2) + varint(len(data)) + data
    if isinstance(data, int):
        return varint(number << 3) + varint(data % 2**64)
    return varint(number << 3 | (1 if size == "d" else 5)) + struct.pack("<" + size, data)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)


def value(tag: str, content: bytes, plugin: Optional[str] = None) -> bytes:
    """A field of a summary. The metadata are written last, so a reader knows the plugin after the content."""
    return field(1, field(1, tag.encode()) + content + (field(9, field(1, field(1, plugin.encode()))) if plugin else b""))


def simple(number: float) -> bytes:
    return field(2, number, "f")


def floats(*numbers: float, shape: bytes = b"") -> bytes:
    """A tensor with the numbers in its list."""
    return field(8, field(1, 1) + field(2, shape) + field(5, struct.pack(f"<{len(numbers)}f", *numbers)))


def double(number: float) -> bytes:
    """A tensor with the bytes of a number."""
    return field(8, field(1, 2) + field(2, b"") + field(4, struct.pack("<d", number)))


def event(wall_time: float, step: int, *values: bytes) -> bytes:
    return field(1, wall_time) + field(2, step) + field(5, b"".join(values))


VERSION = field(1, 0.5) + field(3, b"brain.Event:2")
TEXT = field(8, field(1, 7) + field(8, b"hello"))


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_scalars(tmp_path: pathlib.Path) -> None:
    first, second = str(tmp_path / "events.out.tfevents.1.a"), str(tmp_path / "events.out.tfevents.2.a.v2")
    events = [
        VERSION,
        event(1.25, 0, value("loss", simple(0.1)), value("text", TEXT, "text"), value("acc", floats(0.5), "scalars")),
        event(2.25, -3, value("acc", floats(0.25)), value("text", TEXT), value("lr", double(0.1), "scalars"), value("unknown", floats(1.0))),
        event(3.25, 2**40, value("image", field(4, field(1, 3))), value("histogram", field(5, b"")), value("loss", simple(-1.5))),
        # Values exclude each other: the last one counts. Unknown fields are left out.
        event(4.25, 7, value("loss", field(4, b"") + simple(2.0)), value("loss", simple(2.0) + field(4, b""))) + field(99, b"x"),
        # Two summaries are merged, and what is absent is 0.
        field(5, value("é", simple(3.0))) + field(5, value("", simple(float("inf")))),
        field(4, b"a graph"),
        b"",
    ]
    write_records(first, events)
    write_records(second, [event(9.0, 1, value("acc", floats(8.0)), value("loss", simple(4.0)))])
    tenth = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    want = [
        (first, 1.25, 0, "loss", tenth),
        (first, 1.25, 0, "acc", 0.5),
        (first, 2.25, -3, "acc", 0.25),
        (first, 2.25, -3, "lr", 0.1),
        (first, 3.25, 2**40, "loss", -1.5),
        (first, 4.25, 7, "loss", 2.0),
        (first, 0.0, 0, "é", 3.0),
        (first, 0.0, 0, "", float("inf")),
        # The plugin of a tag is not that of another file.
        (second, 9.0, 1, "loss", 4.0),
    ]
    for paths in ([first, second], tmp_path / "events*", tmp_path, f"{tmp_path}/**"):
        found = tensorboard(paths)
        assert rows(found) == want
    assert {name: str(kind) for name, kind in zip(found.schema.names, found.schema.types)} == {
        "file": "string", "wall_time": "double", "step": "int64", "tag": "string", "value": "double"
    }  # fmt: skip
    write_records(first, [VERSION])
    assert tensorboard(first).num_rows == 0 and tensorboard(first).schema == found.schema


@pytest.mark.parametrize(
    "bad, text",
    [
        (event(1.0, 1, value("a", simple(1.0)))[:-1], "expected at most 9 bytes, found the length 10"),
        (field(5, field(1, b"\x0d\x00")), "expected 4 bytes, found 1"),
        (b"\x0c", "expected no end of a group"),
        (b"\x00\x00", "expected a field number, found 0"),
        (field(5, field(1, field(1, b"\xff") + simple(1.0))), "'utf-8' codec can't decode byte 0xff"),
        (bytes(tfseek.Example({"a": 1}).to_bytes()), "expected the fields of an event, found the wire type 2 of field 1"),
        (field(2, 1.0), "expected the fields of an event, found the wire type 1 of field 2"),
        (event(1.0, 1, value("a", field(8, field(1, 3) + field(7, b"\x01")), "scalars")), "scalar 'a': expected a tensor of float32 or float64, found the dtype 3"),
        (event(1.0, 1, value("a", field(8, b""), "scalars")), "found the dtype 0"),
        (event(1.0, 1, value("a", floats(1.0, 2.0, shape=field(2, field(1, 2))), "scalars")), r"without dimensions, found the shape \[2\]"),
        (event(1.0, 1, value("a", field(8, field(1, 2) + field(4, b"1234567")), "scalars")), "expected 8 bytes .*, found 7"),
    ],
    ids=["cut", "float", "group", "number", "tag", "example", "step", "int32", "empty", "vector", "double"],
)
def test_bad_events(bad: bytes, text: str, tmp_path: pathlib.Path) -> None:
    good, path = event(1.0, 1, value("a", simple(1.0))), str(tmp_path / "b.tfrecord")
    write_records(tmp_path / "a.tfrecord", [good])
    write_records(path, [VERSION, good, bad, good])
    with pytest.raises(tfseek.DataError, match=f"b.tfrecord: record 2: event: .*{text}") as raised:
        tensorboard(tmp_path)
    assert (raised.value.path, raised.value.record, raised.value.category) == (path, 2, "malformed_proto")


def test_every_cut_is_an_event_or_an_error(tmp_path: pathlib.Path) -> None:
    whole = event(1.0, 300, value("a", simple(1.0)), value("b", floats(2.0), "scalars"), value("c", double(3.0), "scalars"))
    found = []
    for end in range(len(whole)):
        write_records(tmp_path / "a", [whole[:end]])
        try:
            found.append(tensorboard(tmp_path / "a").num_rows)
        except tfseek.DataError as e:
            assert e.record == 0
    # Without a summary there is no scalar: the borders of its fields before it.
    assert found == [0] * 3


def test_damaged_and_growing_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    write_records(path, [event(1.0, k, value("a", simple(1.0))) for k in range(5)])
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(tfseek.DataError, match="record 4 at byte .*truncated"):
        tensorboard(path)
    with pytest.warns(tfseek.Warning, match="torn"):
        assert tensorboard(path, tail="tolerate")["step"].to_pylist() == [0, 1, 2, 3]
    path.write_bytes(content)
    flip(path, len(content) // 2)
    with pytest.raises(tfseek.DataError, match="record 2 at byte .*crc32c"):
        tensorboard(path)


#: Writes events by both writers of TensorFlow, in a process of their own: tests of TensorFlow see what they leave behind.
TENSORFLOW = """
import sys
import tensorflow as tf

folder, summary = sys.argv[1], tf.compat.v1.summary
with tf.Graph().as_default(), summary.FileWriter(folder + "/a") as writer:
    for step in range(4):
        values = [summary.Summary.Value(tag=tag, simple_value=step / scale) for tag, scale in (("x", 3), ("y", 7))]
        writer.add_summary(summary.Summary(value=values), step)
metadata = summary.Summary.Value().metadata
metadata.plugin_data.plugin_name = "scalars"
with tf.summary.create_file_writer(folder + "/b").as_default():
    for step in range(4):
        tf.summary.write("x", tf.constant(step / 3), step, metadata if step == 0 else None)
        tf.summary.write("other", tf.constant([1.0]), step)
"""


def test_events_of_tensorflow(tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    subprocess.run([sys.executable, "-c", TENSORFLOW, str(tmp_path)], check=True, capture_output=True)
    table = tensorboard(f"{tmp_path}/**")
    third, seventh = [[struct.unpack("<f", struct.pack("<f", k / n))[0] for k in range(4)] for n in (3, 7)]
    found = [(pathlib.Path(file).parent.name, step, tag, number) for file, _, step, tag, number in rows(table)]
    want = [("a", k, tag, numbers[k]) for k in range(4) for tag, numbers in (("x", third), ("y", seventh))]
    assert found == want + [("b", k, "x", third[k]) for k in range(4)]
    # The times are those of the writers, in seconds.
    assert all(abs(time - pathlib.Path(file).stat().st_mtime) < 600 for file, time, *_ in rows(table))
