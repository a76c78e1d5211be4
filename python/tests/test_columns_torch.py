"""Columns in torch: collate functions, pinned memory, trees, worker processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import written

import tfseek

torch = pytest.importorskip("torch")

import tfseek.torch  # noqa: E402

SPEC = {
    "label": tfseek.FixedLenFeature([], "int64"),
    "ragged": tfseek.RaggedFeature("int64", "tokens", [tfseek.RowLengths("lengths")]),
    "sparse": tfseek.VarLenFeature("float32"),
    "name": tfseek.FixedLenFeature([2], "string"),
}


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> tfseek.Dataset:
    path = tmp_path_factory.mktemp("columns") / "train.tfrecord"
    with tfseek.Writer(path) as writer:
        for i in range(12):
            writer.write(
                {
                    "label": i,
                    "tokens": np.arange(i % 4, dtype=np.int64),
                    "lengths": np.array([i % 4 - i % 2, i % 2], np.int64),
                    "sparse": np.arange(i % 3, dtype=np.float32),
                    "name": [f"n{i}", "x" * i],
                }
            )
    return tfseek.open(path)


def same(found: Any, expected: Any) -> None:
    assert set(found) == set(expected)
    for name, column in found.items():
        assert type(column) is type(expected[name]), name
        lists = [c.to_list() if hasattr(c, "to_list") else c.tolist() for c in (column, expected[name])]
        assert lists[0] == lists[1], name


def test_collated_records_equal_a_batch(ds: tfseek.Dataset) -> None:
    records = tfseek.torch.Dataset(ds, SPEC, bytes_as="offsets")
    loader = torch.utils.data.DataLoader(records, batch_size=5)
    expected = [records[list(range(start, min(start + 5, 12)))] for start in (0, 5, 10)]
    for found, batch in zip(loader, expected):
        same(found, batch)
        assert [part.dtype for part in found["ragged"].row_splits] == [part.dtype for part in batch["ragged"].row_splits]
        assert found["sparse"].dense_shape.tolist() == batch["sparse"].dense_shape.tolist()
        assert torch.equal(found["sparse"].indices, batch["sparse"].indices)
        assert all(isinstance(part, torch.Tensor) for part in (*found["name"].parts(), found["ragged"].values))
    collated = torch.utils.data.default_collate([records[i] for i in range(5)])
    same(collated, expected[0])
    with pytest.raises(ValueError, match="byte strings of one shape"):
        empty = torch.zeros(0, dtype=torch.uint8)
        torch.utils.data.default_collate([tfseek.Bytes(empty, torch.zeros(n, dtype=torch.int64)) for n in (1, 2)])
    columns = [tfseek.Column(torch.tensor(i), torch.tensor(i > 0)) for i in range(3)]
    assert torch.utils.data.default_collate(columns).to_list() == [None, 1, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_keep_their_classes(ds: tfseek.Dataset, workers: int) -> None:
    batches = tfseek.torch.IterableDataset(ds, SPEC, batch_size=5, bytes_as="offsets")
    loader = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers)
    plain = list(tfseek.Loader(ds, SPEC, batch_size=5, bytes_as="offsets"))
    for found, batch in zip(list(loader), plain):
        same({**found, "label": found["label"].numpy()}, batch)
        assert isinstance(found["ragged"].row_splits, tuple)
        ragged, name = found["ragged"], found["name"]
        padded, mask = ragged.to_padded()
        assert isinstance(padded, torch.Tensor) and mask.dtype == torch.bool and padded.dtype == torch.int64
        assert [row.to_list() for row in ragged] == ragged.to_list() and len(name[0]) == 2


def test_trees_and_devices(ds: tfseek.Dataset) -> None:
    batch = tfseek.torch.as_tensors(tfseek.parse_example(ds[:4], SPEC, bytes_as="offsets"))
    leaves, tree = torch.utils._pytree.tree_flatten(batch)
    assert len(leaves) == 1 + 3 + 3 + 2 and all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    same(torch.utils._pytree.tree_unflatten(leaves, tree), batch)
    double = torch.utils._pytree.tree_map(lambda tensor: tensor * 2, batch)
    assert isinstance(double["ragged"], tfseek.Ragged) and double["name"].shape == (4, 2)
    moved = batch["ragged"].to("meta")
    assert moved.values.device.type == "meta" and moved.row_splits[1].device.type == "meta"
    # Tensors of a batch do not share memory.
    assert len({leaf.data_ptr() for leaf in leaves if leaf.numel()}) == sum(leaf.numel() > 0 for leaf in leaves)


def test_pinned_memory(ds: tfseek.Dataset) -> None:
    class Pinned:
        def __init__(self, part: Any) -> None:
            self.part, self.pinned = part, False

        def pin_memory(self, *args: Any) -> Pinned:
            pinned = Pinned(self.part)
            pinned.pinned = True
            return pinned

    column = tfseek.Ragged(Pinned(1), (Pinned(2), Pinned(3)))
    found = torch.utils.data._utils.pin_memory.pin_memory({"a": [column]})["a"][0]
    assert isinstance(found, tfseek.Ragged) and found.values.pinned and all(part.pinned for part in found.row_splits)
    if not torch.cuda.is_available():
        pytest.skip("pinned memory requires a GPU")
    loader = torch.utils.data.DataLoader(tfseek.torch.IterableDataset(ds, SPEC, batch_size=5), batch_size=None, pin_memory=True)
    for batch in loader:
        assert batch["ragged"].values.is_pinned() and batch["sparse"].indices.is_pinned()


def test_optional_features_are_collated(tmp_path: Any) -> None:
    ds = written(tmp_path / "a.tfrecord", ({"i": i, "name": f"n{i}"} if i % 2 else {} for i in range(6)))
    for spec, dense in (
        ({"i": tfseek.Optional("int64"), "name": tfseek.Optional("string")}, False),
        ({"i": tfseek.Optional("int64", default=-1)}, True),
    ):
        records = tfseek.torch.Dataset(ds, spec)
        assert records._is_dense == dense
        (batch,) = torch.utils.data.DataLoader(records, batch_size=6)
        whole = records[list(range(6))]
        if dense:
            assert batch["i"].tolist() == whole["i"].tolist() == [-1, 1, -1, 3, -1, 5]
        else:
            same(batch, whole)
            assert batch["i"].to_list() == [None, 1, None, 3, None, 5] and batch["name"].to_list()[:2] == [None, b"n1"]


def test_arrays_in_byte_strings_are_tensors_over_the_same_memory(tmp_path: Any) -> None:
    path = tmp_path / "arrays.tfrecord"
    images = np.arange(12 * 6, dtype=np.uint8).reshape(12, 2, 3)
    with tfseek.Writer(path) as writer:
        for i, image in enumerate(images):
            halves = np.array([i, -1.5], np.float32).view(np.uint32) >> 16
            writer.write({"image": image.tobytes(), "halves": halves.astype("<u2").tobytes(), "items": bytes(range(i % 3))})
    spec: Any = {"image": tfseek.Raw("uint8", [2, 3]), "halves": tfseek.Raw("bfloat16", [2])}
    pytest.importorskip("ml_dtypes")
    ds = tfseek.open(path)
    arrays = tfseek.parse_example(ds, spec)
    address = arrays["image"].ctypes.data
    batch = tfseek.torch.as_tensors(arrays)
    assert batch["image"].data_ptr() == address and batch["image"].dtype == torch.uint8
    assert torch.equal(batch["image"], torch.from_numpy(images))
    assert batch["halves"].dtype == torch.bfloat16
    assert batch["halves"].tolist() == [[float(i), -1.5] for i in range(12)]
    # Records are parsed together, because all columns are arrays of all rows.
    records = tfseek.torch.Dataset(ds, spec)
    assert records._is_dense
    same(next(iter(torch.utils.data.DataLoader(records, batch_size=12))), batch)
    ragged = tfseek.torch.Dataset(ds, {**spec, "items": tfseek.Raw("uint8", [None])})
    assert not ragged._is_dense
    assert ragged[[1, 2]]["items"].to_list() == [[0], [0, 1]]
