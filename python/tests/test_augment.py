"""Crops, mirrors, colours and numbers of ``tfseek.Image``, compared with a second implementation of what is drawn and computed."""

from __future__ import annotations

import colorsys
import dataclasses
import importlib
import json
import math
import pathlib
import pickle
import re
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from order_twin import G, M, absorb, mix
from test_image import DATA
from tiny_images import chunk
from conftest import write_records, written

import tfseek
from tfseek import SpecError

#: XXH3-64 of the names of features.
HASHES = {"image": 0x4F8CB17EAF664C63, "mask": 0xFA5A2B20ABE2E5DA}
#: The operations on colours, in the order of their draws.
OPERATIONS = ["brightness", "contrast", "saturation", "hue"]
SIZE = (9, 7)
MEAN, STD = (0.485, 0.456, 0.406, 0.5), (0.229, 0.224, 0.225, 0.25)
NUMBER = tfseek.FixedLenFeature([], "int64")
#: All steps that draw or compute.
ALL: dict[str, Any] = {
    "crop": "random_resized",
    "flip": 0.5,
    "jitter": {"brightness": 0.4, "contrast": 0.3, "saturation": 0.3, "hue": 0.1},
    "mean": MEAN[:3],
    "std": STD[:3],
    "dtype": "float16",
    "layout": "chw",
}


def draws(seed: int, name: str) -> Callable[[int], float]:
    """Returns u of ``docs/order.md``, section 7, for a row with this augmentation seed."""
    g = absorb(seed, HASHES[name])
    return lambda i: (mix((g + i * G) % M) >> 11) * 2.0**-53


def factor(u: Callable[[int], float], name: str, low: float, high: float) -> float:
    return low + u(42 + OPERATIONS.index(name)) * (high - low)


def rectangle(u: Callable[[int], float], height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
    """Returns top, left, height and width of a crop ``random_resized``."""
    low, high = map(math.log, ratio)
    for k in range(10):
        area = height * width * (scale[0] + (scale[1] - scale[0]) * u(4 * k + 1))
        across = math.exp(low + u(4 * k + 2) * (high - low))
        w, h = round(math.sqrt(area * across)), round(math.sqrt(area / across))
        if 0 < w <= width and 0 < h <= height:
            return int(u(4 * k + 3) * (height - h + 1)), int(u(4 * k + 4) * (width - w + 1)), h, w
    h, w = height, width
    if width / height < ratio[0]:
        h = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]:
        w = max(1, round(height * ratio[1]))
    return (height - h) // 2, (width - w) // 2, h, w


def coloured(x: Any, name: str, f: float) -> Any:
    """Returns RGB of 0 to 255 after one operation, computed in doubles."""
    grey = x @ [0.2989, 0.587, 0.114]
    if name == "brightness":
        x = f * x
    elif name == "contrast":
        x = f * x + (1 - f) * grey.mean()
    elif name == "saturation":
        x = f * x + (1 - f) * grey[..., None]
    else:
        colours = [colorsys.rgb_to_hsv(*pixel) for pixel in x.reshape(-1, 3)]
        x = np.reshape([colorsys.hsv_to_rgb((h + f) % 1, s, v) for h, s, v in colours], x.shape)
    return np.clip(x, 0, 255)


