"""``tfseek.Image`` outside of a loader of schemas: single records, streams, data sets of TFDS, windows of episodes, and LeRobot items."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from test_augment import write
from test_image import DATA, example
from test_tfds import features, image, prepare, sequence, tensor
from conftest import written

import tfseek

FILES = [(DATA / name).read_bytes() for name in ("yuv420.jpg", "grey.jpg", "yuv444.jpg", "rgb8.png", "palette4.png")]
RANDOM = tfseek.Image(
    (9, 7), crop="random_resized", flip=0.5, jitter={"brightness": 0.4, "hue": 0.1}, mean=[0.5] * 3, std=[0.25] * 3, dtype="float32", layout="chw"
)
#: The other numbers: integers, halves, and brain floats.
FORMS = [RANDOM, tfseek.Image((8, 6), crop="center", dtype="float16"), tfseek.Image((8, 6), flip=0.5, channels=1, dtype="uint16")]


def spec(form: tfseek.Image = RANDOM) -> dict[str, Any]:
    return {"image": form}


def of_loader(ds: Any, form: Any = None, *, seed: int = 5, epoch: int = 0) -> npt.NDArray[Any]:
    """Returns all pictures in the order of the records, as a loader makes them."""
    loader = tfseek.Loader(ds, form, batch_size=4, shuffle=False, seed=seed, epoch=epoch)
    return np.concatenate([batch["image"] for batch in loader])


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return write(tmp_path_factory.mktemp("places") / "a.tfrecord", [FILES[k % len(FILES)] for k in range(11)])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.dtype)
def test_single_records_have_the_pictures_of_a_loader(form: tfseek.Image, ds: Any) -> None:
    want = of_loader(ds, spec(form))
    assert np.array_equal(tfseek.parse_example(list(ds), spec(form), seed=5)["image"], want)
    first = tfseek.parse_single_example(ds[0], spec(form), seed=5)["image"]
    assert first.shape == want.shape[1:] and np.array_equal(first, want[0])
    batches = tfseek.stream(ds.shards[0]).batches(spec(form), 4)
    assert np.array_equal(np.concatenate([batch["image"] for batch in batches]), of_loader(ds, spec(form), seed=0))


def test_pictures_without_a_size_are_arrays_of_their_own(ds: Any) -> None:
    found = tfseek.parse_example(list(ds), spec(tfseek.Image()))["image"]
    assert [picture.shape for picture in found] == [tfseek.image_shape(FILES[k % 5])[:2] + (3,) for k in range(11)]
    for record, picture in zip(ds, found):
        assert np.array_equal(tfseek.parse_single_example(record, spec(tfseek.Image()))["image"], picture)


def test_a_damaged_picture_has_its_row(ds: Any) -> None:
    bad = example({"image": b"none"})
    with pytest.raises(tfseek.DataError, match='feature "image"') as raised:
        tfseek.parse_example([ds[0], bad], spec())
    assert raised.value.row == 1
    with pytest.raises(tfseek.DataError, match='feature "image"'):
        tfseek.parse_single_example(bad, spec())


def test_torch_and_grain(ds: Any) -> None:
    torch = pytest.importorskip("torch")
    import tfseek.torch

    data = tfseek.torch.Dataset(ds, spec(), seed=5)
    for epoch in (0, 3):
        data.set_epoch(epoch)
        want = of_loader(ds, spec(), epoch=epoch)
        assert np.array_equal(torch.stack([data[k]["image"] for k in range(11)]), want)
        assert np.array_equal(data[[7, 2]]["image"], want[[7, 2]])
        batches = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
        assert np.array_equal(torch.cat([batch["image"] for batch in batches]), want)
        # A record of a view keeps its number.
        view = tfseek.torch.Dataset(ds[3:], spec(), seed=5)
        view.set_epoch(epoch)
        assert np.array_equal(view[1]["image"], want[4])
        again = pickle.loads(pickle.dumps(data))
        assert np.array_equal(again[4]["image"], want[4])
    # Records that are bytes have numbers, too.
    plain = tfseek.torch.Dataset(tfseek.open(ds.shards, kind="bytes"), spec(), seed=5)
    plain.set_epoch(3)
    assert np.array_equal(plain[7]["image"], want[7]) and np.array_equal(plain[[7, 2]]["image"], want[[7, 2]])
    pytest.importorskip("grain")
    import tfseek.grain

    source = tfseek.grain.source(ds, spec(), seed=5, epoch=3)
    assert np.array_equal(np.stack([source[k]["image"] for k in range(11)]), want)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    records = [{"image": FILES[k % len(FILES)], "wide": [FILES[k % 3], FILES[3]], "label": k} for k in range(11)]
    root = features(image=image(None, None, 3), wide=sequence(image(None, None, 3)), label=tensor("int64"))
    return prepare(tmp_path_factory.mktemp("tfds") / "1.0.0", root, {"train": [records]})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.dtype)
def test_data_sets(form: tfseek.Image, folder: pathlib.Path) -> None:
    ds = tfseek.tfds.open(folder, decode={"image": form, "wide": form})["train"]
    plain = tfseek.tfds.open(folder, decode=False)["train"]
    for epoch in (0, 2):
        want = of_loader(plain.records, spec(form), epoch=epoch)
        assert np.array_equal(of_loader(ds, epoch=epoch), want)
        ds.set_epoch(epoch, seed=5)
        assert np.array_equal(np.stack([record["image"] for record in ds]), want)
        assert np.array_equal(np.stack([record["image"] for record in ds.get_many([7, 2])]), want[[7, 2]])
        for other in (ds[3:], pickle.loads(pickle.dumps(ds[3:]))):
            assert np.array_equal(other[1]["image"], want[4])
    # All pictures of a record are drawn alike.
    twice = ds[3]["wide"]
    named = example({"wide": FILES[0]}), example({"wide": FILES[3]})
    for k, payload in enumerate(named):
        blank = [example({"wide": FILES[0]})] * 3
        alone = tfseek.Loader(written(folder.parent / f"{form.dtype}-{k}.tfrecord", [*blank, payload]), {"wide": form}, batch_size=4, shuffle=False, seed=5, epoch=2)
        assert np.array_equal(twice[k], next(iter(alone))["wide"][3])


def test_sizes_of_a_data_set_without_a_spec_of_one(folder: pathlib.Path) -> None:
    record = tfseek.tfds.open(folder, decode={"image": tfseek.Image(dtype="float32", exif=True)})["train"][0]
    plain = tfseek.tfds.open(folder)["train"][0]
    assert record["image"].dtype == np.float32 and np.array_equal(record["image"], plain["image"] / np.float32(255))


def test_a_picture_of_another_size_than_stated_is_an_error(tmp_path: pathlib.Path) -> None:
    stated = {"image": image(20, 30, 3), "k": tensor("int64")}
    height, width, _ = tfseek.image_shape(FILES[3])
    stated["image"] = image(width, height, 3)
    records = [{"image": FILES[3], "k": k} for k in range(3)]
    folder = prepare(tmp_path / "1.0.0", features(**stated), {"train": [records]})
    ds = tfseek.tfds.open(folder, decode={"image": tfseek.Image()})["train"]
    for read in (lambda: ds[0], lambda: next(iter(tfseek.Loader(ds, batch_size=2, shuffle=False)))):
        with pytest.raises(tfseek.DataError, match=f"found a picture of {height} x {width}"):
            read()
    loader = tfseek.Loader(ds, batch_size=3, shuffle=False, damage="skip")
    with pytest.raises(tfseek.DataError):
        list(loader)


def test_absent_pictures_of_a_data_set(tmp_path: pathlib.Path) -> None:
    absent: list[dict[str, Any]] = [{"image": b""}, {"image": np.array([], dtype=object)}, {}]
    records = [{"image": FILES[0], "k": 0}, *({**record, "k": 1} for record in absent)]
    folder = prepare(tmp_path / "1.0.0", features(image=image(None, None, 3), k=tensor("int64")), {"train": [records]})
    ds = tfseek.tfds.open(folder, decode={"image": tfseek.Image((4, 3), flip=1.0, missing=7, geometry="part")})["train"]
    (batch,) = tfseek.Loader(ds, batch_size=4, shuffle=False)
    assert (batch["image"][1:] == 7).all() and not (batch["image"][0] == 7).all()
    assert batch["part"].tolist() == [[0, 0, *tfseek.image_shape(FILES[0])[:2], 1], *[[0] * 5] * 3]
    for record, row, part in zip(ds, batch["image"], batch["part"]):
        assert np.array_equal(record["image"], row) and np.array_equal(record["part"], part)


@pytest.mark.parametrize("size", [(4, 3), None])
def test_geometry_of_a_data_set(size: Any, folder: pathlib.Path) -> None:
    form = tfseek.Image(size, crop=size and "random_resized", flip=0.5, geometry="part")
    plain = tfseek.tfds.open(folder, decode=False)["train"]
    ds = tfseek.tfds.open(folder, decode={"image": form, "wide": dataclasses.replace(form, geometry="parts")})["train"]
    ds.set_epoch(2, seed=5)
    one, two = (list(tfseek.Loader(source, schema, batch_size=4, shuffle=False, seed=5, epoch=2)) for source, schema in ((plain.records, spec(form)), (ds, None)))
    for k, record in enumerate(ds):
        want = one[k // 4]["part"][k % 4]
        assert record["part"].dtype == want.dtype == np.int32 and np.array_equal(record["part"], want)
        assert np.array_equal(two[k // 4]["part"][k % 4], want)
        assert np.array_equal(two[k // 4]["parts"][k % 4], record["parts"]) and record["parts"].shape == (2, 5)
        # Each picture has the size that its geometry has.
        if size is None:
            assert [list(picture.shape[:2]) for picture in record["wide"]] == record["parts"][:, 2:4].tolist()


def test_geometry_beside_a_feature_of_its_name(tmp_path: pathlib.Path) -> None:
    root = features(inner=features(image=image(None, None, 3), part=tensor("int64")), part=tensor("int64"))
    folder = prepare(tmp_path / "1.0.0", root, {"train": [[{"inner/image": FILES[0], "inner/part": 3, "part": 4}]]})
    for name, error in (("part", True), ("other", False)):
        decode = {"inner/image": tfseek.Image((4, 3), geometry=name)}
        if error:
            with pytest.raises(tfseek.SpecError, match='"inner/image": geometry: expected the name of no other feature, found "part"'):
                tfseek.tfds.open(folder, decode=decode)
            continue
        record = tfseek.tfds.open(folder, decode=decode)["train"][0]
        assert list(record["inner"]) == ["image", "other", "part"] and record["inner"]["other"].tolist()[:2] == [0, 0]


def test_all_damaged_rows_are_left_out(tmp_path: pathlib.Path) -> None:
    records = [{"image": b"none" if k % 3 == 1 else FILES[k % 5], "k": k} for k in range(12)]
    folder = prepare(tmp_path / "1.0.0", features(image=image(None, None, 3), k=tensor("int64")), {"train": [records]})
    ds = tfseek.tfds.open(folder, decode={"image": RANDOM})["train"]
    loader = tfseek.Loader(ds, batch_size=6, shuffle=False, seed=5, damage="skip")
    rows = {int(k): picture for batch in loader for k, picture in zip(batch["k"], batch["image"])}
    assert sorted(rows) == [k for k in range(12) if k % 3 != 1]
    ds.set_epoch(0, seed=5)
    assert all(np.array_equal(ds[k]["image"], picture) for k, picture in rows.items())


def test_a_mix_cuts_a_mask_as_its_renamed_picture(ds: Any, tmp_path: pathlib.Path) -> None:
    both = written(tmp_path / "both.tfrecord", [example({"image": file, "mask": file}) for file in FILES])
    place: dict[str, Any] = {"crop": "random_resized", "flip": 0.5}
    named = {"image": tfseek.Image((9, 7), **place), "mask": tfseek.Image((9, 7), crop_with="image", **place)}
    mix = tfseek.Mix([((both, named), 1)], rename={0: {"image": "rgb"}})
    (batch,) = tfseek.Loader(mix, batch_size=5, shuffle=False, seed=5, drop_last=False)
    assert np.array_equal(batch["rgb"], batch["mask"])


@pytest.mark.parametrize(
    ("decode", "error", "reason"),
    [
        ({"image": (8, 8)}, TypeError, "decode: image: expected True, False or a tfseek.Image, found"),
        ({"imag": RANDOM}, tfseek.SpecError, 'expected the feature of a picture of the data set, found "imag"'),
        ({"label": RANDOM}, tfseek.SpecError, 'expected the feature of a picture of the data set, found "label"'),
        ({"image": RANDOM, "wide": tfseek.Image((9, 7), crop="random_resized", crop_with="image")}, tfseek.SpecError, "crop_with"),
    ],
)
def test_refusals(decode: Any, error: type[Exception], reason: str, folder: pathlib.Path) -> None:
    with pytest.raises(error, match=reason):
        tfseek.tfds.open(folder, decode=decode)


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Any:
    step = features(image=image(None, None, 3), wrist=image(None, None, 3), action=tensor("float32", (2,)))
    root = features(steps=sequence(step, "dataset_feature.Dataset"))
    records = []
    for k, steps in enumerate([3, 0, 2]):
        files = np.array([FILES[(k + t) % len(FILES)] for t in range(steps)], dtype=object)
        records.append({"steps/image": files, "steps/wrist": files, "steps/action": np.arange(2 * steps, dtype=np.float32)})
    return tfseek.rlds.open(prepare(tmp_path_factory.mktemp("rlds") / "1.0.0", root, {"train": [records]}))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.dtype)
def test_windows(form: tfseek.Image, robot: Any, tmp_path: pathlib.Path) -> None:
    win = robot.windows({"image": [0, 0, 1], "action": 0}, decode={"image": dataclasses.replace(form, geometry="part")})
    plain = robot.windows({"image": [0, 0, 1]}, decode=False)
    assert len(win) == 5
    for epoch in (0, 2):
        win.set_epoch(epoch, seed=5)
        loader = tfseek.Loader(win, batch_size=2, shuffle=False, seed=5, epoch=epoch)
        batches = list(loader)
        batched, parts = (np.concatenate([batch[name] for batch in batches]) for name in ("image", "part"))
        assert parts.shape == (5, 3, 5)
        for i in range(5):
            # All frames of a window are drawn as the picture of a record with the window's number.
            for t, file in enumerate(plain[i]["image"]):
                payloads = [example({"image": FILES[0]})] * i + [example({"image": file})]
                path = tmp_path / f"{epoch}-{i}-{t}.tfrecord"
                one = written(path, payloads)
                want = of_loader(one, spec(form), epoch=epoch)[i]
                assert np.array_equal(win[i]["image"][t], want) and np.array_equal(batched[i][t], want)
                (batch,) = tfseek.Loader(one, spec(dataclasses.replace(form, geometry="part")), batch_size=i + 1, shuffle=False, seed=5, epoch=epoch)
                assert np.array_equal(win[i]["part"][t], batch["part"][i]) and np.array_equal(parts[i][t], batch["part"][i])
    again = pickle.loads(pickle.dumps(win))
    assert np.array_equal(again[3]["image"], win[3]["image"])
    assert np.array_equal(win[2:][1]["image"], win[3]["image"])


def test_cameras_with_one_crop(robot: Any) -> None:
    place: dict[str, Any] = {"crop": "random_resized", "flip": 0.5}
    for names in ({}, {"image": "front"}):
        decode = {"image": tfseek.Image((9, 7), **place), "wrist": tfseek.Image((9, 7), crop_with="image", **place)}
        win = robot.windows({"image": [0, 1], "wrist": [0, 1]}, decode=decode)
        win = win._renamed(names) if names else win
        for k in range(len(win)):
            assert np.array_equal(win[k][names.get("image", "image")], win[k]["wrist"])
    apart = robot.windows({"image": 0, "wrist": 0}, decode={key: tfseek.Image((9, 7), **place) for key in ("image", "wrist")})
    assert any(not np.array_equal(window["image"], window["wrist"]) for window in apart)


def test_padding_with_zeros_is_black(robot: Any) -> None:
    win = robot.windows({"image": [-1, 0]}, pad="zero", decode={"image": RANDOM})
    black = np.float32(0) * np.float32(1 / (255 * 0.25)) + np.float32(-2)
    assert (win[0]["image"][0] == black).all() and not (win[0]["image"][1] == black).all()


def test_lerobot_items(robot: Any) -> None:
    torch = pytest.importorskip("torch")
    import tfseek.lerobot

    names = {"observation.images.front": "image", "observation.images.wrist": "wrist", "action": "action"}
    front = dataclasses.replace(RANDOM, mean=None, std=None)
    decode = {"observation.images.front": front, "wrist": tfseek.Image((8, 6))}
    task: dict[str, Any] = {"task": "action"}
    for other in cast(Any, ((8, 6), RANDOM, tfseek.Image((8, 6), geometry="part"))):
        with pytest.raises(TypeError, match="decode: wrist: expected a tfseek.Image without mean and std.* geometry"):
            tfseek.lerobot.Dataset(robot, names, 10, decode={"wrist": other}, **task)
    win = robot.windows({"image": 0, "wrist": 0}, decode={"image": front, "wrist": tfseek.Image((8, 6))})
    data = tfseek.lerobot.Dataset(robot, names, 10, decode=decode, **task)
    data.set_epoch(1, seed=3)
    win.set_epoch(1, seed=3)
    item = data[2]
    assert np.array_equal(item["observation.images.front"], win[2]["image"])
    wrist = item["observation.images.wrist"]
    assert wrist.dtype == torch.float32 and np.array_equal(wrist, win[2]["wrist"].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    assert data.meta.features["observation.images.front"]["shape"] == (9, 7, 3)
    # A crop may be another camera's, by its key.
    place: dict[str, Any] = {"crop": "random_resized", "flip": 0.5}
    alike = {"image": tfseek.Image((9, 7), **place), "wrist": tfseek.Image((9, 7), crop_with="observation.images.front", **place)}
    data = tfseek.lerobot.Dataset(robot, names, 10, decode=alike, **task)
    for item in data:
        assert torch.equal(item["observation.images.front"], item["observation.images.wrist"])
