"""Runs the stateless steps that the reference evaluator cannot run: Arrow, lookup, SQL and DataFrame steps."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.conformance.reference import InputRecord
from penstock.conformance.reference.input_records import RecordAddress
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import DefinitionError, PipelineTestError
from penstock.engine.operators.changelog.changes_to_partials import apply_steps
from penstock.engine.operators.stateful.schema import to_arrow_type
from penstock.engine.plan.declared_columns import check_declared_columns
from penstock.engine.plan.sources import Column, PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ApplyStep, ArrowStep, LookupStep, SqlStep, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Fields = Mapping[str, Any]
LookupRows = Mapping[str, Sequence[Fields]]
"""The rows of lookup tables, by the name of the table in the pipeline."""

ROW_COLUMN = "_row"
"""The internal column with the number of the record that a row comes from."""


class StepTables:
    """The steps of a plan, as functions from tables to tables. Spark starts only for SQL and DataFrame steps."""

    def __init__(self, plan: Plan, lookups: LookupRows, open_spark: "Callable[[], SparkSession]") -> None:
        self._plan = plan
        self._lookups = lookups
        self._open_spark = open_spark

    def transform(self, stage: Stage, records: Sequence[InputRecord]) -> dict[RecordAddress, list[Fields]]:
        """Return the rows that the steps of a stage make of each record."""
        tables = [
            self._apply(
                stage.steps_of_input(source.name),
                _to_table(source, [(n, r.fields) for n, r in enumerate(records) if r.source == source.name]),
            )
            for source in self._plan.sources_of(stage)
        ]
        rows_by_address: dict[RecordAddress, list[Fields]] = {record.address: [] for record in records}
        for row in self._apply(stage.steps, pa.concat_tables(tables, promote_options="default")).to_pylist():
            address = records[row.pop(ROW_COLUMN)].address
            rows_by_address[address].append({name: _to_field(value) for name, value in row.items()})
        return rows_by_address

    def transform_pane(self, stage: Stage, fields: Fields) -> list[Fields]:
        """Return the rows that the steps of a stage over panes make of one pane."""
        row = pa.Table.from_pylist([{**fields, ROW_COLUMN: 0}])
        return [
            {name: _to_field(value) for name, value in output_row.items() if name != ROW_COLUMN}
            for output_row in self._apply(stage.steps, row).to_pylist()
        ]

    def _apply(self, steps: Sequence[Step], table: pa.Table) -> pa.Table:
        for step in steps:
            match step:
                case LookupStep():
                    table = _join_lookup(step, table, self._rows_of(step))
                case SqlStep() | ApplyStep():
                    table = _run_in_spark(step, table, self._open_spark())
                case ArrowStep():
                    table = _run_arrow(step, table)
                case _:
                    table = apply_steps((step,), table)
        return table

    def _rows_of(self, step: LookupStep) -> Sequence[Fields]:
        if step.table not in self._lookups:
            raise PipelineTestError(
                f"the pipeline looks up {step.table!r}. Pass its rows: lookups={{{step.table!r}: [{{...}}]}}"
            )
        return self._lookups[step.table]


def lookup_table(step: LookupStep, rows: Sequence[Fields]) -> pa.Table:
    """Return the rows of a lookup table with its key columns and declared columns."""
    added = {column.name: _column_array(column, rows) for column in step.columns}
    return pa.table({**{name: pa.array([row.get(name) for row in rows]) for name in step.on}, **added})


def _to_table(source: PlanSource, numbered_fields: Sequence[tuple[int, Fields]]) -> pa.Table:
    rows = [fields for _, fields in numbered_fields]
    columns = {column.name: _column_array(column, rows) for column in source.columns}
    return pa.table({**columns, ROW_COLUMN: pa.array([number for number, _ in numbered_fields], pa.int64())})


def _column_array(column: Column, rows: Sequence[Fields]) -> pa.Array:
    arrow_type = to_arrow_type(column.type, column.name)
    try:
        return pa.array([row.get(column.name) for row in rows], arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise PipelineTestError(
            f"the values of {column.name} are not of type {column.type}: {problem}"
        ) from None


def _join_lookup(step: LookupStep, table: pa.Table, rows: Sequence[Fields]) -> pa.Table:
    """Add the columns of the row with the same key, or nulls; a key with a null matches no row."""
    rows_by_key = {tuple(row.get(name) for name in step.on): row for row in rows}
    keys = zip(*(table.column(name).to_pylist() for name in step.on), strict=True)
    matches = [rows_by_key.get(key, {}) if None not in key else {} for key in keys]
    for column in step.columns:
        table = table.append_column(column.name, _column_array(column, matches))
    return table


def _run_arrow(step: ArrowStep, table: pa.Table) -> pa.Table:
    result: pa.Table = step.function.resolve()(table)
    check_declared_columns("arrow", step.function, step.returns, result.column_names)
    if ROW_COLUMN not in result.column_names:
        fix = "Keep all columns that start with an underscore, as filter, take and append_column do"
        raise DefinitionError("arrow", f"{step.function.name} drops the column {ROW_COLUMN}", fix)
    return result


def _run_in_spark(step: SqlStep | ApplyStep, table: pa.Table, session: "SparkSession") -> pa.Table:
    from penstock.engine.spark.transform.lookup_join import give_no_rows
    from penstock.engine.spark.transform.steps import apply_steps as apply_spark_steps

    # A fixed order of columns, since a step may select them in any.
    frame = apply_spark_steps(session.createDataFrame(table), (step,), give_no_rows)
    names = [name for name in frame.columns if name != ROW_COLUMN]
    result: pa.Table = frame.select(*map(quote_column, names), ROW_COLUMN).toArrow()
    return result


def _to_field(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
