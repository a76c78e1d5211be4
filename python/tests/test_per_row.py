"""``tfseek.torch.per_row``: transforms of torchvision row by row, compared with a loop that seeds the generators by hand."""

from __future__ import annotations

import io
import itertools
import json
import pathlib
import pickle
import random
import time
from typing import Any

import numpy as np
import pytest
from conftest import in_threads, written

import tfseek

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
pillow = pytest.importorskip("PIL.Image")

from torch.utils.data import DataLoader  # noqa: E402

import tfseek.torch as tft  # noqa: E402

RECORDS = 50
SPEC: dict[str, Any] = {
    "image": tfseek.Image((12, 10), layout="chw"),
    "k": tfseek.FixedLenFeature([], "int64"),
    "maybe": tfseek.Optional("int64"),
    "names": tfseek.FixedLenFeature([2], "string"),
    "points": tfseek.RaggedFeature("float32", partitions=[tfseek.UniformRowLength(4)]),
    "sparse": tfseek.VarLenFeature("int64"),
}
OPTIONS: dict[str, Any] = {"global_batch_size": 8, "seed": 3, "ids": "id", "augmentation_seed": "seed"}
AUGMENT = v2.Compose([v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.3, 0.3, 0.1), v2.RandomResizedCrop((6, 7), antialias=True)])
FLIP = v2.RandomHorizontalFlip()
KEYS = ("id", "image", "draws")


def augmented(row: dict[str, Any]) -> dict[str, Any]:
    row["image"] = AUGMENT(row["image"])
    # Another thread that seeds the generators meanwhile would change the draws after it.
    time.sleep(0.0005)
    return {**row, "draws": torch.tensor([random.random(), np.random.random(), torch.rand(()).item()])}


def loader_of(ds: tfseek.Dataset, transform: Any = augmented, threads: int = 0, **more: Any) -> Any:
    return tft.IterableDataset(ds, SPEC, transform=tft.per_row(transform), transform_threads=threads, **{**OPTIONS, **more})


def by_hand(ds: tfseek.Dataset, epochs: int = 1) -> list[dict[str, Any]]:
    """Returns the rows of the epochs in their order, augmented in a loop."""
    rows = []
    loader = tfseek.Loader(ds, SPEC, **OPTIONS)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader, epochs)):
        for i, seed in enumerate(batch["seed"].tolist()):
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            rows.append({"id": batch["id"][i], **augmented({"image": torch.from_numpy(batch["image"][i].copy())})})
    for seeded in (torch.manual_seed, random.seed, np.random.seed):
        seeded(0)
    return rows


def check(batches: Any, wanted: list[dict[str, Any]]) -> None:
    found = [{key: batch[key][i] for key in KEYS} for batch in batches for i in range(len(batch["id"]))]
    assert [int(row["id"]) for row in found] == [row["id"] for row in wanted]
    assert all(torch.equal(row[key], want[key]) for row, want in zip(found, wanted) for key in KEYS[1:])


def states() -> str:
    with np.printoptions(threshold=10_000):
        return repr((torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()))


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> tfseek.Dataset:
    path, rng = tmp_path_factory.mktemp("rows") / "a.tfrecord", np.random.default_rng(1)
    with tfseek.Writer(path) as writer:
        for k in range(RECORDS):
            file = io.BytesIO()
            pillow.fromarray(rng.integers(0, 256, (14, 9 + k % 3, 3), np.uint8)).save(file, "png")
            record = {"image": file.getvalue(), "k": k, "names": [f"{k}", "x" * k], "sparse": np.arange(k % 4)}
            writer.write({**record, "points": np.arange(4 * (k % 3), dtype=np.float32), "maybe": k if k % 2 else None})
    return tfseek.open(path)


