"""HTML tables of datasets, records and batches for notebooks. All text is escaped."""

from __future__ import annotations

import base64
import codecs
import contextvars
import html
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Optional, TypeVar

import numpy as np

from ._columns import Bytes, Column, Ragged, Sparse
from ._errors import Error
from ._tfseek import Dataset, Example, SequenceExample, brief, page_font, shown_image, size_text

_Made = TypeVar("_Made")
#: Size in bytes up to which an image is embedded.
_IMAGE = 64_000
#: Bytes of all images of a display, which notebooks save.
_ALL_IMAGES = 1_000_000
#: Records of a dataset whose images are shown.
_THUMBNAILS = 12
#: Features, or rows of a batch, in a table.
_ROWS = 50
#: Characters of a value.
_WIDTH = 80
#: Records, and features of each, in the table of a dataset.
_FIRST = 5
_COLUMNS = 6
#: Words for the kinds of records.
_KINDS = {"example": "Example", "sequence_example": "SequenceExample", "bytes": "record"}
#: Images of a column.
_IMAGES = 4
#: Styles of the first and last cell of a line, which may be long, and of the others. Notebooks align cells to the right by default.
_LONG = "text-align:left;overflow-wrap:anywhere"
_SHORT = "text-align:left;white-space:nowrap"

#: Bytes left for images of the display that is made.
_left: contextvars.ContextVar[list[int]] = contextvars.ContextVar("_left")


