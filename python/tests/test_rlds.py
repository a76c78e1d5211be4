"""``tfseek.rlds``: steps, windows, statistics and mixtures of robot episodes."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import zlib
from typing import Any, Callable

import numpy as np
import numpy.typing as npt
import pytest
import tfds_cases as cases
from conftest import trust
from test_tfds import TEXT as TEXT_CLASS
from test_tfds import features, image, prepare, sequence, tensor
from tiny_images import chunk

import tfseek

TEXT = {"pythonClassName": TEXT_CLASS, "text": {}}
needs_cases = pytest.mark.skipif(cases.FOLDER is None, reason="TFSEEK_TFDS_CASES is not set")


def picture(value: int) -> bytes:
    """Returns a PNG of 3 x 4 pixels with this value."""
    head = struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes([value]) * 12) * 3
    # Files of different sizes have a checksum each.
    text = chunk(b"tEXt", b"Comment\0" + b"." * value)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + text + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def episode(k: int, steps: int) -> dict[str, Any]:
    """Returns the stored record of an episode."""
    return {
        "steps/action": (np.arange(steps * 2, dtype=np.float32) + 100 * k),
        "steps/t": np.arange(steps),
        "steps/text": np.array([b"go %d" % k] * steps, dtype=object),
        "steps/picture": np.array([picture(10 * k + t) for t in range(steps)], dtype=object),
        "episode_metadata/name": f"episode {k}",
        "episode_metadata/good": k % 2,
    }


LENGTHS = [3, 0, 1, 5, 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A prepared data set of five episodes in two shards."""
    step = features(action=tensor("float32", (2,)), t=tensor("int64"), text=TEXT, picture=image(3, 4, 3))
    root = features(steps=sequence(step, "dataset_feature.Dataset"), episode_metadata=features(name=TEXT, good=tensor("int64")))
    records = [episode(k, steps) for k, steps in enumerate(LENGTHS)]
    return prepare(tmp_path_factory.mktemp("rlds") / "1.0.0", root, {"train": [records[:2], records[2:]]})


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def test_episodes_and_steps(folder: pathlib.Path) -> None:
    robot = tfseek.rlds.open(folder)
    assert len(robot) == 5 and robot.lengths.tolist() == LENGTHS and len(robot.steps) == 13
    assert robot.locate(4) == (3, 0) and robot.number(3, 0) == 4
    step = robot.steps[5]
    assert step["action"].tolist() == [302.0, 303.0] and step["t"] == 1 and step["text"] == b"go 3"
    assert step["picture"].shape == (3, 4, 3) and (step["picture"] == 31).all()
    assert robot.episodes[3]["steps"][1]["action"].tolist() == [302.0, 303.0]
    assert robot.episodes[4]["episode_metadata"]["name"] == b"episode 4"
    assert [step["t"] for step in robot.steps[4:9]] == [0, 1, 2, 3, 4]
    part = tfseek.rlds.open(folder, "train[3:]")
    assert part.lengths.tolist() == [5, 4] and part.steps[0]["action"].tolist() == [300.0, 301.0]
    again = pickle.loads(pickle.dumps(robot))
    assert again.lengths.tolist() == LENGTHS and same(again.steps[5], step)
    with pytest.raises(tfseek.OutOfRangeError):
        robot.locate(13)
    assert "episodes=5, steps=13" in repr(robot)


