"""Runs the Python code on the pages."""

from __future__ import annotations

import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from typing import Any

import numpy as np
import pytest
from conftest import import_keras
from prepared import write_bridge, write_mnist
from tiny_images import png

import tfseek

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    "docs/python.md",
    "docs/damage.md",
    "docs/tutorial-tensorflow.md",
    "docs/coming-from.md",
    "docs/engines.md",
    "docs/rlds.md",
    "README.md",
    "python/PACKAGE.md",
]


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the Python blocks of a page, each with the word after ``python``: a required module, or ``not-run``."""
    found = re.findall(r"^```python(?: (\S+))?\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    return [(word, block) for word, block in found if word != "not-run"]


def write_data_of_others(folder: pathlib.Path) -> None:
    """Writes files as other projects make them, for docs/coming-from.md."""
    write_training_data()
    write_mnist(folder / "data/mnist")
    write_bridge(folder / "data/bridge_dataset")
    (folder / "data/tars").mkdir()
    for k in range(4):
        with tarfile.open(folder / f"data/tars/train-{k:06}.tar", "w") as tar:
            for i in range(10 * k, 10 * k + 10):
                for name, content in (("png", png(8, 8, 2)), ("cls", b"%d" % (i % 7))):
                    member = tarfile.TarInfo(f"{i:04}.{name}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    for k in range(4):
        with tfseek.Writer(folder / f"data/training_set.with_label.tfrecord-{k:05}-of-00004.gz", compression="gzip") as writer:
            for i in range(10):
                writer.write({"image/encoded": bytes([k, i]) * 770, "image/shape": [10, 22, 7], "label": i % 3})
    with tfseek.Writer(folder / "data/patches.tfrecord.gz", compression="gzip") as writer:
        for i in range(12):
            writer.write(dict.fromkeys(("B2", "B3", "landcover"), np.full(256, i, np.float32)))
    with tfseek.Writer(folder / "data/segment-0_with_camera_labels.tfrecord") as writer:
        for i in range(10):
            writer.write(bytes([2 << 3, i]))  # Frame.timestamp_micros


def write_training_data() -> None:
    pathlib.Path("data").mkdir()
    with tfseek.Writer("data/train", shards=4) as writer:
        for i in range(1000):
            tokens = np.arange(i % 7, dtype=np.int64)
            writer.write(tfseek.Example({"label": i % 10, "tokens": tokens, "image": bytes([i % 256]) * (i % 50)}))
    for name in ("cat.jpg", "bridge.png"):
        shutil.copy(ROOT / "docs" / name, name)


@pytest.mark.parametrize(
    "page, module", [(page, module) for page in PAGES for module in sorted({word for word, _ in blocks(page)} | {""})]
)
def test_page_runs(page: str, module: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the blocks that need no module. With ``module``, also those that need it."""
    if module == "keras":
        import_keras(monkeypatch)
    elif module:
        pytest.importorskip(module)
    if module == "tensorflow_datasets":
        pytest.importorskip("tensorflow")  # It can be installed without.
    monkeypatch.chdir(tmp_path)
    if page in ("README.md", "docs/engines.md"):
        subprocess.run([sys.executable, "-m", "tfseek", "demo", "--out", "data"], check=True, capture_output=True)
    elif page == "docs/rlds.md":
        write_bridge(tmp_path / "bridge_dataset")
    elif page == "docs/coming-from.md":
        write_data_of_others(tmp_path)
    else:
        write_training_data()
    run = [block for word, block in blocks(page) if word in ("", module)]
    assert run
    names: dict[str, Any] = {}
    for block in run:
        # The pages use record numbers of a larger dataset.
        exec(compile(block.replace("123_456", "640"), page, "exec"), names)
        # A page that compares two readers has the values of both.
        ours = names.pop("ours", None)
        if ours is not None and "theirs" in names:
            assert names.pop("theirs") == ours
    assert "theirs" not in names


def verbs() -> list[tuple[str, str]]:
    """Returns the rows of the table of tf.data's verbs: the verb, and the code for it."""
    rows = re.findall(r"^\| (.+) \| `([^|]+)` \| .+ \|$", (ROOT / "docs/tutorial-tensorflow.md").read_text(), re.M)
    return [(verb, code) for verb, code in rows if verb != "tf.data"]


@pytest.mark.parametrize("verb, code", verbs())
def test_verbs_of_tf_data_run(verb: str, code: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_training_data()
    paths = [str(path) for path in sorted(pathlib.Path("data").glob("*.tfrecord"))]
    ds = tfseek.open(paths)
    spec = {"label": tfseek.FixedLenFeature([], "int64"), "tokens": tfseek.RaggedFeature("int64")}
    names = {
        "tfseek": tfseek,
        "paths": paths,
        "ds": ds,
        "spec": spec,
        "sparse": {"tokens": tfseek.VarLenFeature("int64")},
        "f": lambda batch: batch["label"] * 2,
    }
    found = eval(code, names)
    if not isinstance(found, (int, tuple, np.ndarray)):
        assert len(list(found)) > 0
    if isinstance(found, tfseek.Loader):
        rows = [batch if isinstance(batch, np.ndarray) else batch["label"] for batch in found]
        assert sum(map(len, rows)) == (1000 if "world_size" not in code else 256)
    elif isinstance(found, tfseek.Dataset):
        assert len(found) == {"TFRecordDataset(paths)": 1000, "skip(10)`, `take(20)": 20, "concatenate(other)": 2000}.get(verb.strip("`"), 100)


def test_each_verb_has_a_row() -> None:
    assert len(verbs()) == 19


def test_grain_has_the_other_verbs() -> None:
    grain = pytest.importorskip("grain")
    named = re.findall(r"`(\w+IterDataset)`", (ROOT / "docs/tutorial-tensorflow.md").read_text())
    assert len(named) == 3 and all(hasattr(grain.experimental, name) for name in named)