class Html:
    """A static table that notebooks display. ``str(table)`` is its HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<HTML of {len(self._text)} characters, for display in a notebook>"


def show(batch: Any) -> Html:
    """Returns a table of a batch for display in a notebook, one line per column with its first values.

    ``batch`` is a batch of a :class:`tfseek.Loader` or of the functions ``parse_..``, a record, or a dataset. Images that browsers
    show, of at most 64 kB, are displayed, also those in base64, at most four per column and 1 MB in all. All other text is escaped.
    """
    return _limited(lambda: _show(batch))


def _show(batch: Any) -> Html:
    if hasattr(type(batch), "_repr_html_"):
        return Html(batch._repr_html_())
    if isinstance(batch, Mapping):
        return Html(_columns(batch))
    if isinstance(batch, tuple) and len(batch) in (2, 3) and all(isinstance(part, Mapping) for part in batch):
        return Html("".join(_columns(part, title) for part, title in zip(batch, ("context", "sequence", "lengths"))))
    if isinstance(batch, list):
        lines = ([str(row), _value(item)] for row, item in enumerate(batch[:_ROWS]))
        return Html(_table(["row", "record"], lines, len(batch) - _ROWS))
    raise TypeError(f"batch: expected a dict of columns, a tuple of dicts or a list of records, found {type(batch).__name__}")


def example_html(example: Any, title: str = "Example") -> str:
    """Returns the table of an Example."""
    return _limited(lambda: _guarded(lambda: _features(example, title)))


def sequence_html(record: Any, title: str = "SequenceExample") -> str:
    """Returns the tables of a SequenceExample."""

    def tables() -> str:
        lists = record.feature_lists
        names = lists.keys()
        lines = ([_text(name), str(len(lists[name])), _steps(lists[name])] for name in names[:_ROWS])
        return _features(record.context, f"{title}: context") + _table(
            ["feature list", "steps", "values"], lines, len(names) - _ROWS, f"{title}: feature lists"
        )

    return _limited(lambda: _guarded(tables))


def record_html(make: Callable[[], Any], title: str) -> str:
    """Returns the table of the record with nested values that ``make`` returns."""
    return _limited(lambda: _guarded(lambda: _columns(make(), title)))


def dataset_html(ds: Any) -> str:
    """Returns a line about a Dataset, the images or the values of its first records, and the features of its first record."""
    return _limited(lambda: _dataset(ds))


def _dataset(ds: Any) -> str:
    info = ds.info()
    parts = [_counted(info["shards"], "shard"), size_text(info["bytes"]) if info["bytes"] is not None else ""]
    parts.append(_counted(info["warnings"], "warning") if info["warnings"] else "")
    rest = "".join(f" · {part}" for part in parts if part)
    text = f'<p title="{_text(repr(ds))}"><strong>{_counted(len(ds), _KINDS[ds.kind])}</strong>{rest}</p>'
    if len(ds) and ds.kind != "bytes":
        text += _guarded(lambda: (_thumbnails(ds) if ds.kind == "example" else "") or _first_records(ds))
        html_of = sequence_html if ds.kind == "sequence_example" else example_html
        text += f"<details><summary>First record</summary>{_guarded(lambda: html_of(ds[0], 'First record'))}</details>"
    return f'<div style="font-family:{_text(page_font())};font-size:14px;line-height:1.45">{text}</div>'


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _thumbnails(ds: Any) -> str:
    """Returns the images of the first records with their numbers, if the first record has one."""
    first = ds[0]
    name = next((name for name in first.keys() if _is_image(first[name])), None)
    if name is None:
        return ""
    cells = []
    for i in range(min(len(ds), _THUMBNAILS)):
        values = ds[i].get(name)
        image = _image(values[0]) if _is_image(values) else None
        if image:
            cells.append(f'<div style="text-align:center">{image}<div style="font-size:12px;opacity:0.7">{i:,}</div></div>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px;align-items:end">{"".join(cells)}</div>'


def _first_records(ds: Any) -> str:
    """Returns a table of the first records, with a column for each of the first features."""
    records = [ds[i] for i in range(min(len(ds), _FIRST))]
    names = list(dict.fromkeys(name for record in records for name in record.keys()))
    shown = names[:_COLUMNS]

    def cell(record: Any, name: str) -> str:
        values = record[name] if name in record else None
        if values is None:
            return ""
        text = _steps(values) if _is_list(record, name) else _values(values, len(values), _brief)
        return f'<div style="max-width:14em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap">{text}</div>'

    lines = ([f"{i:,}", *(cell(record, name) for name in shown)] for i, record in enumerate(records))
    more = f"<p>.. and {len(names) - len(shown):,} more features</p>" if len(names) > len(shown) else ""
    return f'<div style="overflow-x:auto">{_table(["record", *shown], lines, 0)}</div>' + more


def _is_list(record: Any, name: str) -> bool:
    return isinstance(record, SequenceExample) and name in record.feature_lists


def _brief(value: Any) -> str:
    return brief(float(value)) if isinstance(value, (float, np.floating)) else _plain(value)


def _is_image(values: Any) -> bool:
    return values is not None and len(values) > 0 and _embedded(values[0]) is not None


def _limited(make: Callable[[], _Made]) -> _Made:
    """Makes a display whose images have a limit in all. A display in it shares the limit."""
    if _left.get(None) is not None:
        return make()
    token = _left.set([_ALL_IMAGES])
    try:
        return make()
    finally:
        _left.reset(token)


def _guarded(make: Any) -> str:
    """Returns a table, or the message of an error in the data, because a display must not fail."""
    try:
        return str(make())
    except Error as error:
        return f"<p>{_text(str(error))}</p>"


def _features(example: Any, title: str) -> str:
    names = example.keys()

    def line(name: str) -> list[str]:
        values = example[name]
        count = "" if values is None else str(len(values))
        return [_text(name), example.kind(name) or "", count, "" if values is None else _values(values, len(values))]

    return _table(["feature", "kind", "count", "values"], map(line, names[:_ROWS]), len(names) - _ROWS, title)


def _columns(batch: Mapping[Any, Any], title: Optional[str] = None) -> str:
    batch = dict(_flattened(batch, ""))
    names = list(batch)
    lines = ([_text(str(name)), _text(_kind(batch[name])), _values(*_flat(batch[name]))] for name in names[:_ROWS])
    return _table(["column", "type", "first values"], lines, len(names) - _ROWS, title)


def _flattened(batch: Mapping[Any, Any], path: str) -> Iterator[tuple[Any, Any]]:
    """Yields the columns of nested dicts with their paths."""
    for name, column in batch.items():
        if isinstance(column, Mapping):
            yield from _flattened(column, f"{path}{name}/")
        else:
            yield (f"{path}{name}" if path else name), column


def _kind(column: Any) -> str:
    if isinstance(column, Sparse):
        return f"Sparse {_kind(column.values)}, dense shape {_shape(column.dense_shape)}"
    if isinstance(column, Ragged):
        rows = len(column.row_splits[0]) - 1 if column.row_splits else 0
        return f"Ragged {_kind(column.values)}, {rows} rows"
    if isinstance(column, Column):
        return f"Optional {_kind(column.values)}, {int(np.count_nonzero(column.present))} present"
    if isinstance(column, Bytes):
        return f"Bytes {len(column.offsets) - 1} strings"
    dtype, shape = getattr(column, "dtype", None), getattr(column, "shape", None)
    if dtype is None or shape is None:
        return type(column).__name__
    return f"{'bytes' if dtype == object else dtype} {_shape(shape)}"


def _shape(shape: Iterable[Any]) -> str:
    return "[" + ", ".join(str(int(size)) for size in shape) + "]"


def _flat(column: Any) -> tuple[Any, int]:
    """Returns the first values of a column as a sequence, and the number of all values."""
    if isinstance(column, Column):
        # The column of a single record has no rows.
        return (column[:_WIDTH].to_list(), len(column)) if np.ndim(column.present) else ([column.to_list()], 1)
    if isinstance(column, (Sparse, Ragged)):
        return _flat(column.values)
    if isinstance(column, Bytes):
        ends = zip(column.offsets[:_WIDTH].tolist(), column.offsets[1 : _WIDTH + 1].tolist())
        return [bytes(column.data[start:end]) for start, end in ends], len(column.offsets) - 1
    if isinstance(column, np.ndarray):
        # Only the first values are copied if the array is not contiguous.
        return column.reshape(-1) if column.flags.c_contiguous else list(column.flat[:_WIDTH]), column.size
    values = column if isinstance(column, (list, tuple)) else [column]
    return values, len(values)


def _steps(steps: Any) -> str:
    """Returns the first steps of a feature list as HTML. Images are shown without their steps."""
    first = next((step for step in steps if step is not None and len(step) > 0), None)
    if first is None or _embedded(_string(first[0])) is None:
        return _values(steps, len(steps))
    sizes = [0 if step is None else len(step) for step in steps]
    images = [value for step, size in zip(steps[:_WIDTH], sizes) if size for value in step[:_IMAGES]]
    return _values(images, sum(sizes))


def _values(values: Any, n: int, plain: Optional[Callable[[Any], str]] = None) -> str:
    """Returns the first of ``n`` values as HTML: images, or text of limited length."""
    first = [_string(values[k]) for k in range(min(len(values), _WIDTH))]
    if first and _embedded(first[0]) is not None:
        shown = [_value(value) for value in first[:_IMAGES]]
        return " ".join(shown) + (f" .. ({n:,} values)" if n > len(shown) else "")
    parts: list[str] = []
    width = 0
    for value in first:
        text = (plain or _plain)(value)
        width += len(text)
        if parts and width > _WIDTH:
            break
        parts.append(text)
    more = f", .. ({n:,} values)" if n > len(parts) else ""
    return _text(", ".join(parts) + more)


def _string(value: Any) -> Any:
    """Returns ``bytes`` for a byte string of ``bytes_as="views"``, and other values unchanged."""
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype == np.uint8 else value


def _value(value: Any) -> str:
    return (_image(value) if isinstance(value, bytes) else None) or _text(_plain(value))


def _plain(value: Any) -> str:
    """Returns a short text of one value. It is not escaped."""
    if isinstance(value, bytes):
        return _plain_bytes(value)
    if isinstance(value, np.ndarray):
        some = ", ".join(_plain(item) for item in value.reshape(-1)[:8])
        return f"[{some}{', ..' if value.size > 8 else ''}]"
    if isinstance(value, str):
        return _plain_text(value)
    text = str(value)
    return text if len(text) <= _WIDTH else text[:_WIDTH] + ".."


def _plain_text(value: str) -> str:
    """Returns text in quotes."""
    quoted = json.dumps(value[:_WIDTH], ensure_ascii=not value.isprintable())
    return quoted if len(value) <= _WIDTH else f"{quoted}.. ({len(value)} characters)"


def _plain_bytes(value: bytes) -> str:
    """Returns printable UTF-8 as text in quotes, as the command does, and other bytes as Python writes them."""
    more = f".. ({len(value)} bytes)"
    # A character has at most four bytes. The decoder drops a character that the end of the slice cuts.
    first = value[: 4 * _WIDTH]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(first, len(first) == len(value))
    except UnicodeDecodeError:
        text = "\0"
    if text.translate({10: None, 9: None}).isprintable():
        quoted = json.dumps(text[:_WIDTH], ensure_ascii=False)
        return quoted if len(first) == len(value) and len(text) <= _WIDTH else quoted + more
    # An escaped byte has four characters.
    first = value[: _WIDTH // 2]
    return repr(first) if len(first) == len(value) else f"{first!r}{more}"


def _embedded(value: Any) -> Optional[tuple[str, bytes]]:
    """Returns the type and the bytes of an image that is small enough to be embedded, also of one in base64, or ``None``."""
    return shown_image(value, _IMAGE) if isinstance(value, bytes) else None


def _image(value: bytes) -> Optional[str]:
    """Returns an image as an element with its data, or ``None`` for other byte strings, for large images and beyond the limit in all."""
    found, left = _embedded(value), _left.get([_ALL_IMAGES])
    if found is None or len(found[1]) > left[0]:
        return None
    kind, image = found
    left[0] -= len(image)
    data = base64.b64encode(image).decode()
    return f'<img src="data:{kind};base64,{data}" alt="{len(image)} bytes" style="max-width:160px;max-height:160px">'


def _table(head: list[str], lines: Iterable[list[str]], more: int, title: Optional[str] = None) -> str:
    """Returns a table. The cells of ``lines`` are HTML; ``head`` and ``title`` are text."""
    caption = "" if title is None else f'<caption style="{_SHORT}">{_text(title)}</caption>'
    top = "".join(f'<th style="text-align:left">{_text(cell)}</th>' for cell in head)
    styles = [_LONG, *[_SHORT] * (len(head) - 2), _LONG]

    def row(line: list[str]) -> str:
        return "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, line)) + "</tr>"

    body = "".join(map(row, lines))
    rest = f'<tr><td colspan="{len(head)}" style="{_LONG}">.. and {more:,} more</td></tr>' if more > 0 else ""
    return f'<table style="margin-bottom:0.5em;font-size:inherit">{caption}<thead><tr>{top}</tr></thead><tbody>{body}{rest}</tbody></table>'


def _text(text: str) -> str:
    return html.escape(text)
