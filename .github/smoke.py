"""Smoke test of an installed wheel: import, write, read, shuffle, the command and the license files."""

import importlib.metadata
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

import tfseek

command = pathlib.Path(sysconfig.get_path("scripts"), "tfseek")
version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
assert version.split() == ["tfseek", tfseek.__version__], version

licenses = [file for file in importlib.metadata.files("tfseek") or [] if file.name.startswith("LICENSE-")]
assert len(licenses) == 2 and all(len(file.read_text()) > 1000 for file in licenses), licenses

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "train.tfrecord")
    with tfseek.Writer(path) as writer:
        for i in range(100):
            writer.write(tfseek.Example({"label": i, "name": f"record {i}"}))
    # Positional reads, because Windows cannot delete a mapped file.
    ds = tfseek.open(path, index="memory", io="pread")
    assert len(ds) == 100 and ds[7]["label"] == [7] and ds[-1]["name"] == [b"record 99"]
    loader = tfseek.Loader(ds, {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=32, seed=1)
    assert sorted(label for batch in loader for label in batch["label"].tolist()) == list(range(100))
    loader.close()
    head = subprocess.run([command, "head", "-n", "1", path], capture_output=True, text=True, check=True).stdout
    assert "record 0" in head, head

print(f"tfseek {tfseek.__version__} on {sys.platform}, Python {sys.version.split()[0]}: works")
