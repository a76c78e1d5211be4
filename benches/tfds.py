"""Records per second of sets that TensorFlow Datasets prepared, shuffled and in batches of NumPy arrays: the loader beside TFDS itself.

Usage: python benches/tfds.py [FOLDER] [ROUNDS]

TFDS prepares four sets in FOLDER, each as TFRecord and as array_record: 28 x 28 PNG with labels, 500 x 375 JPEG, nested boxes, and ragged numbers.
The ways take turns, and the medians of all rounds are printed with their ratio to `as_dataset`. Before times, the values of some records are
compared. Needs tensorflow, tensorflow-datasets, array-record and pillow; torch for its way. Also prints the time to open a set of 1,024 shards.
"""

import importlib.util
import io
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from jpegs import jpegs

import tfseek
import tfseek.tfds

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
BATCH, BUFFER = 64, 10_000
F = tfds.features
tfds.disable_progress_bar()


def strokes(rng):
    picture = np.zeros((28, 28, 1), np.uint8)
    for _ in range(4):
        row, column = rng.integers(4, 22, 2)
        picture[row : row + 5, column : column + 5] = rng.integers(100, 256)
    return picture


def boxes(rng, i):
    corners = np.sort(rng.random((rng.integers(1, 12), 2, 2), np.float32), 1).reshape(-1, 4)
    objects = [{"bbox": F.BBox(*map(float, box)), "label": k % 7, "is_crowd": k % 2 == 0} for k, box in enumerate(corners)]
    return {"id": i, "objects": objects}


def sets():
    """Returns the features of each set, the number of its records, and a function that makes one."""
    rng = np.random.default_rng(0)
    files, drawn = jpegs(rng), [strokes(rng) for _ in range(512)]
    label = F.ClassLabel(num_classes=10)
    small = F.FeaturesDict({"image": F.Image(shape=(28, 28, 1)), "label": label})
    large = F.FeaturesDict({"image": F.Image(shape=(375, 500, 3), encoding_format="jpeg"), "label": label})
    objects = {"bbox": F.BBoxFeature(), "label": F.ClassLabel(num_classes=7), "is_crowd": np.bool_}
    nested = F.FeaturesDict({"id": np.int64, "objects": F.Sequence(objects)})
    ragged = F.FeaturesDict({"text": F.Text(), "tokens": F.Sequence(F.Sequence(np.int32))})
    yield "png_28", small, 30_000, lambda i: {"image": drawn[i % 512], "label": i % 10}
    yield "jpeg_500", large, 1_000, lambda i: {"image": io.BytesIO(files[i % 32]), "label": i % 10}
    yield "boxes", nested, 30_000, lambda i: boxes(rng, i)
    sentence = lambda: rng.integers(0, 30_000, rng.integers(1, 30)).tolist()
    yield "ragged", ragged, 30_000, lambda i: {"text": f"record {i}", "tokens": [sentence() for _ in range(rng.integers(1, 9))]}


def prepare(root, name, features, count, make, file_format, shards=4):
    """Lets TFDS write a set, unless it is there. Returns its builder."""
    members = {
        "VERSION": tfds.core.Version("1.0.0"),
        "__module__": __name__,
        "_info": lambda self: tfds.core.DatasetInfo(builder=self, features=features),
        "_split_generators": lambda self, _: {"train": ((i, make(i)) for i in range(count))},
        "_generate_examples": lambda self: (),
    }
    class_name = "".join(part.capitalize() for part in name.split("_"))
    made = type(class_name, (tfds.core.GeneratorBasedBuilder,), members, skip_registration=True)
    builder = made(data_dir=str(pathlib.Path(root, file_format)), file_format=file_format)
    if not pathlib.Path(builder.data_path).exists():
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=shards))
    return tfds.builder_from_directory(builder.data_path)


def as_dataset(builder):
    ds = builder.as_dataset(split="train", shuffle_files=True).shuffle(BUFFER)
    return tfds.as_numpy(ds.ragged_batch(BATCH).prefetch(tf.data.AUTOTUNE))


def ragged(values):
    lengths = [len(value) for value in values]
    return np.concatenate([np.asarray(value) for value in values]), np.cumsum([0, *lengths])


def collated(records):
    """Returns a batch of records: arrays, and values with row splits for sequences."""
    first = records[0]
    if isinstance(first, dict):
        return {name: collated([record[name] for record in records]) for name in first}
    if isinstance(first, (list, np.ndarray)) and len({np.shape(record) for record in records if not has_lists(record)}) != 1:
        return ragged([np.concatenate(r) if has_lists(r) else r for r in records])
    return np.stack(records) if isinstance(first, np.ndarray) else np.asarray(records)


