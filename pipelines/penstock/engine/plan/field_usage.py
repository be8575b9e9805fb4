"""The fields that a stage uses from its inputs, and the check that their types agree between inputs."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.engine.definition.predicates import Predicate, predicate_fields
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.steps import TypesByColumn
from penstock.engine.windows.join_window import JoinWindow


def iter_used_fields(stage: Stage, input_: str) -> Iterable[tuple[str, str]]:
    """Yield each use of a field of an input: its location in the definition and the field."""
    yield from (("key", name) for name in stage.key)
    for output in stage.aggregates:
        if output.aggregate.restricted_input in (None, input_):
            location = f"aggregate.{output.name}" if stage.join is None else "join.take"
            yield from ((location, name) for name in output.aggregate.used_fields)
    for location, predicate in iter_predicates(stage, input_):
        yield from ((location, name) for name in predicate_fields(predicate))
    yield from ((stage.window.field_location, name) for name in stage.window.numeric_fields)


def iter_predicates(stage: Stage, input_: str) -> Iterable[tuple[str, Predicate]]:
    """Yield each condition on records of an input: its location in the definition and the condition."""
    yield from (("trigger.after_punctuation", predicate) for predicate in stage.trigger.punctuation)
    condition = stage.window.record_condition
    is_join = isinstance(stage.window, JoinWindow)
    if condition is not None and (not is_join or (stage.join is not None and input_ == stage.join.right)):
        yield stage.window.condition_location, condition


def inputs_using(stage: Stage, field: str) -> tuple[str, ...]:
    """Return the inputs from which a stage uses a field of this name."""
    return tuple(
        name for name in stage.inputs if field in {used for _, used in iter_used_fields(stage, name)}
    )


def refuse_renamed_inputs(stage: Stage, sources: Iterable[PlanSource]) -> None:
    """Refuse an input whose name differs from its topic if a stage distinguishes its inputs.

    A record only carries its topic, not the name of its input.
    """
    reads_inputs_apart = stage.join is not None or stage.has_restricted_aggregates
    for source in sources:
        if (
            reads_inputs_apart
            and isinstance(source.origin, TopicOrigin)
            and source.origin.topic != source.name
        ):
            raise DefinitionError(
                f"read.{source.name}",
                f"its name differs from its topic {source.origin.topic}, and {stage.name} reads "
                "records of one input only",
                f"Rename the input to {source.origin.topic}, here and in {stage.name}",
            )


def refuse_type_conflicts(
    stage: Stage, columns_by_input: Mapping[str, TypesByColumn | None], *, panes: bool = False
) -> None:
    """Refuse a field that has different types in several inputs and is used from more than one of them.

    A field that is used from one input only may have any type in the others. Steps over all inputs may use any
    field, so they need equal types. `panes`: the inputs are stages.
    """
    for field in sorted({name for columns in columns_by_input.values() for name in columns or ()}):
        inputs_with_field = [
            name for name, columns in columns_by_input.items() if columns and columns.get(field)
        ]
        types = {name: str((columns_by_input[name] or {})[field]) for name in inputs_with_field}
        inputs_in_use = [
            name for name in inputs_with_field if stage.steps or name in inputs_using(stage, field)
        ]
        if len({types[name].lower() for name in inputs_in_use}) > 1:
            first_input, *other_inputs = inputs_in_use
            conflicting_input = next(
                name for name in other_inputs if types[name].lower() != types[first_input].lower()
            )
            rename_example = f"select(other_{field}={field!r}, ...)"
            if panes:
                fix = f"as in {conflicting_input}.then().{rename_example}"
            else:
                fix = f"as in read({conflicting_input!r}).{rename_example}, or one type in both contracts"
            conflicting_type, first_type = types[conflicting_input], types[first_input]
            raise DefinitionError(
                f"{'then' if panes else 'read'}.{field}",
                f"it is {conflicting_type} in {conflicting_input} and {first_type} in {first_input}",
                f"Rename it in a step before, {fix}",
            )


def unused_conflicting_fields(
    stage: Stage, columns_by_input: Mapping[str, TypesByColumn]
) -> Mapping[str, Sequence[str]]:
    """Return for each input its unused fields that have another type in another input."""
    all_fields = {field for columns in columns_by_input.values() for field in columns}
    conflicting_fields = [
        field
        for field in sorted(all_fields)
        if len({columns[field] for columns in columns_by_input.values() if columns.get(field)}) > 1
    ]
    return {
        name: [
            field
            for field in conflicting_fields
            if columns.get(field) and name not in inputs_using(stage, field)
        ]
        for name, columns in columns_by_input.items()
    }
