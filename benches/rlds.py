"""Windows of robot episodes: what they cost in bytes, memory and time, beside tf.data with a shuffle buffer, as policies are trained today.

Usage: python benches/rlds.py [--tf PYTHON] [--plot FILE.svg] [--episodes 24] [FOLDER]

Makes a set like DROID in FOLDER: episodes of 150 to 380 steps with three JPEG of 180 x 320, actions, states and a text. A window has two pictures, 16 actions, a state and
the text. Augmented pictures have a random crop of 224 x 224 and four changes of colours. Each part runs in a process of its own. `cold` removes the files from the page cache before. `--plot` draws the memory
of the warm, decoded epochs. Needs pillow, and matplotlib for a plot; PYTHON needs tensorflow and tensorflow-datasets.
"""

from __future__ import annotations

import argparse
import glob
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

CAMERAS = ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"]
PICTURES = [f"observation/{CAMERAS[0]}", f"observation/{CAMERAS[2]}"]
FIELDS = {"action_dict/joint_position": 7, "action_dict/gripper_position": 1, "observation/joint_position": 7, "reward": 1}
CLASSES = "tensorflow_datasets.core.features."
EPOCHS = 3
#: What is random in augmented pictures, as Octo's configurations have it.
SCALE, RATIO = (0.8, 1.0), (0.9, 1.1)
JITTER = {"brightness": 0.1, "contrast": 0.1, "saturation": 0.1, "hue": 0.05}
WORDS = ["not decoded", "decoded", "augmented"]


def dict_of(features: dict[str, Any]) -> dict[str, Any]:
    return {"pythonClassName": f"{CLASSES}features_dict.FeaturesDict", "featuresDict": {"features": features}}


def tensor(size: int) -> dict[str, Any]:
    shape = {"dimensions": [str(size)]} if size > 1 else {}
    return {"pythonClassName": f"{CLASSES}tensor_feature.Tensor", "tensor": {"shape": shape, "dtype": "float32", "encoding": "none"}}