@pytest.mark.parametrize("io", ["map", "pread"])
@pytest.mark.parametrize("index", ["auto", "memory"])
def test_windows(folder: pathlib.Path, io: str, index: str) -> None:
    robot = tfseek.rlds.open(folder, io=io, index=index)
    win = robot.windows({"action": [-1, 0, 1], "t": 2, "episode_metadata/name": 0, "picture": [0]}, decode=False)
    assert len(win) == 13 and win.locate(4) == (3, 0)
    first = win[4]
    assert first["action"].tolist() == [[300.0, 301.0], [300.0, 301.0], [302.0, 303.0]]
    assert first["action_is_pad"].tolist() == [True, False, False]
    assert first["t"] == 2 and first["episode_metadata/name"] == b"episode 3"
    assert first["picture"].tolist() == [picture(30)]
    assert (first["_episode"], first["_step"]) == (3, 0)
    zero = robot.windows({"action": [-1, 4], "text": [9], "picture": [-1]}, pad="zero")[4]
    assert zero["action"].tolist() == [[0.0, 0.0], [308.0, 309.0]] and zero["text"].tolist() == [b""]
    assert zero["picture"].shape == (1, 3, 4, 3) and not zero["picture"].any()
    inner = robot.windows({"t": [-1, 2]}, pad="none")
    assert [inner.locate(i) for i in range(len(inner))] == [(3, 1), (3, 2), (4, 1)]
    small = robot.windows({"picture": [0, 1]}, decode={"picture": tfseek.Image((6, 2))})[0]
    assert small["picture"].shape == (2, 6, 2, 3)
    rows = [row for step in tfseek.Loader(win, batch_size=4, shuffle=False) for row in step["t"].tolist()]
    assert rows == [item["t"] for item in win]


def test_anchors_and_conditions(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    robot = tfseek.rlds.open(folder)

    def at(win: tfseek.rlds.Windows) -> list[tuple[int, int]]:
        return [win.locate(i) for i in range(len(win))]

    ranges: dict[Any, Any] = {3: [[3, 9], [-2, 1]], 0: [[1, 2], [2, 3]], 1: [[0, 5]]}
    expected = [(0, 1), (0, 2), (3, 0), (3, 3), (3, 4)]
    assert at(robot.windows({"t": 0}, anchors=ranges)) == expected
    file = tmp_path / "ranges.json"
    file.write_text(json.dumps({str(key): value for key, value in ranges.items()}))
    assert at(robot.windows({"t": 0}, anchors=file)) == expected
    named = {f"episode {key}--0{key % 2}": value for key, value in ranges.items()}
    win = robot.windows({"t": 0}, anchors=named, key="{episode_metadata/name}--0{episode_metadata/good}")
    assert at(win) == expected
    mask = np.zeros(13, dtype=bool)
    mask[[1, 2, 4, 7, 8]] = True
    assert at(robot.windows({"t": 0}, anchors=mask)) == expected
    good = robot.windows({"t": 0}, where="episode_metadata/good == 1")
    assert at(good) == [(3, t) for t in range(5)]
    assert at(robot.windows({"t": 0}, anchors=ranges, where="episode_metadata/good == 0")) == expected[:2]
    assert len(robot.windows({"t": 0}, where='episode_metadata/name == "nobody"')) == 0
    calls: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: robot.windows({"t": 0}, anchors={7: [[0, 1]]}), tfseek.SpecError),
        (lambda: robot.windows({"t": 0}, anchors={"a": [[0, 1]]}), tfseek.SpecError),
        (lambda: robot.windows({"t": 0}, anchors=mask[1:]), TypeError),
        (lambda: robot.windows({"tt": 0}), tfseek.SpecError),
        (lambda: robot.windows({"t": []}), tfseek.SpecError),
        (lambda: robot.windows({}), tfseek.SpecError),
        (lambda: robot.windows({"episode_metadata/name": [0]}), tfseek.SpecError),
        (lambda: robot.windows({"t": 0}, decode={"picture": False}), tfseek.SpecError),
        (lambda: robot.windows({"t": 0}, pad="wrap"), ValueError),
        (lambda: good.filter("t == 1"), tfseek.SpecError),
    ]
    for bad, error in calls:
        with pytest.raises(error):
            bad()


