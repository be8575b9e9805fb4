"""Runs a case that names a pipeline: its elements are records of topics, its panes rows of the result.

A case has the schema of conformance cases, with `pipeline` in place of window, trigger and accumulation. Times are
ISO 8601 or milliseconds.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.conformance.bipartite_matching import can_pair_all
from penstock.conformance.field_validation import (
    case_name,
    invalid_field_error,
    prefix_errors,
    require_object,
    require_objects,
)
from penstock.conformance.verdict import CaseVerdict
from penstock.core.names import explain_unknown_name
from penstock.engine.errors import PipelineError, TranscriptError
from penstock.engine.plan.columns import stage_value_columns
from penstock.testing.pipeline_driver import DEFAULT_CLOCK, BackendName, PipelineDriver
from penstock.testing.result_rows import (
    LATE_COLUMNS,
    PANE_COLUMNS,
    QUARANTINE_COLUMNS,
    WINDOW_COLUMNS,
    ResultRow,
)
from penstock.testing.times import format_time, utc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE_FIELD = "pipeline"
CASE_FIELDS = ("id", PIPELINE_FIELD, "clock", "partitions", "lookups", "steps", "note")
MOVE_FIELDS = ("elements", "topic", "partition", "processing_time", "watermark")
CHECK_FIELDS = ("expect", "expect_all", "expect_latest", "expect_late", "expect_quarantined", "output")
STEP_FIELDS = (*MOVE_FIELDS, *CHECK_FIELDS, "note")

OpenSpark = Callable[[], "SparkSession"]


def is_pipeline_case(node: Mapping[str, Any]) -> bool:
    """Whether a case names a pipeline."""
    return PIPELINE_FIELD in node


def run_pipeline_case(node: Mapping[str, Any], backend: BackendName, open_spark: OpenSpark) -> CaseVerdict:
    """Run a case, and return its verdict. A case that cannot run fails, with the reason."""
    name = case_name(node)
    expected = [step[key] for step in _steps_of(node) for key in CHECK_FIELDS[:-1] if key in step]
    try:
        with _open_driver(node, backend, open_spark) as driver:
            answers = _run_steps(driver, _steps_of(node))
    except TranscriptError as problem:
        return CaseVerdict(name, False, expected, {"error": str(problem)}, malformed=str(problem))
    except PipelineError as problem:
        return CaseVerdict(name, False, expected, {"error": str(problem)})
    return CaseVerdict(name, all(is_met for is_met, _ in answers), expected, [rows for _, rows in answers])


def _steps_of(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    steps = node.get("steps")
    return [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, list) else []


def _open_driver(node: Mapping[str, Any], backend: BackendName, open_spark: OpenSpark) -> PipelineDriver:
    _refuse_unknown_fields(node, CASE_FIELDS, "the case")
    require_objects(node.get("steps"), "`steps`", "a list of steps")
    pipeline, partitions = node[PIPELINE_FIELD], node.get("partitions", 1)
    if not isinstance(pipeline, str):
        raise invalid_field_error("`pipeline`", pipeline, "the name of a pipeline")
    if not isinstance(partitions, int) or isinstance(partitions, bool) or partitions < 1:
        raise invalid_field_error("`partitions`", partitions, "the number of partitions of each topic")
    lookups = require_object(node.get("lookups", {}), "`lookups`", "an object: the rows of each table")
    for table, rows in lookups.items():
        require_objects(rows, f"`lookups`.{table}", "a list of rows")
    return PipelineDriver(
        pipeline,
        clock=node.get("clock", DEFAULT_CLOCK),
        partitions=partitions,
        lookups=lookups,
        backend=backend,
        spark=open_spark,
    )


def _run_steps(
    driver: PipelineDriver, steps: Sequence[Mapping[str, Any]]
) -> list[tuple[bool, list[ResultRow]]]:
    """Run every step; return whether each expectation is met, with the rows that it was compared with."""
    answers: list[tuple[bool, list[ResultRow]]] = []
    checked_panes: dict[str | None, int] = {}
    for number, step in enumerate(steps, 1):
        with prefix_errors(f"step {number}"):
            _refuse_unknown_fields(step, STEP_FIELDS, "the step")
            if step.keys() & set(MOVE_FIELDS):
                _run_batch(driver, step)
            output = step.get("output")
            for field in CHECK_FIELDS[:-1]:
                if field in step:
                    rows = _read_rows(driver, field, output)
                    if field == "expect":
                        checked, checked_panes[output] = checked_panes.get(output, 0), len(rows)
                        rows = rows[checked:]
                    answers.append((_matches(driver, field, output, step[field], rows), rows))
    return answers


def _run_batch(driver: PipelineDriver, step: Mapping[str, Any]) -> None:
    elements = step.get("elements", [])
    if not isinstance(elements, list):
        raise invalid_field_error("`elements`", elements, "a list of records")
    driver.send(*elements, topic=step.get("topic"), partition=step.get("partition", 0))
    clock = step.get("processing_time")
    if "watermark" not in step:
        driver.run_batch(clock)
    elif step["watermark"] in ("inf", float("inf")):
        driver.end_input(clock)
    else:
        raise invalid_field_error(
            "`watermark`", step["watermark"], "inf to end the input; records move it otherwise"
        )


def _read_rows(driver: PipelineDriver, field: str, output: str | None) -> list[ResultRow]:
    match field:
        case "expect" | "expect_all":
            return driver.panes(output)
        case "expect_latest":
            return driver.latest(output)
        case "expect_late":
            return driver.late()
        case _:
            return driver.quarantined()


def _matches(
    driver: PipelineDriver, field: str, output: str | None, expected: Any, rows: Sequence[ResultRow]
) -> bool:
    """Whether every row is expected, and the other way round. A column that a row omits is not compared."""
    columns = _columns_of(driver, field, output)
    for number, row in enumerate(require_objects(expected, f"`{field}`", "a list of rows")):
        _refuse_unknown_fields(row, columns, f"`{field}`[{number}]")
    wanted = [{name: _to_row_value(value) for name, value in row.items()} for row in expected]
    return can_pair_all(wanted, list(rows), lambda want, have: want.items() <= have.items())


def _to_row_value(value: Any) -> Any:
    """Return an expected value as rows have it: YAML reads times as datetimes."""
    return format_time(utc(value)) if isinstance(value, datetime) else value


def _columns_of(driver: PipelineDriver, field: str, output: str | None) -> Sequence[str]:
    stage = driver.stage_of(output)
    match field:
        case "expect_late":
            return (*stage.key, *LATE_COLUMNS)
        case "expect_quarantined":
            return QUARANTINE_COLUMNS
        case "expect_latest":
            return (*stage.key, *WINDOW_COLUMNS, *stage_value_columns(stage))
        case _:
            return (*stage.key, *WINDOW_COLUMNS, *stage_value_columns(stage), *PANE_COLUMNS)


def _refuse_unknown_fields(node: Mapping[str, Any], known_fields: Sequence[str], path: str) -> None:
    for name in node:
        if name not in known_fields:
            raise TranscriptError(f"{path}: {explain_unknown_name('field', str(name), known_fields)}")
