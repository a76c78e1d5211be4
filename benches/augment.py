"""Processor time of a picture on its way to a training tensor: the loader beside torchvision v2 and tf.data on the same machine.

Usage: python benches/augment.py [PICTURES] [ROUNDS]

The way: a JPEG of 500 x 375 (or 1600 x 1200), a random crop of 224 x 224, a mirror, brightness, contrast, saturation and hue, mean and standard
deviation, a float32 batch [64, 3, 224, 224]. Each way runs in processes of its own, whose user and system times count, workers included and imports
not. The ways take turns; medians of all rounds are printed with their ratio to the loader with two threads. Before times, pictures without what is
random are compared with those of torchvision. A way whose package is missing is left out with a word. Needs pillow.
"""

import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

SIZE, BATCH = 224, 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
JITTER = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}


def loader(path, threads, shuffle=True, **augmentation):
    import tfseek

    image = tfseek.Image(size=(SIZE, SIZE), mean=MEAN, std=STD, dtype="float32", layout="chw", **augmentation)
    ds = tfseek.open(path, index="memory")
    return tfseek.Loader(ds, {"image": image}, batch_size=BATCH, threads=threads, seed=1, shuffle=shuffle, transform=lambda batch: batch["image"])


def augmented(path, threads, jitter):
    return loader(path, threads, crop="random_resized", flip=0.5, jitter=JITTER if jitter else None)


def torchvision(path, workers, jitter, random=True):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    import tfseek

    torch.set_num_threads(1)
    files = [record["image"][0] for record in map(tfseek.Example, tfseek.open(path, index="memory"))]
    steps = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()] if random else [v2.Resize((SIZE, SIZE), antialias=True)]
    # Floats before the colours are faster than bytes, by 1.3 in hue.
    steps += [v2.ToDtype(torch.float32, scale=True)] + ([v2.ColorJitter(**JITTER)] if jitter else []) + [v2.Normalize(MEAN, STD)]
    transform = v2.Compose(steps)

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, k):
            return transform(decode_jpeg(torch.frombuffer(bytearray(files[k]), dtype=torch.uint8), ImageReadMode.RGB))

    return torch.utils.data.DataLoader(Files(), batch_size=BATCH, num_workers=workers, shuffle=random)


def tf_data(path, calls, jitter):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def augment(payload):
        file = tf.io.parse_single_example(payload, {"image": tf.io.FixedLenFeature([], tf.string)})["image"]
        shape = tf.io.extract_jpeg_shape(file)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros([1, 0, 4]), area_range=(0.08, 1.0), min_object_covered=0.0, use_image_if_no_bounding_boxes=True
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.resize(tf.io.decode_and_crop_jpeg(file, window, channels=3), [SIZE, SIZE], antialias=True) / 255
        image = tf.image.random_flip_left_right(image)
        if jitter:
            image = tf.image.random_brightness(image, 0.4)
            image = tf.image.random_contrast(image, 0.6, 1.4)
            image = tf.image.random_saturation(image, 0.6, 1.4)
            image = tf.clip_by_value(tf.image.random_hue(image, 0.1), 0, 1)
        return tf.transpose((image - MEAN) / STD, [2, 0, 1])

    files = tf.data.TFRecordDataset(path).map(augment, num_parallel_calls=calls)
    return files.batch(BATCH).prefetch(1)


WAYS = {
    "loader, 1 thread": lambda path, jitter: augmented(path, 1, jitter),
    "loader, 2 threads": lambda path, jitter: augmented(path, 2, jitter),
    "torchvision v2, 1 worker": lambda path, jitter: torchvision(path, 1, jitter),
    "torchvision v2, 2 workers": lambda path, jitter: torchvision(path, 2, jitter),
    "tf.data, 1 call": lambda path, jitter: tf_data(path, 1, jitter),
    "tf.data, 2 calls": lambda path, jitter: tf_data(path, 2, jitter),
}


def child(way, path, jitter):
    """Prints the processor time and the time of a picture, in ms, of the second of two epochs."""
    batches = WAYS[way](path, jitter)
    for batch in batches:
        found = np.asarray(batch)
        assert found.shape == (BATCH, 3, SIZE, SIZE) and found.dtype == np.float32, (found.shape, found.dtype)
    before, start = os.times(), time.perf_counter()
    # Workers end with their epoch, and are waited for, so that their times count.
    count = sum(len(batch) for batch in batches)
    seconds = time.perf_counter() - start
    print((sum(os.times()[:4]) - sum(before[:4])) * 1000 / count, seconds * 1000 / count)


def check(path):
    """Compares pictures without what is random."""
    if not importlib.util.find_spec("torchvision"):
        return
    for ours, theirs in zip(loader(path, 1, shuffle=False), torchvision(path, 0, jitter=False, random=False)):
        off = np.abs(np.asarray(ours) - theirs.numpy()) * np.array(STD)[:, None, None] * 255
        assert off.mean() < 0.5 and off.max() < 3, (off.mean(), off.max())


def main(pictures=1024, rounds=5):
    packages = {"loader": "tfseek", "torchvision": "torchvision", "tf.data": "tensorflow"}
    ways = [way for way in WAYS if importlib.util.find_spec(packages[way.partition(",")[0].partition(" ")[0]])]
    for way in WAYS.keys() - set(ways):
        print(f"left out: {way}")
    for (width, height), jitter in (((500, 375), True), ((500, 375), False), ((1600, 1200), True)):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "pictures.tfrecord"))
            write(path, width, height, pictures)
            check(path)
            spent = {way: [] for way in ways}
            for _ in range(rounds):
                for way in ways:
                    command = [sys.executable, __file__, "--child", way, path, str(int(jitter))]
                    spent[way].append([float(word) for word in subprocess.check_output(command, text=True).split()])
            found = {way: [statistics.median(column) for column in zip(*rows)] for way, rows in spent.items()}
            two = found["loader, 2 threads"]
            for way, (processor, wall) in found.items():
                ratio = f"{two[0] / processor:.2f} {two[1] / wall:.2f}"
                print(f"{width}x{height} {'jitter' if jitter else 'plain '}  {way:26} {processor:6.2f} ms, {wall:6.2f} ms wall; the loader's ratio {ratio}")


def write(path, width, height, pictures):
    from pictures import jpeg

    import tfseek

    files = [jpeg(width, height, seed) for seed in range(16)]
    count = max(4 * BATCH, pictures * 500 // width // BATCH * BATCH)
    with tfseek.Writer(path) as writer:
        for k in range(count):
            writer.write({"image": files[k % len(files)]})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _, _, name, file, colours = sys.argv
        child(name, file, bool(int(colours)))
    else:
        main(*map(int, sys.argv[1:]))
