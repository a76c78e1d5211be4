"""The API calls of TensorFlow's notebook "TFRecord and tf.train.Example", run without TensorFlow after a few textual substitutions.

The code is our own. The numbers are those of the notebook's cells with code, without the licence.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

CELLS = {
    1: "import numpy as np\nimport IPython.display as display\nimport tensorflow as tf",
    2: """
def bytes_feature(value):
    if isinstance(value, type(tf.constant(0))):
        value = value.numpy()
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
def float_feature(value):
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
def int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
""",
    3: """
for feature in (bytes_feature(b"text"), bytes_feature("text".encode()), float_feature(np.exp(1)), int64_feature(True), int64_feature(1)):
    print(feature)
assert str(int64_feature(True)) == "int64_list {\\n  value: 1\\n}\\n"
""",
    4: 'assert float_feature(np.exp(1)).SerializeToString() == b"\\x12\\x06\\n\\x04T\\xf8-@"',
    5: """
count = 200
rng = np.random.default_rng(1)
bools = rng.choice([False, True], count)
ints = rng.integers(0, 5, count)
strings = np.array([b"cat", b"dog", b"chicken", b"horse", b"goat"])[ints]
floats = rng.standard_normal(count)
""",
    6: """
def serialize(f0, f1, f2, f3):
    features = {"f0": int64_feature(f0), "f1": int64_feature(f1), "f2": bytes_feature(f2), "f3": float_feature(f3)}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
""",
    7: 'serialized = serialize(False, 4, b"goat", 0.9876)',
    8: "example = tf.train.Example.FromString(serialized)\nprint(example)",
    9: "tf.data.Dataset.from_tensor_slices(ints)",
    10: "observations = tf.data.Dataset.from_tensor_slices((bools, ints, strings, floats))",
    11: "for f0, f1, f2, f3 in observations.take(1):\n    print(f0, f1, f2, f3)",
    12: """
def tf_serialize(f0, f1, f2, f3):
    packed = tf.py_function(serialize, (f0, f1, f2, f3), tf.string)
    return tf.reshape(packed, ())
""",
    13: "tf_serialize(f0, f1, f2, f3)",
    14: "records = observations.map(tf_serialize)",
    15: "def generator():\n    for observation in observations:\n        yield serialize(*observation)",
    16: "records = tf.data.Dataset.from_generator(generator, output_types=tf.string, output_shapes=())",
    17: "records",
    18: 'filename = "test.tfrecord"\nwriter = tf.data.experimental.TFRecordWriter(filename)\nwriter.write(records)',
    19: "filenames = [filename]\nraw = tf.data.TFRecordDataset(filenames)",
    20: "for raw_record in raw.take(10):\n    print(repr(raw_record))",
    21: """
spec = {
    "f0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    "f1": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    "f2": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "f3": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
}
def parse(record):
    return tf.io.parse_single_example(record, spec)
""",
    22: "parsed = raw.map(parse)",
    23: "for record in parsed.take(10):\n    print(repr(record))",
    24: """
with tf.io.TFRecordWriter(filename) as writer:
    for i in range(count):
        writer.write(serialize(bools[i], ints[i], strings[i], floats[i]))
""",
    25: "print(pathlib.Path(filename).stat().st_size)",
    26: "filenames = [filename]\nraw = tf.data.TFRecordDataset(filenames)",
    27: """
for raw_record in raw.take(1):
    example = tf.train.Example()
    example.ParseFromString(raw_record.numpy())
    print(example)
""",
    28: 'cat, bridge = [tf.keras.utils.get_file(name, URL + name) for name in ("cat.jpg", "bridge.png")]',
    29: 'display.display(display.Image(filename=cat))\ndisplay.display(display.HTML("a cat"))',
    30: 'display.display(display.Image(filename=bridge))\ndisplay.display(display.HTML("a bridge"))',
    31: "labels = {cat: 0, bridge: 1}",
    32: """
image = open(cat, "rb").read()
label = labels[cat]
def image_example(image, label):
    shape = tf.image.decode_jpeg(image).shape
    features = {
        "height": int64_feature(shape[0]),
        "width": int64_feature(shape[1]),
        "depth": int64_feature(shape[2]),
        "label": int64_feature(label),
        "image_raw": bytes_feature(image),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))
for line in str(image_example(image, label)).split("\\n")[:15]:
    print(line)
""",
    33: """
record_file = "images.tfrecords"
with tf.io.TFRecordWriter(record_file) as writer:
    for name, label in labels.items():
        writer.write(image_example(open(name, "rb").read(), label).SerializeToString())
""",
    34: "print(pathlib.Path(record_file).stat().st_size)",
    35: """
