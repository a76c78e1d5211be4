"""Runs the overview in ``docs/tfds.md`` on a small data set, and compares the output with the page."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from prepared import write_mnist
from test_cookbook import run, sections


def test_the_overview(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_mnist(pathlib.Path("data/mnist"))
    blocks = dict(sections("tfds.md"))["The overview of TFDS"]
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        run(block, names)
