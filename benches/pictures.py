"""Pictures per second, from JPEG files in TFRecord to uint8 arrays of 224 x 224: the loader beside other ways on the same machine.

Usage: python benches/pictures.py [PICTURES] [ROUNDS]

The pictures are made here: 500 x 375 and 1600 x 1200, smooth waves with noise, quality 90. The ways take turns, and the medians of all rounds are
printed with their ratio to the loader with two threads. Before times, the mean difference of the pixels from those of PIL is checked. A way whose
package is missing is left out with a word. Needs pillow; torch and torchvision, or tensorflow, for their ways.
"""

import importlib.util
import io
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import PIL.Image

import tfseek

PICTURES = int(sys.argv[1]) if len(sys.argv) > 1 else 400
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SIZE, BATCH = 224, 32


def jpeg(width, height, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [128 + 70 * np.sin(x / a + y / b + seed) for a, b in ((17, 31), (23, 19), (41, 13))]
    pixels = np.stack(waves, -1) + rng.normal(0, 6, (height, width, 3))
    file = io.BytesIO()
    PIL.Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "jpeg", quality=90)
    return file.getvalue()


def resized(file):
    return np.asarray(PIL.Image.open(io.BytesIO(file)).convert("RGB").resize((SIZE, SIZE), PIL.Image.BILINEAR))


def stacked(batch):
    return np.stack([resized(file) for file in batch["image"]])


def of_torchvision(batch):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2.functional import resize

    files = [torch.from_numpy(np.frombuffer(file, np.uint8).copy()) for file in batch["image"]]
    images = [resize(decode_jpeg(file, ImageReadMode.RGB), [SIZE, SIZE], antialias=True) for file in files]
    return torch.stack(images).permute(0, 2, 3, 1)


def unchanged(batch):
    return batch


def loader(path, threads):
    spec = {"image": tfseek.Image(size=(SIZE, SIZE))}
    return tfseek.Loader(tfseek.open(path, index="memory"), spec, batch_size=BATCH, threads=threads, transform=lambda b: b["image"])


def workers(path, function):
    import torch.utils.data

    import tfseek.torch

    spec = {"image": tfseek.FixedLenFeature([], "string")}
    ds = tfseek.torch.IterableDataset(tfseek.open(path, index="memory"), spec, batch_size=BATCH, transform=function)
    return torch.utils.data.DataLoader(ds, batch_size=None, num_workers=2)


def of_tensorflow(path):
    import tensorflow as tf

    def decode(payload):
        file = tf.io.parse_single_example(payload, {"image": tf.io.FixedLenFeature([], tf.string)})["image"]
        image = tf.image.resize(tf.io.decode_jpeg(file, channels=3), [SIZE, SIZE], antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)

    return tf.data.TFRecordDataset(path).map(decode, num_parallel_calls=2).batch(BATCH).prefetch(2).as_numpy_iterator()


def ways(path):
    yield "loader, threads=1", lambda: loader(path, 1)
    yield "loader, threads=2", lambda: loader(path, 2)
    if importlib.util.find_spec("torchvision"):
        yield "DataLoader, 2 workers, PIL", lambda: workers(path, stacked)
        yield "DataLoader, 2 workers, torchvision.io", lambda: workers(path, of_torchvision)
    else:
        print("left out: torchvision is not installed")
    if importlib.util.find_spec("tensorflow"):
        yield "tf.data, decode_jpeg + resize, 2 calls", lambda: of_tensorflow(path)
    else:
        print("left out: tensorflow is not installed")


def timed(batches, wanted=None):
    start, count, off = time.perf_counter(), 0, 0.0
    for batch in batches:
        if wanted is not None and not count:
            off = float(np.abs(np.asarray(batch).astype(int) - wanted).mean())
        count += len(batch)
    return count / (time.perf_counter() - start), count, off


def main():
    for width, height in ((500, 375), (1600, 1200)):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "pictures.tfrecord"))
            files = [jpeg(width, height, seed) for seed in range(16)]
            count = max(8 * BATCH, PICTURES * 500 // width)
            with tfseek.Writer(path) as writer:
                for k in range(count):
                    writer.write({"image": files[k % len(files)]})
            wanted = np.stack([resized(files[k % len(files)]) for k in range(BATCH)]).astype(int)
            speeds = {}
            made = list(ways(path))
            for name, way in made:
                _, found, off = timed(way(), wanted)
                assert found == count and off < 1.5, (name, found, off)
            for _ in range(ROUNDS):
                for name, way in made:
                    batches = way()
                    speeds.setdefault(name, []).append(timed(batches)[0])
            two = statistics.median(speeds["loader, threads=2"])
            for name, found in speeds.items():
                speed = statistics.median(found)
                print(f"{width}x{height}  {name:42} {speed:8.1f} pictures/s  {speed / two:.2f}")


if __name__ == "__main__":
    main()
