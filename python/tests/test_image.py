"""``tfseek.Image``: pictures in batches of a ``Loader``."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tfseek
from tfseek import SpecError

DATA = pathlib.Path(__file__).parents[2] / "crates" / "image" / "tests" / "data"
NAMES = ["yuv420.jpg", "grey.jpg", "restart-rows.jpg", "rgb8.png", "ycck.jpg"]


def write(path: pathlib.Path, n: int, bad: Sequence[int] = (), names: Sequence[str] = NAMES) -> tfseek.Dataset:
    with tfseek.Writer(path) as writer:
        for k in range(n):
            file = (DATA / names[k % len(names)]).read_bytes()
            writer.write(example({"image": file[:20] if k in bad else file, "mask": file, "k": k}))
    return tfseek.open(path)


def example(record: dict[str, Any]) -> bytes:
    return bytes(tfseek.Example(record))


def spec(**options: Any) -> dict[str, Any]:
    return {"image": tfseek.Image(size=(9, 7), **options), "k": tfseek.FixedLenFeature([], "int64")}


def test_batches_have_arrays_of_pixels(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", 11)
    for dtype in ("uint8", "uint16"):
        for threads in (0, 2):
            batches = list(tfseek.Loader(ds, spec(dtype=dtype), batch_size=4, threads=threads))
            assert [batch["image"].shape for batch in batches] == [(4, 9, 7, 3), (4, 9, 7, 3), (3, 9, 7, 3)]
            for batch in batches:
                assert batch["image"].dtype == dtype and not batch["image"].flags.writeable
    ds = write(tmp_path / "b.tfrecord", 11, names=NAMES[:4])
    (batch,) = tfseek.Loader(ds, {"image": tfseek.Image((5, 5), channels=1, crop="center", resize="area")}, batch_size=11)
    assert batch["image"].shape == (11, 5, 5, 1)


def test_pixels_are_those_of_the_files(tmp_path: pathlib.Path) -> None:
    names = ["yuv420.jpg", "yuv444.jpg", "optimized.jpg"]
    ds = write(tmp_path / "a.tfrecord", 3, names=names)
    wanted = {name: np.frombuffer((DATA / name).with_suffix(".want").read_bytes(), np.uint8) for name in names}
    for k, (name, size) in enumerate(zip(names, [(13, 21), (13, 21), (24, 24)])):
        (batch,) = tfseek.Loader(ds[k : k + 1], {"image": tfseek.Image(size, resize=None)}, batch_size=1)
        assert np.array_equal(batch["image"].ravel(), wanted[name])


def test_pixels_are_near_those_of_pillow(tmp_path: pathlib.Path) -> None:
    image = pytest.importorskip("PIL.Image")
    ds = write(tmp_path / "a.tfrecord", 3, names=["yuv420.jpg", "restart-many.jpg", "fine.jpg"])
    (batch,) = tfseek.Loader(ds, spec(), batch_size=3)
    for pixels, record in zip(batch["image"], ds):
        file = tfseek.Example(record)["image"][0]
        want = np.asarray(image.open(io.BytesIO(file)).convert("RGB").resize((7, 9), image.BILINEAR))
        assert np.abs(want.astype(int) - pixels).max() <= 2


def test_bad_pictures_raise_or_are_left_out(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    ds = write(path, 7, bad=[2, 5])
    loader = iter(tfseek.Loader(ds, spec(), batch_size=3))
    with pytest.raises(tfseek.DataError, match="the data end before all pixels") as raised:
        next(loader)
    assert (raised.value.path, raised.value.record, raised.value.feature) == (str(path), 2, "image")
    loader = tfseek.Loader(ds, spec(), batch_size=3, damage="skip")
    assert [k for batch in loader for k in batch["k"].tolist()] == [0, 1, 3, 4, 6]
    assert loader.skipped_total == 2
    with pytest.raises(tfseek.DataError, match="expected 9 x 7 pixels .*, found 13 x 21"):
        next(iter(tfseek.Loader(ds, spec(resize=None), batch_size=3)))
    with pytest.raises(tfseek.DataError, match="no alpha"):
        next(iter(tfseek.Loader(ds, spec(channels=4), batch_size=3)))


def test_tables_refuse_pictures(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", 1)
    with pytest.raises(SpecError, match="expected the bytes of a picture's file in a table, found an image"):
        ds.scan(spec={"image": tfseek.Image((9, 7))})


def test_the_report_has_the_time_of_decoding(tmp_path: pathlib.Path) -> None:
    loader = tfseek.Loader(write(tmp_path / "a.tfrecord", 20), spec(), batch_size=5)
    list(loader)
    report = loader.report()
    assert report.decode_s > 0 and ", decode " in str(report)


@pytest.mark.parametrize("unit", ["row", "batch"])
def test_a_mix_has_pictures(tmp_path: pathlib.Path, unit: str) -> None:
    """Sources with other names of the picture, and a bad picture in each. Crops are drawn with the name in the batch."""
    names = ["yuv420.jpg", "optimized.jpg", "rgb8.png"]
    a = write(tmp_path / "a.tfrecord", 20, bad=[3], names=names)
    with tfseek.Writer(tmp_path / "b.tfrecord") as writer:
        for k in range(20):
            file = (DATA / names[k % len(names)]).read_bytes()
            writer.write(example({"jpeg": file[:30] if k == 5 else file, "k": 100 + k}))
    b = tfseek.open(tmp_path / "b.tfrecord")
    crop = tfseek.Image(size=(9, 7), crop="random_resized")
    number = tfseek.FixedLenFeature([], "int64")
    sources: Any = [((a, {"image": crop, "k": number}), 1), ((b, {"jpeg": crop, "k": number}), 1)]
    mix = tfseek.Mix(sources, unit=unit, source="source", rename={1: {"jpeg": "image"}})
    options: Any = {"global_batch_size": 6, "seed": 1, "damage": "skip", "repeat": True, "ids": "id", "augmentation_seed": "seed"}
    loader = tfseek.Loader(mix, **options)
    found = [next(loader) for _ in range(14)]
    assert loader.skipped_total >= 2 and len(loader.skipped_by_file) == 2
    seen: dict[Any, Any] = {}
    for batch in found:
        rows = len(batch["k"])
        assert batch["image"].shape == (rows, 9, 7, 3) and rows <= 6
        assert ((batch["k"] >= 100) == (batch["source"] == 1)).all()
        assert unit == "row" or len(set(batch["source"].tolist())) == 1
        for key, seed, pixels in zip(batch["k"].tolist(), batch["seed"].tolist(), batch["image"]):
            # The same files are in both sources, so a draw and a file determine the pixels.
            if (seed, key % 100) in seen:
                assert np.array_equal(seen[seed, key % 100], pixels)
            seen[seed, key % 100] = pixels
    # Ranks and threads change nothing, also where rows are left out.
    for threads in (0, 3):
        ranks = [tfseek.Loader(mix, **options, rank=rank, world_size=2, threads=threads) for rank in range(2)]
        for batch in found:
            parts = [next(rank) for rank in ranks]
            # In the place of a row that is left out is the nearest one of the rank.
            same = np.concatenate([part["k"] for part in parts]) == batch["k"]
            assert same.sum() >= len(same) - 2
            for name, column in batch.items():
                assert np.array_equal(np.concatenate([part[name] for part in parts])[same], column[same]), name
    with pytest.raises(tfseek.SpecError, match="image"):
        tfseek.Loader(tfseek.Mix([((a, {"image": crop}), 1), ((b, {"image": tfseek.Image(size=(8, 8))}), 1)]), batch_size=2)


def test_a_column_has_pictures_of_all_formats(tmp_path: pathlib.Path) -> None:
    names = ["rgb8.png", "bmp24.bmp", "gif-still.gif", "bmp32.bmp", "gif-clear.gif"]
    ds = write(tmp_path / "a.tfrecord", 5, names=names)
    (batch,) = tfseek.Loader(ds, {"image": tfseek.Image((5, 7), resize=None)}, batch_size=5)
    for name, pixels in zip(names[1:], batch["image"][1:]):
        assert pixels.tobytes() == (DATA / name).with_suffix(".want").read_bytes()[:105], name
    ds = write(tmp_path / "b.tfrecord", 2, names=["webp-lossy-alpha.webp", "webp-lossless-alpha.webp"])
    (batch,) = tfseek.Loader(ds, {"image": tfseek.Image((13, 21), channels=4, resize=None)}, batch_size=2)
    assert [pixels.tobytes() for pixels in batch["image"]] == [(DATA / f"webp-{kind}-alpha.want").read_bytes() for kind in ("lossy", "lossless")]


def test_a_crop_depends_on_the_name_in_the_batch(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", 12, names=["yuv420.jpg"])
    crop = tfseek.Image(size=(9, 7), crop="random_resized")
    plain = list(tfseek.Loader(ds, {"image": crop}, batch_size=4, seed=1))
    for key, name in (("mask", "image"), ("image", "image")):
        mix = tfseek.Mix([((ds, {key: crop}), 1)], rename={0: {key: name}} if key != name else None)
        for batch, want in zip(tfseek.Loader(mix, batch_size=4, seed=1), plain):
            assert np.array_equal(batch["image"], want["image"])


def test_pictures_without_a_size_are_a_list(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", 10, bad=[4], names=NAMES[:4])
    spec = {"image": tfseek.Image(), "k": tfseek.FixedLenFeature([], "int64")}
    for transform_threads in (0, 1):
        loader = tfseek.Loader(
            ds, spec, batch_size=3, seed=1, damage="skip", transform=lambda batch: batch, transform_threads=transform_threads
        )
        for batch in loader:
            assert isinstance(batch["image"], list) and len(batch["image"]) == len(batch["k"])
            for k, pixels in zip(batch["k"].tolist(), batch["image"]):
                file = tfseek.Example(ds[k])["image"][0]
                shape = tfseek.image_shape(file)
                assert shape is not None and pixels.shape == (*shape[:2], 3) and not pixels.flags.writeable
                one = tfseek.Loader(ds[k : k + 1], {"image": tfseek.Image(shape[:2], resize=None)}, batch_size=1)
                assert np.array_equal(next(one)["image"][0], pixels)
    mix = tfseek.Mix([((ds, {"mask": tfseek.Image()}), 1)], rename={0: {"mask": "image"}})
    assert [len(batch["image"]) for batch in tfseek.Loader(mix, batch_size=5, repeat=False)] == [5, 5]
    with pytest.raises(tfseek.DataError, match="record 4 at byte"):
        list(tfseek.Loader(ds, spec, batch_size=3))