def test_unknown_names(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """They are errors with the nearest name."""
    robot, key = tfseek.rlds.open(folder), "{episode_metadata/name}"
    file, empty = tmp_path / "ranges.json", {"episode 1": [[0, 9]]}
    ranges: dict[str, Any] = {"episode 3": [[0, 2]], "episod 4": [[0, 1]]}
    found = robot.statistics(["t"])
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: robot.windows({"t": 0}, anchors=ranges, key=key), 'anchors: no episode "episod 4"; the nearest name is "episode 4"'),
        (lambda: robot.statistics(["t"], anchors=ranges, key=key), 'no episode "episod 4"; the nearest name is "episode 4"'),
        (lambda: robot.windows({"t": 0}, anchors=file, key=key), 'no episode "Episode 4"; the nearest name is "episode 4"'),
        (lambda: robot.windows({"t": 0}, anchors={"x": [[0, 1]]}, key=key), 'no episode "x"; there are "episode 0", "episode 1"'),
        (lambda: robot.windows({"t": 0}, anchors=empty, key="{t}"), 'no episode "episode 1"'),
        (lambda: robot.windows({"t": 0}, anchors={}, key="{episode_metadata/nam}"), 'nearest name is "episode_metadata/name"'),
        (lambda: robot.windows({"picture": 0}, decode={"pictur": False}), 'decode: no key .* "pictur"; the nearest name is "picture"'),
        (lambda: robot.windows({"tt": 0}), 'nearest name is "t"'),
        (lambda: robot.windows({"t": 0}, where="episode_metadata/nam == 1"), 'nearest name is "episode_metadata/name"'),
        (lambda: robot.statistics(["acton"]), 'nearest name is "action"'),
        (lambda: found.to_json(names={"tt": "proprio"}), 'names: no value "tt"; the nearest name is "t"'),
        (lambda: tfseek.rlds.open(folder, steps="step"), "step"),
    ]
    file.write_text(json.dumps({"Episode 4": [[0, 1]]}))
    for bad, text in calls:
        with pytest.raises(tfseek.SpecError, match=text):
            bad()
    # Episodes without steps have names too, and a file may have those of other splits.
    assert len(robot.windows({"t": 0}, anchors=empty, key=key)) == 0
    file.write_text(json.dumps(ranges))
    assert len(robot.windows({"t": 0}, anchors=file, key=key)) == 2


def test_orders_ranks_and_resume(folder: pathlib.Path) -> None:
    robot = tfseek.rlds.open(folder)
    win = robot.windows({"action": [0, 1]})
    for shuffle in (False, True, "block"):
        for world in (1, 2, 3):
            seen = []
            for rank in range(world):
                loader = tfseek.Loader(
                    win, batch_size=2, shuffle=shuffle, seed=3, rank=rank, world_size=world, ids="id", mask="real"
                )
                seen += [int(i) for batch in loader for i, real in zip(batch["id"], batch["real"]) if real]
            assert sorted(seen) == list(range(13))
    loader = tfseek.Loader(win, batch_size=2, seed=3)
    batches = list(loader)
    for k in range(len(batches)):
        first = tfseek.Loader(win, batch_size=2, seed=3)
        taken = iter(first)
        for _ in range(k):
            next(taken)
        second = tfseek.Loader(pickle.loads(pickle.dumps(win)), batch_size=2, seed=3)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert all(same(a, b) for a, b in zip(batches[k:], second))
    state = loader.state_dict()
    assert state["n"] == 13
    others: list[Any] = [robot.windows({"action": 0}, anchors={0: [[0, 3]]}), robot.episodes, robot.episodes.records]
    for other in others:
        spec: Any = None if other is not robot.episodes else ["episode_metadata"]
        with pytest.raises(tfseek.OrderError):
            tfseek.Loader(other, spec, batch_size=2, seed=3).load_state_dict(state)
    # Other offsets are the same windows.
    tfseek.Loader(robot.windows({"t": 0}), batch_size=2, seed=3).load_state_dict(state)


def test_views_pickles_and_mixes(folder: pathlib.Path) -> None:
    robot = tfseek.rlds.open(folder)
    win = robot.windows({"action": [0, 1], "text": 0})
    view = win[[11, 3, 5]]
    assert [view.locate(k) for k in range(3)] == [(4, 2), (2, 0), (3, 1)] and view.locate(-1) == (3, 1)
    for copy in (pickle.loads(pickle.dumps(view)), view):
        assert [item["action"].tolist() for item in copy] == [win[i]["action"].tolist() for i in (11, 3, 5)]
    assert pickle.loads(pickle.dumps(win.records))[3] == win.records[3]
    assert [same(a, b) for a, b in zip(win.get_many([2, 0]), (win[2], win[0]))] == [True, True]
    other = tfseek.rlds.open(folder, "train[3:]").windows({"action": [0, 1], "text": 0})
    mix = tfseek.Mix([(win, 3), (other, 1)], source="from")
    batch = next(tfseek.Loader(mix, batch_size=8, seed=1, shuffle=True))
    assert sorted(batch["from"].tolist()) == [0] * 6 + [1] * 2
    renamed = tfseek.Mix([(win, 1), (robot.windows({"action": [0, 1], "t": 0, "text": 0}), 1)], rename={0: {"text": "words"}})
    with pytest.raises(tfseek.SpecError, match="words|text|t"):
        next(tfseek.Loader(renamed, batch_size=2))
    same_names = tfseek.Mix([(win, 1), (robot.windows({"action": [0, 1], "text": 0}), 1)], rename={0: {"text": "w"}, 1: {"text": "w"}})
    assert "w" in next(tfseek.Loader(same_names, batch_size=2))
    assert len(tfseek.Mix([(win, 1.0), (other, 1.0)], by="size").weights) == 2
    with pytest.raises(tfseek.SpecError, match="renames|rename"):
        tfseek.Mix([(win, 1)], rename={0: {"nothing": "w"}})