def png(pixels: Any, more: bytes = b"") -> bytes:
    """Returns a PNG of RGB, with more chunks before the pixels."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + more + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def noise(n: int, height: int, width: int) -> Any:
    return np.random.default_rng(5).integers(0, 256, (n, height, width, 3), np.uint8)


def write(path: pathlib.Path, files: Sequence[bytes]) -> tfseek.Dataset:
    write_records(path, ({"image": file, "mask": file, "k": k} for k, file in enumerate(files)))
    return tfseek.open(path)


def files(n: int, *names: str) -> list[bytes]:
    names = names or ("yuv444.jpg", "optimized.jpg", "rgb8.png", "yuv420.jpg")
    return [(DATA / names[k % len(names)]).read_bytes() for k in range(n)]


def load(ds: tfseek.Dataset, size: Any = SIZE, **options: Any) -> Any:
    """Returns the pictures of all rows."""
    (batch,) = tfseek.Loader(ds, {"image": tfseek.Image(size, **options)}, batch_size=len(ds), seed=7, shuffle=False)
    return batch["image"]


@pytest.fixture
def ds(tmp_path: pathlib.Path) -> tfseek.Dataset:
    return write(tmp_path / "a.tfrecord", files(24))


# Specs.

CROP = {"size": SIZE, "crop": "random_resized"}
FLOAT = {"size": SIZE, "dtype": "float32"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"size": SIZE, "channels": 2}, "channels: expected 1, 3 or 4, found 2"),
        ({"size": (0, 7)}, "size: expected 1 to 100000000 pixels, found 0 x 7"),
        ({"size": (1, 2, 3)}, "size: expected height and width such as (224, 224), found (1, 2, 3)"),
        ({"size": 224}, "size: expected height and width such as (224, 224), found 224"),
        ({"size": "large"}, "size: expected height and width such as (224, 224), found 'large'"),
        ({"size": SIZE, "resize": "cubic"}, 'resize: expected bilinear or area, found "cubic"'),
        ({"size": SIZE, "crop": "randomresized"}, 'crop: expected center or random_resized, found "randomresized"'),
        ({"crop": "center"}, "crop: a crop requires a size"),
        ({"size": SIZE, "crop": "random_resized", "resize": None}, "crop: random_resized requires a resize"),
        ({"flip": 1.5}, "flip: expected a probability of 0 to 1, found 1.5"),
        ({"flip": True}, "flip: expected a finite number, found True"),
        ({"flip": math.nan}, "flip: expected a finite number, found nan"),
        ({"flip": "0.5"}, "flip: expected a finite number, found '0.5'"),
        ({"flip": None}, "flip: expected a finite number, found None"),
        ({"flip": 10**400}, "flip: expected a finite number, found an integer of 1329 bits"),
        ({**CROP, "crop": "center", "fraction": 0}, "fraction: expected a number above 0, at most 1, found 0.0"),
        ({**CROP, "fraction": 0.5}, 'fraction: expected the crop "center" and a resize'),
        ({**CROP, "crop": "center", "resize": None, "fraction": 0.5}, 'fraction: expected the crop "center" and a resize'),
        ({"size": SIZE, "scale": (0.5, 1)}, 'scale and ratio: expected the crop "random_resized"'),
        ({**CROP, "scale": (0, 1)}, "scale: expected two ascending numbers above 0, at most 1, found 0.0 and 1.0"),
        ({**CROP, "scale": (0.5, 0.25)}, "scale: expected two ascending numbers above 0, at most 1, found 0.5 and 0.25"),
        ({**CROP, "scale": (0.5, 0.75, 1)}, "scale: expected two numbers, found 3"),
        ({**CROP, "scale": 0.5}, "scale: expected two numbers such as (0.08, 1.0), found 0.5"),
        ({**CROP, "scale": "ab"}, "scale: expected two numbers such as (0.08, 1.0), found 'ab'"),
        ({**CROP, "scale": None}, "scale: expected two numbers such as (0.08, 1.0), found None"),
        ({**CROP, "ratio": (2, 1)}, "ratio: expected two ascending numbers above 0, found 2.0 and 1.0"),
        ({**CROP, "ratio": (1, math.inf)}, "ratio: expected a finite number, found inf"),
        ({"jitter": {"gamma": 0.5}}, 'jitter: expected brightness, contrast, saturation or hue, found "gamma"'),
        ({"jitter": [("hue", 0.1), ("hue", 0.1)]}, "jitter: hue is there twice"),
        ({"jitter": {"hue": 0.625}}, "jitter: hue: expected two ascending numbers of -0.5 to 0.5, found -0.625 and 0.625"),
        ({"jitter": {"contrast": -0.5}}, "jitter: contrast: expected at least 0, found -0.5"),
        ({"jitter": {"contrast": (2, 1)}}, "jitter: contrast: expected two ascending numbers of 0.0 to 1000000.0, found 2.0 and 1.0"),
        ({"jitter": {"contrast": (-0.5, 1)}}, "jitter: contrast: expected two ascending numbers of 0.0 to 1000000.0, found -0.5 and 1.0"),
        ({"jitter": {"contrast": (0.5, math.nan)}}, "jitter: contrast: expected a finite number, found nan"),
        ({"jitter": {"contrast": (1, 1, 1)}}, "jitter: contrast: expected two numbers, found 3"),
        ({"jitter": {"contrast": "high"}}, "jitter: contrast: expected a number or two, found 'high'"),
        ({"jitter": {"contrast": True}}, "jitter: contrast: expected a finite number, found True"),
        ({"jitter": {"contrast": None}}, "jitter: contrast: expected a number or two, found None"),
        ({"jitter": {b"contrast": 0.5}}, "jitter: expected names, found b'contrast'"),
        ({"jitter": 0.4}, 'jitter: expected a dict such as {"brightness": 0.4}, found 0.4'),
        ({"jitter": ["contrast"]}, "jitter: expected a dict such as {\"brightness\": 0.4}, found ['contrast']"),
        ({"jitter": {"saturation": 0.5}, "channels": 1}, "jitter: saturation needs colours, found 1 channel"),
        ({"jitter": {"hue": 0.5}, "channels": 1}, "jitter: hue needs colours, found 1 channel"),
        ({"jitter": {"brightness": 0.5}, "dtype": "uint16"}, "jitter: expected uint8 or floats, found uint16"),
        ({**FLOAT, "mean": MEAN[:3]}, "mean and std: expected both or none, found one"),
        ({**FLOAT, "std": STD[:3]}, "mean and std: expected both or none, found one"),
        ({**FLOAT, "mean": 0.5, "std": 0.5}, "mean: expected a number for each channel, such as (0.5, 0.5, 0.5), found 0.5"),
        ({**FLOAT, "mean": MEAN[:3], "std": 0.5}, "std: expected a number for each channel, such as (0.5, 0.5, 0.5), found 0.5"),
        ({**FLOAT, "mean": MEAN, "std": STD}, "mean: expected a number for each of 3 channels, found 4"),
        ({**FLOAT, "mean": MEAN[:3], "std": (1, 1)}, "std: expected a number for each of 3 channels, found 2"),
        ({**FLOAT, "mean": MEAN[:3], "std": (1, 0, 1)}, "mean and std: expected numbers whose quotients are finite as float32, found 0.456 and 0.0"),
        ({**FLOAT, "mean": MEAN[:3], "std": (1, math.nan, 1)}, "std: expected a finite number, found nan"),
        ({**FLOAT, "mean": (0.5, True, 0.5), "std": STD[:3]}, "mean: expected a finite number, found True"),
        ({"mean": MEAN[:3], "std": STD[:3]}, "mean and std: expected floats, found uint8"),
        ({"dtype": "float64"}, "dtype: expected uint8, uint16, float32, float16 or bfloat16, found float64"),
        ({"size": SIZE, "layout": "nhwc"}, 'layout: expected hwc or chw, found "nhwc"'),
        ({"layout": "chw"}, "layout: chw requires a size"),
        ({"exif": "yes"}, 'exif: expected true or false, found "yes"'),
        ({"missing": 0}, "missing: a value in place of a picture requires a size"),
        ({"size": SIZE, "missing": 256}, "missing: expected an integer of 0 to 255, found 256"),
        ({"size": SIZE, "missing": -1}, "missing: expected an integer of 0 to 255, found -1"),
        ({"size": SIZE, "missing": 0.5}, "missing: expected an integer of 0 to 255, found 0.5"),
        ({"size": SIZE, "missing": True}, "missing: expected an integer of 0 to 255, found true"),
        ({"size": SIZE, "missing": "0"}, 'missing: expected an integer of 0 to 255, found "0"'),
        ({"geometry": ""}, "geometry: expected a name, found an empty string"),
        ({"scaled": "yes"}, 'scaled: expected true or false, found "yes"'),
    ],
)
def test_contradictions_are_errors_of_the_spec(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpecError, match="^" + re.escape(f"invalid schema: Image: {reason}") + "$"):
        tfseek.Image(**arguments)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs fields of keywords, of Python 3.10")
def test_new_arguments_are_keywords() -> None:
    arguments: Any = (SIZE, 3, "bilinear", None, None, "uint8")
    assert tfseek.Image(*arguments) == tfseek.Image(SIZE)
    with pytest.raises(TypeError, match="positional"):
        tfseek.Image(*(*arguments, 1.0))


def test_specs_are_values() -> None:
    jitter = {"hue": 0.1, "brightness": (0.5, 1.5), "contrast": [1, 1]}
    spec = tfseek.Image(
        list(SIZE), crop="random_resized", scale=[0.5, 1], ratio=np.array([0.5, 2]), flip=np.float32(0.5), jitter=jitter,
        mean=np.array(MEAN[:3]), std=list(STD[:3]), dtype=np.float32, exif=np.True_, scaled=np.True_,
    )
    assert spec.jitter == (("hue", 0.1), ("brightness", (0.5, 1.5)), ("contrast", (1.0, 1.0)))
    assert (spec.scale, spec.ratio, spec.flip, spec.mean, spec.std, spec.exif, spec.scaled) == ((0.5, 1.0), (0.5, 2.0), 0.5, MEAN[:3], STD[:3], True, True)
    same = dataclasses.replace(spec, jitter=[list(pair) for pair in jitter.items()], mean=list(MEAN[:3]), exif=True)
    assert spec == same and hash(spec) == hash(same)
    assert pickle.loads(pickle.dumps(spec)) == spec
    plain = dataclasses.replace(spec, dtype="float32")
    assert eval(repr(plain), {"Image": tfseek.Image}) == plain
    other = dataclasses.replace(spec, jitter=dict(reversed(jitter.items())))
    assert other != spec and dataclasses.replace(spec, jitter=dict(jitter)) == spec
    assert tfseek.Image(SIZE, missing=np.uint8(7), geometry=b"part") == tfseek.Image(SIZE, missing=7, geometry="part")
    assert tfseek.Image() == tfseek.Image(jitter={}, scale=[0.08, 1], ratio=[3 / 4, 4 / 3], flip=0, fraction=1)


def test_json_has_what_differs_from_the_defaults() -> None:
    def members(**options: Any) -> Any:
        text = tfseek.Schema({"x": tfseek.Image(SIZE, **options)}).to_json()
        assert tfseek.Schema.from_json(text).to_json() == text
        return json.loads(text)["features"]["x"]

    before = {"type": "image", "size": [9, 7], "channels": 3, "resize": "bilinear", "crop": None, "crop_with": None, "dtype": "uint8"}
    assert members() == members(fraction=1, scale=(0.08, 1), ratio=(3 / 4, 4 / 3), flip=0, jitter={}, layout="hwc", exif=False, scaled=False) == before
    assert members(flip=0.5, exif=True, scaled=True) == {**before, "flip": 0.5, "exif": True, "scaled": True}
    assert members(missing=0, geometry="part") == {**before, "missing": 0, "geometry": "part"}
    assert members(crop="center", fraction=0.875) == {**before, "crop": "center", "fraction": 0.875}
    found = members(**{**ALL, "jitter": {"hue": 0.1, "brightness": 0.25}, "scale": (0.2, 1), "ratio": (1, 4 / 3)})
    assert found["jitter"] == [["hue", [-0.1, 0.1]], ["brightness", [0.75, 1.25]]]
    assert (found["scale"], found["ratio"]) == ([0.2, 1.0], [1.0, 4 / 3])
    assert (found["mean"], found["std"], found["layout"], found["dtype"]) == (list(MEAN[:3]), list(STD[:3]), "chw", "float16")


def test_a_schema_of_json_is_the_spec(ds: tfseek.Dataset) -> None:
    text = """{"features": {"image": {"type": "image", "size": [9, 7], "flip": 1, "jitter": [["contrast", 1], ["hue", [0, 0.25]]],
        "mean": [0, 0, 0], "std": [1, 1, 1], "dtype": "float32", "layout": "chw", "exif": false}}}"""
    spec = tfseek.Image(SIZE, flip=1, jitter={"contrast": (0, 2), "hue": (0, 0.25)}, mean=[0] * 3, std=[1] * 3, dtype="float32", layout="chw")
    found = [list(tfseek.Loader(ds, each, batch_size=5, seed=1)) for each in (tfseek.Schema.from_json(text), {"image": spec})]
    for batch, want in zip(*found):
        assert np.array_equal(batch["image"], want["image"])
    with pytest.raises(SpecError, match="jitter: expected a list, found an object"):
        tfseek.Schema.from_json('{"features": {"image": {"type": "image", "jitter": {"hue": 0.1}}}}')


# Numbers and layouts.


def test_floats_are_the_pixels_divided(ds: tfseek.Dataset) -> None:
    pixels = load(ds)
    wide = pixels.astype(np.float32) / np.float32(255)
    for dtype in (np.float32, np.float16):
        found = load(ds, dtype=dtype)
        assert found.shape == (24, 9, 7, 3) and found.dtype == dtype and not found.flags.writeable
        assert np.array_equal(found, wide.astype(dtype))
    assert load(ds, dtype=float).dtype == np.float32


def test_bfloat16(ds: tfseek.Dataset) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for options in ({}, {"mean": MEAN[:3], "std": STD[:3], "layout": "chw"}):
        found = load(ds, dtype="bfloat16", **options)
        assert found.dtype == ml_dtypes.bfloat16
        want = load(ds, dtype="float32", **options).astype(ml_dtypes.bfloat16)
        assert np.array_equal(found.view(np.uint16), want.view(np.uint16))


def test_floats_have_the_16_bits_of_a_file(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(2, "rgb16.png", "rgb16-interlaced.png"))
    pixels = load(ds, (5, 7), resize=None, dtype="uint16").astype(np.float32)
    assert (pixels % 257 != 0).any()
    assert np.array_equal(load(ds, (5, 7), resize=None, dtype="float32"), pixels / np.float32(65535))
    a, b = normal(MEAN[:3], STD[:3])
    found = load(ds, (5, 7), resize=None, dtype="float32", mean=MEAN[:3], std=STD[:3])
    assert np.array_equal(found, pixels / np.float32(257) * a + b)


def normal(mean: Sequence[float], std: Sequence[float]) -> tuple[Any, Any]:
    """Returns the factors and terms of values of 0 to 255."""
    return (1 / (255 * np.array(std))).astype(np.float32), (-np.array(mean) / np.array(std)).astype(np.float32)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_mean_and_std(channels: int, tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(4, "rgba8.png", "rgb8.png", "grey8.png"))
    a, b = normal(MEAN[:channels], STD[:channels])
    want = load(ds, channels=channels).astype(np.float32) * a + b
    for dtype in ("float32", "float16"):
        options: dict[str, Any] = {"channels": channels, "dtype": dtype, "mean": MEAN[:channels], "std": STD[:channels]}
        found = load(ds, **options)
        assert found.dtype == dtype and np.array_equal(found, want.astype(dtype))
        assert np.array_equal(load(ds, **options, layout="chw"), found.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float16"])
def test_chw_is_hwc_transposed(dtype: str, tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(6, "rgba8.png", "rgb16.png", "grey8.png"))
    colours = {} if dtype == "uint16" else {"jitter": {"brightness": 0.5}}
    for channels in (1, 3, 4):
        for options in ({}, {"flip": 0.5, "crop": "center", **colours}):
            found = load(ds, channels=channels, dtype=dtype, layout="chw", **options)
            assert found.shape == (6, channels, 9, 7) and found.flags.c_contiguous and found.dtype == dtype
            assert np.array_equal(found, load(ds, channels=channels, dtype=dtype, **options).transpose(0, 3, 1, 2))


def test_pictures_without_a_size_are_a_list(ds: tfseek.Dataset) -> None:
    for found, pixels in zip(load(ds, None, dtype="float32", flip=1.0), load(ds, None)):
        assert found.shape == pixels.shape and not found.flags.writeable
        assert np.array_equal(found, pixels[:, ::-1].astype(np.float32) / np.float32(255))


# Mirrors, crops and colours.


def test_a_mirror_changes_no_pixel(ds: tfseek.Dataset) -> None:
    for options in ({}, {"crop": "center"}, {"crop": "random_resized"}, {"dtype": "uint16"}, {"dtype": "float32"}, {"channels": 1}):
        assert np.array_equal(load(ds, flip=1.0, **options), load(ds, **options)[:, :, ::-1])


def test_steps_that_do_nothing_change_no_bit(ds: tfseek.Dataset) -> None:
    nothing = {"brightness": (1, 1), "contrast": 0, "saturation": (1, 1), "hue": 0}
    assert np.array_equal(load(ds, flip=0, jitter=nothing, fraction=1, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)), load(ds))
    assert np.array_equal(load(ds, crop="random_resized", jitter=nothing, scale=(0.08, 1)), load(ds, crop="random_resized"))
    assert np.array_equal(load(ds, jitter=nothing, dtype="float32"), load(ds, dtype="float32"))


def rows(ds: tfseek.Dataset, batch_size: int = 7, **options: Any) -> Any:
    """Yields the augmentation seed, the number and the picture of each row of an epoch in random order."""
    spec = {"image": tfseek.Image(SIZE, **options), "k": NUMBER}
    for batch in tfseek.Loader(ds, spec, batch_size=batch_size, shuffle=True, seed=11, augmentation_seed="seed"):
        yield from zip(batch["seed"].tolist(), batch["k"].tolist(), batch["image"])


def lit(seed: int, pixels: Any, flip: float, low: float, high: float) -> Any:
    """Returns 8 bits of a picture after the brightness and the mirror that are drawn, to the bit."""
    u = draws(seed, "image")
    x = np.rint(np.clip(np.float32(factor(u, "brightness", low, high)) * pixels.astype(np.float32), 0, 255))
    return x[:, ::-1] if u(41) < flip else x


def test_mirrors_and_brightness_are_drawn_for_each_row(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(60))
    pixels, mirrored = load(ds), 0
    for options, low, high in (({"brightness": 0.4}, 1 - 0.4, 1 + 0.4), ({"brightness": 2}, 0.0, 3.0), ({"brightness": (0.25, 0.5)}, 0.25, 0.5)):
        for seed, k, found in rows(ds, flip=0.3, jitter=options):
            assert np.array_equal(found, lit(seed, pixels[k], 0.3, low, high))
            mirrored += draws(seed, "image")(41) < 0.3
    assert 30 < mirrored < 80


@pytest.mark.parametrize(
    "order", [*([name] for name in OPERATIONS), OPERATIONS, OPERATIONS[::-1], ["saturation", "brightness", "hue", "contrast"]], ids="-".join
)
def test_colours_are_changed_in_the_order_that_is_given(order: list[str], tmp_path: pathlib.Path) -> None:
    ranges = {"brightness": (0.5, 1.75), "contrast": (0.25, 1.75), "saturation": (0.0, 2.0), "hue": (-0.25, 0.5)}
    pictures = [*files(8), *map(png, noise(4, *SIZE)), png(np.full((3, 4, 3), 77, np.uint8)), png(np.zeros((3, 4, 3), np.uint8))]
    ds = write(tmp_path / "a.tfrecord", pictures)
    pixels = load(ds)
    for dtype, scale, limit in (("uint8", 1, 0.5 + 0.01), ("float32", 255, 0.01)):
        for seed, k, found in rows(ds, dtype=dtype, jitter={name: ranges[name] for name in order}):
            x, u = pixels[k].astype(float), draws(seed, "image")
            for name in order:
                x = coloured(x, name, factor(u, name, *ranges[name]))
            assert np.abs(found * float(scale) - x).max() <= limit, k


def test_grey_and_alpha(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(6, "rgba8.png", "rgb8.png", "grey-alpha8.png"))
    pixels = load(ds, channels=4)
    found = load(ds, channels=4, jitter={"brightness": (2, 2), "hue": (0.5, 0.5)})
    assert np.array_equal(found[..., 3], pixels[..., 3]) and not np.array_equal(found, pixels)
    pixels = load(ds, channels=1).astype(float)
    found = load(ds, channels=1, jitter={"brightness": (1.5, 1.5), "contrast": (0.5, 0.5)})
    bright = np.clip(1.5 * pixels, 0, 255)
    assert np.abs(found - (0.5 * bright + 0.5 * bright.mean((1, 2, 3), keepdims=True))).max() <= 0.51


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": (0.2, 0.5)},
        {"ratio": (2, 3)},
        {"scale": (0.25, 0.25), "ratio": (1, 1)},
        # These fit in no picture.
        {"scale": (1, 1), "ratio": (3, 4)},
        {"scale": (1, 1), "ratio": (0.1, 0.2)},
    ],
    ids=str,
)
def test_random_crops_have_the_scale_and_the_ratio(options: dict[str, Any], tmp_path: pathlib.Path) -> None:
    pictures = noise(20, 24, 20)
    cut, found = [], []
    ranges = options.get("scale", (0.08, 1.0)), options.get("ratio", (3 / 4, 4 / 3))
    for seed, k, pixels in rows(write(tmp_path / "a.tfrecord", [*map(png, pictures)]), crop="random_resized", **options):
        top, left, height, width = rectangle(draws(seed, "image"), 24, 20, *ranges)
        cut.append(png(pictures[k, top : top + height, left : left + width]))
        found.append(pixels)
    assert np.array_equal(found, load(write(tmp_path / "b.tfrecord", cut)))


@pytest.mark.parametrize("fraction", [1.0, 0.875, 0.5, 1e-9])
def test_a_fraction_of_the_centre(fraction: float, tmp_path: pathlib.Path) -> None:
    pictures = noise(5, 24, 20)
    ds = write(tmp_path / "a.tfrecord", [*map(png, pictures)])
    # The largest rectangle of the ratio 9 to 7 has 24 rows.
    height, width = (max(1, round(side * fraction)) for side in (24, round(24 * 7 / 9)))
    top, left = (24 - height) // 2, (20 - width) // 2
    cut = write(tmp_path / "b.tfrecord", [*map(png, pictures[:, top : top + height, left : left + width])])
    assert np.array_equal(load(ds, crop="center", fraction=fraction), load(cut))


def test_a_mask_shares_crop_and_mirror_but_no_colours(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(40))
    place: dict[str, Any] = {"crop": "random_resized", "flip": 0.5}
    spec = {
        "image": tfseek.Image(SIZE, **place, jitter={"brightness": 0.5}),
        "mask": tfseek.Image(SIZE, **place, crop_with="image", jitter={"brightness": 0.5}),
    }
    plain = {"image": tfseek.Image(SIZE, **place), "mask": tfseek.Image(SIZE, **place, crop_with="image")}
    alone = {"mask": tfseek.Image(SIZE, **place)}
    options: Any = {"batch_size": 40, "seed": 5, "augmentation_seed": "seed"}
    (batch,), (want,), (other,) = (list(tfseek.Loader(ds, each, **options)) for each in (spec, plain, alone))
    assert np.array_equal(want["image"], want["mask"]) and not np.array_equal(other["mask"], want["mask"])
    for name in ("image", "mask"):
        for seed, pixels, found in zip(batch["seed"].tolist(), want[name].astype(np.float32), batch[name]):
            f = np.float32(factor(draws(seed, name), "brightness", 0.5, 1.5))
            assert np.array_equal(found, np.rint(np.clip(f * pixels, 0, 255)))


def test_colours_are_those_of_torchvision(tmp_path: pathlib.Path) -> None:
    """The functions of torchvision on floats, with the factors that were drawn."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    ds = write(tmp_path / "a.tfrecord", [*files(12), *map(png, noise(12, *SIZE))])
    pixels = load(ds)
    ranges = {"brightness": (0.6, 1.4), "contrast": (0.6, 1.4), "saturation": (0.6, 1.4), "hue": (-0.1, 0.1)}
    for order in (OPERATIONS, OPERATIONS[::-1], ["contrast", "hue", "saturation", "brightness"]):
        jitter = {name: ranges[name] for name in order}
        judged = {}
        for seed, k, found in rows(ds, flip=0.5, jitter=jitter, dtype="float32", layout="chw"):
            x, u = torch.from_numpy(pixels[k].transpose(2, 0, 1).astype(np.float32) / 255), draws(seed, "image")
            x = functional.horizontal_flip(x) if u(41) < 0.5 else x
            for name in order:
                x = getattr(functional, f"adjust_{name}")(x, factor(u, name, *ranges[name]))
            judged[seed] = x.numpy()
            off = np.abs(found - judged[seed])
            assert off.max() <= 1 / 255 and off.mean() <= 0.02 / 255
        for seed, _, found in rows(ds, flip=0.5, jitter=jitter, dtype="float32", layout="chw", mean=MEAN[:3], std=STD[:3]):
            std = np.reshape(STD[:3], (3, 1, 1))
            off = std * np.abs(found - functional.normalize(torch.from_numpy(judged[seed]), MEAN[:3], STD[:3]).numpy())
            assert off.max() <= 1 / 255 and off.mean() <= 0.02 / 255
        for seed, _, found in rows(ds, flip=0.5, jitter=jitter):
            off = np.abs(found - np.rint(255 * judged[seed].transpose(1, 2, 0)))
            assert off.max() <= 1 and off.mean() <= 0.02


