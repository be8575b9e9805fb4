"""Select lists as sections of a document: columns, aggregates, rows with types, and the columns of a join."""

from dataclasses import dataclass
from typing import Any

from penstock.core.names import suggest_name
from penstock.stream.keyword_registries import AGGREGATE_KEYWORDS
from penstock.stream.sql_loader.keyword_nodes import to_aggregate_text
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import SqlItem
from penstock.stream.sql_loader.stages import StageChain
from penstock.stream.sql_loader.tokens import SqlFile
from penstock.stream.sql_loader.values import SqlCall, SqlName, put_once

_ALWAYS_THERE = ("window_start", "window_end")
"""Columns of each result, which a select list may name."""


@dataclass(frozen=True)
class SelectLists:
    """Converts select lists. Problems are collected by the file."""

    file: SqlFile

    def to_columns(self, items: list[SqlItem]) -> list[Any]:
        """Return the columns of a `select`, each `name` or `{new_name: name}`."""
        columns: list[Any] = []
        for item in items:
            column = _column(item)
            columns.append(column if item.name is None or item.name == column else {item.name: column})
        return columns

    def to_aggregates(self, items: list[SqlItem], keys: list[PlacedText]) -> dict[PlacedText, PlacedText]:
        """Return the aggregate of each result column. The key must be in the list, under its name."""
        aggregates: dict[PlacedText, PlacedText] = {}
        listed: set[str] = set()
        for item in items:
            with self.file.collector.collect():
                if item.kind == "column":
                    listed.add(_column(item))
                    self._require_key(item, keys)
                    continue
                if item.kind == "star":
                    fix = "Write the key and the aggregates"
                    raise self.file.problem("SELECT", "'*' in a query with aggregates", fix, item.text)
                if not isinstance(item.value, SqlCall):
                    fix = "Compute it in a query before (WITH) or after, and aggregate its column"
                    raise self.file.problem(
                        "SELECT", f"{item.text.source!r} is not an aggregate", fix, item.text
                    )
                if item.name is None:
                    fix = f"Write {item.text.source} AS {item.value.name.lower()}"
                    raise self.file.problem("SELECT", "a result has no name", fix, item.text)
                text = to_aggregate_text(self.file, item.value, AGGREGATE_KEYWORDS)
                placed = PlacedText(text, item.text.line, item.text.column, item.text.source)
                put_once(self.file, aggregates, item.name, placed, "SELECT")
        for key in keys:
            if key not in listed:
                fix = f"Add it to SELECT: each row of the result has its key, {key!s}"
                self.file.collector.add(
                    self.file.problem("SELECT", f"the key {str(key)!r} is missing", fix, key)
                )
        return aggregates

    def _require_key(self, item: SqlItem, keys: list[PlacedText]) -> None:
        column = _column(item)
        if column not in keys and column.lower() not in _ALWAYS_THERE:
            fix = (
                suggest_name(column, keys).lstrip() or "Add it to GROUP BY, or aggregate it, as in LAST(...)"
            )
            raise self.file.problem("SELECT", f"{str(column)!r} is not in GROUP BY", fix, item.text)
        if item.name is not None and item.name != column:
            fix = f"Write {column} AS {item.name} in a query before (WITH), and group by {item.name}"
            raise self.file.problem(
                "SELECT", f"the key {str(column)!r} has another name here", fix, item.text
            )

    def to_rows(self, items: list[SqlItem]) -> dict[PlacedText, PlacedText]:
        """Return the columns of rows that are written as they are, with their types."""
        columns: dict[PlacedText, PlacedText] = {}
        for item in items:
            with self.file.collector.collect():
                if item.kind != "cast" or item.cast_type is None or not isinstance(item.value, SqlName):
                    name = "device" if item.kind == "star" else (item.name or item.text.source)
                    fix = f"Write columns with types, as in CAST({name} AS STRING) AS {name}"
                    raise self.file.problem("SELECT", f"{item.text.source!r} has no type", fix, item.text)
                if item.name is not None and item.name != item.value.text:
                    fix = f"Write {item.value.text} AS {item.name} in a query before (WITH)"
                    raise self.file.problem(
                        "SELECT", f"{item.text.source!r} renames a column", fix, item.text
                    )
                put_once(self.file, columns, item.value.text, item.cast_type, "SELECT")
        return columns

    def to_take(
        self, items: list[SqlItem], keys: list[PlacedText], sides: tuple[StageChain, StageChain]
    ) -> dict[PlacedText, PlacedText] | None:
        """Return the columns of a join and where they come from; None for all columns."""
        if all(item.kind == "star" for item in items):
            return None
        input_names = {qualifier: side.input_name for side in sides for qualifier in side.qualifiers}
        columns: dict[PlacedText, PlacedText] = {}
        for item in items:
            with self.file.collector.collect():
                if item.kind != "column":
                    fix = "Take columns here, and compute in the next query: name this one in WITH"
                    raise self.file.problem("SELECT", f"{item.text.source!r} is not a column", fix, item.text)
                path = _column(item)
                qualifier, dot, name = path.rpartition(".")
                if name in keys and item.name in (None, name):
                    continue
                if dot and qualifier not in input_names:
                    known = " or ".join(input_names)
                    problem = f"{path!s}: the join has no table {qualifier!r}"
                    raise self.file.problem("SELECT", problem, f"Write {known} before the column", item.text)
                field = f"{input_names[qualifier]}.{name}" if dot else name
                put_once(self.file, columns, item.name or path.renamed(name), path.renamed(field), "SELECT")
        return columns


def _column(item: SqlItem) -> PlacedText:
    assert isinstance(item.value, SqlName)
    return item.value.text
