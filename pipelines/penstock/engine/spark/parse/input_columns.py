"""Builds the columns of several inputs in one frame, and SQL that depends on the input of a record."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.field_usage import inputs_using
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Sources = Sequence[PlanSource]


def sql_by_topic(sources: Sources, column: str, sql: Callable[[int, PlanSource], str | None]) -> str:
    """Return SQL with a branch for each input, null for inputs without one. `column` holds a record's topic."""
    branches = [(topic_of(source), sql(number, source)) for number, source in enumerate(sources)]
    if len(branches) == 1:
        return branches[0][1] or "NULL"
    cases = " ".join(
        f"WHEN '{topic}' THEN {branch_sql}" for topic, branch_sql in branches if branch_sql is not None
    )
    return f"CASE {column} {cases} END" if cases else "NULL"


def collect_field_types(sources: Sources) -> Mapping[str, frozenset[str]]:
    """Return the fields of all inputs by name, each with its types: one type if all inputs agree."""
    types: dict[str, frozenset[str]] = {}
    for source in sources:
        for column in source.columns:
            types[column.name] = types.get(column.name, frozenset()) | {column.type.lower()}
    return types


def find_conflicting_fields(sources: Sources) -> list[str]:
    """Return the fields that have different types in different inputs."""
    return [name for name, types in collect_field_types(sources).items() if len(types) > 1]


def input_field_column(number: int, field: str) -> str:
    """Return the column of a conflicting field with the type of this input."""
    return f"_of_{number}_{field}"


def select_input(records: "DataFrame", source: PlanSource, sources: Sources) -> "DataFrame":
    """Return the records of one input with only its fields, each under its own name."""
    conflicting = find_conflicting_fields(sources)
    number = list(sources).index(source)
    names = [column.name for column in source.columns]
    fields = [
        f"{quote_column(input_field_column(number, name))} AS {quote_column(name)}"
        if name in conflicting
        else quote_column(name)
        for name in names
    ]
    return records.selectExpr(*_internal_columns(records, sources), *fields)


def select_stage_inputs(
    records: "DataFrame", stage: Stage, stage_sources: Sources, sources: Sources
) -> "DataFrame":
    """Return the records of all inputs of a stage, with the fields of all of them.

    A conflicting field has the type that the stage uses; the plan's validation ensures that there is only one.
    """
    conflicting = find_conflicting_fields(sources)
    stage_conflicting = find_conflicting_fields(stage_sources)
    fields = []
    for name in collect_field_types(stage_sources):
        declaring = [
            source for source in stage_sources if any(column.name == name for column in source.columns)
        ]
        used = [
            source
            for source in declaring
            if name not in stage_conflicting or source.name in inputs_using(stage, name)
        ]
        if name not in conflicting:
            fields.append(quote_column(name))
        elif used:
            fields.append(f"{_conflicting_field_sql(used, sources, name)} AS {quote_column(name)}")
    return records.selectExpr(*_internal_columns(records, sources), *fields)


def _conflicting_field_sql(used: Sources, sources: Sources, name: str) -> str:
    """Return SQL for a conflicting field, from the column of each record's input."""
    numbers = {source.name: number for number, source in enumerate(sources)}
    return sql_by_topic(
        used, "_topic", lambda _, source: quote_column(input_field_column(numbers[source.name], name))
    )


def _internal_columns(records: "DataFrame", sources: Sources) -> list[str]:
    """Return the engine's own columns, which stay with every record."""
    hidden = {
        input_field_column(number, name)
        for number in range(len(sources))
        for name in find_conflicting_fields(sources)
    }
    return [quote_column(name) for name in records.columns if name.startswith("_") and name not in hidden]


def refuse_duplicate_topics(sources: Sources) -> None:
    """Raise DefinitionError when two inputs read the same topic: a record would not have one input."""
    topics = [topic_of(source) for source in sources]
    for topic in topics:
        if topics.count(topic) > 1:
            fix = "Read it once. To parse one topic in two ways, write two pipelines"
            raise DefinitionError("read", f"the topic {topic} is read twice", fix)
