"""Types at run time, and the lists of arguments that only type checkers read."""

from __future__ import annotations

import ast
import inspect
import pathlib
import pickle
import typing
from typing import Any

import pytest
from conftest import write_records

import tfseek


def test_the_typing_examples_run(tmp_path: pathlib.Path) -> None:
    import typing_examples

    for name, record in (
        ("examples", tfseek.Example({"label": 3, "name": "a"})),
        ("sequences", tfseek.SequenceExample({"id": 1}, {"tokens": [[1], [2, 3]]})),
    ):
        write_records(tmp_path / name, (record for _ in range(5)))
    typing_examples.run(str(tmp_path / "examples"), str(tmp_path / "sequences"), str(tmp_path))


def test_generic_classes_have_parameters_at_run_time(ds: tfseek.Dataset) -> None:
    for generic, plain in (
        (tfseek.Dataset[tfseek.Example], tfseek.Dataset),
        (tfseek.Loader[Any], tfseek.Loader),
        (tfseek.Stream[bytes], tfseek.Stream),
    ):
        assert typing.get_origin(generic) is plain
    assert typing.get_type_hints(tfseek.Loader.__init__)["ds"] == typing.Union[tfseek.Dataset[Any], tfseek.Mix, tfseek.tfds.Dataset]
    assert typing.get_type_hints(tfseek.open)["return"] == tfseek.Dataset[Any]
    assert isinstance(ds, tfseek.Dataset) and pickle.loads(pickle.dumps(tfseek.Stream)) is tfseek.Stream


@pytest.mark.parametrize(
    ("module", "options", "function", "typed"),
    [
        ("_open", "OpenOptions", tfseek.open, {"paths", "kind"}),
        ("_stream", "StreamOptions", tfseek.stream, {"paths", "kind"}),
        ("_loader", "LoaderOptions", tfseek.Loader, {"ds", "spec", "transform"}),
        ("_scan", "ScanOptions", tfseek.scan, {"parts", "columns", "spec", "storage_options", "threads"}),
    ],
)
def test_the_options_of_overloads_are_those_of_the_function(module: str, options: str, function: Any, typed: set[str]) -> None:
    """The class of options exists for type checkers only, so it is read from the source."""
    source = pathlib.Path(tfseek.__file__).with_name(f"{module}.py").read_text()
    classes = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}
    of = [classes[options], *(classes[base.id] for base in classes[options].bases if isinstance(base, ast.Name) and base.id in classes)]
    lines = [line for each in of for line in each.body if isinstance(line, ast.AnnAssign)]
    fields = {line.target.id: ast.unparse(line.annotation) for line in lines}  # type: ignore[union-attr]
    parameters = inspect.signature(function).parameters
    # Those of one of them alone.
    assert set(fields) ^ set(parameters) == typed
    for name, annotation in ((name, annotation) for name, annotation in fields.items() if name in parameters):
        assert annotation.replace("'", "") == parameters[name].annotation.replace("'", "").replace('"', ""), name
