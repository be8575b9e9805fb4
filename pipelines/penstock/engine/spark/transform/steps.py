"""Runs the user's stateless steps on valid records, before windows are assigned."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.function_signature import describe_function
from penstock.engine.definition.predicates import predicate_sql, quote_column, sql_literal
from penstock.engine.definition.user_functions import FunctionRef
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.row_steps import map_rows
from penstock.engine.plan.declared_columns import check_declared_columns
from penstock.engine.plan.field_usage import refuse_type_conflicts, unused_conflicting_fields
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.steps import (
    ApplyStep,
    ArrowStep,
    FilterStep,
    LookupStep,
    RowFunctionStep,
    SelectStep,
    SqlStep,
    Step,
)
from penstock.engine.spark.parse.input_columns import (
    Sources,
    find_conflicting_fields,
    select_input,
    select_stage_inputs,
)
from penstock.engine.spark.transform.analysis_errors import translate_step_errors
from penstock.engine.spark.transform.lookup_join import LookupRows, give_no_rows, join_lookup
from penstock.engine.spark.transform.row_multiplication import can_multiply_rows, mark_first_rows
from penstock.engine.user_tracebacks import wrap_user_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INPUT_VIEW_LOCK = Lock()
"""Held while a step reads the temporary view `input`."""


def apply_stage_steps(
    records: "DataFrame", stage: Stage, sources: Sources, lookup_rows: LookupRows = give_no_rows
) -> "DataFrame":
    """Return the included records of a stage's inputs after its steps; `sources` are all inputs of the batch.

    `lookup_rows` returns the rows of lookup tables; the default adds only their columns. When a step may return
    several rows for a record, `_first_row` marks one of them.
    """
    included = records.where("_fate IS NULL")
    union, is_multiplied = _unite_inputs(included, stage, sources, lookup_rows)
    transformed = apply_steps(union, stage.steps, lookup_rows)
    is_multiplied = is_multiplied or (
        bool(stage.steps) and can_multiply_rows(union, transformed, stage.steps)
    )
    return mark_first_rows(transformed) if is_multiplied else transformed


def has_transforms(stage: Stage, sources: Sources) -> bool:
    """Whether the records of a stage differ from the parsed records."""
    return bool(stage.steps or stage.input_steps or find_conflicting_fields(sources))


def _unite_inputs(
    included: "DataFrame", stage: Stage, sources: Sources, lookup_rows: LookupRows
) -> "tuple[DataFrame, bool]":
    """Return the records of a stage's inputs, each after its own steps, and whether these may multiply rows."""
    stage_sources = [source for source in sources if source.name in stage.inputs]
    if not stage.input_steps:
        if len(stage_sources) == len(sources) and not find_conflicting_fields(sources):
            return included, False
        topics = ", ".join(sql_literal(topic_of(source)) for source in stage_sources)
        return select_stage_inputs(
            included.where(f"_topic IN ({topics})"), stage, stage_sources, sources
        ), False
    transformed: dict[str, DataFrame] = {}
    is_multiplied = False
    for source in stage_sources:
        input_records = select_input(
            included.where(f"_topic = {sql_literal(topic_of(source))}"), source, sources
        )
        steps = stage.steps_of_input(source.name)
        transformed[source.name] = apply_steps(input_records, steps, lookup_rows)
        is_multiplied = is_multiplied or can_multiply_rows(input_records, transformed[source.name], steps)
    compatible = _drop_conflicting_fields(stage, transformed)
    return reduce(
        lambda union, other: union.unionByName(other, allowMissingColumns=True), compatible
    ), is_multiplied


def _drop_conflicting_fields(stage: Stage, transformed: "Mapping[str, DataFrame]") -> "list[DataFrame]":
    """Drop from each input the fields that have another type in other inputs and are not used from this one."""
    types = {name: dict(records.dtypes) for name, records in transformed.items()}
    refuse_type_conflicts(stage, types)
    dropped_fields = unused_conflicting_fields(stage, types)
    return [records.drop(*dropped_fields[name]) for name, records in transformed.items()]


