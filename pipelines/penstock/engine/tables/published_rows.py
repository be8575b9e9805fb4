"""Rows of a table as the JSON of records in a topic."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from penstock.engine.operators.changelog.published_panes import WATERMARK_KIND
from penstock.engine.plan.changelog import PANE_KIND_COLUMN
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS

TIME_FIELDS = ("window_start", "window_end", "watermark", "replaced_by_start", "replaced_by_end")
ConvertCell: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class OutgoingRecord:
    """A record to send; without a key it goes to every partition."""

    key: bytes | None
    value: bytes


def encode_rows(rows: pa.Table, key: Sequence[str]) -> Iterator[OutgoingRecord]:
    """Yield rows as JSON records; the watermark that ends a batch has no key and goes to every partition."""
    converters = {
        field.name: _to_unbounded_null if field.name in TIME_FIELDS else _make_converter(field.type)
        for field in rows.schema
    }
    for row in rows.to_pylist():
        cells = {name: convert(row[name]) for name, convert in converters.items()}
        key_json = msgspec.json.encode([cells[name] for name in key])
        is_watermark = row[PANE_KIND_COLUMN] == WATERMARK_KIND
        yield OutgoingRecord(None if is_watermark else key_json, msgspec.json.encode(cells))


def _make_converter(cell_type: pa.DataType) -> ConvertCell:
    """Return a function that returns a cell as JSON can hold it, and as Spark reads it.

    A map with keys of text is an object. JSON has no other maps: they are lists of pairs.
    """
    if pa.types.is_floating(cell_type):
        return _to_number
    if pa.types.is_map(cell_type):
        convert_value = _make_converter(cell_type.item_type)
        if pa.types.is_string(cell_type.key_type) or pa.types.is_large_string(cell_type.key_type):
            return _if_present(lambda pairs: {name: convert_value(value) for name, value in pairs})
        return _if_present(lambda pairs: [[name, convert_value(value)] for name, value in pairs])
    if pa.types.is_struct(cell_type):
        members = {field.name: _make_converter(field.type) for field in cell_type.fields}
        return _if_present(lambda struct: {name: convert(struct[name]) for name, convert in members.items()})
    if pa.types.is_list(cell_type) or pa.types.is_large_list(cell_type):
        convert_item = _make_converter(cell_type.value_type)
        return _if_present(lambda items: [convert_item(item) for item in items])
    return _to_itself


def _if_present(convert: ConvertCell) -> ConvertCell:
    return lambda value: None if value is None else convert(value)


def _to_itself(value: Any) -> Any:
    return value


def _to_unbounded_null(value: Any) -> Any:
    """Return a time; null for an unbounded one."""
    return None if value in (MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS) else value


def _to_number(value: float | None) -> float | str | None:
    """Return a number; NaN and infinities are texts that Spark can parse."""
    if value is None or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
