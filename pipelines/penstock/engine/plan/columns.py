"""The columns that a stage reads and returns, as far as they are known without running it."""

from collections.abc import Iterable, Mapping

from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import RowFunctionStep, SqlStep, TypesByColumn, infer_columns

WINDOW_BOUND_COLUMNS = ("window_start", "window_end")


def stage_input_columns(
    stage: Stage,
    upstream_stages: Iterable[Stage],
    sources: Iterable[PlanSource],
    collector: ProblemCollector | None = None,
) -> Mapping[str, TypesByColumn | None]:
    """Return the columns of each input of a stage after all steps, or None if a step hides them.

    Problems of steps are added to the collector, as in `infer_columns`.
    """
    columns_by_input: dict[str, TypesByColumn] = {
        upstream.name: dict.fromkeys(stage_pane_columns(upstream)) for upstream in upstream_stages
    }
    columns_by_input |= {
        source.name: {column.name: column.type for column in source.columns} for source in sources
    }
    united_columns = {
        name: infer_columns(stage.steps_of_input(name), columns_by_input[name], collector)
        for name in stage.inputs
    }
    if any(isinstance(step, SqlStep | RowFunctionStep) for step in stage.steps):
        # These steps see the columns of all inputs in each row.
        united_columns = dict.fromkeys(stage.inputs, _unite_columns(united_columns.values()))
    return {name: infer_columns(stage.steps, columns, collector) for name, columns in united_columns.items()}


def _unite_columns(columns_by_input: Iterable[TypesByColumn | None]) -> TypesByColumn | None:
    """Return the columns of a union; the type of a column is None where inputs differ or do not know it."""
    united: dict[str, str | None] = {}
    for columns in columns_by_input:
        if columns is None:
            return None
        for name, column_type in columns.items():
            united[name] = column_type if united.get(name, column_type) == column_type else None
    return united


def stage_pane_columns(stage: Stage) -> tuple[str, ...]:
    """Return the columns that a downstream stage finds in the panes of a stage."""
    return (*stage.key, *stage_value_columns(stage), *WINDOW_BOUND_COLUMNS)


def stage_value_columns(stage: Stage) -> tuple[str, ...]:
    """Return the value columns that a stage computes."""
    if isinstance(stage.window, StatefulFunction):
        return tuple(column.name for column in stage.window.returns)
    if isinstance(stage.window, ChangelogWindows):
        return tuple(column.name for column in stage.window.columns)
    if stage.join is not None:
        return tuple(column.name for column in stage.join.columns)
    return tuple(output.name for output in stage.aggregates)