def apply_steps(records: "DataFrame", steps: Sequence[Step], lookup_rows: LookupRows) -> "DataFrame":
    """Apply all steps to records; raise DefinitionError when a step drops an internal column."""
    for number, step in enumerate(steps, start=1):
        internal = [name for name in records.columns if name.startswith("_")]
        with translate_step_errors(step, records.columns):
            records = (
                join_lookup(records, step, lookup_rows)
                if isinstance(step, LookupStep)
                else _apply_step(records, step)
            )
        if isinstance(step, ApplyStep | ArrowStep):
            _check_result(step, records)
        lost = [name for name in internal if name not in records.columns]
        if lost:
            raise DefinitionError(
                f"step {number}",
                f"it drops {', '.join(lost)}, which the engine needs to identify records",
                "Keep the columns that start with _, as withColumn, where and SELECT * do",
            )
    return records


def _check_result(step: ApplyStep | ArrowStep, records: "DataFrame") -> None:
    """Refuse a result with other columns or types than the step declares."""
    from pyspark.sql.types import DataType

    keyword = "apply" if isinstance(step, ApplyStep) else "arrow"
    check_declared_columns(keyword, step.function, step.returns, records.columns)
    for column in step.returns:
        found, declared = (
            kind.simpleString()
            for kind in (records.schema[column.name].dataType, DataType.fromDDL(column.type))
        )
        if found != declared:
            problem = f"{step.function.name} returned {found.upper()}, not {column.type}"
            fix = "Change the declaration, or cast the column"
            raise DefinitionError(f"{keyword}.returns.{column.name}", problem, fix)


def _apply_step(
    records: "DataFrame", step: ApplyStep | SqlStep | ArrowStep | FilterStep | SelectStep | RowFunctionStep
) -> "DataFrame":
    match step:
        case ApplyStep(function):
            changed: DataFrame = _call_table_function("apply", function, records)
            return changed
        case SqlStep(text):
            # Streams that start at the same time share a session and this view. Spark resolves the view before
            # `sql` returns.
            with _INPUT_VIEW_LOCK:
                records.createOrReplaceTempView("input")
                return records.sparkSession.sql(text)
        case ArrowStep(function):
            return _map_arrow_batches(records, partial(_call_table_function, "arrow", function))
        case FilterStep(condition):
            return records.where(predicate_sql(condition))
        case SelectStep(columns):
            internal = [quote_column(name) for name in records.columns if name.startswith("_")]
            return records.selectExpr(
                *internal, *(f"{quote_column(old)} AS {quote_column(new)}" for new, old in columns)
            )
        case RowFunctionStep():
            return _map_arrow_batches(records, partial(map_rows, step))


def _call_table_function(keyword: str, function: FunctionRef, table: Any) -> Any:
    """Call a function from table to table. Raises UserCodeError if it fails, DefinitionError for another result."""
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        result = function.resolve()(table)
    except (OSError, CapturedException):
        raise  # what it reads besides its records may be back at the next try; Spark's own errors are translated
    except Exception as error:
        raise wrap_user_error(f"{keyword} {function.name}", error) from error
    if not isinstance(result, type(table)):
        problem = f"{describe_function(function.resolve())} returned {type(result).__name__}"
        raise DefinitionError(keyword, problem, f"Return a {type(table).__name__}")
    return result


def _map_arrow_batches(records: "DataFrame", function: Callable[[pa.Table], pa.Table]) -> "DataFrame":
    """Map Arrow batches in the executors; a call with an empty table gives the columns of the result."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    output_schema = function(to_arrow_schema(records.schema, timezone="UTC").empty_table()).schema

    def map_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from function(pa.Table.from_batches([batch])).cast(output_schema).to_batches()

    return records.mapInArrow(map_batches, from_arrow_schema(output_schema))