@pytest.mark.parametrize("threads", range(5))
def test_rows_equal_a_loop_with_their_seeds(ds: tfseek.Dataset, threads: int) -> None:
    wanted, before = by_hand(ds, 2), states()
    loader = loader_of(ds, threads=threads)
    check([*loader, *loader], wanted)
    assert states() == before
    for stop in (1, 4):
        first, second = loader_of(ds, threads=threads), loader_of(ds, threads=2)
        seen = list(itertools.islice(first, stop))
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        check([*seen, *second], wanted[:RECORDS])


def test_ranks_share_the_rows(ds: tfseek.Dataset) -> None:
    for ranks in (2, 4):
        steps = zip(*(loader_of(ds, rank=rank, world_size=ranks, drop_last=True) for rank in range(ranks)))
        check([{key: torch.cat([part[key] for part in step]) for key in KEYS} for step in steps], by_hand(ds)[: RECORDS // 8 * 8])
    # A rank's batch without rows.
    assert [len(batch["id"]) for batch in loader_of(ds[:5], rank=0, world_size=8, last_batch="short")] == [0]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", torch.multiprocessing.get_all_start_methods())
def test_workers(ds: tfseek.Dataset, method: str) -> None:
    # The threads of this loader hold the lock of the generators, which no forked worker may wait for.
    ahead = iter(loader_of(ds, threads=3, repeat=True))
    next(ahead)
    rows = pickle.loads(pickle.dumps(loader_of(ds)))
    check(list(DataLoader(rows, batch_size=None, num_workers=2, multiprocessing_context=method)), by_hand(ds))


def test_threads_of_several_loaders(ds: tfseek.Dataset) -> None:
    wanted, before, found = by_hand(ds), states(), {}
    in_threads(lambda n: found.update({n: list(loader_of(ds, threads=n))}), range(4))
    assert states() == before and len(found) == 4
    for batches in found.values():
        check(batches, wanted)


def test_a_transform_of_batches_draws_once(ds: tfseek.Dataset) -> None:
    """As the pages say: all rows of a batch are mirrored, or none."""
    plain = list(tft.IterableDataset(ds, SPEC, **OPTIONS))
    for transform, kinds in ((FLIP, 1), (tft.per_row(FLIP), 2)):
        batches = zip(tft.IterableDataset(ds, SPEC, transform=transform, **OPTIONS), plain)
        mirrored = [{torch.equal(*pair) for pair in zip(batch["image"], old["image"])} for batch, old in batches]
        assert max(map(len, mirrored)) == kinds and set.union(*mirrored) == {True, False}


@pytest.mark.parametrize("bytes_as", ["objects", "str", "offsets", "views", "S"])
def test_columns_that_stay(ds: tfseek.Dataset, bytes_as: Any) -> None:
    """FLIP changes the first tensor of a row, the picture."""
    batches = loader_of(ds, FLIP, bytes_as=bytes_as)
    for batch, old in zip(batches, tft.IterableDataset(ds, SPEC, bytes_as=bytes_as, **OPTIONS)):
        assert list(batch) == list(old)
        for key in set(batch) - {"image"}:
            new, kept = (column.to_list() if hasattr(column, "to_list") else column.tolist() for column in (batch[key], old[key]))
            assert type(batch[key]) is type(old[key]) and repr(new) == repr(kept)


def test_results_are_stacked(ds: tfseek.Dataset) -> None:
    def changed(row: dict[str, Any]) -> dict[str, Any]:
        assert row["k"].shape == () and isinstance(row["names"], list) and (row["maybe"] is None) == (row["k"] % 2 == 0)
        row["id"], row["points"] = row["k"], row["points"][1:] * 2
        new = {"number": 0.5, "text": str(int(row["k"])), "array": np.arange(3), "pair": (row["k"], b"x")}
        return {"inner": {"image": row.pop("image"), **new}, **row}

    for batch, old in zip(loader_of(ds, changed, batch_size=10, global_batch_size=None), tfseek.Loader(ds, SPEC, batch_size=10, seed=3)):
        inner = batch["inner"]
        assert np.array_equal(inner["image"], old["image"]) and inner["number"].tolist() == [0.5] * 10
        assert inner["text"].tolist() == [str(k) for k in old["k"]] and inner["array"].tolist() == [[0, 1, 2]] * 10
        assert inner["pair"][0].tolist() == batch["id"].tolist() == batch["k"].tolist() == old["k"].tolist()
        assert batch["points"].to_list() == [(row[1:] * 2).tolist() for row in old["points"]]
        assert batch["points"].row_splits[0].dtype == torch.int32 and batch["names"].tolist() == old["names"].tolist()


def test_rows_of_other_batches(ds: tfseek.Dataset, tmp_path: pathlib.Path) -> None:
    def cropped(row: dict[str, Any]) -> dict[str, Any]:
        return {"image": v2.functional.center_crop(row["image"].permute(2, 0, 1), [8, 8])}

    # Pictures of different sizes, columns that are tuples, records without a spec, and SequenceExamples.
    spec: dict[str, Any] = {"image": tfseek.Image()}
    for batch, old in zip(tfseek.Loader(ds, spec, batch_size=8, transform=tft.per_row(cropped)), tfseek.Loader(ds, spec, batch_size=8)):
        assert torch.equal(batch["image"], torch.stack([cropped({"image": torch.tensor(image)})["image"] for image in old["image"]]))
    spec, by_length = {"points": tfseek.RaggedFeature("float32")}, {"bucket_by": "points", "boundaries": [], "batch_size": [8]}
    for batch in tfseek.Loader(ds, spec, padded=True, transform=tft.per_row(lambda row: {"n": row["points"][1].sum(), **row}), **by_length):
        assert batch["n"].tolist() == batch["points"][1].sum(1).tolist()
    (lengths,) = tfseek.Loader(ds, batch_size=RECORDS, transform=tft.per_row(len))
    assert lengths.tolist() == [len(payload) for payload in next(tfseek.Loader(ds, batch_size=RECORDS))]
    clips = written(tmp_path / "s.tfrecord", (tfseek.SequenceExample({"id": i}, {"frames": [[0.5]] * (i + 1)}) for i in range(4)))
    (sums,) = tfseek.Loader(clips, tfseek.infer_schema(clips), batch_size=4, transform=tft.per_row(lambda row: row[1]["frames"].sum()))
    assert sums.tolist() == [0.5, 1.0, 1.5, 2.0]


def test_errors(ds: tfseek.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="per_row: expected a function of a row, found 3"):
        tft.per_row(3)
    monkeypatch.setattr(torch, "manual_seed", None)  # It seeds the generators of other devices as well.
    ids, before = next(iter(tfseek.Loader(ds, SPEC, **OPTIONS)))["id"].tolist(), states()
    bad = ids[3]
    for transform, row, message in (
        (lambda row: {"a": {"b": torch.zeros(2 + (row["id"] == bad))}}, 3, r"'a/b': expected torch.float32 \[2\] as in row 0, found .* \[3\]"),
        (lambda row: {"a": row["id"] / 2 if row["id"] == bad else row["id"]}, 3, r"'a': expected torch.int64 \[\] as in row 0, found torch.float32"),
        (lambda row: {"a": 1, **({"b": 1} if row["id"] == bad else {})}, 3, r"'': expected dict \['a'\] as in row 0, found dict \['a', 'b'\]"),
        (lambda row: {**row, "points": row["points"][:, : 3 + (row["id"] != bad)]}, 3, r"'points': expected torch.float32 \[0, 4\]"),
        (lambda row: {"a": None if row["id"] == bad else 1}, 3, "'a': expected int as in row 0, found NoneType"),
        (lambda row: {"a": None}, 0, "'a': .*NoneType"),
    ):
        for threads in (0, 2):
            with pytest.raises(ValueError, match=f"^per_row: row {row}, record {ids[row]}, key {message}"):
                next(iter(loader_of(ds, transform, threads)))
    with pytest.raises(ZeroDivisionError) as raised:
        next(iter(loader_of(ds, lambda row: 1 // (int(row["id"]) - bad))))
    assert vars(raised.value)["__notes__"][0] == f"in row 3, record {bad}" and states() == before