def has_lists(value):
    return isinstance(value, list) and any(isinstance(part, (list, np.ndarray)) for part in value)


def data_source(builder):
    source = builder.as_data_source(split="train")
    order = np.random.default_rng(0).permutation(len(source))
    for start in range(0, len(order), BATCH):
        yield collated(source.__getitems__(order[start : start + BATCH].tolist()))


def of_torch(folder):
    """A map-style dataset over tfseek's records, as one would write it for TFDS's data source."""
    import torch.utils.data

    ds = tfseek.tfds.open(folder)["train"]
    return torch.utils.data.DataLoader(ds, batch_size=BATCH, shuffle=True, num_workers=0, collate_fn=list)


def source_in_torch(builder):
    import torch.utils.data

    source = builder.as_data_source(split="train")
    return torch.utils.data.DataLoader(source, batch_size=BATCH, shuffle=True, num_workers=0, collate_fn=collated)


def loader(folder, threads):
    ds = tfseek.tfds.open(folder)["train"]
    return tfseek.Loader(ds, batch_size=BATCH, shuffle=True, seed=1, threads=threads)


def ways(record, array):
    folder = str(record.data_path)
    yield "as_dataset, shuffle(10000), ragged_batch", lambda: as_dataset(record)
    yield "data_source, array_record", lambda: data_source(array)
    if importlib.util.find_spec("torch"):
        yield "data_source, torch DataLoader", lambda: source_in_torch(array)
        yield "tfseek records, torch DataLoader", lambda: of_torch(folder)
    else:
        print("left out: torch is not installed")
    yield "tfseek Loader, threads=1", lambda: loader(folder, 1)
    yield "tfseek Loader, threads=2", lambda: loader(folder, 2)


def rows(batch):
    while isinstance(batch, dict):
        batch = batch.get("label", batch.get("id", batch.get("text")))
    return len(batch)


def timed(way):
    start = time.perf_counter()
    count = sum(rows(batch) for batch in way())
    return count / (time.perf_counter() - start), count


def same(name, builder):
    """Compares the first records with those of TFDS."""
    ds = tfseek.tfds.open(str(builder.data_path))["train"]
    config = tfds.ReadConfig(interleave_cycle_length=1)
    records = tfds.as_numpy(builder.as_dataset(split="train[:20]", read_config=config))
    for i, (wanted, found) in enumerate(zip(records, ds[:20])):
        pairs = zip(tf.nest.flatten(wanted, expand_composites=True), leaves(found))
        assert all(close(np.asarray(a), np.asarray(b)) for a, b in pairs), (name, i)


def leaves(value):
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in leaves(value[name])]
    return [value.values, *value.row_splits] if isinstance(value, tfseek.Ragged) else [value]


def close(a, b):
    # TensorFlow decodes JPEG with a fast transform.
    return a.shape == b.shape and (np.array_equal(a, b) or a.dtype == np.uint8 and np.abs(a.astype(int) - b).max() <= 8)


def many_shards(root):
    """Prints the time to open a set of 1,024 shards whose indexes are there."""
    features = F.FeaturesDict({"x": np.int64})
    builder = prepare(root, "shards", features, 8192, lambda i: {"x": i}, "tfrecord", shards=1024)
    times = []
    for _ in range(2 * ROUNDS):
        start = time.perf_counter()
        assert len(tfseek.tfds.open(str(builder.data_path))["train"]) == 8192
        times.append(time.perf_counter() - start)
    print(f"open of 1,024 shards: first {times[0]:.3f} s, then {statistics.median(times[1:]):.3f} s")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        root = sys.argv[1] if len(sys.argv) > 1 else temporary
        for name, features, count, make in sets():
            record = prepare(root, name, features, count, make, "tfrecord")
            array = prepare(root, name, features, count, make, "array_record")
            same(name, record)
            made, speeds = list(ways(record, array)), {}
            for way, start in made:
                assert timed(start)[1] == count, way
            for _ in range(ROUNDS):
                for way, start in made:
                    speeds.setdefault(way, []).append(timed(start)[0])
            base = statistics.median(speeds[made[0][0]])
            for way, found in speeds.items():
                speed = statistics.median(found)
                print(f"{name:9} {way:44} {speed:10.0f} records/s  {speed / base:6.2f}", flush=True)
        many_shards(root)


if __name__ == "__main__":
    main()