raw_images = tf.data.TFRecordDataset("images.tfrecords")
image_spec = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("height", "width", "depth", "label")}
image_spec["image_raw"] = tf.io.FixedLenFeature([], tf.string)
def parse_image(record):
    return tf.io.parse_single_example(record, image_spec)
parsed_images = raw_images.map(parse_image)
""",
    36: """
for features in parsed_images:
    image = features["image_raw"].numpy()
    display.display(display.Image(data=image))
""",
}

#: The changes that code of the notebook needs: TensorFlow's words, and ours.
SUBSTITUTIONS = [
    ("import tensorflow as tf", "import tfseek as tf"),
    # Values are NumPy.
    ("    if isinstance(value, type(tf.constant(0))):\n        value = value.numpy()\n", ""),
    ("raw_record.numpy()", "raw_record"),
    ('["image_raw"].numpy()', '["image_raw"]'),
    # Datasets of values in memory are lists, and graph functions are functions.
    ("tf.data.Dataset.from_tensor_slices(ints)", "list(ints)"),
    ("tf.data.Dataset.from_tensor_slices((bools, ints, strings, floats))", "list(zip(bools, ints, strings, floats))"),
    (".take(1)", "[:1]"),
    (".take(10)", "[:10]"),
    ("tf.py_function(serialize, (f0, f1, f2, f3), tf.string)", "serialize(f0, f1, f2, f3)"),
    ("tf.reshape(packed, ())", "packed"),
    ("observations.map(tf_serialize)", "[tf_serialize(*observation) for observation in observations]"),
    ("tf.data.Dataset.from_generator(generator, output_types=tf.string, output_shapes=())", "list(generator())"),
    # Files.
    (
        "writer = tf.data.experimental.TFRecordWriter(filename)\nwriter.write(records)",
        "with tf.io.TFRecordWriter(filename) as writer:\n    for record in records:\n        writer.write(record)",
    ),
    ("tf.data.TFRecordDataset(", 'tf.open(kind="bytes", paths='),
    ("raw.map(parse)", "[parse(record) for record in raw]"),
    ("raw_images.map(parse_image)", "[parse_image(record) for record in raw_images]"),
    ("tf.keras.utils.get_file(name, URL + name)", "name"),
    ("tf.image.decode_jpeg(image).shape", "tf.image_shape(image)"),
]

#: Cells that run after the import without a change.
UNCHANGED = {*range(3, 9), 13, 15, 17, 21, 24, 25, 29, 30, 31, 33, 34}

#: Blocks TensorFlow and protobuf, and replaces IPython, which is not needed otherwise.
BEGIN = """
import pathlib, sys, types
for name in ("tensorflow", "google.protobuf"):
    sys.modules[name] = None
shown = []
display = types.SimpleNamespace(display=shown.append, HTML=str, Image=lambda filename=None, data=None: data or filename)
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython.display"] = sys.modules["IPython"].display = display
"""
END = """
assert len(parsed) == len(raw) == count and [int(record["f1"]) for record in parsed] == ints.tolist()
assert [bool(record["f0"]) for record in parsed] == bools.tolist() and [record["f2"] for record in parsed] == strings.tolist()
assert example == tf.train.Example.FromString(serialize(bools[0], ints[0], strings[0], floats[0]))
assert shown == [cat, "a cat", bridge, "a bridge", open(cat, "rb").read(), open(bridge, "rb").read()]
assert [(int(f["height"]), int(f["width"]), int(f["depth"])) for f in parsed_images] == [(120, 160, 3), (100, 160, 3)]
try:
    import tensorflow
    raise SystemExit("TensorFlow was imported")
except ImportError:
    pass
"""


def substituted(cell: str) -> str:
    for old, new in SUBSTITUTIONS:
        cell = cell.replace(old, new)
    return cell


def test_the_cells_run_without_tensorflow(tmp_path: pathlib.Path) -> None:
    assert sorted(CELLS) == list(range(1, 37)) and len(SUBSTITUTIONS) <= 20
    for old, _ in SUBSTITUTIONS:
        assert any(old in cell for cell in CELLS.values()), old
    assert {number for number, cell in CELLS.items() if substituted(cell) == cell} == UNCHANGED
    for name in ("cat.jpg", "bridge.png"):
        shutil.copy(pathlib.Path(__file__).resolve().parents[2] / "docs" / name, tmp_path / name)
    code = "\n".join(f"# Cell {number}.\n{substituted(cell)}" for number, cell in CELLS.items())
    assert "tensorflow" not in code
    (tmp_path / "cells.py").write_text(BEGIN + code + END)
    done = subprocess.run([sys.executable, "cells.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