# Pictures that are missing, and the part that is used.


def incomplete(path: pathlib.Path, name: str = "image", n: int = 24, first: int = 0) -> tfseek.Dataset:
    """Returns records of PNGs of 24 by 20 pixels, of which every fourth is missing: the feature, its value, or its bytes."""
    with tfseek.Writer(path) as writer:
        for k, picture in enumerate(map(png, noise(n, 24, 20))):
            value: Any = picture if k % 4 else [None, np.array([], object), b""][k // 4 % 3]
            features = tfseek.train.Features()
            if isinstance(value, bytes):
                features.feature[name].bytes_list.value.append(value)
            elif value is not None:
                features.feature[name].bytes_list.SetInParent()
            features.feature["k"].int64_list.value.append(first + k)
            writer.write(tfseek.train.Example(features=features).SerializeToString())
    return tfseek.open(path)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_missing_picture_has_one_value(channels: int, tmp_path: pathlib.Path) -> None:
    ds = incomplete(tmp_path / "a.tfrecord")
    missing = np.arange(24) % 4 == 0
    changes: dict[str, Any] = {"crop": "random_resized", "flip": 1.0, "channels": channels}
    for value in (0, 77, 255):
        for dtype, want in (("uint8", value), ("uint16", 257 * value), ("float32", np.float32(value) / np.float32(255))):
            found = load(ds, dtype=dtype, missing=value, **changes, **({} if dtype == "uint16" else {"jitter": {"brightness": (0.5, 0.5)}}))
            assert (found[missing] == want).all() and found.dtype == dtype
            assert (found[~missing].reshape(18, -1).std(1) > 0).all()
        a, b = normal(MEAN[:channels], STD[:channels])
        for dtype in ("float32", "float16"):
            options: dict[str, Any] = {"dtype": dtype, "mean": MEAN[:channels], "std": STD[:channels], "missing": value, **changes}
            want = (np.float32(value) * a + b).astype(dtype)
            assert (load(ds, **options)[missing] == want).all()
            assert (load(ds, layout="chw", **options)[missing] == want[:, None, None]).all()


def test_without_a_value_a_missing_picture_is_an_error(tmp_path: pathlib.Path) -> None:
    ds = incomplete(tmp_path / "a.tfrecord")
    for record, reason in ((0, "no such feature"), (4, "expected 1 value"), (8, "no bytes")):
        with pytest.raises(tfseek.DataError, match=f"record {record} at byte.*{reason}"):
            load(ds[record : record + 1])
    # Damage is not a missing picture.
    bad = write(tmp_path / "b.tfrecord", [b"\0", files(1)[0][:40]])
    for k in range(2):
        with pytest.raises(tfseek.DataError, match=f"record {k} at byte"):
            load(bad[k : k + 1], missing=0)
    ds = written(tmp_path / "c.tfrecord", [{"image": [files(1)[0]] * 2}, {"image": 7}])
    for k in range(2):
        with pytest.raises(tfseek.DataError, match=f"record {k} at byte"):
            load(ds[k : k + 1], missing=0)


def check_parts(batch: Any, scale: Sequence[float] = (0.08, 1.0), flip: float = 0.5) -> None:
    """Compares the column ``part`` with the crop and the mirror that are drawn for each row."""
    assert batch["part"].dtype == np.int32 and batch["part"].shape == (len(batch["k"]), 5)
    for seed, k, part in zip(batch["seed"].tolist(), batch["k"].tolist(), batch["part"].tolist()):
        u = draws(seed, "image")
        assert part == ([*rectangle(u, 24, 20, scale, (3 / 4, 4 / 3)), u(41) < flip] if k % 4 else [0] * 5)


def test_geometry_is_the_part_that_was_drawn(tmp_path: pathlib.Path) -> None:
    ds = incomplete(tmp_path / "a.tfrecord")
    spec: dict[str, Any] = {"image": tfseek.Image(SIZE, crop="random_resized", flip=0.5, missing=0, geometry="part"), "k": NUMBER}
    options: dict[str, Any] = {"global_batch_size": 10, "shuffle": True, "seed": 3, "augmentation_seed": "seed"}
    want = list(tfseek.Loader(ds, spec, **options))
    assert [list(batch) for batch in want] == [["image", "k", "part", "seed"]] * 3
    for batch in want:
        check_parts(batch)
    # The pixels are as without it.
    plain = {**spec, "image": dataclasses.replace(spec["image"], geometry=None)}
    assert same([{name: batch[name] for name in batch if name != "part"} for batch in want], tfseek.Loader(ds, plain, **options))
    for threads in (0, 3):
        ranks = [tfseek.Loader(ds, spec, rank=rank, world_size=2, threads=threads, last_batch="pad", **options) for rank in range(2)]
        for batch in joined([list(rank) for rank in ranks]):
            check_parts(batch)
    buckets: Any = {"bucket_by": np.arange(24) % 5, "boundaries": [2], "global_batch_size": [6, 4], "last_batch": "drop"}
    for batch in tfseek.Loader(ds, spec, **{**options, **buckets}):
        check_parts(batch)
    (batch,) = tfseek.Loader(ds, {"image": tfseek.Image(SIZE, crop="center", fraction=0.5, missing=0, geometry="part")}, batch_size=24, shuffle=False)
    assert batch["part"][1::4].tolist() == [[6, 5, 12, 10, 0]] * 6


def test_geometry_of_a_turned_picture_and_without_a_size(tmp_path: pathlib.Path) -> None:
    ds = write(tmp_path / "a.tfrecord", files(2, "exif.jpg", "rgb8.png"))
    for exif in (False, True):
        pixels = load(ds, None, exif=exif)
        for size in (None, SIZE):
            (batch,) = tfseek.Loader(ds, {"image": tfseek.Image(size, exif=exif, flip=1.0, geometry="part")}, batch_size=2, shuffle=False)
            assert batch["part"].tolist() == [[0, 0, *picture.shape[:2], 1] for picture in pixels]


@pytest.mark.parametrize("unit", ["row", "batch"])
def test_a_mix_has_geometry(unit: str, tmp_path: pathlib.Path) -> None:
    a = incomplete(tmp_path / "a.tfrecord")
    b = incomplete(tmp_path / "b.tfrecord", "jpeg", first=1000)
    picture = tfseek.Image(SIZE, crop="random_resized", flip=0.5, missing=0, geometry="part")
    sources: Any = [((a, {"image": picture, "k": NUMBER}), 1), ((b, {"jpeg": picture, "k": NUMBER}), 1)]
    rename = {1: {"jpeg": "image"}}
    for bytes_as in ("objects", "offsets"):
        mix = tfseek.Mix(sources, unit=unit, source="source", rename=rename)
        loader = tfseek.Loader(mix, global_batch_size=6, seed=1, augmentation_seed="seed", repeat=True, bytes_as=bytes_as)
        batches = [next(loader) for _ in range(8)]
        assert {source for batch in batches for source in batch["source"].tolist()} == {0, 1}
        for batch in batches:
            check_parts(batch)
    with pytest.raises(ValueError, match="the column 'part' exists already"):
        tfseek.Loader(tfseek.Mix(sources, unit=unit, source="part", rename=rename), batch_size=2)
    with pytest.raises(ValueError, match="the column 'part' exists already"):
        tfseek.Loader(a, {"image": picture}, batch_size=2, ids="part")
    for taken in ({"part": tfseek.Optional("int64")}, {"mask": picture}):
        with pytest.raises(SpecError, match="geometry: expected the name of no other column"):
            tfseek.Schema({"image": picture, **taken})
    # A feature in one source, and a geometry in the other.
    for name, reason in (("part", '"image".*another geometry'), ("a", '"a".*is the geometry of a picture in one source only')):
        one, plain = (dataclasses.replace(picture, geometry=geometry) for geometry in (name, None))
        other: Any = [((a, {"image": one}), 1), ((a, {"image": plain, name: tfseek.Optional("int64", 0)}), 1)]
        with pytest.raises(SpecError, match=reason):
            tfseek.Loader(tfseek.Mix(other), batch_size=2)
    with pytest.raises(SpecError, match='"part".*renamed'):
        tfseek.Loader(tfseek.Mix(sources, rename={1: {"jpeg": "image", "part": "place"}}), batch_size=2)


# Loaders.


def same(batches: Any, want: Any) -> bool:
    """True if batches have equal bytes."""
    return [{name: column.tobytes() for name, column in batch.items()} for batch in batches] == [
        {name: column.tobytes() for name, column in batch.items()} for batch in want
    ]


def joined(ranks: Sequence[Any]) -> Any:
    """Returns the global batches of the batches of each rank."""
    return [{name: np.concatenate([part[name] for part in parts]) for name in parts[0]} for parts in zip(*ranks)]


def test_ranks_threads_and_resumes_change_no_byte(ds: tfseek.Dataset) -> None:
    spec = {"image": tfseek.Image(SIZE, **ALL), "mask": tfseek.Image(SIZE, flip=0.5, jitter={"hue": 0.5}), "k": NUMBER}
    options: dict[str, Any] = {"global_batch_size": 6, "shuffle": True, "seed": 3}
    whole = tfseek.Loader(ds, spec, **options)
    want, second = list(whole), list(whole)
    assert len(want) == 4 and want[0]["image"].shape == (6, 3, 9, 7)
    for threads in (0, 1, 3):
        assert same(tfseek.Loader(ds, spec, threads=threads, **options), want)
        ranks = [tfseek.Loader(ds, spec, threads=threads, rank=rank, world_size=2, **options) for rank in range(2)]
        for epoch in (want, second):
            assert same(joined([list(rank) for rank in ranks]), epoch)
        stopped = tfseek.Loader(ds, spec, threads=threads, **options)
        next(iter(stopped))
        resumed = tfseek.Loader(ds, spec, **options)
        resumed.load_state_dict(stopped.state_dict())
        assert same(resumed, want[1:])
    for transform_threads in (0, 1, 2):
        assert same(tfseek.Loader(ds, spec, transform=lambda batch: batch, transform_threads=transform_threads, **options), want)
    # Each epoch draws anew.
    first = {k: image.tobytes() for batch in want for k, image in zip(batch["k"].tolist(), batch["image"])}
    assert all(first[k] != image.tobytes() for batch in second for k, image in zip(batch["k"].tolist(), batch["image"]))


@pytest.mark.parametrize("unit", ["row", "batch"])
def test_a_mix_draws_with_the_name_in_the_batch(unit: str, tmp_path: pathlib.Path) -> None:
    a = write(tmp_path / "a.tfrecord", files(20))
    b = written(tmp_path / "b.tfrecord", ({"jpeg": file, "k": k} for k, file in enumerate(files(20))))
    picture = tfseek.Image(SIZE, flip=0.5, jitter={"brightness": 0.4})
    sources: Any = [((a, {"image": picture, "k": NUMBER}), 1), ((b, {"jpeg": picture, "k": NUMBER}), 1)]
    mixed = tfseek.Mix(sources, unit=unit, source="source", rename={1: {"jpeg": "image"}})
    options: Any = {"global_batch_size": 6, "seed": 1, "augmentation_seed": "seed", "repeat": True}
    pixels, loader = load(a), tfseek.Loader(mixed, **options)
    want = [next(loader) for _ in range(8)]
    assert {source for batch in want for source in batch["source"].tolist()} == {0, 1}
    for batch in want:
        for seed, k, found in zip(batch["seed"].tolist(), batch["k"].tolist(), batch["image"]):
            assert np.array_equal(found, lit(seed, pixels[k], 0.5, 1 - 0.4, 1 + 0.4))
    for threads in (0, 3):
        ranks = [tfseek.Loader(mixed, **options, rank=rank, world_size=2, threads=threads) for rank in range(2)]
        assert same(joined([[next(rank) for _ in want] for rank in ranks]), want)


def test_other_pictures_do_not_mix(ds: tfseek.Dataset) -> None:
    others = ({"dtype": "float32"}, {"layout": "chw"}, {"flip": 0.5}, {"jitter": {"hue": 0.1}}, {"exif": True}, {"scaled": True}, {"crop_with": "x"})
    for options in (*others, {"missing": 0}, {"geometry": "part"}):
        with pytest.raises(SpecError, match="image"):
            tfseek.Loader(tfseek.Mix([((ds, {"image": tfseek.Image(SIZE)}), 1), ((ds, {"image": tfseek.Image(SIZE, **options)}), 1)]), batch_size=2)


def test_a_mask_has_the_crop_and_the_mirror_of_its_picture() -> None:
    for options in ({"crop": None}, {"scale": (0.5, 1.0)}, {"ratio": (1, 1)}, {"flip": 0.25}):
        picture = {"crop": "random_resized", "flip": 0.5}
        spec = {"image": tfseek.Image(SIZE, **picture), "mask": tfseek.Image(SIZE, **{**picture, "crop_with": "image", **options})}
        with pytest.raises(SpecError, match='"mask".*crop_with: expected the crop, fraction, scale, ratio and flip of "image"'):
            tfseek.parse_example([], spec)


def test_grain_knows_the_shapes(ds: tfseek.Dataset) -> None:
    grain = pytest.importorskip("grain")
    adapter = importlib.import_module("tfseek.grain")
    spec = {"image": tfseek.Image(SIZE, dtype="float32", layout="chw", geometry="part"), "k": NUMBER}
    batches = adapter.IterDataset(ds, spec, batch_size=4)
    found, first = grain.experimental.get_element_spec(batches), next(iter(batches))
    assert found.keys() == first.keys()
    for name in first:
        assert (found[name].shape, found[name].dtype) == (first[name].shape, first[name].dtype)


def test_buckets_draw_for_each_row(ds: tfseek.Dataset) -> None:
    spec = {"image": tfseek.Image(SIZE, flip=0.5, jitter={"brightness": 0.4}), "k": NUMBER}
    options: Any = {"bucket_by": np.arange(24) % 5, "boundaries": [2], "global_batch_size": [6, 4], "seed": 7, "augmentation_seed": "seed"}
    pixels, seen = load(ds), []
    want = list(tfseek.Loader(ds, spec, last_batch="drop", **options))
    for batch in want:
        for seed, k, found in zip(batch["seed"].tolist(), batch["k"].tolist(), batch["image"]):
            assert np.array_equal(found, lit(seed, pixels[k], 0.5, 1 - 0.4, 1 + 0.4))
            seen.append(k)
    assert len(set(seen)) == len(seen) > 15
    ranks = [tfseek.Loader(ds, spec, last_batch="drop", rank=rank, world_size=2, **options) for rank in range(2)]
    assert same(joined([list(rank) for rank in ranks]), want)


# The orientation in EXIF data.


def tiff(value: int, order: str = ">", tag: int = 0x0112, kind: int = 3, count: int = 1, before: bytes = b"", at: int = 8) -> bytes:
    """Returns EXIF data with an entry: a header, space, and a directory, in which entries may be before."""
    header = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    entry = struct.pack(order + "HHI", tag, kind, count) + struct.pack(order + ("HH" if kind == 3 else "I"), *((value, 0) if kind == 3 else (value,)))
    directory = struct.pack(order + "H", 1 + len(before) // 12) + before + entry + bytes(4)
    return header.ljust(at, b"\0") + directory


def segment(content: bytes, marker: bytes = b"\xff\xe1") -> bytes:
    return marker + struct.pack(">H", 2 + len(content)) + content


def with_exif(file: bytes, data: bytes) -> bytes:
    return file[:2] + segment(b"Exif\0\0" + data) + file[2:]


def turned(pixels: Any, orientation: int) -> Any:
    """Returns pixels as they are seen."""
    if orientation in (5, 7):
        pixels = pixels.transpose(1, 0, 2)
    quarters = {3: 2, 6: -1, 7: 2, 8: 1}.get(orientation, 0)
    pixels = np.rot90(pixels, quarters)
    return {2: pixels[:, ::-1], 4: pixels[::-1]}.get(orientation, pixels)


@pytest.mark.parametrize("name", ["yuv420.jpg", "yuv420-progressive.jpg", "grey.jpg"])
def test_orientations(name: str, tmp_path: pathlib.Path) -> None:
    (file,) = files(1, name)
    (pixels,) = load(write(tmp_path / "plain.tfrecord", [file]), None)
    cases = [(orientation, order) for orientation in range(1, 9) for order in "<>"]
    ds = write(tmp_path / "a.tfrecord", [with_exif(file, tiff(*case)) for case in cases])
    for found, ignored, (orientation, _) in zip(load(ds, None, exif=True), load(ds, None), cases):
        assert np.array_equal(found, turned(pixels, orientation)), orientation
        assert np.array_equal(ignored, pixels)
    for k, (orientation, _) in [*enumerate(cases)][::2]:
        height, width, _ = turned(pixels, orientation).shape
        for options in ({"resize": None}, {"resize": None, "crop": "center"}):
            found = load(ds[k : k + 1], (height, width), exif=True, flip=1.0, **options)
            assert np.array_equal(found[0], turned(pixels, orientation)[:, ::-1])


@pytest.mark.parametrize("options", [{}, {"resize": "area"}, {"crop": "center", "fraction": 0.5}, {"crop": "random_resized", "flip": 0.5}], ids=str)
def test_a_picture_is_turned_before_it_is_cut(options: dict[str, Any], tmp_path: pathlib.Path) -> None:
    (file,) = files(1, "yuv420.jpg")
    (pixels,) = load(write(tmp_path / "plain.tfrecord", [file]), None)
    ds = write(tmp_path / "a.tfrecord", [with_exif(file, tiff(orientation)) for orientation in range(1, 9)])
    want = write(tmp_path / "b.tfrecord", [png(turned(pixels, orientation)) for orientation in range(1, 9)])
    assert np.array_equal(load(ds, exif=True, **options), load(want, **options))


def test_where_the_orientation_is(tmp_path: pathlib.Path) -> None:
    (file,) = files(1, "yuv420.jpg")
    (pixels,) = load(write(tmp_path / "plain.tfrecord", [file]), None)
    exif = b"Exif\0\0" + tiff(6)
    maker = struct.pack(">HHII", 0x010F, 2, 4, 0x41424300)
    cases = {
        "after another segment": (6, file[:2] + segment(b"http://ns.adobe.com/xap/1.0/\0<x/>") + segment(exif) + file[2:]),
        "after fill bytes": (6, file[:2] + b"\xff\xff" + segment(exif) + file[2:]),
        "after another entry": (6, with_exif(file, tiff(6, before=maker))),
        "in a directory elsewhere": (6, with_exif(file, tiff(6, at=30))),
        "in the first of two": (6, file[:2] + segment(exif) + segment(b"Exif\0\0" + tiff(3)) + file[2:]),
        "in a second one": (1, file[:2] + segment(b"Exif\0\0" + b"II") + segment(exif) + file[2:]),
        "in another segment": (1, file[:2] + segment(exif, b"\xff\xe2") + file[2:]),
        "of a PNG": (1, png(pixels, chunk(b"eXIf", tiff(6)))),
    }
    ds = write(tmp_path / "a.tfrecord", [case for _, case in cases.values()])
    for name, (orientation, _), found in zip(cases, cases.values(), load(ds, None, exif=True)):
        assert np.array_equal(found, turned(pixels, orientation)), name
    (own,) = files(1, "exif.jpg")
    (pixels,), (found,) = (load(write(tmp_path / f"{exif}.tfrecord", [own]), None, exif=exif) for exif in (False, True))
    assert np.array_equal(found, turned(pixels, 6))


def test_damaged_orientations_are_none(tmp_path: pathlib.Path) -> None:
    (file,) = files(1, "yuv420.jpg")
    (pixels,) = load(write(tmp_path / "plain.tfrecord", [file]), None)
    for order in "<>":
        bad = [tiff(6, order)[:n] for n in range(20)]
        bad += [tiff(value, order) for value in (0, 9, 0x0600, 65535)]
        bad += [tiff(6, order, tag=0x0113), tiff(6, order, kind=4), tiff(6, order, kind=1), tiff(6, order, count=2), tiff(6, order, count=0)]
        good = tiff(6, order)
        bad += [b"IM" + good[2:], good[:2] + bytes(2) + good[4:], good[:4] + b"\xff" * 4 + good[8:], good[:4] + b"\x7f" * 4 + good[8:]]
        ds = write(tmp_path / f"{ord(order)}.tfrecord", [with_exif(file, data) for data in bad])
        for k, found in enumerate(load(ds, None, exif=True)):
            assert np.array_equal(found, pixels), bad[k]