def test_statistics(folder: pathlib.Path) -> None:
    robot = tfseek.rlds.open(folder)
    found = robot.statistics(["action", "t"])
    rows = np.array([step["action"] for step in robot.steps], dtype=np.float64)
    expected = {
        "mean": rows.mean(0),
        "std": rows.std(0),
        "min": rows.min(0),
        "max": rows.max(0),
        "q01": np.quantile(rows, 0.01, axis=0),
        "q99": np.quantile(rows, 0.99, axis=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found["action"][name], values, rtol=1e-12)
    assert (found.num_transitions, found.num_trajectories) == (13, 4) and found["t"]["max"].tolist() == [4.0]
    part = robot.statistics(["t"], where="episode_metadata/good == 1")
    assert (part.num_transitions, part.num_trajectories, part["t"]["mean"].tolist()) == (5, 1, [2.0])
    vla = json.loads(found.to_json(names={"t": "proprio"}))
    assert list(vla["action"]) == ["max", "mean", "min", "q01", "q99", "std"] and vla["proprio"]["max"] == [4.0]
    assert json.loads(robot.statistics(["action"]).to_json())["proprio"]["mean"] == [0.0, 0.0]
    octo = json.loads(found.to_json("octo"))
    assert "p99" in octo["action"] and "proprio" not in octo and octo["num_trajectories"] == 4
    of_arrays = tfseek.rlds.statistics({"action": rows})
    np.testing.assert_array_equal(of_arrays["action"]["q01"], found["action"]["q01"])
    for bad in (["text"], ["picture2"], ["episode_metadata/name"]):
        with pytest.raises(tfseek.SpecError):
            robot.statistics(bad)
    with pytest.raises(tfseek.DataError):
        tfseek.rlds.statistics({"a": [1.0, float("nan")]})
    assert tfseek.rlds.statistics({"a": [1.0, float("nan")]}, nan="skip")["a"]["max"].tolist() == [1.0]


def test_damage_names_the_step(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "1.0.0"
    copy.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    robot = tfseek.rlds.open(copy, index_dir=tmp_path / "index")
    shard = next(copy.glob("*00001-of-00002"))
    good = shard.read_bytes()
    at = good.index(picture(31)) + 20
    times = (shard.stat().st_atime_ns, shard.stat().st_mtime_ns)
    with shard.open("r+b") as opened:
        opened.seek(at)
        opened.write(bytes([good[at] ^ 1]))
    os.utime(shard, ns=times)
    trust(tmp_path / "index")
    robot = tfseek.rlds.open(copy, index_dir=tmp_path / "index", io="pread")
    win = robot.windows({"picture": 0, "t": 0}, decode=False)
    with pytest.raises(tfseek.DataError, match="step 1.*crc32c") as e:
        win[5]
    assert e.value.record == 1 and e.value.feature == "steps/picture" and str(e.value.path).endswith("00001-of-00002")
    # Other steps of the record have their own checksums.
    assert win[4]["picture"] == picture(30) and win[6]["picture"] == picture(32)
    skipped = [step for step in tfseek.Loader(win, batch_size=3, damage="skip", ids="id")]
    assert sorted(int(i) for step in skipped for i in step["id"]) == [i for i in range(13) if i != 5]


def test_torch(folder: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    import tfseek.torch

    robot = tfseek.rlds.open(folder)
    win = robot.windows({"action": [0, 1], "t": 0, "picture": 0})
    data = tfseek.torch.Dataset(win)
    assert torch.equal(data[4]["action"], torch.tensor([[300.0, 301.0], [302.0, 303.0]])) and len(data) == 13
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="spawn")
    steps = [int(t) for batch in loader for t in batch["t"]]
    assert steps == [int(item["t"]) for item in win]
    stream = tfseek.torch.IterableDataset(win, batch_size=4, shuffle=True, seed=0)
    assert sum(len(batch["t"]) for batch in stream) == 13


def test_grain(folder: pathlib.Path) -> None:
    pytest.importorskip("grain")
    import tfseek.grain

    win = tfseek.rlds.open(folder).windows({"action": [0, 1], "t": 0})
    source = tfseek.grain.DataSource(win)
    assert len(source) == 13 and source[4]["t"] == 0 and "fingerprint" in repr(source)


@needs_cases
def test_windows_of_the_cases() -> None:
    root = pathlib.Path(str(cases.FOLDER))
    expected = json.loads((root / "cases/windows.json").read_text())
    golden = cases.Golden.__new__(cases.Golden)
    golden.name, golden.arrays = "windows", dict(np.load(root / "cases/windows.npz"))
    checked = 0
    for k, case in enumerate(expected):
        found = json.loads((root / f"golden/{case['set']}.json").read_text())
        robot = tfseek.rlds.open(root / found["dir"], case["split"])
        win = robot.windows(case["windows"], pad=case["pad"], **{name: case[name] for name in ("anchors", "key", "where") if name in case})
        assert len(win) == case["n"]
        if case["n"] < 3000:
            at = json.dumps([list(win.locate(i)) for i in range(len(win))])
            assert hashlib.sha256(at.encode()).hexdigest() == case["anchor_digest"]
        for sample in case["samples"]:
            window = win[sample["i"]]
            for key, node in sample["values"].items():
                assert cases.difference(window[key], node, golden) is None, (k, sample["i"], key)
            for key, flags in sample["is_pad"].items():
                assert window[f"{key}_is_pad"].tolist() == [bool(flag) for flag in flags]
            checked += 1
    assert checked > 150


@needs_cases
def test_orders_of_the_cases() -> None:
    root = pathlib.Path(str(cases.FOLDER))
    for case in json.loads((root / "cases/order.json").read_text())["orders"]:
        found = json.loads((root / f"golden/{case['set']}.json").read_text())
        win = tfseek.rlds.open(root / found["dir"], case["split"]).windows({"action": 0})
        assert len(win) == case["n"]
        if "global" in case:
            seed = case["seed"] if case["seed"] < 2**63 else case["seed"] - 2**64
            loader = tfseek.Loader(win, batch_size=48, shuffle=True, seed=seed)
            loader.set_epoch(case["epoch"])
            batch = next(loader)
            at = [list(pair) for pair in zip(batch["_episode"].tolist(), batch["_step"].tolist())]
            assert at == case["global"]
            continue
        for rank, (rows, padding) in enumerate(zip(case["last_step"], case["padding"])):
            loader = tfseek.Loader(
                win, global_batch_size=case["global_batch_size"], shuffle=True, seed=case["seed"], rank=rank, world_size=4, mask="real"
            )
            assert len(loader) == case["steps"]
            last = list(loader)[-1]
            at = [list(pair) for pair in zip(last["_episode"].tolist(), last["_step"].tolist())]
            assert at == rows and last["real"].tolist() == [not flag for flag in padding]


@needs_cases
def test_statistics_of_the_cases() -> None:
    root = pathlib.Path(str(cases.FOLDER))
    for case in json.loads((root / "cases/statistics.json").read_text()):
        found = json.loads((root / f"golden/{case['set']}.json").read_text())
        stats = tfseek.rlds.open(root / found["dir"], case["split"]).statistics(case["keys"])
        assert (stats.num_transitions, stats.num_trajectories) == (case["num_transitions"], case["num_trajectories"])
        for key, expected in case["keys"].items():
            peer = expected.pop("peer_float32")
            for name, values in expected.items():
                np.testing.assert_allclose(stats[key][name], values, rtol=1e-9, atol=1e-12)
                np.testing.assert_allclose(stats[key][name], peer[name], rtol=1e-5, atol=1e-5)
            for name in ("min", "max", "q01", "q99"):
                assert stats[key][name].tolist() == expected[name]


def digest(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        data = b"".join(len(text).to_bytes(8, "little") + text for text in array.reshape(-1).tolist())
    else:
        data = np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(data).hexdigest()[:32]


def flat(value: dict[str, Any], at: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found.update(flat(inner, f"{at}{key}/") if isinstance(inner, dict) else {f"{at}{key}": inner})
    return found


@needs_cases
def test_real_episodes() -> None:
    root = pathlib.Path(str(cases.FOLDER), "real_bridge")
    robot = tfseek.rlds.open(root / "bridge_dataset/1.0.0")
    golden: dict[str, Any] = json.loads((root / "golden.json").read_text())
    number = 0
    pictures: npt.NDArray[Any]
    for e, record in enumerate(golden["records"]):
        for t, expected in enumerate(record["steps"]):
            step = flat(robot.steps[number])
            assert robot.locate(number) == (e, t)
            for key, facts in expected.items():
                pictures = step[key]
                if "pixels" in facts:
                    assert digest(pictures) == facts["pixels"], (e, t, key)
                else:
                    assert list(np.shape(step[key])) == facts["shape"] and digest(step[key]) == facts["sha256"]
            number += 1
    assert number == len(robot.steps) == 250


def test_lerobot(folder: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    import tfseek.lerobot

    robot = tfseek.rlds.open(folder)
    names: dict[str, Any] = {"observation.images.cam": "picture", "action": "action", "observation.state": ["action", "t"]}
    data = tfseek.lerobot.Dataset(robot, {key: names[key] for key in ("observation.images.cam", "action")}, 10, task="text", delta_timestamps={"action": [-0.1, 0, 0.1]})
    assert (len(data), data.num_frames, data.num_episodes) == (13, 13, 5)
    item = data[8]
    assert item["action"].tolist() == [[306.0, 307.0], [308.0, 309.0], [308.0, 309.0]] and item["action"].dtype == torch.float32
    assert item["action_is_pad"].tolist() == [False, False, True]
    picture = item["observation.images.cam"]
    assert picture.shape == (3, 3, 4) and picture.dtype == torch.float32 and torch.allclose(picture, torch.full((3, 3, 4), 34 / 255))
    numbers = {name: item[name].item() for name in ("frame_index", "episode_index", "index", "task_index")}
    assert numbers == {"frame_index": 4, "episode_index": 3, "index": 8, "task_index": 2} and item["task"] == "go 3"
    assert item["timestamp"].dtype == torch.float32 and abs(item["timestamp"].item() - 0.4) < 1e-6 and item["timestamp"].ndim == 0
    dropped = tfseek.lerobot.Dataset(robot, {"state": ["action", "t"], "t": "t"}, 10, task="text", drop_n_first_frames=1, drop_n_last_frames=2)
    assert [dropped[k]["index"].item() for k in range(len(dropped))] == [5, 6, 10]
    assert dropped[0]["state"].tolist() == [302.0, 303.0, 1.0] and dropped[0]["t"].ndim == 0
    meta = data.meta
    assert meta.tasks == ["go 0", "go 2", "go 3", "go 4"] and meta.episodes["dataset_to_index"] == [3, 3, 4, 9, 13]
    assert meta.features["observation.images.cam"]["shape"] == (3, 4, 3) and meta.features["action"]["shape"] == (2,)
    np.testing.assert_allclose(meta.stats["action"]["mean"], robot.statistics(["action"])["action"]["mean"])
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(again[8]["action"], item["action"])
    loader = torch.utils.data.DataLoader(data, batch_size=5)
    assert sum(len(batch["index"]) for batch in loader) == 13
    with pytest.raises(ValueError, match="whole frames"):
        tfseek.lerobot.Dataset(robot, names, 10, task="text", delta_timestamps={"action": [0.05]})
    with pytest.raises(tfseek.SpecError):
        tfseek.lerobot.Dataset(robot, names, 10, task="text", delta_timestamps={"action": [0.1]})


def test_items_are_those_of_the_package_lerobot(tmp_path: pathlib.Path) -> None:
    package = pytest.importorskip("lerobot.datasets.lerobot_dataset")
    torch = pytest.importorskip("torch")
    from prepared import write_bridge

    import tfseek.lerobot

    write_bridge(tmp_path / "bridge")
    robot = tfseek.rlds.open(tmp_path / "bridge" / "1.0.0")
    features = {
        "observation.images.cam": {"dtype": "image", "shape": (8, 8, 3), "names": ["height", "width", "channels"]},
        "observation.state": {"dtype": "float32", "shape": (7,), "names": None},
        "action": {"dtype": "float32", "shape": (7,), "names": None},
    }
    root = tmp_path / "lerobot"
    written = package.LeRobotDataset.create("local/bridge", fps=5, features=features, root=root, use_videos=False)
    for episode, length in enumerate(robot.lengths):
        for t in range(int(length)):
            step = robot.steps[robot.number(episode, t)]
            frame = {"observation.images.cam": step["observation"]["image_0"], "observation.state": step["observation"]["state"], "action": step["action"]}
            written.add_frame({**frame, "task": step["language_instruction"].decode()})
        written.save_episode()
    written.finalize()
    names = {"observation.images.cam": "observation/image_0", "observation.state": "observation/state", "action": "action"}
    for deltas in (None, {"observation.images.cam": [-0.2, 0.0], "observation.state": [-0.2, 0, 0.2], "action": [k / 5 for k in range(16)]}):
        theirs = package.LeRobotDataset("local/bridge", root=root, delta_timestamps=deltas)
        ours = tfseek.lerobot.Dataset(robot, names, 5, delta_timestamps=deltas)
        assert (len(ours), ours.num_episodes, ours.num_frames) == (len(theirs), theirs.num_episodes, theirs.num_frames) == (140, 14, 140)
        for i in range(len(ours)):
            expected, found = theirs[i], ours[i]
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                if isinstance(value, str):
                    assert found[key] == value
                else:
                    assert found[key].dtype == value.dtype and torch.equal(found[key], value), (i, key)


def test_the_example_goes_on_after_a_kill(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    from prepared import write_bridge

    write_bridge(tmp_path)
    script = pathlib.Path(__file__).resolve().parents[2] / "examples/train_policy.py"
    command = [sys.executable, str(script), str(tmp_path / "1.0.0"), "--steps", "12", "--every", "3", "--batch", "16"]

    def lines(checkpoint: str) -> list[str]:
        done = subprocess.run([*command, "--checkpoint", str(tmp_path / checkpoint)], capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if line.startswith("step")]

    whole = lines("whole.pt")
    assert len(whole) == 4
    with subprocess.Popen([*command, "--checkpoint", str(tmp_path / "killed.pt")], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert next(child.stdout) == whole[0] + "\n"
        child.kill()
    rest = lines("killed.pt")
    assert 2 <= len(rest) <= 3 and rest == whole[-len(rest) :]


@pytest.mark.parametrize("index", ["auto", "memory"])
def test_episodes_that_cannot_be_read_are_left_out(tmp_path: pathlib.Path, index: str) -> None:
    step = features(action=tensor("float32", (2,)), words=sequence(TEXT))
    root = features(steps=sequence(step, "dataset_feature.Dataset"))

    def record(words: int) -> dict[str, Any]:
        return {
            "steps/action": np.zeros(4, np.float32),
            "steps/words/ragged_flat_values": np.array([b"a"] * words, dtype=object),
            "steps/words/ragged_row_lengths_0": np.array([1, 2]),
        }

    data = prepare(tmp_path / "1.0.0", root, {"train": [[record(3), record(2), record(3)]]})
    if index == "auto":
        # The tables are not kept, so the second call finds the same.
        for _ in range(2):
            with pytest.raises(tfseek.DataError, match="expected 3 values in all steps, as their lengths say, found 2") as e:
                tfseek.rlds.open(data)
            assert e.value.record == 1
    for _ in range(2):
        with pytest.warns(tfseek.Warning):
            robot = tfseek.rlds.open(data, damage="skip", index=index)
        assert robot.lengths.tolist() == [2, 0, 2]
        assert [len(step["words"]) for step in robot.steps] == [1, 2, 1, 2]
