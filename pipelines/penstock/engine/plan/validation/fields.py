"""Checks of the fields that a stage uses: that its inputs have them, and that their types fit."""

from collections.abc import Sequence

from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.plan.column_types import check_condition_types, check_key_types, check_numeric_field
from penstock.engine.plan.columns import stage_input_columns
from penstock.engine.plan.field_usage import iter_predicates, iter_used_fields, refuse_type_conflicts
from penstock.engine.plan.known_columns import require_known_column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import TypesByColumn


def check_fields(plan: Plan, stage: Stage) -> None:
    """Refuse fields that do not exist, as far as the columns are known. The error lists all of them."""
    collector = ProblemCollector()
    upstream_stages = plan.upstream_of(stage)
    columns_by_input = stage_input_columns(stage, upstream_stages, plan.sources_of(stage), collector)
    if upstream_stages and None not in columns_by_input.values() and not stage.has_restricted_aggregates:
        # Panes of several stages are read as one input. Missing columns are null.
        pane_columns: TypesByColumn = dict.fromkeys(
            name for columns in columns_by_input.values() for name in columns or ()
        )
        columns_by_input = dict.fromkeys(columns_by_input, pane_columns)
    for name, columns in columns_by_input.items():
        if columns is not None:
            check_used_fields(stage, name, columns, upstream_stages, collector)
        check_field_types(stage, name, columns or {}, collector)
    with collector.collect():
        refuse_type_conflicts(stage, columns_by_input, panes=bool(upstream_stages))
    collector.raise_problems()


def check_used_fields(
    stage: Stage,
    input_: str,
    columns: TypesByColumn,
    upstream_stages: Sequence[Stage],
    collector: ProblemCollector,
) -> None:
    """Collect the fields that the stage uses, but that its input does not have."""
    for field, used in iter_used_fields(stage, input_):
        problem, label = f"{input_} has no field {used!r}", "Known fields"
        if upstream_stages:
            reader_names = (
                input_
                if stage.has_restricted_aggregates
                else ", ".join(upstream.name for upstream in upstream_stages)
            )
            problem, label = f"the input of {stage.name} has no column {used!r}", f"Columns of {reader_names}"
        with collector.collect():
            require_known_column(used, columns, field, problem, label)


def check_field_types(stage: Stage, input_: str, columns: TypesByColumn, collector: ProblemCollector) -> None:
    """Collect the fields whose type is known and does not fit their use."""
    with collector.collect():
        check_key_types(stage.key, columns)
    for field in stage.window.numeric_fields:
        with collector.collect():
            check_numeric_field(field, columns, stage.window.field_location)
    for location, predicate in iter_predicates(stage, input_):
        with collector.collect():
            check_condition_types(predicate, columns, location)
    for output in stage.aggregates:
        if output.aggregate.restricted_input in (None, input_):
            with collector.collect():
                output.aggregate.check_column_types(columns, f"aggregate.{output.name}")
