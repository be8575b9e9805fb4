"""Columns of joins: `take` selects the columns of a joined row; the default is all columns of both inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.definition.argument_checks import require, require_known_name
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.joins import Join, JoinColumn, JoinKind
from penstock.engine.plan.steps import TypesByColumn
from penstock.engine.plan.validation.column_names import RESERVED_COLUMNS


@dataclass(frozen=True)
class JoinSpec:
    """A join as written: its kind, and pairs of column name and `input.field`, or None for all columns."""

    how: JoinKind
    take: tuple[tuple[str, str], ...] | None = None


InputColumns = Mapping[str, TypesByColumn | None]
"""The columns of each input, or None if its steps hide them."""


def resolve_join(
    join_spec: JoinSpec, inputs: Sequence[str], input_columns: InputColumns, key: Sequence[str]
) -> Join:
    """Return the join of the plan. Columns that both inputs have get the input's name as a prefix."""
    left, right = inputs
    if join_spec.take is not None:
        columns = tuple(
            resolve_column(name, field_path, input_columns) for name, field_path in join_spec.take
        )
    else:
        columns = tuple(
            all_columns(inputs if join_spec.how not in ("semi", "anti") else (left,), input_columns, key)
        )
    return Join(join_spec.how, left, right, columns)


def join_member_outputs(join: Join) -> tuple[AggregateOutput, ...]:
    """Return the elements that the stage must keep for a join."""
    return tuple(
        AggregateOutput(side, JoinMembers(input_name, join.fields_from(input_name)))
        for side, input_name in (("left", join.left), ("right", join.right))
    )


def resolve_column(name: str, field_path: str, input_columns: InputColumns) -> JoinColumn:
    """Return a column that is given as `input.field`, or as a field that only one input has."""
    input_, dot, field = field_path.rpartition(".")
    if dot:
        problem, label = f"{field_path!r}: the join has no input {input_!r}", "Write input.field. Inputs"
        require_known_name(input_, input_columns, "join.take", problem, label)
        return JoinColumn(name, input_, field)
    owning_inputs = [
        input_name
        for input_name, columns in input_columns.items()
        if columns is None or field_path in columns
    ]
    if not owning_inputs:
        known_fields = [name for columns in input_columns.values() for name in columns or ()]
        problem = f"no input has a field {field_path!r}"
        require_known_name(field_path, known_fields, "join.take", problem, "Known fields")
    fix = f"Name the input, as in '{next(iter(input_columns))}.{field_path}'"
    require(len(owning_inputs) == 1, "join.take", f"{len(owning_inputs)} inputs have {field_path!r}", fix)
    return JoinColumn(name, owning_inputs[0], field_path)


def all_columns(inputs: Sequence[str], input_columns: InputColumns, key: Sequence[str]) -> list[JoinColumn]:
    """Return every column besides the key. Ambiguous and reserved names get the input's name as a prefix."""
    column_pairs = []
    for name in inputs:
        columns = input_columns[name]
        if columns is None:
            fix = "Name columns, as in take={'page': 'clicks.page'}"
            raise DefinitionError("join.take", f"the columns of {name} after its steps are unknown", fix)
        column_pairs += [(name, field) for field in sorted(columns) if field not in key]
    fields = [field for _, field in column_pairs]

    def column_name(name: str, field: str) -> str:
        is_unambiguous = fields.count(field) == 1 and field.lower() not in RESERVED_COLUMNS
        return field if is_unambiguous else f"{name}_{field}"

    return [JoinColumn(column_name(name, field), name, field) for name, field in column_pairs]
