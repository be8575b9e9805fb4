"""The compilation of a stage: its accumulators, key and record fields, for input columns of known types."""

from collections.abc import Mapping

import pyarrow as pa

from penstock.engine.aggregates import AggregateContext
from penstock.engine.definition.argument_checks import require, require_known_name
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.state_schema import list_record_fields
from penstock.engine.operators.stateful.schema import list_result_columns
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.column_types import SCALAR_KEY_HINT
from penstock.engine.plan.field_usage import iter_used_fields
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import step_kind
from penstock.engine.triggers.machine import TriggerColumnNames


def compile_stage(
    stage: Stage, field_types: Mapping[str, pa.DataType], *, reads_changes: bool = False
) -> CompiledStage:
    """Compile a stage over input fields of these types. Set `reads_changes` if its inputs are other stages."""
    refuse_unknown_fields(stage, field_types)
    has_several_inputs = len(stage.inputs) > 1
    restricted_columns = tuple(
        dict.fromkeys(column for output in stage.aggregates for column in output.aggregate.restricted_columns)
    )
    field_types = {
        **field_types,
        **{
            restricted.name: pa.bool_() if restricted.field is None else field_types[restricted.field]
            for restricted in restricted_columns
        },
    }
    aggregates = (
        output.aggregate.build_accumulator(
            AggregateContext(
                output.name, field_types, reads_changes, has_several_inputs and not reads_changes
            )
        )
        for output in stage.aggregates
    )
    for name in stage.key:
        is_simple = not pa.types.is_nested(field_types[name])
        require(
            is_simple,
            "key",
            f"{name!r} of stage {stage.name} has the type {field_types[name]}",
            SCALAR_KEY_HINT,
        )
    accumulators = (
        aggregates
        if not isinstance(stage.window, StatefulFunction | ChangelogWindows)
        else list_result_columns(stage.window)
    )
    return CompiledStage(
        stage,
        stage.trigger.create_machine(TriggerColumnNames()),
        tuple(accumulators),
        tuple(pa.field(name, field_types[name]) for name in stage.key),
        list_record_fields(stage, field_types) if stage.window.is_record_ordered else (),
        reads_changes,
        restricted_columns,
    )


def refuse_unknown_fields(stage: Stage, field_types: Mapping[str, pa.DataType]) -> None:
    """Raise DefinitionError for a field that the stage uses but that does not exist after its steps."""
    for input_ in stage.inputs:
        for yaml_path, name in iter_used_fields(stage, input_):
            if name not in field_types:
                steps = [*stage.steps_of_input(input_), *stage.steps]
                after_step = f" after its {step_kind(steps[-1])} step" if steps else ""
                available = sorted(column for column in field_types if not column.startswith("_"))
                problem = f"{name!r} is not a column of {input_}{after_step}, but stage {stage.name} uses it"
                require_known_name(name, available, yaml_path, problem, "Available columns")