def make(folder: pathlib.Path, episodes: int) -> None:
    """Writes the set to four shards."""
    import PIL.Image

    import tfseek

    rng = np.random.default_rng(5)
    pool = []
    for _ in range(96):
        pixels = np.clip(rng.normal(128, 20, (23, 40, 3)), 0, 255).astype(np.uint8).repeat(8, 0).repeat(8, 1)[:180]
        file = io.BytesIO()
        PIL.Image.fromarray(pixels ^ rng.integers(0, 16, pixels.shape, np.uint8)).save(file, "jpeg", quality=93)
        pool.append(file.getvalue())
    folder.mkdir(parents=True)
    lengths = [len(range(k, episodes, 4)) for k in range(4)]
    for k in range(4):
        with tfseek.Writer(folder / f"droid_like-train.tfrecord-{k:05}-of-00004") as writer:
            for e in range(k, episodes, 4):
                steps = int(rng.integers(150, 380))
                record: dict[str, Any] = {f"steps/{name}": rng.normal(0, 1, steps * d).astype(np.float32) for name, d in FIELDS.items()}
                for camera in CAMERAS:
                    record[f"steps/observation/{camera}"] = np.array([pool[i] for i in rng.integers(0, 96, steps)], dtype=object)
                record["steps/language_instruction"] = np.array([b"put the marker %d in the cup" % e] * steps, dtype=object)
                record["episode_metadata/file_path"] = f"/data/success/{e}"
                writer.write(record)

    image = {"shape": {"dimensions": ["180", "320", "3"]}, "dtype": "uint8", "encodingFormat": "jpeg"}
    text = {"pythonClassName": f"{CLASSES}text_feature.Text", "text": {}}
    observation = {camera: {"pythonClassName": f"{CLASSES}image_feature.Image", "image": image} for camera in CAMERAS}
    observation["joint_position"] = tensor(7)
    actions = {"joint_position": tensor(7), "gripper_position": tensor(1)}
    step = {"observation": dict_of(observation), "action_dict": dict_of(actions), "reward": tensor(1), "language_instruction": text}
    inner = {"feature": dict_of(step), "length": "-1"}
    features = {"steps": {"pythonClassName": f"{CLASSES}dataset_feature.Dataset", "sequence": inner}, "episode_metadata": dict_of({"file_path": text})}
    info = {"name": "droid_like", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": [str(n) for n in lengths]}]}
    (folder / "features.json").write_text(json.dumps(dict_of(features)))
    (folder / "dataset_info.json").write_text(json.dumps(info))


def of_process(field: str, file: str = "io") -> int:
    found = re.search(rf"^{field}:\s+(\d+)", pathlib.Path(f"/proc/self/{file}").read_text(), re.M)
    assert found
    return int(found[1])


def anonymous() -> float:
    return of_process("RssAnon", "status") / 1024


def windows(folder: pathlib.Path, decode: int, cameras: list[str] = PICTURES, **options: Any) -> Any:
    import tfseek

    offsets: dict[str, Any] = {"action_dict/joint_position": range(16), "action_dict/gripper_position": range(16)}
    offsets.update({**{camera: 0 for camera in cameras}, "observation/joint_position": 0, "language_instruction": 0})
    image = tfseek.Image((224, 224), crop="random_resized", scale=SCALE, ratio=RATIO, jitter=JITTER)
    pictures = dict.fromkeys(cameras, image) if decode == 2 else bool(decode)
    return tfseek.rlds.open(folder, **options).windows(offsets, decode=pictures)


def epochs(name: str, batches: Iterable[Any], number: int) -> None:
    """Prints the samples per second, and the memory and the bytes of the disk, of each epoch."""
    start, begin, read, used_before = anonymous(), time.time(), of_process("read_bytes"), time.process_time()
    rows, samples, top, curve = [], 0, 0.0, []
    for batch in batches:
        samples += len(batch["language_instruction"])
        used = anonymous() - start
        top = max(top, used)
        curve.append((samples / number, used))
        if samples // number > len(rows):
            rows.append(f"{top:.0f}")
            top = 0.0
    seconds = time.time() - begin
    if "TFSEEK_CURVES" in os.environ:
        with open(os.environ["TFSEEK_CURVES"], "a") as file:
            print(json.dumps([name, curve]), file=file)
    processor = (time.process_time() - used_before) * 1000 / samples
    print(f"{name}: {samples / seconds:,.0f} samples/s, {processor:.2f} ms of processor time each, {(of_process('read_bytes') - read) / 1e6:,.0f} MB of the disk, {' '.join(rows)} MB of memory by epoch")


def tables(folder: pathlib.Path) -> None:
    """Prints the size of tables, the rates of building and verifying, and the bytes that windows read."""
    import tfseek

    shards = sorted(glob.glob(f"{folder}/*tfrecord*"))
    size = sum(map(os.path.getsize, shards))
    rates: dict[str, list[float]] = {"verify": [], "tables": []}
    for _ in range(5):
        begin = time.time()
        tfseek.verify(shards)
        rates["verify"].append(size / (time.time() - begin))
        with tempfile.TemporaryDirectory() as cache:
            tfseek.tfds.open(folder, decode=False, index_dir=cache)["train"]
            begin = time.time()
            tfseek.rlds.open(folder, index_dir=cache)
            rates["tables"].append(size / (time.time() - begin))
            tables = sum(map(os.path.getsize, glob.glob(f"{cache}/*.tfrs")))
    verify, built = (statistics.median(rates[name]) / 1e6 for name in rates)
    print(f"tables: {100 * tables / size:.4f} % of {size / 1e6:.0f} MB, built at {built:.0f} MB/s ({built / verify:.1f} of verify)")
    sample = windows(folder, False, [f"observation/{camera}" for camera in CAMERAS], io="pread")
    ids = np.random.default_rng(0).integers(0, len(sample), 150)
    sample[0]
    before, values = of_process("rchar"), 0
    for i in ids:
        values += sum(len(value) if isinstance(value, bytes) else np.asarray(value).nbytes for value in sample[int(i)].values())
    print(f"150 windows of three cameras: {(of_process('rchar') - before) / values:.2f} of their bytes read, {values / 150e3:.1f} kB a window")


def many(folder: pathlib.Path) -> None:
    """Prints the time to open a million episodes of two steps."""
    import tfseek

    folder = folder.parent.parent / "many"
    if not folder.exists():
        folder.mkdir()
        inner = {"feature": dict_of({"action": tensor(1)}), "length": "-1"}
        steps = {"pythonClassName": f"{CLASSES}dataset_feature.Dataset", "sequence": inner}
        (folder / "features.json").write_text(json.dumps(dict_of({"steps": steps})))
        info = {"name": "many", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": ["1000000"]}]}
        (folder / "dataset_info.json").write_text(json.dumps(info))
        with tfseek.Writer(folder / "many-train.tfrecord-00000-of-00001") as writer:
            for e in range(1_000_000):
                writer.write({"steps/action": np.array([e, e], np.float32)})
    times = []
    for _ in range(6):
        begin = time.time()
        robot = tfseek.rlds.open(folder)
        times.append((time.time() - begin) * 1e3)
        assert len(robot.steps) == 2_000_000
    print(f"a million episodes: opened in {times[0]:.0f} ms, and again in {statistics.median(times[1:]):.0f} ms")


def of_tfseek(folder: pathlib.Path, decode: int, passes: int, number: int) -> None:
    import tfseek

    sample = windows(folder, decode)
    loaders = (tfseek.Loader(sample, batch_size=32, shuffle=True, seed=epoch) for epoch in range(passes))
    epochs(f"tfseek, {WORDS[decode]}", (batch for loader in loaders for batch in loader), number)


def of_tf(folder: pathlib.Path, decode: int, passes: int, number: int) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(str(folder))
    options = tfds.ReadConfig(skip_prefetch=True, num_parallel_calls_for_interleave_files=-1, interleave_cycle_length=-1)
    records = builder.as_dataset(split="train", shuffle_files=True, decoders={"steps": tfds.decode.SkipDecoding()}, read_config=options)

    def cut(record: Any) -> Any:
        steps = record["steps"]
        actions = tf.concat((steps["action_dict"]["joint_position"], steps["action_dict"]["gripper_position"][:, None]), -1)
        count = tf.shape(actions)[0]
        chunk = tf.gather(actions, tf.minimum(tf.range(16)[None] + tf.range(count)[:, None], count - 1))
        images = {name: steps["observation"][name.split("/")[1]] for name in PICTURES}
        return {"actions": chunk, **images, "state": steps["observation"]["joint_position"], "language_instruction": steps["language_instruction"]}

    def decoded(step: Any) -> Any:
        return {**step, **{name: tf.io.decode_image(step[name], expand_animations=False) for name in PICTURES}}

    def augmented(step: Any) -> Any:
        pictures = {}
        for name in PICTURES:
            shape = tf.io.extract_jpeg_shape(step[name])
            begin, size, _ = tf.image.sample_distorted_bounding_box(
                shape, tf.zeros([1, 0, 4]), min_object_covered=0.0, aspect_ratio_range=RATIO, area_range=SCALE, use_image_if_no_bounding_boxes=True
            )
            image = tf.io.decode_and_crop_jpeg(step[name], tf.stack([begin[0], begin[1], size[0], size[1]]), channels=3)
            image = tf.image.resize(image, [224, 224], antialias=True) / 255
            image = tf.image.random_brightness(image, JITTER["brightness"])
            for change, low in ((tf.image.random_contrast, 1 - JITTER["contrast"]), (tf.image.random_saturation, 1 - JITTER["saturation"])):
                image = change(image, low, 2 - low)
            image = tf.image.random_hue(image, JITTER["hue"])
            pictures[name] = tf.cast(tf.clip_by_value(image * 255, 0, 255), tf.uint8)
        return {**step, **pictures}

    steps = records.repeat(passes).map(cut, -1).interleave(tf.data.Dataset.from_tensor_slices, cycle_length=-1, num_parallel_calls=-1)
    steps = steps.map([None, decoded, augmented][decode], -1) if decode else steps
    settings = tf.data.Options()
    settings.deterministic = False
    settings.autotune.ram_budget = 1 << 30
    epochs(f"tf.data, {WORDS[decode]}", steps.shuffle(2000).batch(32).with_options(settings).as_numpy_iterator(), number)


def plot(curves: dict[str, Any], path: str) -> None:
    """Draws the memory over the epochs."""
    import matplotlib

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tfseek", "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
    for name, curve in curves.items():
        epoch, memory = np.array(curve[:: max(1, len(curve) // 200)]).T
        axes.plot(epoch.round(3), memory.round(), label=name)
    axes.set(xlabel="Epoch", ylabel="Anonymous memory, MB", xlim=(0, EPOCHS), ylim=(0, None), xticks=range(EPOCHS + 1))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", nargs="?", default=os.path.join(tempfile.gettempdir(), "tfseek-rlds"))
    arguments.add_argument("--tf")
    arguments.add_argument("--plot")
    arguments.add_argument("--episodes", type=int, default=24)
    arguments.add_argument("--part")
    given = arguments.parse_args()
    folder = pathlib.Path(given.folder) / "droid_like" / "1.0.0"
    if given.part:
        part, *numbers = given.part.split(",")
        decode, passes, number = map(int, numbers)
        if part == "tables":
            tables(folder)
            many(folder)
        else:
            {"tfseek": of_tfseek, "tf": of_tf}[part](folder, decode, passes, number)
        sys.stdout.flush()
        os._exit(0)
    # Tables that an earlier run has made are not used.
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    if not folder.exists():
        make(folder, given.episodes)

    curves = os.path.join(os.environ["XDG_CACHE_HOME"], "curves")

    def run(python: str, part: str) -> None:
        environment = {**os.environ, "TFSEEK_CURVES": curves} if given.plot else None
        subprocess.run([python, __file__, str(given.folder), "--part", part], check=True, env=environment)

    run(sys.executable, "tables,0,0,0")
    number = len(windows(folder, 0))
    for cold in (False, True):
        print("cold" if cold else "warm", flush=True)
        for decode in (0, 1) if cold else (0, 1, 2):
            for python, name in ((sys.executable, "tfseek"), (given.tf, "tf")):
                if python is None:
                    continue
                for path in glob.glob(f"{folder}/*tfrecord*") if cold else []:
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                run(python, f"{name},{decode},{1 if cold else EPOCHS},{number}")
    if given.plot:
        decoded: dict[str, Any] = {}
        with open(curves) as lines:
            for name, curve in map(json.loads, lines):
                # The warm epochs come first.
                if name.endswith(", decoded"):
                    decoded.setdefault(name.removesuffix(", decoded"), curve)
        plot(decoded, given.plot)


if __name__ == "__main__":
    main()
