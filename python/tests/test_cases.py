"""Compares the Python package with the recorded results of TensorFlow in ``tests/data``, bit for bit. Its README has the format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from conftest import DATA

import tfseek


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def ids(row: dict[str, Any]) -> str:
    return f"{row['id']}-{row['name']}".replace(" ", "_")


def flat(array: Any) -> dict[str, Any]:
    """Converts an array to the form of the cases: floats by their bits, byte strings as hex."""
    assert isinstance(array, np.ndarray) and not array.flags.writeable
    dtype = "string" if array.dtype == object else array.dtype.name
    values = array.ravel()
    if dtype == "string":
        assert all(type(value) is bytes for value in values)
        data = [value.hex() for value in values]
    elif dtype == "float32":
        data = [f"{bits:08x}" for bits in values.view(np.uint32)]
    else:
        data = values.tolist()
    return {"dtype": dtype, "shape": list(array.shape), "data": data}


def column(found: Any) -> dict[str, Any]:
    if isinstance(found, tfseek.Sparse):
        parts = {"indices": found.indices, "values": found.values, "dense_shape": found.dense_shape}
        return {"kind": "sparse", **{name: flat(part) for name, part in parts.items()}}
    if isinstance(found, tfseek.Ragged):
        splits = [flat(part) for part in found.row_splits]
        return {"kind": "ragged", "values": flat(found.values), "row_splits": splits}
    return {"kind": "dense", **flat(found)}


def outputs(found: Any) -> dict[str, Any]:
    if isinstance(found, dict):
        return {"outputs": {name: column(part) for name, part in found.items()}}
    names = ["context", "sequence", "lengths"][: len(found)]
    return {name: {key: column(part) for key, part in group.items()} for name, group in zip(names, found)}


def wanted(expect: dict[str, Any]) -> dict[str, Any]:
    """Converts recorded results to the form of :func:`outputs`. Lengths are plain arrays, and single records have none."""
    groups = {name: dict(expect[name]) for name in ("outputs", "context", "sequence", "lengths") if expect.get(name)}
    for group in groups.values():
        for name, array in group.items():
            group[name] = {"kind": "dense", **array} if "kind" not in array else array
    return groups


def parse(kind: str, mode: str, spec: dict[str, Any], payloads: list[bytes]) -> Any:
    if kind == "example":
        if mode == "single":
            return tfseek.parse_single_example(payloads[0], spec)
        return tfseek.parse_example(payloads, spec)
    context, sequence = spec.get("context"), spec.get("sequence")
    if mode == "single":
        return tfseek.parse_single_sequence_example(payloads[0], context, sequence)
    return tfseek.parse_sequence_example(payloads, context, sequence)


def same(found: Any, expect: dict[str, Any]) -> None:
    left = {name: group for name, group in outputs(found).items() if group}
    assert left == {name: group for name, group in wanted(expect).items() if group}


@pytest.mark.parametrize("case", rows("parse_cases.jsonl"), ids=ids)
def test_parse_case(case: dict[str, Any]) -> None:
    payloads = [bytes.fromhex(payload) for payload in case["payloads"]]

    def run() -> Any:
        return parse(case["kind"], case["mode"], case["spec"], payloads)

    # A sparse index out of range, which TensorFlow accepts.
    if case["expect"]["status"] == "error" or case["id"] == "sp037":
        with pytest.raises(tfseek.DataError) as e:
            run()
        assert e.value.category and "\n" not in str(e.value)
        assert (e.value.row is None) == (case["mode"] == "single")
    else:
        same(run(), case["expect"])


@pytest.mark.parametrize("row", rows("wire_cases.jsonl"), ids=ids)
def test_wire_case(row: dict[str, Any]) -> None:
    payload = bytes.fromhex(row["payload"])
    parse_row(row, payload)
    decode_row(row, payload)


def parse_row(row: dict[str, Any], payload: bytes) -> None:
    for mode in ("single", "batch"):

        def run(payload: bytes = payload, mode: str = mode) -> Any:
            return parse(row["kind"], mode, row["spec"], [payload])

        expect = {
            "tf": row[f"parse_{mode}"],
            "proto": row["parse_canonical"],
            "either": row["parse_single"],
        }.get(row["follow"], {"status": "error"})
        if row["follow"] == "either":
            try:
                run()
            except tfseek.DataError:
                continue
            if mode == "batch":
                continue
        if expect["status"] == "error":
            with pytest.raises(tfseek.DataError):
                run()
        elif row["follow"] != "tf" and mode == "batch":
            # Only the single form was recorded with TensorFlow. The batch is compared with that of the canonical bytes.
            assert outputs(run()) == outputs(run(bytes.fromhex(row["canonical"])))
        else:
            same(run(), expect)


def feature(array: Any, kind: Any) -> dict[str, Any]:
    return {"kind": kind, "values": [] if array is None else flat(array)["data"]}


def decoded(kind: str, payload: bytes) -> dict[str, Any]:
    if kind == "example":
        ex = tfseek.Example.from_bytes(payload)
        return {"features": {key: feature(value, ex.kind(key)) for key, value in ex.items()}}
    record = tfseek.SequenceExample.from_bytes(payload)
    kinds = {"int64": "int64", "float32": "float", "object": "bytes"}
    return {
        "context": {key: feature(value, record.context.kind(key)) for key, value in record.context.items()},
        "feature_lists": {
            key: [feature(step, None if step is None else kinds[step.dtype.name]) for step in steps]
            for key, steps in record.feature_lists.items()
        },
    }


def decode_row(row: dict[str, Any], payload: bytes) -> None:
    if row["follow"] == "refuse" or row["from_string"]["status"] == "error":
        with pytest.raises(tfseek.DataError):
            decoded(row["kind"], payload)
        return
    assert decoded(row["kind"], payload) == row["from_string"]["value"]
