"""Datasets at URLs, over a server of this machine: the records of files, without secrets in any text."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from object_server import ObjectServer
from prepared import write_bridge, write_mnist

import tfseek
from tfseek import _tasks

from conftest import RECORDS, SPEC, beside, run_python


def _build() -> bool:
    """Returns true if this build reads URLs."""
    try:
        tfseek.open("s3://bucket/x", storage_options={"endpoint": "http://127.0.0.1:1"})
    except tfseek.Error as e:
        return "without the feature" not in str(e)
    return True


REMOTE = _build()
needs_remote = pytest.mark.skipif(not REMOTE, reason="requires a build with the feature remote")
SECRETS = ("AKIDHIDDEN", "hidden-key", "hidden-signature", "hidden-password")
LOGIN = {"aws_access_key_id": "AKIDHIDDEN", "aws_secret_access_key": "hidden-key"}


def no_secret(*texts: object) -> None:
    for text in texts:
        assert not any(secret in str(text) for secret in SECRETS), text


@pytest.fixture
def server(shards: str) -> Iterator[ObjectServer]:
    """A server with the files of ``shards`` in ``bucket/data``."""
    folder = pathlib.Path(shards).parent
    with ObjectServer() as server:
        for path in sorted(folder.glob("train-*.tfrecord")):
            server.objects[f"bucket/data/{path.name}"] = path.read_bytes()
        yield server


def options(server: ObjectServer, **more: str) -> dict[str, str]:
    return {"endpoint": server.url, "allow_http": "true", "skip_signature": "true", **more}


def opened(server: ObjectServer, name: str = "train-*.tfrecord", **arguments: Any) -> tfseek.Dataset[Any]:
    return tfseek.open(f"s3://bucket/data/{name}", storage_options=options(server), **arguments)


@pytest.mark.skipif(REMOTE, reason="requires a build without the feature remote")
def test_a_build_without_the_feature_says_so() -> None:
    with pytest.raises(tfseek.Error, match="without the feature `remote`") as e:
        tfseek.open("s3://bucket/x", storage_options=LOGIN)
    no_secret(e.value)


@needs_remote
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_records_are_those_of_files(server: ObjectServer, shards: str, scheme: str) -> None:
    files = tfseek.open(shards, kind="bytes")
    names = [pathlib.Path(path).name for path in files.shards]
    paths, storage = [f"s3://bucket/data/{name}" for name in names], options(server)
    if scheme == "http":
        paths, storage = [f"{server.url}/bucket/data/{name}" for name in names], {}
    ds = tfseek.open(paths, kind="bytes", storage_options=storage)
    assert len(ds) == RECORDS and ds.shards == paths and ds.fingerprint == files.fingerprint
    assert [ds[i] for i in (0, 7, -1)] == [files[i] for i in (0, 7, -1)]
    numbers = np.random.default_rng(1).permutation(RECORDS)
    assert ds.get_many(numbers) == files.get_many(numbers)
    room = np.zeros(sum(map(len, files)), np.uint8)
    assert ds.get_many(numbers, out=room).tolist()[-1] == len(room) and bytes(room) == b"".join(files.get_many(numbers))
    assert list(ds) == list(files) and list(ds[5:700:3]) == list(files[5:700:3])
    assert ds.info() == {**files.info(), "kind": "bytes"}
    examples, local = tfseek.open(paths, storage_options=storage), tfseek.open(shards)
    assert examples.kind == "example" and examples.features == local.features and examples.schema == local.schema
    assert examples[3]["label"] == local[3]["label"] and examples[-1]["tokens"].tolist() == local[-1]["tokens"].tolist()
    assert examples.filter("label in 3..30").ids.tolist() == local.filter("label in 3..30").ids.tolist()
    assert examples.column("label").to_list() == local.column("label").to_list()
    assert len(examples.refresh()) == RECORDS


@needs_remote
def test_epochs_are_those_of_files(server: ObjectServer, shards: str) -> None:
    def labels(ds: tfseek.Dataset[Any], **more: Any) -> list[list[int]]:
        return [batch["label"].tolist() for batch in tfseek.Loader(ds, SPEC, batch_size=64, seed=3, **more)]

    ds, files = opened(server), tfseek.open(shards)
    for more in ({"shuffle": True}, {"shuffle": "block"}, {"shuffle": False, "threads": 0}):
        assert labels(ds, **more) == labels(files, **more)
    loader = tfseek.Loader(ds, SPEC, batch_size=64, seed=3, shuffle=True)
    batches = iter(loader)
    next(batches)
    resumed = tfseek.Loader(files, SPEC, batch_size=64, seed=3, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    assert [batch["label"].tolist() for batch in resumed] == [batch["label"].tolist() for batch in batches]
    no_secret(loader.state_dict(), repr(loader))


@needs_remote
@pytest.mark.parametrize("name", ["train-*.tfrecord", "", "train@3.tfrecord", "train@*.tfrecord", "train-0000{0..2}-of-00003.tfrecord"])
def test_names_are_those_of_files(server: ObjectServer, shards: str, name: str) -> None:
    ds = opened(server, name)
    assert [path.split("/")[-1] for path in ds.shards] == [pathlib.Path(path).name for path in tfseek.open(shards).shards]
    assert tfseek.open(f"s3://bucket/data/{name}", storage_options=options(server), progress=lambda done, total: None).ids.tolist() == ds.ids.tolist()


@needs_remote
def test_files_and_objects_are_one_dataset(server: ObjectServer, shards: str) -> None:
    files = tfseek.open(shards, kind="bytes")
    ds = tfseek.open([shards, "s3://bucket/data/train@3.tfrecord"], storage_options=options(server), kind="bytes")
    numbers = list(range(0, 2 * RECORDS, 17))
    assert ds.get_many(numbers) == [files[i % RECORDS] for i in numbers] and list(ds)[RECORDS:] == list(files)


@needs_remote
def test_random_records_are_requested_together(server: ObjectServer) -> None:
    ds = opened(server, kind="bytes")
    ds.get_many([0, 1])
    server.requests.clear()
    ds.get_many(np.random.default_rng(1).permutation(RECORDS))
    list(ds)
    # One for each shard, and more for the first windows of the iteration.
    assert len(server.requests) < 30, server.requests


@needs_remote
def test_options_are_checked(server: ObjectServer, shards: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="storage_options: expected a URL") as e:
        tfseek.open(shards, storage_options=LOGIN)
    no_secret(e.value)
    url = f"{server.url}/bucket/data/x"
    for path in ("s3://bucket/data/train-*", url):
        with pytest.raises(tfseek.IoError, match='unknown storage option "acces_key"') as unknown:
            tfseek.open(path, storage_options={**LOGIN, "acces_key": "hidden-key"})
        no_secret(unknown.value)
    wrong: Any
    for wrong, text in (({"allow_http": True}, "a str for 'allow_http', found bool"), ({1: "hidden-key"}, "names of type str"), ([], "a dict of str")):
        with pytest.raises(TypeError, match=text) as e2:
            tfseek.open(url, storage_options=wrong)
        no_secret(e2.value)


@needs_remote
def test_errors_and_texts_have_no_secrets(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"endpoint": server.url, "allow_http": "true", **LOGIN}
    ds = tfseek.open("s3://bucket/data/train-*.tfrecord", storage_options=storage)
    no_secret(repr(ds), ds._repr_html_(), ds.shards, ds.info())
    with pytest.raises(tfseek.NotFoundError, match="s3://bucket/data/none: no such object") as missing:
        tfseek.open("s3://bucket/data/none", storage_options=storage)
    assert missing.value.path == "s3://bucket/data/none"
    server.refusal = 403
    with pytest.raises(tfseek.IoError, match="403 Forbidden") as refused:
        ds[0]
    no_secret(missing.value, refused.value, repr(refused.value), vars(refused.value))


@needs_remote
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_functions_of_paths_take_urls(server: ObjectServer, shards: str, tmp_path: pathlib.Path, scheme: str) -> None:
    files = sorted(pathlib.Path(shards).parent.glob("train-*.tfrecord"))
    storage: Any = {"storage_options": options(server)} if scheme == "s3" else {}
    root = "s3://bucket/data" if scheme == "s3" else f"{server.url}/bucket/data"
    urls, paths = [f"{root}/{path.name}" for path in files], [str(path) for path in files]

    stream = tfseek.stream(urls, kind="bytes", **storage)
    assert list(stream) == list(tfseek.stream(paths, kind="bytes")) and stream.paths == urls
    assert [ex["label"][0] for ex in tfseek.stream(urls, **storage)] == [ex["label"][0] for ex in tfseek.stream(paths)]
    batches = [[b["label"].tolist() for b in tfseek.stream(p, **s).batches(SPEC, 64)] for p, s in ((urls, storage), (paths, {}))]
    assert batches[0] == batches[1]
    assert stream.sample(9, seed=3) == tfseek.stream(paths, kind="bytes").sample(9, seed=3)
    assert tfseek.verify(urls, decode=True, **storage) == tfseek.verify(paths, decode=True)
    for sample in (None, 100):
        assert dict(tfseek.stats(urls, sample=sample, **storage)) == dict(tfseek.stats(paths, sample=sample))
    assert tfseek.build_index(urls, **storage) == RECORDS
    assert tfseek.reshard(urls, tmp_path / "new@2.tfrecord", **storage).records == RECORDS
    assert list(tfseek.open(tmp_path / "new@2.tfrecord", kind="bytes")) == list(tfseek.open(paths, kind="bytes"))
    with tfseek.view(urls, port=0, baseline=paths, **storage) as viewer:
        assert viewer.port > 0

    ds = tfseek.open(urls, **storage)
    share = [part for each in ds.shares(2) for part in each]
    assert [part.shard for part in share][0] == urls[0] and all(tfseek.Part(part.to_json()) == part for part in share)
    server.requests.clear()
    assert [bytes(ex) for ex in tfseek.stream(part=share, **storage)] == [bytes(ex) for ex in tfseek.stream(paths)]
    # Two for the check of an object, and one for its bytes.
    assert len(server.requests) <= 4 * len(share), server.requests
    whole = [tfseek.Part.of_shard(url, **storage) for url in urls]
    assert len(list(tfseek.stream(part=whole, **storage))) == RECORDS
    assert list(tfseek.stream(part=[], **storage)) == []
    arrow = pytest.importorskip("pyarrow")
    scans = [tfseek.scan(parts=p, spec=SPEC, columns=["label"], **s) for p, s in ((share, storage), (tfseek.open(paths).shares(1)[0], {}))]
    assert arrow.table(scans[0]) == arrow.table(scans[1])
    assert ds.scan(["label"]).to_arrow() == tfseek.open(paths).scan(["label"]).to_arrow()


@needs_remote
def test_streams_scans_and_parts_have_no_secrets(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"endpoint": server.url, "allow_http": "true", **LOGIN}
    url = "s3://bucket/data/train@3.tfrecord"
    stream, parts = tfseek.stream(url, storage_options=storage), tfseek.open(url, storage_options=storage).shares(2)[0]
    scan = tfseek.scan(parts=parts, spec=SPEC, storage_options=storage)
    texts = [stream, scan, parts, pickle.dumps(stream), pickle.dumps(scan), pickle.dumps(parts), stream._arguments, scan._arguments]
    no_secret(*texts, *(part.to_json() for part in parts), stream.warnings)
    for name, value in {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true", "AWS_SKIP_SIGNATURE": "true"}.items():
        monkeypatch.setenv(name, value)
    assert len(list(pickle.loads(pickle.dumps(stream)))) == RECORDS
    assert len(list(tfseek.stream(part=parts))) == sum(part.records or 0 for part in parts)
    assert pickle.loads(pickle.dumps(scan)).columns == scan.columns
    signed = f"http://user:hidden-password@{server.url[7:]}/{next(iter(server.objects))}?X-Signature=hidden-signature"
    stream = tfseek.stream(signed)
    assert len(list(stream)) > 0
    no_secret(stream, stream.paths)
    with pytest.raises(TypeError, match="a query or a user cannot be pickled") as e:
        pickle.dumps(stream)
    with tfseek.view(signed, port=0) as viewer:
        no_secret(viewer)
    server.refusal = 403
    with pytest.raises(tfseek.IoError) as refused:
        list(tfseek.stream(part=parts, storage_options=storage))
    no_secret(e.value, refused.value)


@needs_remote
def test_a_part_of_an_object_that_was_replaced_is_an_error(server: ObjectServer) -> None:
    (part, *_), *_ = opened(server).shares(3)
    name = next(iter(server.objects))
    server.objects[name] = server.objects[name][:-1] + b"x"
    with pytest.raises(tfseek.Error, match="replaced|changed"):
        list(tfseek.stream(part=part, storage_options=options(server)))


def test_outputs_are_local(shards: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pa = pytest.importorskip("pyarrow")
    for write in (
        lambda url: tfseek.Writer(url),
        lambda url: tfseek.io.TFRecordWriter(url),
        lambda url: tfseek.write(pa.table({"label": [1]}), url),
        lambda url: tfseek.reshard(shards, url),
        lambda url: tfseek.unpack(shards, url),
        lambda url: _tasks.begin(url),
        lambda url: tfseek.stats(shards).save(url),
    ):
        with pytest.raises(tfseek.Error, match="expected a local path"):
            write("s3://bucket/new.tfrecord")
    assert list(tmp_path.iterdir()) == []


@needs_remote
def test_a_signature_is_in_requests_only(server: ObjectServer) -> None:
    name = next(iter(server.objects))
    url = f"http://user:hidden-password@{server.url[7:]}/{name}?X-Signature=hidden-signature"
    ds = tfseek.open(url)
    assert ds[0]["label"] == 0 and ds.shards == [f"{server.url}/{name}"]
    assert all("hidden-signature" in request for request in server.requests if ".tfrecord?" in request)
    no_secret(repr(ds), ds.shards)
    with pytest.raises(TypeError, match="a query or a user cannot be pickled") as e:
        pickle.dumps(ds)
    no_secret(e.value)


@needs_remote
def test_a_pickle_has_no_options(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"endpoint": server.url, "allow_http": "true", **LOGIN}
    ds = tfseek.open("s3://bucket/data/train-*.tfrecord", storage_options=storage, kind="bytes")[10:20]
    pickled = pickle.dumps(ds)
    no_secret(pickled, ds.__reduce__())
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(tfseek.Error, match="a pickle has no storage_options, here endpoint, allow_http, aws_access_key_id") as e:
        pickle.loads(pickled)
    no_secret(e.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    copy = pickle.loads(pickled)
    assert list(copy) == list(ds) and repr(copy) == repr(ds) and copy.refresh().ids.tolist() == ds.ids.tolist()


@pytest.fixture
def mnist(server: ObjectServer, tmp_path: pathlib.Path) -> pathlib.Path:
    """A prepared data set in a folder, and in ``bucket/mnist``."""
    folder = tmp_path / "mnist"
    write_mnist(folder)
    for path in folder.rglob("*.*"):
        if path.is_file():
            server.objects[f"bucket/{path.relative_to(tmp_path).as_posix()}"] = path.read_bytes()
    return folder


@needs_remote
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_prepared_data_sets_are_those_of_folders(server: ObjectServer, mnist: pathlib.Path, scheme: str) -> None:
    url, storage = "s3://bucket/mnist/3.0.1", options(server)
    if scheme == "http":
        url, storage = f"{server.url}/bucket/mnist/3.0.1", {}
    files, remote = tfseek.tfds.open(mnist), tfseek.tfds.open(url, storage_options=storage)
    assert remote.folder == url and repr(remote) == repr(files) and repr(remote.features) == repr(files.features)
    assert remote.splits["train"].shards == [f"{url}/mnist-train.tfrecord-00000-of-00001"]
    assert remote.splits["train"].records == 60 and remote.names("label") == files.names("label")
    spec = "train[10%:50%]+test"
    ds, local = remote[spec], files[spec]
    assert len(ds) == len(local) == 34 and [r["label"] for r in ds] == [r["label"] for r in local]
    assert np.array_equal(ds[3]["image"], local[3]["image"]) and ds.folder == url
    assert ds.filter("label == '7'").records.ids.tolist() == local.filter("label == '7'").records.ids.tolist()
    assert [len(part) for part in remote.even_splits("train", 7)] == [len(part) for part in files.even_splits("train", 7)]
    batches = [[batch["label"].tolist() for batch in tfseek.Loader(d, batch_size=8, shuffle=True, seed=1)] for d in (ds, local)]
    assert batches[0] == batches[1]
    assert ds.scan().schema.features == local.scan().schema.features
    with pytest.raises(tfseek.SpecError, match="The splits are train, test"):
        remote["valid"]
    if scheme == "s3":
        assert tfseek.tfds.open("s3://bucket/mnist", storage_options=storage).folder == url


@needs_remote
def test_a_prepared_data_set_needs_few_requests(server: ObjectServer, mnist: pathlib.Path) -> None:
    url = "s3://bucket/mnist/3.0.1"
    assert len(tfseek.tfds.open(url, storage_options=options(server))["all"]) == 70
    server.requests.clear()
    builder = tfseek.tfds.open(url, storage_options=options(server))
    # A listing, the two descriptions and the names of labels. The index is in the cache.
    assert len(server.requests) == 4, server.requests
    assert len(builder["train"]) == 60 and len(server.requests) == 4, server.requests


@needs_remote
def test_a_prepared_data_set_has_no_secrets(server: ObjectServer, mnist: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"endpoint": server.url, "allow_http": "true", **LOGIN}
    builder = tfseek.tfds.open("s3://bucket/mnist", storage_options=storage)
    ds = builder["train[:20]"]
    pickled = pickle.dumps(ds)
    no_secret(repr(builder), builder.splits, repr(ds), pickled, ds.__reduce__(), pickle.dumps(ds.scan().schema))
    with pytest.raises(TypeError):
        pickle.dumps(builder)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(tfseek.Error, match="a pickle has no storage_options, here endpoint, allow_http, aws_access_key_id") as e:
        pickle.loads(pickled)
    no_secret(e.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    copy = pickle.loads(pickled)
    assert [r["label"] for r in copy] == [r["label"] for r in ds] and copy.names("label") == ds.names("label")
    with pytest.raises(ValueError, match="storage_options: expected a URL") as local:
        tfseek.tfds.open(mnist, storage_options=LOGIN)
    with pytest.raises(tfseek.Error, match="expected the URL of a folder without a user and a query") as query:
        tfseek.tfds.open(f"{server.url}/bucket/mnist/3.0.1?X-Signature=hidden-signature")
    server.objects = {name: bytes for name, bytes in server.objects.items() if not name.endswith("00000-of-00001")}
    with pytest.raises(tfseek.Error, match="1 of 1 shards of split train is missing: s3://bucket/mnist/3.0.1/mnist-train") as missing:
        tfseek.tfds.open("s3://bucket/mnist", storage_options=storage)
    with pytest.raises(tfseek.NotFoundError, match="s3://bucket/none: no such folder") as none:
        tfseek.tfds.open("s3://bucket/none", storage_options=storage)
    no_secret(local.value, query.value, missing.value, none.value)


@needs_remote
def test_episodes_are_those_of_folders(server: ObjectServer, tmp_path: pathlib.Path) -> None:
    write_bridge(tmp_path / "bridge")
    for path in tmp_path.rglob("bridge/*/*.*"):
        server.objects[f"bucket/{path.relative_to(tmp_path).as_posix()}"] = path.read_bytes()
    url = "s3://bucket/bridge/1.0.0"
    files = tfseek.rlds.open(tmp_path / "bridge" / "1.0.0", split="train")
    robot = tfseek.rlds.open(url, split="train", storage_options=options(server))
    assert robot.lengths.tolist() == files.lengths.tolist() and repr(robot) == repr(files)
    # A step is one request, and its record was not read.
    server.requests.clear()
    for number in (0, 77, 139):
        step, local = robot.steps[number], files.steps[number]
        assert robot.locate(number) == files.locate(number)
        assert np.array_equal(step["action"], local["action"]) and step["language_instruction"] == local["language_instruction"]
        assert np.array_equal(step["observation"]["image_0"], local["observation"]["image_0"])
    assert len(server.requests) <= 6, server.requests
    assert robot.episodes[3]["episode_metadata"]["file_path"] == files.episodes[3]["episode_metadata"]["file_path"]
    windows = [each.windows({"action": range(4), "observation/state": [-1, 0]}) for each in (robot, files)]
    batches = [[batch["action"].tobytes() for batch in tfseek.Loader(each, batch_size=8, shuffle=True, seed=2)] for each in windows]
    assert batches[0] == batches[1] and len(batches[0]) == 18


@pytest.fixture
def robot(server: ObjectServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a data set of 14 episodes of 10 steps with pictures of some KB, without an index. It is in the folder ``bridge``, too."""
    write_bridge(tmp_path / "bridge")
    folder, noise = tmp_path / "bridge" / "1.0.0", np.random.default_rng(3)
    with tfseek.Writer(folder / "bridge_dataset-train.tfrecord-00000-of-00001") as writer:
        for k in range(14):
            pictures = [noise.bytes(4000 + 100 * (t % 7)) for t in range(10)]
            record = {
                "steps/observation/image_0": np.array(pictures, dtype=object),
                "steps/observation/state": np.arange(70, dtype=np.float32) + k,
                "steps/action": np.arange(70, dtype=np.float32) / 70,
                "steps/language_instruction": np.array([b"put the cup %d away" % k] * 10, dtype=object),
                "episode_metadata/file_path": f"/data/{k}",
            }
            writer.write(record)
    for path in folder.glob("*.*"):
        server.objects[f"bucket/bridge/1.0.0/{path.name}"] = path.read_bytes()
    for name, value in {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true", "AWS_SKIP_SIGNATURE": "true"}.items():
        monkeypatch.setenv(name, value)
    return "s3://bucket/bridge/1.0.0"


def robot_windows(robot: tfseek.rlds.Episodes) -> tfseek.rlds.Windows:
    return robot.windows({"observation/image_0": [-1, 0], "action": range(4), "observation/state": 0, "language_instruction": 0}, decode=False)


def epochs(win: tfseek.rlds.Windows, **more: Any) -> list[tuple[Any, ...]]:
    """Returns the batches of an epoch of each order, on two ranks."""
    found = []
    for shuffle in (False, "block", True):
        for rank in range(2):
            loader = tfseek.Loader(win, batch_size=8, shuffle=shuffle, seed=2, rank=rank, world_size=2, **more)
            found += [tuple(np.asarray(batch[key]).tolist() for key in sorted(batch)) for batch in loader]
    return found


@needs_remote
def test_windows_with_tables_beside_the_objects_read_their_bytes(
    server: ObjectServer, robot: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = robot[5:] + "/bridge_dataset-train.tfrecord-00000-of-00001"
    command = [sys.executable, "-m", "tfseek", "index", "--steps", robot, "--pack", "all"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "14 episodes, 140 steps; 1 file of tables built" in done.stderr, done.stderr
    beside = f"{robot[5:]}/.tfseek"
    tables = f"{beside}/{shard.rsplit('/', 1)[1]}.tfrs"
    # The pack comes last.
    assert [request for request in server.requests if request[:3] == "PUT"] == [f"PUT /{tables}", f"PUT /{beside}/all.tfrp"]
    files = robot_windows(tfseek.rlds.open(tmp_path / "bridge" / "1.0.0", index="memory"))
    # Another user, without a cache.
    monkeypatch.setenv("TFSEEK_INDEX_DIR", str(tmp_path / "other"))
    server.requests.clear()
    win = robot_windows(tfseek.rlds.open(robot))
    reads = [request for request in server.requests if "list-type" not in request]
    assert not any(shard in request and ".tfseek" not in request for request in reads), reads
    assert sum(tables in request for request in reads) == 1, reads
    assert epochs(win) == epochs(files)
    own = sum(sum(map(len, item["observation/image_0"])) + 4 * 7 * 5 for item in files)
    for shuffle in (False, "block", True):
        server.requests.clear()
        server.sent = 0
        for batch in tfseek.Loader(win, batch_size=8, shuffle=shuffle, seed=2):
            pass
        assert server.sent <= 1.5 * own, (shuffle, server.sent / own)
        print(shuffle, server.sent / own, len(server.requests))
        if shuffle is False:
            # One request of an episode and a group of keys.
            assert len(server.requests) <= 3 * 14, server.requests
    # A run goes on where one over files stopped.
    loader = tfseek.Loader(files, batch_size=8, shuffle=True, seed=4)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    resumed = tfseek.Loader(win, batch_size=8, shuffle=True, seed=4)
    resumed.load_state_dict(loader.state_dict())
    assert [b["_step"].tolist() for b in resumed] == [b["_step"].tolist() for b in batches]
    # A damaged file of tables is not used: the tables are built in the cache.
    server.objects[tables] = server.objects[tables][:200] + b"?" + server.objects[tables][201:]
    with pytest.warns(tfseek.Warning, match="file is not used"):
        again = robot_windows(tfseek.rlds.open(robot))
    assert epochs(again) == epochs(files)


@needs_remote
def test_windows_without_tables_read_each_episode_once(server: ObjectServer, robot: str, tmp_path: pathlib.Path) -> None:
    files = robot_windows(tfseek.rlds.open(tmp_path / "bridge" / "1.0.0", index="memory"))
    for shuffle in ("block", False, True):
        win = robot_windows(tfseek.rlds.open(robot, index="memory"))
        server.requests.clear()
        server.sent = 0
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            batches = list(tfseek.Loader(win, batch_size=8, shuffle=shuffle, seed=2, threads=2))
        texts = [str(each.message) for each in warned]
        assert len(texts) == (shuffle is True) and all(f"`tfseek index --steps {robot} --pack NAME`" in text for text in texts)
        assert len(server.requests) <= 14, (shuffle, server.requests)
        assert server.sent <= len(server.objects[f"{robot[5:]}/bridge_dataset-train.tfrecord-00000-of-00001"])
        expected = list(tfseek.Loader(files, batch_size=8, shuffle=shuffle, seed=2))
        for a, b in zip(batches, expected):
            assert all(np.array_equal(a[key], b[key]) for key in b)
        assert len(batches) == len(expected) == 18


@contextlib.contextmanager
def interrupted(server: ObjectServer, listings: bool = False) -> Iterator[None]:
    """Sends SIGINT once there is a request, which the server does not answer. The body must end with KeyboardInterrupt, and soon."""
    sent: list[float] = []

    def interrupt(seen: int) -> None:
        while not any(listings or "list-type" not in request for request in server.requests[seen:]):
            time.sleep(0.005)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    server.open.clear()
    thread = threading.Thread(target=interrupt, args=(len(server.requests),))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    # A request that is not given up is repeated after 10 s.
    assert time.monotonic() - sent[0] < 9
    thread.join()
    server.open.set()


def label_of(ds: tfseek.Dataset[Any], number: int) -> Any:
    return ds[number]["label"]


@needs_remote
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_workers_log_in_by_their_environment(server: ObjectServer, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"requires {start}")
    for name, value in {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": "true", "AWS_SKIP_SIGNATURE": "true"}.items():
        monkeypatch.setenv(name, value)
    ds = tfseek.open("s3://bucket/data/train-*.tfrecord")
    numbers = [0, 500, 999]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as workers:
        found = list(workers.map(label_of, [ds] * len(numbers), numbers))
    assert found == [ds[i]["label"] for i in numbers]


@needs_remote
@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_forked_child_has_the_options(server: ObjectServer) -> None:
    code = """
import os, sys, warnings
import tfseek
from tfseek import _tasks
warnings.simplefilter("ignore")
storage = {"endpoint": sys.argv[1], "allow_http": "true", "skip_signature": "true"}
ds = tfseek.open("s3://bucket/data/train-*.tfrecord", storage_options=storage)
want = [ds[i]["label"] for i in range(0, 1000, 90)]
items = iter(ds)
next(items)
loader = tfseek.Loader(ds, {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=100, threads=2)
epoch = [batch["label"].tolist() for batch in loader]
for _ in range(3):
    child = os.fork()
    if child == 0:
        ok = [ds[i]["label"] for i in range(0, 1000, 90)] == want and len(list(items)) == 999
        ok = ok and [batch["label"].tolist() for batch in loader] == epoch and len(ds.refresh()) == 1000
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert [ds[i]["label"] for i in range(0, 1000, 90)] == want
"""
    run_python(code, server.url)


@needs_remote
@pytest.mark.parametrize("call", ["item", "many", "iteration", "open", "loader", "tfds", "stream", "sample", "verify", "stats", "part"])
def test_an_interrupt_ends_a_stalled_request(server: ObjectServer, mnist: pathlib.Path, call: str) -> None:
    ds = opened(server, kind="bytes")
    loader = tfseek.Loader(ds, SPEC, batch_size=10)
    calls: dict[str, Any] = {
        "item": lambda: ds[5],
        "many": lambda: ds.get_many([1, 999]),
        "iteration": lambda: list(ds),
        "open": lambda: opened(server, index="memory"),
        "loader": lambda: next(iter(loader)),
        "stream": lambda: list(tfseek.stream("s3://bucket/data/train@3.tfrecord", storage_options=options(server))),
        "sample": lambda: tfseek.stream("s3://bucket/data/train@3.tfrecord", storage_options=options(server)).sample(3),
        "verify": lambda: tfseek.verify("s3://bucket/data/train@3.tfrecord", storage_options=options(server)),
        "stats": lambda: tfseek.stats("s3://bucket/data/train@3.tfrecord", storage_options=options(server)),
        "part": lambda: list(tfseek.stream(part=ds.shares(1)[0], storage_options=options(server))),
        "tfds": lambda: tfseek.tfds.open("s3://bucket/mnist", storage_options=options(server)),
    }

    with interrupted(server, listings=True):
        calls[call]()
    assert calls["item"]() == ds.get_many([5])[0]


@needs_remote
def test_other_threads_run_during_a_request(server: ObjectServer) -> None:
    ds = opened(server, kind="bytes")
    assert beside(lambda: ds[5], server.open) == ds[5]


@needs_remote
def test_fetched_files_are_those_of_the_store(server: ObjectServer, shards: str, tmp_path: pathlib.Path) -> None:
    def names(folder: pathlib.Path) -> list[str]:
        return sorted(path.name for path in folder.glob("*.tfrecord"))

    here, url, login = tmp_path / "here", "s3://bucket/data/train-*", options(server, **LOGIN)
    fetched = tfseek.fetch(url, here, storage_options=login)
    originals = sorted(pathlib.Path(shards).parent.glob("train-*.tfrecord"))
    assert names(here) == [path.name for path in originals]
    assert all((here / path.name).read_bytes() == path.read_bytes() for path in originals)
    assert (fetched.files, fetched.records, fetched.found_bytes) == (len(originals), RECORDS, 0)
    assert fetched.bytes == fetched.fetched_bytes == sum(path.stat().st_size for path in originals)
    again = tfseek.fetch(url, str(here), storage_options=login)
    assert (again.files, again.requests) == (fetched.files, 0)
    some = tfseek.fetch(url, tmp_path / "some", where="label in 3..30", storage_options=login)
    expected = tfseek.open(shards).filter("label in 3..30")
    assert some.records == len(expected) == len(tfseek.open(tmp_path / "some"))
    with pytest.raises(tfseek.Error, match="expected the folder of the same fetch") as e:
        tfseek.fetch(url, here, where="label in 3..30", storage_options=login)
    no_secret(e.value, fetched, *(path.read_text() for path in here.glob(".tfseek/*")))
    with pytest.raises(ValueError, match="expected a URL"):
        tfseek.fetch(shards, tmp_path / "other")
    damaged = f"bucket/data/{names(here)[0]}"
    content = bytearray(server.objects[damaged])
    content[-5] ^= 1
    server.objects[damaged] = bytes(content)
    with pytest.raises(tfseek.DataError, match="keep_damaged=True") as e:
        tfseek.fetch(url, tmp_path / "damaged", storage_options=login)
    assert names(tmp_path / "damaged") == names(here)[1:]
    kept = tfseek.fetch(url, tmp_path / "damaged", keep_damaged=True, storage_options=login)
    assert names(tmp_path / "damaged") == names(here) and len(kept.kept) == 1
    no_secret(e.value, kept)


@needs_remote
@pytest.mark.parametrize("more", [{"shuffle": "block"}, {"shuffle": True}, {"shuffle": False, "threads": 4}, {"shuffle": "block", "threads": 0}])
def test_a_loader_that_is_interrupted_closes_at_once(server: ObjectServer, more: dict[str, Any]) -> None:
    ds = opened(server)
    loader = tfseek.Loader(ds, SPEC, batch_size=64, seed=3, **more)
    with interrupted(server), loader:
        next(iter(loader))
    assert len(ds.get_many([5, 900])) == 2


@needs_remote
def test_an_interrupted_fetch_ends_soon_and_goes_on(server: ObjectServer, tmp_path: pathlib.Path) -> None:
    with interrupted(server):
        tfseek.fetch("s3://bucket/data/train-*", tmp_path / "here", storage_options=options(server))
    assert tfseek.fetch("s3://bucket/data/train-*", tmp_path / "here", storage_options=options(server)).records == RECORDS
